//go:build unix

package agentrun

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/outlive-mcp/outlive/internal/agents/process"
	"github.com/outlive-mcp/outlive/internal/testing/await"
	"github.com/outlive-mcp/outlive/internal/testing/tier"
)

// testTime is how long something may take on a busy machine.
const testTime = 2 * time.Minute

// run is a wrapper in a process of its own, as it is in life.
type testRun struct {
	t    *testing.T
	home string
	cmd  *exec.Cmd
	out  output
	err  output
	done chan struct{}
}

// output is what a process has written so far: it is read while the process goes on writing.
type output struct {
	mu   sync.Mutex
	text []byte
}

func (o *output) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.text = append(o.text, b...)
	return len(b), nil
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return string(o.text)
}

// wrap prepares a wrapper around a command. Its home is short, since it has a socket in it.
func wrap(t *testing.T, command ...string) *testRun {
	t.Helper()
	home, err := os.MkdirTemp("", "agent")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(home) })
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	r := &testRun{t: t, home: home, cmd: exec.Command(self, command...), done: make(chan struct{})}
	r.cmd.Env = append(os.Environ(), wrapIn+"="+home, process.RunVariable+"=run-1", "NOTIFY_SOCKET=/nowhere", "WATCHDOG_USEC=1", "GORACE=atexit_sleep_ms=0")
	r.cmd.Stdout, r.cmd.Stderr = &r.out, &r.err
	return r
}

func (r *testRun) start() *testRun {
	r.t.Helper()
	if err := r.cmd.Start(); err != nil {
		r.t.Fatal(err)
	}
	go func() {
		defer close(r.done)
		_ = r.cmd.Wait() // how it went is in the state
	}()
	r.t.Cleanup(func() {
		_ = r.cmd.Process.Kill()
		<-r.done
		if report, err := r.report(); err == nil && lives(report.Process()) {
			_ = syscall.Kill(-report.PID, syscall.SIGKILL)
		}
	})
	return r
}

// ends waits for the wrapper's exit status.
func (r *testRun) ends() int {
	r.t.Helper()
	select {
	case <-r.done:
	case <-time.After(testTime):
		r.t.Fatalf("the wrapper has not ended; its output: %q %q", r.out.String(), r.err.String())
	}
	return r.cmd.ProcessState.ExitCode()
}

func (r *testRun) report() (Report, error) { return Read(Path(r.home, "shop")) }

// until waits for a report that is as wanted.
func (r *testRun) until(what string, good func(Report) bool) Report {
	r.t.Helper()
	type look struct {
		report Report
		err    error
		stderr string
	}
	return await.Value(r.t, "a report with "+what, func() (look, bool) {
		report, err := r.report()
		return look{report, err, r.err.String()}, err == nil && good(report)
	}).report
}

func said(text string) func(Report) bool {
	return func(r Report) bool { return strings.Contains(strings.Join(r.LastLines, "\n"), text) }
}

func TestExitStatus(t *testing.T) {
	tests := []struct {
		name    string
		command []string
		code    int
		signal  string
	}{
		{"well", []string{"true"}, 0, ""},
		{"badly", []string{"sh", "-c", "exit 7"}, 7, ""},
		{"killed", []string{"sh", "-c", "kill -KILL $$"}, 137, "killed"},
		{"terminated", []string{"sh", "-c", "kill -TERM $$"}, 143, "terminated"},
	}
	for _, tt := range tests {
		r := wrap(t, tt.command...).start()
		if code := r.ends(); code != tt.code {
			t.Errorf("%s: exit status %d, want %d: %s", tt.name, code, tt.code, r.err.String())
		}
		report, err := r.report()
		if err != nil || report.Exit == nil {
			t.Errorf("%s: report %+v, %v", tt.name, report, err)
			continue
		}
		if report.Exit.Code != tt.code || report.Exit.Signal != tt.signal || report.Exit.At.Before(report.StartedAt) {
			t.Errorf("%s: exit %+v, want %d %q", tt.name, *report.Exit, tt.code, tt.signal)
		}
	}
}

func TestWhatCannotBeStarted(t *testing.T) {
	dir := t.TempDir()
	plain := filepath.Join(dir, "plain")
	if err := os.WriteFile(plain, []byte("hello"), 0o600); err != nil {
		t.Fatal(err)
	}
	for command, want := range map[string]int{"no-such-program-at-all": 127, filepath.Join(dir, "missing"): 127, plain: 126} {
		r := wrap(t, command).start()
		if code := r.ends(); code != want {
			t.Errorf("%s: exit status %d, want %d", command, code, want)
		}
		report, err := r.report()
		if err != nil || report.Exit == nil || report.Exit.Code != want || report.PID != report.Wrapper.PID || len(report.LastLines) == 0 {
			t.Errorf("%s: report %+v, %v", command, report, err)
		}
	}
}

