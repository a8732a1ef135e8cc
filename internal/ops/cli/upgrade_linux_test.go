package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/outlive-mcp/outlive/internal/testing/await"
	"github.com/outlive-mcp/outlive/internal/testing/mcptest"
)

// upgraded is what outlive says of each upgrade.
var upgraded = regexp.MustCompile(`Upgraded from outlive \S+ to \S+ in \d+ms`)

// built is the program as users have it.
var built = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "outlive-built")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "outlive")
	if out, err := exec.Command("go", "build", "-o", path, "../../../cmd/outlive").CombinedOutput(); err != nil {
		return "", fmt.Errorf("build outlive: %w\n%s", err, out)
	}
	program, err := os.ReadFile(path)
	return string(program), err
})

// relay is the built program in front of a scripted server, both in a directory of their own.
type relay struct {
	*mcptest.Client
	t       *testing.T
	dir     string
	program string
	env     []string
	cmd     *exec.Cmd
	in      *os.File // outlive's stdin, our end
	stderr  transcript
	seen    int // bytes of stderr that says has passed
}

func startRelay(t *testing.T, flags ...string) *relay {
	t.Helper()
	return startRelayBeside(t, nil, "up", flags...)
}

// startRelayBeside starts one of that name for the same user as another one, nil: for a user who has none.
func startRelayBeside(t *testing.T, other *relay, name string, flags ...string) *relay {
	t.Helper()
	r := &relay{t: t, dir: t.TempDir()}
	r.program = filepath.Join(r.dir, "outlive")
	program, err := built()
	if err != nil {
		t.Fatal(err)
	}
	r.replaceProgram(program)
	if other != nil {
		r.env = other.env
	} else {
		sockets, err := os.MkdirTemp("", "out") // the path of a Unix socket is short
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = os.RemoveAll(sockets) })
		r.env = append(os.Environ(), "OUTLIVE_STATE_HOME="+filepath.Join(r.dir, "state"), "XDG_RUNTIME_DIR="+sockets)
	}
	args := append(append([]string{"run", "--name", name}, flags...), "--", r.program, mcptest.ServerArg)
	r.cmd = exec.Command(r.program, args...)
	r.cmd.Dir, r.cmd.Env, r.cmd.Stderr = r.dir, r.env, &r.stderr
	theirs, in, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	out, theirOut, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	r.cmd.Stdin, r.cmd.Stdout, r.in = theirs, theirOut, in
	err = r.cmd.Start()
	_, _ = theirs.Close(), theirOut.Close()
	if err != nil {
		t.Fatal(err)
	}
	r.Client = mcptest.NewClient(mcptest.Join(out, in))
	t.Cleanup(r.end)
	if _, err := r.Initialize(t.Context(), "2025-11-25"); err != nil {
		t.Fatal(err)
	}
	return r
}

func (r *relay) end() {
	_ = r.CloseWrite()
	stop := time.AfterFunc(dialoguePatience, func() { _ = r.cmd.Process.Kill() })
	<-r.Done()
	err := r.cmd.Wait()
	stop.Stop()
	_ = r.Close()
	if err != nil && !r.t.Failed() && r.cmd.ProcessState.ExitCode() >= 0 {
		r.t.Errorf("outlive ended with %v", err)
	}
	if r.t.Failed() {
		r.t.Logf("stderr:\n%s", r.stderr.text())
	}
}

// says waits until outlive says something that matches, after what it was heard to say before.
func (r *relay) says(want *regexp.Regexp) string {
	r.t.Helper()
	late := time.After(dialoguePatience)
	for {
		changed := r.stderr.changing()
		text := r.stderr.text()
		if at := want.FindStringIndex(text[r.seen:]); at != nil {
			found := text[r.seen+at[0] : r.seen+at[1]]
			r.seen += at[1]
			return found
		}
		select {
		case <-changed:
		case <-late:
			r.t.Fatalf("outlive does not say %q", want)
		}
	}
}

// upgrade sends the signal and waits until the next image has taken over.
func (r *relay) upgrade() {
	r.t.Helper()
	if err := r.cmd.Process.Signal(unix.SIGUSR2); err != nil {
		r.t.Fatal(err)
	}
	r.says(upgraded)
}

// tool calls a tool and returns its text.
func (r *relay) tool(name string, arguments any) string {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), dialoguePatience)
	defer cancel()
	raw, err := r.Call(ctx, "tools/call", map[string]any{"name": name, "arguments": arguments})
	if err != nil {
		r.t.Errorf("%s: %v", name, err)
		return ""
	}
	return textOfResult(r.t, raw)
}

