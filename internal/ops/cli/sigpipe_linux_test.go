package cli

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/outlive-mcp/outlive/internal/testing/await"
	"github.com/outlive-mcp/outlive/internal/testing/mcptest"
)

// initializeLine is the first line of a client.
const initializeLine = `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},` +
	`"clientInfo":{"name":"t","version":"1"}}}` + "\n"

// unread is the built program with a stderr that has no reader.
type unread struct {
	t       *testing.T
	dir     string
	program string
	cmd     *exec.Cmd
	in      io.WriteCloser
	out     *bufio.Reader
	listens *os.File // reads stderr; nil: nobody does from the beginning
}

// newUnread prepares a directory with the program; nothing is started.
func newUnread(t *testing.T) *unread {
	t.Helper()
	u := &unread{t: t, dir: t.TempDir()}
	u.program = filepath.Join(u.dir, "outlive")
	program, err := built()
	if err == nil {
		err = os.WriteFile(u.program, []byte(program), 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
	return u
}

// start runs the program; with listened somebody reads its stderr for now.
func (u *unread) start(listened bool, args ...string) {
	u.t.Helper()
	sockets, err := os.MkdirTemp("", "out") // the path of a Unix socket is short
	if err != nil {
		u.t.Fatal(err)
	}
	u.t.Cleanup(func() { _ = os.RemoveAll(sockets) })
	r, w, err := os.Pipe()
	if err != nil {
		u.t.Fatal(err)
	}
	u.listens = r
	if !listened {
		_ = r.Close()
	}
	u.cmd = exec.Command(u.program, args...)
	u.cmd.Dir, u.cmd.Stderr = u.dir, w
	u.cmd.Env = append(os.Environ(), "HOME="+u.dir, "OUTLIVE_STATE_HOME="+filepath.Join(u.dir, "state"), "XDG_RUNTIME_DIR="+sockets)
	out, err := u.cmd.StdoutPipe()
	if err != nil {
		u.t.Fatal(err)
	}
	u.out = bufio.NewReader(out)
	if u.in, err = u.cmd.StdinPipe(); err != nil {
		u.t.Fatal(err)
	}
	err = u.cmd.Start()
	_ = w.Close()
	if err != nil {
		u.t.Fatal(err)
	}
	u.t.Cleanup(func() { _, _ = u.cmd.Process.Kill(), u.cmd.Wait() })
}

// asks writes a line and returns the next line of the program.
func (u *unread) asks(line string) string {
	u.t.Helper()
	if _, err := io.WriteString(u.in, line); err != nil {
		u.t.Errorf("write: %v", err)
	}
	answer := make(chan string, 1)
	go func() {
		text, err := u.out.ReadString('\n')
		if err != nil {
			text = "(" + err.Error() + ")"
		}
		answer <- text
	}()
	select {
	case text := <-answer:
		return text
	case <-time.After(dialoguePatience):
		u.t.Fatal("no answer")
	}
	return ""
}

// ends waits for the end and wants exit status 0.
func (u *unread) ends() {
	u.t.Helper()
	late := time.AfterFunc(dialoguePatience, func() { _ = u.cmd.Process.Kill() })
	defer late.Stop()
	if err := u.cmd.Wait(); err != nil {
		u.t.Errorf("ended with %v", err)
	}
}

// TestNobodyReadsStderr: whatever keeps something alive does so although its stderr has no reader from the beginning.
func TestNobodyReadsStderr(t *testing.T) {
	server := func(u *unread) []string { return []string{"--", u.program, mcptest.ServerArg} }
	for name, args := range map[string]func(*unread) []string{
		"run":     func(u *unread) []string { return append([]string{"run"}, server(u)...) },
		"inherit": func(u *unread) []string { return append([]string{"run", "--mode", "inherit"}, server(u)...) },
		"agent":   func(u *unread) []string { return append([]string{"agent", "run", "shop", "--pipes"}, server(u)...) },
		"gateway": func(u *unread) []string {
			config := filepath.Join(u.dir, "gateway.yaml")
			text := fmt.Sprintf("servers:\n  one:\n    command: %q\n    args: [%q]\n", u.program, mcptest.ServerArg)
			if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			return []string{"gateway", "-c", config}
		},
	} {
		t.Run(name, func(t *testing.T) {
			u := newUnread(t)
			u.start(false, args(u)...)
			if text := u.asks(initializeLine); !strings.Contains(text, `"serverInfo"`) {
				t.Errorf("answer to initialize: %s", text)
			}
			_ = u.in.Close()
			u.ends()
		})
	}
	t.Run("monitor", func(t *testing.T) {
		u := newUnread(t)
		if err := os.WriteFile(filepath.Join(u.dir, "registry.yaml"), []byte("projects: ["), 0o600); err != nil { // it complains of that
			t.Fatal(err)
		}
		u.start(false, "monitor", "--home", u.dir, "--once")
		u.ends()
	})
	t.Run("mistake", func(t *testing.T) {
		u := newUnread(t)
		u.start(false, "run", "--no-such-flag")
		var exit *exec.ExitError
		if err := u.cmd.Wait(); !errors.As(err, &exit) || exit.ExitCode() != exitUsage {
			t.Errorf("ended with %v, want exit status %d", err, exitUsage)
		}
	})
}

// TestUpgradeWhenNobodyReadsStderr: the reader of stderr leaves, and then another image takes over.
func TestUpgradeWhenNobodyReadsStderr(t *testing.T) {
	u := newUnread(t)
	u.start(true, "run", "--name", "up", "--", u.program, mcptest.ServerArg)
	if text := u.asks(initializeLine); !strings.Contains(text, `"serverInfo"`) {
		t.Fatalf("answer to initialize: %s", text)
	}
	_ = u.listens.Close()
	if err := u.cmd.Process.Signal(unix.SIGUSR2); err != nil {
		t.Fatal(err)
	}
	await.Until(t, "the upgrade", func() bool { return u.upgrades() > 0 })
	if text := u.asks(`{"jsonrpc":"2.0","id":1,"method":"tools/list"}` + "\n"); !strings.Contains(text, `"id":1,`) {
		t.Errorf("answer after the upgrade: %s", text)
	}
	_ = u.in.Close()
	u.ends()
}

// upgrades is how often the program was replaced, as it says itself.
func (u *unread) upgrades() int {
	u.t.Helper()
	ask := exec.Command(u.program, "status", "--json")
	ask.Env = u.cmd.Env
	text, err := ask.Output()
	var all []struct{ Upgrades int }
	if err == nil {
		err = json.Unmarshal(text, &all)
	}
	if err != nil || len(all) > 1 {
		u.t.Fatalf("status: %v\n%s", err, text)
	}
	if len(all) == 0 {
		return 0 // the new image does not listen yet
	}
	return all[0].Upgrades
}

// TestChildrenMeetBrokenPipesAsEver: what outlive hears of broken pipes is nothing that its children inherit.
func TestChildrenMeetBrokenPipesAsEver(t *testing.T) {
	for _, args := range [][]string{{"run"}, {"run", "--mode", "inherit"}, {"agent", "run", "shop", "--pipes"}} {
		u := newUnread(t)
		found := filepath.Join(u.dir, "signals")
		u.start(false, append(args, "--", "sh", "-c", "exec cat /proc/self/status >"+found)...)
		u.ends()
		text, err := os.ReadFile(found)
		if err != nil {
			t.Fatal(err)
		}
		for _, set := range []string{"SigIgn:", "SigBlk:"} {
			_, rest, _ := strings.Cut(string(text), set)
			fields := strings.Fields(rest)
			if len(fields) == 0 {
				t.Fatalf("%v: no %s in %s", args, set, text)
			}
			mask, err := strconv.ParseUint(fields[0], 16, 64)
			if err != nil || mask&(1<<(unix.SIGPIPE-1)) != 0 {
				t.Errorf("%v: %s %#x, %v", args, set, mask, err)
			}
		}
	}
}