// Bytes pass unchanged, whatever they are, and their end comes after them.
func TestPipesPassEverything(t *testing.T) {
	script := `head -c 3000000 /dev/urandom > "$1/data"; cat "$1/data"; printf 'half\000\033]0;' >&2`
	r := wrap(t, "sh", "-c", script, "sh", t.TempDir())
	dir := r.cmd.Args[len(r.cmd.Args)-1]
	r.start()
	if code := r.ends(); code != 0 {
		t.Fatalf("exit status %d: %s", code, r.err.String())
	}
	data, err := os.ReadFile(filepath.Join(dir, "data"))
	if err != nil {
		t.Fatal(err)
	}
	if sha256.Sum256(data) != sha256.Sum256([]byte(r.out.String())) {
		t.Errorf("%d bytes of stdout are not the %d that were written", len(r.out.String()), len(data))
	}
	if diff := cmp.Diff("half\x00\x1b]0;", r.err.String()); diff != "" {
		t.Errorf("stderr: %s", diff)
	}
	if report, err := r.report(); err != nil || report.Bytes != int64(len(data)+9) {
		t.Errorf("report of %d bytes, %v", report.Bytes, err)
	}
}

// What goes to one file for us stays in its order.
func TestOneFileForBoth(t *testing.T) {
	r := wrap(t, "sh", "-c", `for i in 1 2 3 4 5; do echo out $i; echo err $i >&2; done`)
	r.cmd.Stderr = r.cmd.Stdout
	r.start().ends()
	var want strings.Builder
	for i := 1; i <= 5; i++ {
		fmt.Fprintf(&want, "out %d\nerr %d\n", i, i)
	}
	if diff := cmp.Diff(want.String(), r.out.String()); diff != "" {
		t.Error(diff)
	}
}

func TestInput(t *testing.T) {
	r := wrap(t, "cat")
	r.cmd.Stdin = strings.NewReader("through and through")
	if code := r.start().ends(); code != 0 || r.out.String() != "through and through" {
		t.Errorf("status %d, output %q", code, r.out.String())
	}

	pipe, ours, err := os.Pipe() // a stdin that does not end, as a supervisor's
	if err != nil {
		t.Fatal(err)
	}
	defer ours.Close()
	defer pipe.Close()
	r = wrap(t, "cat")
	r.cmd.Stdin, r.cmd.Env = pipe, append(r.cmd.Env, "AGENTRUN_TEST_NOINPUT=1")
	if code := r.start().ends(); code != 0 {
		t.Errorf("without input: status %d", code)
	}
}

// As the monitor starts it: a session of its own, nothing on its streams.
func TestWithoutTerminal(t *testing.T) {
	r := wrap(t, "sh", "-c", `echo "$OUTLIVE_AGENT $OUTLIVE_AGENT_RUN ${NOTIFY_SOCKET##*/} $WATCHDOG_USEC $(cat | wc -c)"; trap 'exit 5' TERM; while :; do sleep 0.05; done`)
	r.cmd.Stdout, r.cmd.Stderr = nil, nil
	r.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	r.start()
	report := r.until("its first line", said("shop run-1"))
	socket := "shop.sock "
	if filepath.Separator == '/' && !fileExists(filepath.Join(r.home, "run", "shop.sock")) {
		socket = "nowhere 1" // this system does not tell who speaks
	}
	if got := strings.Join(strings.Fields(report.LastLines[0]), " "); !strings.HasPrefix(got, "shop run-1 "+strings.TrimSpace(socket)) || !strings.HasSuffix(got, " 0") {
		t.Errorf("the agent says %q", got)
	}
	self, err := process.System{}.Look(report.PID)
	if err != nil || self.Identity != report.Process() {
		t.Errorf("the agent is %+v (%v), the report says %+v", self.Identity, err, report.Process())
	}
	if wrapper, err := (process.System{}).Look(r.cmd.Process.Pid); err != nil || wrapper.Identity != report.Wrapper {
		t.Errorf("the wrapper is %+v (%v), the report says %+v", wrapper.Identity, err, report.Wrapper)
	}
	if err := r.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if code := r.ends(); code != 5 {
		t.Errorf("exit status %d, want the trap's 5", code)
	}
	if st, err := os.Stat(Path(r.home, "shop")); err != nil || st.Mode().Perm() != 0o600 {
		t.Errorf("the report's file: %v, %v", st.Mode(), err)
	}
}

