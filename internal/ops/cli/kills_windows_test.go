package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/windows"

	"github.com/outlive-mcp/outlive/internal/testing/mcptest"
)

// kills is how many processes TestKills kills; OUTLIVE_TEST_KILLS is another number.
const kills = 20

// TestKills kills servers, three behind each outlive, and then that outlive, with calls in flight. Each call gets one answer and is
// carried out once, or at most once if its answer says that this is not known; and of a killed outlive nothing is left.
func TestKills(t *testing.T) {
	wanted := kills
	if text := os.Getenv("OUTLIVE_TEST_KILLS"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n <= 0 {
			t.Fatalf("OUTLIVE_TEST_KILLS=%q: want a number above 0", text)
		}
		wanted = n
	}
	dir := t.TempDir()
	done, calls, unknown := 0, 0, 0
	for round := 0; done < wanted; round++ {
		k := newKilled(t, dir, round)
		for range min(3, wanted-done-1) {
			k.killServer(t)
			done++
		}
		k.killOutlive(t)
		done++
		k.judge(t)
		calls += k.calls
		unknown += k.unknown
		if t.Failed() {
			break
		}
	}
	t.Logf("%d kills, %d calls, the outcome of %d unknown", done, calls, unknown)
}

// killed is an outlive with a server, both to be killed.
type killed struct {
	*mcptest.Client
	cmd     *exec.Cmd
	file    string // a line for each execution of a call
	calls   int
	unknown int
	sure    []string // calls whose answer says that they were carried out
	ctx     context.Context
}

func newKilled(t *testing.T, dir string, round int) *killed {
	t.Helper()
	server, env := mcptest.Command("-name", "kills")
	cmd := exec.Command(server[0], append([]string{"run", "--name", "kills", "--max-restarts", "0", "--restart-delay", "1ms", "--"}, server...)...)
	cmd.Dir = dir
	cmd.Env = append(append(os.Environ(), env...), envDemoChild+"=1", "OUTLIVE_STATE_HOME="+filepath.Join(dir, "state"))
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	k := &killed{Client: mcptest.NewClient(mcptest.Join(out, in)), cmd: cmd, ctx: ctx, file: filepath.Join(dir, fmt.Sprint("executed", round))}
	t.Cleanup(func() {
		cancel()
		_ = cmd.Process.Kill()
		_ = k.Close()
		_ = cmd.Wait()
	})
	if _, err := k.Initialize(ctx, "2025-06-18"); err != nil {
		t.Fatal(err)
	}
	return k
}

// inFlight sends calls that write a line each, and returns when the first is answered, so that the others are on their way.
func (k *killed) inFlight(t *testing.T) map[string]*mcptest.Pending {
	t.Helper()
	sent := map[string]*mcptest.Pending{}
	var first *mcptest.Pending
	for range 20 {
		line := fmt.Sprint("call", k.calls)
		k.calls++
		sent[line] = k.Go("tools/call", mcptest.ToolParams("bump", map[string]any{"path": k.file, "line": line}))
		if first == nil {
			first = sent[line]
		}
	}
	if _, err := first.Wait(k.ctx); err != nil {
		t.Fatal(err)
	}
	return sent
}

// held is the server's process: its number may be another one's soon.
func (k *killed) held(t *testing.T) windows.Handle {
	t.Helper()
	var id mcptest.Identity
	for { // the question may meet the process that was just killed; then its outcome is not known either
		r, err := k.Tool(k.ctx, "read", nil)
		if err != nil {
			t.Fatal(err)
		}
		if r.IsError {
			continue
		}
		if err := json.Unmarshal([]byte(r.Text), &id); err != nil {
			t.Fatal(err)
		}
		break
	}
	h, err := windows.OpenProcess(windows.PROCESS_TERMINATE|windows.SYNCHRONIZE, false, uint32(id.PID))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = windows.CloseHandle(h) })
	return h
}

func (k *killed) killServer(t *testing.T) {
	t.Helper()
	server := k.held(t)
	sent := k.inFlight(t)
	if err := windows.TerminateProcess(server, 1); err != nil {
		t.Fatal(err)
	}
	if event, err := windows.WaitForSingleObject(server, 10_000); err != nil || event != windows.WAIT_OBJECT_0 {
		t.Fatalf("the server lives on: %v, %v", event, err)
	}
	for line, p := range sent {
		raw, err := p.Wait(k.ctx)
		if err != nil {
			t.Errorf("%s: %v", line, err)
			continue
		}
		r, err := mcptest.ParseToolResult(raw)
		switch {
		case err == nil && !r.IsError && r.Text == "bumped "+line:
			k.sure = append(k.sure, line)
		case err == nil && r.IsError:
			k.unknown++
		default:
			t.Errorf("%s: %+v, %v", line, r, err)
		}
	}
	if err := k.Verify(); err != nil {
		t.Error(err)
	}
}

func (k *killed) killOutlive(t *testing.T) {
	t.Helper()
	server := k.held(t)
	k.inFlight(t)
	if err := k.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if event, err := windows.WaitForSingleObject(server, 10_000); err != nil || event != windows.WAIT_OBJECT_0 {
		t.Errorf("the server lives on: %v, %v", event, err)
	}
	<-k.Done()
	if problems := k.Problems(); len(problems) > 0 {
		t.Error(strings.Join(problems, "\n"))
	}
}

// judge looks at what was carried out.
func (k *killed) judge(t *testing.T) {
	t.Helper()
	text, err := os.ReadFile(k.file)
	if err != nil {
		t.Fatal(err)
	}
	times := map[string]int{}
	for line := range strings.Lines(string(text)) {
		times[strings.TrimSpace(line)]++
	}
	for line, n := range times {
		if n > 1 {
			t.Errorf("%s was carried out %d times", line, n)
		}
	}
	for _, line := range k.sure {
		if times[line] != 1 {
			t.Errorf("%s was carried out %d times, and its answer says that it was", line, times[line])
		}
	}
}