func textOfResult(t *testing.T, raw json.RawMessage) string {
	t.Helper()
	var result struct {
		IsError bool
		Content []struct{ Text string }
	}
	if err := json.Unmarshal(raw, &result); err != nil || result.IsError || len(result.Content) == 0 {
		t.Errorf("result %s: %v", raw, err)
		return ""
	}
	return result.Content[0].Text
}

// replaceProgram puts another program in the place of outlive's, as an installer does.
func (r *relay) replaceProgram(content string) {
	r.t.Helper()
	next := r.program + ".next"
	if err := os.WriteFile(next, []byte(content), 0o755); err != nil {
		r.t.Fatal(err)
	}
	if err := os.Rename(next, r.program); err != nil {
		r.t.Fatal(err)
	}
}

// TestUpgradesWhileCallsFlow: sixteen callers that never pause, many upgrades, and a call that lasts longer than most. Every
// call is carried out once and answered once, those included that come while an upgrade is under way.
func TestUpgradesWhileCallsFlow(t *testing.T) {
	const callers = 16
	r := startRelay(t)
	done := filepath.Join(r.dir, "done")
	slow := r.Go("tools/call", map[string]any{"name": "slow", "arguments": map[string]any{"ms": 2000}})

	stop := make(chan struct{})
	var callersDone sync.WaitGroup
	calls := make([]int, callers)
	for i := range callers {
		callersDone.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				r.tool("bump", map[string]any{"path": done, "line": fmt.Sprintf("%d.%d", i, calls[i])})
				calls[i]++
			}
		})
	}
	for range upgrades {
		r.upgrade()
	}
	for range upgrades { // and as fast as they can be sent: some become one, none does harm
		if err := r.cmd.Process.Signal(unix.SIGUSR2); err != nil {
			t.Fatal(err)
		}
	}
	r.says(upgraded)
	close(stop)
	callersDone.Wait()
	if raw, err := slow.Wait(t.Context()); err != nil {
		t.Errorf("the call that was in flight: %v", err)
	} else {
		textOfResult(t, raw)
	}

	if err := r.Verify(); err != nil {
		t.Error(err)
	}
	carriedOut(t, done, calls)
}

// carriedOut checks that each call of each caller was carried out once.
func carriedOut(t *testing.T, path string, calls []int) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	times := map[string]int{}
	for _, line := range strings.Fields(string(text)) {
		times[line]++
	}
	total := 0
	for i, n := range calls {
		total += n
		for k := range n {
			if line := fmt.Sprintf("%d.%d", i, k); times[line] != 1 {
				t.Errorf("call %s was carried out %d times", line, times[line])
			}
		}
	}
	t.Logf("%d calls", total)
	if len(times) != total {
		t.Errorf("%d different calls were carried out, %d were made", len(times), total)
	}
}

// TestAnUpgradeInTheMiddleOfALine: the line is waited for.
func TestAnUpgradeInTheMiddleOfALine(t *testing.T) {
	r := startRelay(t)
	line := `{"jsonrpc":"2.0","id":"torn","method":"tools/call","params":{"name":"echo","arguments":{"text":"` +
		strings.Repeat("both halves ", 20_000) + `"}}}`
	answer := r.GoID(`"torn"`, "tools/call", nil) // so that its answer is expected; this one has no tool
	if _, err := answer.Wait(t.Context()); err == nil {
		t.Error("a call without a tool was answered")
	}
	half := len(line) - 100
	if _, err := io.WriteString(r.in, line[:half]); err != nil {
		t.Fatal(err)
	}
	r.taken()
	if out := r.upgradeByName(r.program, exitFailure, "up", "--timeout", "100ms"); !strings.Contains(out, "in the middle of a line") {
		t.Errorf("it says %s", out)
	}
	from := len(r.Lines())
	if err := r.cmd.Process.Signal(unix.SIGUSR2); err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(r.in, line[half:]+"\n"); err != nil {
		t.Fatal(err)
	}
	r.says(upgraded)
	ctx, cancel := context.WithTimeout(t.Context(), dialoguePatience)
	defer cancel()
	got, err := r.WaitAfter(ctx, from, func(l string) bool { return strings.Contains(l, `"torn"`) })
	if err != nil || !strings.Contains(got, strings.Repeat("both halves ", 20_000)) {
		t.Errorf("the answer has %d bytes, %v", len(got), err)
	}
}

