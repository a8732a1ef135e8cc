//go:build unix

package process

import (
	"bufio"
	"errors"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
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
