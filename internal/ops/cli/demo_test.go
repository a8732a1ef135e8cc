package cli

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// envDemoChild makes this test binary the program itself, which the demo starts again.
const envDemoChild = "OUTLIVE_CLI_TEST_PROGRAM"

func init() {
	if os.Getenv(envDemoChild) != "" {
		os.Exit(Main(os.Args[1:]))
	}
}

var quickPace = demoPace{call: 5 * time.Millisecond, pause: 60 * time.Millisecond}

// demoOutput runs the demo with a temporary directory of its own, which must be empty afterwards.
// watch is given the file that the output goes to, and what Ctrl-C does.
func demoOutput(t *testing.T, watch func(path string, interrupt func())) (string, error) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	t.Setenv(envDemoChild, "1")
	tmp := t.TempDir()
	t.Setenv("TMPDIR", tmp)
	t.Setenv("TMP", tmp)
	out, err := os.Create(filepath.Join(t.TempDir(), "out"))
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		watch(out.Name(), cancel)
	}()
	runErr := runDemo(ctx, out, quickPace)
	<-watched
	text, err := os.ReadFile(out.Name())
	if err != nil {
		t.Fatal(err)
	}
	left, err := os.ReadDir(tmp)
	if err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
	for _, m := range regexp.MustCompile(`(?:run|server) \(pid (\d+)\)|→ (\d+)`).FindAllStringSubmatch(string(text), -1) {
		wantGone(t, m[1]+m[2])
	}
	return string(text), runErr
}

func wantGone(t *testing.T, pid string) {
	t.Helper()
	n, err := strconv.Atoi(pid)
	if err != nil {
		t.Fatal(err)
	}
	p, err := os.FindProcess(n)
	if err == nil {
		err = p.Signal(syscall.Signal(0))
	}
	if err == nil {
		t.Errorf("process %d still runs", n)
	}
}

func TestDemo(t *testing.T) {
	text, err := demoOutput(t, func(string, func()) {})
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	shown := regexp.MustCompile(`(\d+\.\d+ ms|at \d{4}-\S+)`).ReplaceAllString(text, "X")
	shown = regexp.MustCompile(`\d{2,}`).ReplaceAllString(shown, "N")
	shown = regexp.MustCompile(` +`).ReplaceAllString(shown, " ")
	want := []string{
		"An MCP client calls a tool every 5 ms and checks every answer.",
		"client (pid N) ── outlive run (pid N) ── server (pid N)",
		"",
		"1 killed with SIGKILL server N → N, longest wait X",
		"2 exits with code N server N → N, longest wait X",
		"3 prints __MCP_RESTART_REQUEST__ server N → N, longest wait X",
		"4 restart_server is called server N → N, longest wait X",
		" ✅ Server restart verified: occurred X (reason: demo)",
		"",
		"N calls, 0 errors. 4 restarts, longest wait X. The client noticed nothing else.",
		"",
	}
	if diff := cmp.Diff(want, strings.Split(shown, "\n")); diff != "" {
		t.Errorf("output (-want +got):\n%s", diff)
	}
}

func TestDemoInterrupted(t *testing.T) {
	_, err := demoOutput(t, func(path string, interrupt func()) {
		defer interrupt()
		for range 1000 { // the first restart is the moment
			if text, _ := os.ReadFile(path); strings.Contains(string(text), "SIGKILL") {
				return
			}
			time.Sleep(5 * time.Millisecond)
		}
	})
	var left *exitError
	if !errors.As(err, &left) || left.code != exitInterrupted {
		t.Errorf("the demo left with %v, want status %d", err, exitInterrupted)
	}
}

// outlive demo | head -3 clears away what it has begun, too.
func TestDemoWithoutAReader(t *testing.T) {
	t.Setenv(envDemoChild, "1")
	tmp := t.TempDir()
	t.Setenv("TMPDIR", tmp)
	t.Setenv("TMP", tmp)
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	_ = r.Close()
	var left *exitError
	if err := runDemo(t.Context(), w, quickPace); !errors.As(err, &left) || left.code != exitFailure {
		t.Errorf("the demo left with %v, want status %d", err, exitFailure)
	}
	if there, err := os.ReadDir(tmp); err != nil || len(there) > 0 {
		t.Errorf("left behind: %v, %v", there, err)
	}
	if newDemo(streams{}).Annotations[keepsAlive] == "" {
		t.Error("a signal about the pipe ends it in its middle")
	}
}

// What the client must not see is counted, and makes the demo fail.
func TestDemoCountsErrors(t *testing.T) {
	t.Setenv(envDemoChild, "1")
	p, err := startDemo()
	if err != nil {
		t.Fatal(err)
	}
	c := &caller{client: p.Client}
	if _, err := p.Initialize(t.Context(), "2025-11-25"); err != nil {
		t.Fatal(err)
	}
	if _, err := c.checked(t.Context(), "add", map[string]int{"a": 1, "b": 1}, func(text string) error {
		return errors.New("wrong answer " + text)
	}); err == nil {
		t.Error("a wrong answer is not an error")
	}
	if err := p.end(); err != nil {
		t.Errorf("end: %v", err)
	}
	if _, err := c.tool(t.Context(), "add", nil); err == nil {
		t.Error("a closed connection is not an error")
	}
	var seen []string
	for _, err := range c.tally().errors {
		seen = append(seen, err.Error())
	}
	if diff := cmp.Diff([]string{"call of add: wrong answer 2", "call of add: connection closed"}, seen); diff != "" {
		t.Errorf("errors (-want +got):\n%s", diff)
	}
	if c.failure() == nil {
		t.Error("they are not failures")
	}
}

func TestScreen(t *testing.T) {
	var b strings.Builder
	s := &screen{out: &b, terminal: true}
	s.live("a …")
	s.live("b")
	s.line("c")
	s.terminal = false
	s.live("d")
	if got, want := b.String(), "a …\r   \rb\r \rc\n"; got != want {
		t.Errorf("screen wrote %q, want %q", got, want)
	}
}