// TestAnUpgradeThatFindsNoQuietMoment: a call does not end. It says so, nothing has changed, and calls go on meanwhile.
func TestAnUpgradeThatFindsNoQuietMoment(t *testing.T) {
	r := startRelay(t)
	before := r.tool("pid", nil)
	slow := r.Go("tools/call", map[string]any{"name": "slow", "arguments": map[string]any{"ms": 4000}})
	out := r.upgradeByName(r.program, exitFailure, "up", "--timeout", "500ms")
	if want := regexp.MustCompile(`no quiet moment within \d.*: a call of 'slow' is in flight; nothing has changed, try again later`); !want.MatchString(out) {
		t.Errorf("it says %s", out)
	}
	if after := r.tool("pid", nil); after != before {
		t.Errorf("the server was %s and is %s", before, after)
	}
	ctx, cancel := context.WithTimeout(t.Context(), dialoguePatience)
	defer cancel()
	if _, err := slow.Wait(ctx); err != nil {
		t.Errorf("the call that was in flight: %v", err)
	}
	if out := r.upgradeByName(r.program, 0, "up"); !strings.Contains(out, "server PID ") {
		t.Errorf("it says %s", out)
	}
	if err := r.Verify(); err != nil {
		t.Error(err)
	}
}

// TestNothingIsLeftOverAfterUpgrades: each version has one keeper, and the servers of the versions before are gone.
func TestNothingIsLeftOverAfterUpgrades(t *testing.T) {
	r := startRelay(t, "--standby", "1")
	gone := func(pid int) bool { return unix.Kill(pid, 0) == unix.ESRCH }
	var servers []int
	for range 4 {
		r.says(regexp.MustCompile(`Spare server ready`))
		pid, err := strconv.Atoi(regexp.MustCompile(`\d+`).FindString(r.tool("pid", nil)))
		if err != nil {
			t.Fatal(err)
		}
		keeper := childNamed(t, r.cmd.Process.Pid, "outlive-keeper")
		r.upgrade()
		if !gone(pid) || !gone(keeper) {
			t.Errorf("after an upgrade: server %d is gone: %v, keeper %d: %v", pid, gone(pid), keeper, gone(keeper))
		}
		servers = append(servers, pid)
	}
	r.tool("pid", nil)
	keeper := childNamed(t, r.cmd.Process.Pid, "outlive-keeper")
	if err := r.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	awaitEnd(t, r.cmd.Process.Pid, func() {})
	for _, pid := range append(servers, keeper) {
		if !gone(pid) {
			t.Errorf("process %d is left over", pid)
		}
	}
}

// taken waits until outlive has read everything from its stdin.
func (r *relay) taken() {
	r.t.Helper()
	await.Value(r.t, "all bytes are read", func() (int, bool) {
		n, err := unix.IoctlGetInt(int(r.in.Fd()), unix.TIOCINQ)
		if err != nil {
			r.t.Fatalf("%d bytes are not read: %v", n, err)
		}
		return n, n == 0
	})
}

