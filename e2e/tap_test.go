package e2e

import (
	"encoding/json"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
)

// passed is one message as outlive tap tells of it.
type passed struct {
	From, To, Kind, Method, Target, Client, Server string
	Call                                           *struct {
		Outcome string
		Sends   int
		Version string `json:"protocol_version"`
	}
	Body json.RawMessage
}

// TestTap: what real clients say to somebody else's server is seen as it passes.
func TestTap(t *testing.T) {
	t.Parallel()
	needOutlive(t)
	for _, name := range []string{"go", "ts2-legacy", "py-auto"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			srv := servers()["everything"]
			s, hello := connect(t, clients()[name], srv, "--name", "watched")
			if hello.Error != nil {
				t.Fatalf("connect: %s", hello)
			}
			// It adds tools when it has heard of the client's capabilities: after that all sees the same.
			s.everythingFirst(t)
			shown := s.tapped(t, func() {
				if got := s.call(t, "echo", map[string]any{"message": "seen"}).text(); got != "Echo: seen" {
					t.Errorf("echo: %q", got)
				}
				kill(t, s.everythingPID(t))
				if got := s.call(t, "get-sum", map[string]any{"a": 20, "b": 22}).text(); !strings.Contains(got, "42") {
					t.Errorf("sum: %q", got)
				}
				if got := s.call(t, "trigger-sampling-request", map[string]any{"prompt": "q", "maxTokens": 10}).text(); !strings.Contains(got, "fixed reply") {
					t.Errorf("sampling: %q", got)
				}
			})
			s.checkPassed(t, shown)
			s.everythingLeave(t)
		})
	}
}

// tapped returns the messages that pass during something.
func (s *session) tapped(t *testing.T, during func()) []passed {
	t.Helper()
	read := func(name string) string {
		text, err := os.ReadFile(s.path(name))
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	cmd := exec.Command("sh", "-c", `exec "$0" tap watched --json > tap.out 2> tap.err`, tools.outlive)
	cmd.Env, cmd.Dir = s.env(), s.dir
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cmd.Process.Kill() }()
	if !eventually(func() bool {
		_, err := os.Stat(s.path("tap.err"))
		return err == nil && strings.Contains(read("tap.err"), "watching")
	}) {
		t.Fatalf("outlive tap: %s", read("tap.err"))
	}
	during()
	last := `"from":"server","to":"client","kind":"result","method":"tools/call","target":"trigger-sampling-request"`
	if !eventually(func() bool { return strings.Contains(read("tap.out"), last) }) {
		t.Fatalf("the last answer is not shown:\n%s", read("tap.out"))
	}
	if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Fatalf("outlive tap: %v: %s", err, read("tap.err"))
	}
	var all []passed
	for line := range strings.Lines(read("tap.out")) {
		var p passed
		if err := json.Unmarshal([]byte(line), &p); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		all = append(all, p)
	}
	return all
}

// checkPassed looks for the calls, the restart between them and what the server has asked.
func (s *session) checkPassed(t *testing.T, all []passed) {
	t.Helper()
	count := func(ok func(p passed) bool) (n int) {
		for _, p := range all {
			if ok(p) {
				n++
			}
		}
		return n
	}
	for _, tool := range []string{"echo", "get-sum", "trigger-sampling-request"} {
		ends := count(func(p passed) bool {
			return p.Target == tool && p.From == "server" && p.To == "client" && p.Call != nil && p.Call.Outcome == "ok" && p.Call.Version != "" && p.Client != ""
		})
		if asked := count(func(p passed) bool { return p.Target == tool && p.From == "client" && p.Kind == "request" }); ends != 1 || asked != 1 {
			t.Errorf("%s: %d calls and %d answers were shown", tool, asked, ends)
		}
	}
	if count(func(p passed) bool { return p.From == "outlive" && p.To == "server" && p.Method == "initialize" }) != 1 {
		t.Error("the handshake of the new process was not shown")
	}
	if count(func(p passed) bool {
		return p.From == "server" && p.To == "client" && p.Method == "sampling/createMessage"
	}) != 1 {
		t.Error("the server's question was not shown")
	}
	if n := count(func(p passed) bool { return p.Body != nil }); n > 0 {
		t.Errorf("%d messages were shown with their content", n)
	}
}