func fileExists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// Signals for us go to the agent and all of its group, and do not end us before it.
func TestSignalsGoToTheGroup(t *testing.T) {
	for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGUSR1} {
		// The child is in the foreground, so the shell's own trap runs only after the child has heard, too.
		child := `trap 'echo child; exit' TERM INT HUP USR1; echo ready; while :; do sleep 0.02; done`
		r := wrap(t, "sh", "-c", `trap 'echo parent; exit 9' TERM INT HUP USR1; sh -c "$0"; sleep 300`, child)
		r.start()
		r.until("a first line", said("ready"))
		if err := r.cmd.Process.Signal(sig); err != nil {
			t.Fatal(err)
		}
		if code := r.ends(); code != 9 {
			t.Errorf("%v: exit status %d, want 9", sig, code)
		}
		if diff := cmp.Diff("ready\nchild\nparent\n", r.out.String()); diff != "" {
			t.Errorf("%v: %s", sig, diff)
		}
	}
}

// A descendant that holds the output open does not hold up the end, and lives on: it is nobody's to kill.
func TestDescendantsLiveOn(t *testing.T) {
	r := wrap(t, "sh", "-c", `sleep 300 & echo "left $!"`)
	began := time.Now()
	out, in, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	r.cmd.Stdout = in
	r.start()
	if code := r.ends(); code != 0 {
		t.Errorf("exit status %d", code)
	}
	tier.Within(t, "the end", time.Since(began), 5*time.Second)
	report := r.until("the child's number", said("left "))
	pid, err := strconv.Atoi(strings.TrimPrefix(report.LastLines[0], "left "))
	if err != nil {
		t.Fatal(err)
	}
	defer syscall.Kill(pid, syscall.SIGKILL)
	if err := syscall.Kill(pid, 0); err != nil {
		t.Errorf("the agent's child has gone: %v", err)
	}
	in.Close()
	if text, err := io.ReadAll(out); err != nil || string(text) != report.LastLines[0]+"\n" {
		t.Errorf("output %q, %v", text, err)
	}
}

// A reader who goes away ends the agent as it would without us.
func TestReaderGoes(t *testing.T) {
	r := wrap(t, "sh", "-c", `while echo line; do :; done; exit 3`)
	out, in, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	r.cmd.Stdout = in
	r.start()
	in.Close()
	if _, err := io.ReadFull(out, make([]byte, 100)); err != nil {
		t.Fatal(err)
	}
	out.Close()
	if code := r.ends(); code != 128+int(syscall.SIGPIPE) && code != 3 {
		t.Errorf("exit status %d, want that of SIGPIPE", code)
	}
}

// Two agents of one name do not run beside each other, also when the first one's wrapper was killed.
func TestOnlyOneOfAName(t *testing.T) {
	r := wrap(t, "sh", "-c", `trap '' HUP PIPE; echo ready; exec sleep 300`).start()
	report := r.until("a first line", said("ready"))
	again := func() (int, string) {
		second := wrap(t, "true")
		second.cmd.Env = append(second.cmd.Env, wrapIn+"="+r.home)
		code := second.start().ends()
		return code, second.err.String()
	}
	if code, text := again(); code != 1 || !strings.Contains(text, strconv.Itoa(report.PID)) {
		t.Errorf("beside a living one: status %d, %q", code, text)
	}
	if err := r.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	r.ends()
	left, err := r.report()
	if err != nil || left.Exit != nil {
		t.Fatalf("report after the wrapper's death: %+v, %v", left, err)
	}
	if _, err := (process.System{}).Look(left.Wrapper.PID); !errors.Is(err, os.ErrProcessDone) {
		t.Errorf("the report's wrapper %d is to be seen as dead: %v", left.Wrapper.PID, err)
	}
	if code, text := again(); code != 1 || !strings.Contains(text, "whose wrapper is gone") {
		t.Errorf("beside an orphan: status %d, %q", code, text)
	}
	if err := syscall.Kill(report.PID, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	await.Until(t, "the orphan has ended", func() bool { return !lives(report.Process()) })
	if code, text := again(); code != 0 {
		t.Errorf("after the orphan's end: status %d, %q", code, text)
	}
}

// What an agent says by sd_notify is noted.
func TestAgentNotifies(t *testing.T) {
	r := wrap(t, "sh", "-c", `echo "at $NOTIFY_SOCKET"; exec sleep 300`).start()
	report := r.until("its socket", said("at "))
	socket := strings.TrimPrefix(report.LastLines[0], "at ")
	if socket == "/nowhere" {
		t.Skip("this system does not tell who has sent a datagram, so there is no socket")
	}
	conn, err := net.Dial("unixgram", socket)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, "READY=1\nSTATUS=at work\nWATCHDOG=1"); err != nil {
		t.Fatal(err)
	}
	report = r.until("the notice", func(r Report) bool { return r.Notice != nil })
	if n := report.Notice; !n.Ready || n.Status != "at work" || n.WatchdogAt.IsZero() || n.PID != os.Getpid() {
		t.Errorf("notice %+v", n)
	}
}
