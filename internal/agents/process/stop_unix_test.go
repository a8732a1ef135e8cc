//go:build unix

package process

import (
	"bufio"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/outlive-mcp/outlive/internal/testing/await"
)

// A leader that obeys at once does not take with it what it has started: that may ignore SIGTERM, or have something to finish.
func TestStopKnowsWhatItsLeaderHasStarted(t *testing.T) {
	cmd := exec.Command("/bin/sh", "-c", `sh -c 'trap "" TERM; echo $$; exec sleep 1000' & wait`)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, readErr := bufio.NewReader(out).ReadString('\n')
	leader, err := (System{}).Look(cmd.Process.Pid)
	if err = errors.Join(readErr, err); err != nil {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		t.Fatal(err)
	}
	reaped := make(chan struct{})
	go func() {
		defer close(reaped)
		_ = cmd.Wait() // it ends by a signal
	}()
	if err := (System{}).Stop(t.Context(), Target{Leaders: []Identity{leader.Identity}, Grace: 200 * time.Millisecond}); err != nil {
		t.Error(err)
	}
	<-reaped
	pid, err := strconv.Atoi(strings.TrimSpace(line))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := (System{}).Look(pid); !errors.Is(err, os.ErrProcessDone) {
		t.Errorf("its child still runs: %v", err)
	}
}

// What a wrapper passes on would be a second SIGTERM, by which many programs break off at once.
func TestStopAsksBehindAWrapperOnce(t *testing.T) {
	asked := filepath.Join(t.TempDir(), "asked")
	cmd := exec.Command("/bin/sh", "-c", `trap 'echo >"$0"' TERM; sleep 1000 & wait $!; wait $!`, asked)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var sleeper int
	await.Until(t, "the wrapper has a child", func() bool {
		for _, e := range (System{}).All() {
			if e.Parent == cmd.Process.Pid {
				sleeper = e.PID
			}
		}
		return sleeper != 0
	})
	ends := make(chan error, 1)
	go func() { ends <- cmd.Wait() }()
	target := Target{Leaders: []Identity{identityOf(cmd.Process.Pid)}, Wrapper: identityOf(cmd.Process.Pid), LeftBefore: time.Now()}
	if err := (System{}).Stop(t.Context(), target); err != nil {
		t.Error(err)
	}
	<-ends
	if identityOf(sleeper) != (Identity{}) {
		t.Error("its child is still there")
	}
	if _, err := os.Stat(asked); err == nil {
		t.Error("the wrapper was asked, too")
	}
}

// identityOf is the zero identity for the dead.
func identityOf(pid int) Identity {
	p, err := (System{}).Look(pid)
	if err != nil {
		return Identity{}
	}
	return p.Identity
}