func TestAProgramThatCannotTakeOverChangesNothing(t *testing.T) {
	for name, c := range map[string]struct{ program, why string }{
		"broken":        {"#!/bin/sh\necho no libc >&2\nexit 1\n", "does not run: exit status 1: no libc"},
		"not outlive":   {"#!/bin/sh\necho hello\n", "does not say that it can take over"},
		"not a program": {"\x7fELF", "does not run"},
		"other format": {"#!/bin/sh\necho '{\"handover_format\":999,\"version\":\"v9\"}'\n",
			`\(outlive v9\) takes over sessions of version 999 only`},
	} {
		t.Run(name, func(t *testing.T) {
			r := startRelay(t)
			before := r.tool("pid", nil)
			r.replaceProgram(c.program)
			if err := r.cmd.Process.Signal(unix.SIGUSR2); err != nil {
				t.Fatal(err)
			}
			r.says(regexp.MustCompile("Upgrade failed, this version goes on: .*" + c.why))
			if after := r.tool("pid", nil); after != before {
				t.Errorf("the server was %s and is %s", before, after)
			}
			if err := r.Verify(); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestAnUpgradedOutliveKeepsItsServerAlive: crashes are noticed, spares brought up, as before.
func TestAnUpgradedOutliveKeepsItsServerAlive(t *testing.T) {
	r := startRelay(t, "--standby", "1")
	kill := func() {
		r.t.Helper()
		old := r.tool("pid", nil)
		pid, err := strconv.Atoi(regexp.MustCompile(`\d+`).FindString(old))
		if err != nil {
			t.Fatalf("pid %q: %v", old, err)
		}
		if err := unix.Kill(pid, unix.SIGKILL); err != nil {
			t.Fatal(err)
		}
	}
	kill()
	r.says(regexp.MustCompile(`Restart completed`))
	r.upgrade()
	r.says(regexp.MustCompile(`Spare server ready`))
	kill()
	r.says(regexp.MustCompile(`Server crashed \(exit code 137\), restarting \(restart #1\)`))
	r.says(regexp.MustCompile(`Restart completed`))
	r.tool("echo", map[string]any{"text": "x"})
}

// TestTheServerEndsWithAnUpgradedOutlive: killing outlive ends its server after an upgrade as before it.
func TestTheServerEndsWithAnUpgradedOutlive(t *testing.T) {
	r := startRelay(t)
	r.upgrade()
	m := regexp.MustCompile(`\d+`).FindStringSubmatch(r.tool("pid", nil))
	if m == nil {
		t.Fatal("no server")
	}
	pid, err := strconv.Atoi(m[0])
	if err != nil {
		t.Fatal(err)
	}
	awaitEnd(t, pid, func() {
		if err := r.cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
	})
}

// awaitEnd waits until a process that runs now has ended because of cause.
func awaitEnd(t *testing.T, pid int, cause func()) {
	t.Helper()
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	cause()
	var n int
	for end := time.Now().Add(dialoguePatience); ; { // a signal, such as that outlive has ended, interrupts the wait
		n, err = unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, int(max(0, time.Until(end).Milliseconds())))
		if err != unix.EINTR {
			break
		}
	}
	if n != 1 {
		t.Errorf("process %d still runs: %v", pid, err)
	}
}

// upgradeByName runs outlive upgrade, which must end with status want, and returns what it says.
func (r *relay) upgradeByName(program string, want int, which ...string) string {
	r.t.Helper()
	cmd := exec.Command(program, append([]string{"upgrade"}, which...)...)
	cmd.Env = r.env
	out, err := cmd.CombinedOutput()
	if code := cmd.ProcessState.ExitCode(); code != want {
		r.t.Errorf("exit status %d, want %d: %v\n%s", code, want, err, out)
	}
	return string(out)
}

func TestUpgradeByName(t *testing.T) {
	r := startRelay(t)
	for range 2 {
		if out := r.upgradeByName(r.program, 0, "up"); !strings.Contains(out, fmt.Sprintf("(PID %d), server PID ", r.cmd.Process.Pid)) {
			t.Errorf("it says %s", out)
		}
	}
	good := filepath.Join(r.dir, "good")
	if err := os.Link(r.program, good); err != nil {
		t.Fatal(err)
	}
	r.replaceProgram("#!/bin/sh\nexit 1\n")
	if out := r.upgradeByName(good, exitFailure, "up"); !strings.Contains(out, "does not run: exit status 1") {
		t.Errorf("it says %s", out)
	}
	r.tool("echo", map[string]any{"text": "x"})
}

// TestUpgradeAll: everything of the user's is upgraded, and what cannot be goes on and is named.
func TestUpgradeAll(t *testing.T) {
	r := startRelay(t)
	other := startRelayBeside(t, r, "other")
	out := r.upgradeByName(r.program, 0, "--all")
	for _, one := range []*relay{r, other} {
		if want := fmt.Sprintf("(PID %d), server PID ", one.cmd.Process.Pid); !strings.Contains(out, want) || strings.Count(out, "\n") != 2 {
			t.Errorf("it says %s, without %s", out, want)
		}
	}
	other.replaceProgram("#!/bin/sh\nexit 1\n")
	out = r.upgradeByName(r.program, exitFailure, "--all")
	for _, want := range []string{fmt.Sprintf("(PID %d), server PID ", r.cmd.Process.Pid), fmt.Sprintf("outlive: upgrade other@%d: ", other.cmd.Process.Pid), "1 of 2 go on with the version they had"} {
		if !strings.Contains(out, want) {
			t.Errorf("it says %s, without %q", out, want)
		}
	}
	for _, one := range []*relay{r, other} {
		one.tool("echo", map[string]any{"text": "x"})
	}
}

// TestAnUpgradeCountsFromZero: what the next program counts are its own restarts (WD-10).
func TestAnUpgradeCountsFromZero(t *testing.T) {
	r := startRelay(t)
	count := func() (restarts, upgrades int) {
		t.Helper()
		cmd := exec.Command(r.program, "status", "--json")
		cmd.Env = r.env
		out, err := cmd.Output()
		var all []struct {
			RestartCount int `json:"restart_count"`
			Upgrades     int `json:"upgrades"`
		}
		if err != nil || json.Unmarshal(out, &all) != nil || len(all) != 1 {
			t.Fatalf("status: %v: %s", err, out)
		}
		return all[0].RestartCount, all[0].Upgrades
	}
	restart := exec.Command(r.program, "restart", "up")
	restart.Env = r.env
	if out, err := restart.CombinedOutput(); err != nil {
		t.Fatalf("restart: %v: %s", err, out)
	}
	if n, _ := count(); n != 1 {
		t.Errorf("%d restarts before the upgrade", n)
	}
	r.upgradeByName(r.program, 0, "up")
	if n, upgrades := count(); n != 0 || upgrades != 1 {
		t.Errorf("%d restarts after upgrade %d", n, upgrades)
	}
}
