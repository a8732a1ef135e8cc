package e2e

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// loggedRun is one run of outlive with everything the log documents speak of: a crash, an exit 42, the marker, a
// message that validation blocks, and a clean stop. It leaves output.log (stderr) and mcp_audit.log in a directory.
type loggedRun struct {
	dir      string
	requests int // restarts that the server or a tool asked for: "Restart requested"
	crashes  int
}

func startLoggedRun(t *testing.T) loggedRun {
	t.Helper()
	s := &session{workspace: newWorkspace(t), client: "ts1", server: servers()["py"]}
	// The order of the watchdog's lines is that of one process after the other.
	argv := append([]string{tools.outlive, "run", "--reload", "replace", "--audit", s.path("mcp_audit.log"), "--", s.server.argv[0]}, s.server.argv[1:]...)
	d, hello := clients()["ts1"].start(s, argv)
	if s.driver = d; hello.Error != nil {
		t.Fatalf("connect: %s", hello)
	}
	s.toolNames(t)
	old := s.serverPID(t)
	_, ch := s.begin(step{"op": "call", "tool": "die"})
	if r := s.await(t, "die", ch); r.Error != nil || !r.tool().IsError {
		t.Errorf("a call that kills its server: %s", r)
	}
	s.awaitNewServer(t, old)
	for _, tool := range []string{"leave", "marker"} {
		old = s.serverPID(t)
		s.call(t, tool, map[string]any{"code": 42})
		s.awaitNewServer(t, old)
	}
	// A lone surrogate: Node's JSON.stringify sends it as an escape.
	_, ch = s.begin(step{"op": "call", "tool": "echo", "args": map[string]any{"text": json.RawMessage(`"\ud83d"`)}})
	if r := s.await(t, "lone surrogate", ch); r.Error == nil || r.Error.Code != -32602 || !strings.Contains(r.Error.Message, "Validation failed: ") {
		t.Errorf("lone surrogate: %s", r)
	}
	s.do(t, step{"op": "close"})
	<-d.exited()
	s.noneLeft(t)
	if err := os.Rename(s.path("stderr.log"), s.path("output.log")); err != nil {
		t.Fatal(err)
	}
	return loggedRun{dir: s.dir, requests: 2, crashes: 1}
}

// print runs a program in the run's directory and returns its output lines.
func (r loggedRun) print(t *testing.T, name string, args ...string) []string {
	t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Dir = r.dir
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil || stderr.Len() > 0 {
		t.Errorf("%s %s: %v %s", name, strings.Join(args, " "), err, stderr.Bytes())
	}
	text := strings.TrimRight(string(out), "\n")
	if text == "" {
		return nil
	}
	return strings.Split(text, "\n")
}

// bash runs a snippet as the documents have it.
func (r loggedRun) bash(t *testing.T, script string) []string {
	t.Helper()
	return r.print(t, "bash", "-o", "pipefail", "-c", script)
}

// TestLogSnippets runs every snippet of WD-16 and TP-10 on the logs of a real run.
func TestLogSnippets(t *testing.T) {
	needOutlive(t)
	t.Parallel()
	run := startLoggedRun(t)
	t.Run("WD-16", func(t *testing.T) { run.supervisorSnippets(t) })
	t.Run("WD-15", func(t *testing.T) { run.supervisorLines(t) })
	t.Run("TP-10", func(t *testing.T) { run.auditSnippets(t) })
	t.Run("TP-9", func(t *testing.T) { run.auditEvents(t) })
}

const stamp = `\[\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d{6}Z\] `

// supervisorSnippets: the programs of WD-16, word for word. There is no PowerShell here: Select-String with a pattern
// is a case-insensitive regular expression per line and .Count counts lines, which is what grep -Ei (-c) does.
func (r loggedRun) supervisorSnippets(t *testing.T) {
	for _, grep := range []string{`grep '\[SUPERVISOR\]' output.log`, `grep -Ei '\[SUPERVISOR\]' output.log`} {
		lines := r.bash(t, grep)
		if len(lines) < 10 {
			t.Errorf("%s: %d lines", grep, len(lines))
		}
		for _, line := range lines {
			if !regexp.MustCompile(`^` + stamp + `\[SUPERVISOR\] \S`).MatchString(line) {
				t.Errorf("%s prints %q", grep, line)
			}
		}
	}
	for _, grep := range []string{`grep -c 'Restart requested' output.log`, `grep -Eic 'Restart requested' output.log`} {
		if got := r.bash(t, grep); len(got) != 1 || got[0] != strconv.Itoa(r.requests) {
			t.Errorf("%s: %q, want %d", grep, got, r.requests)
		}
	}
	for _, grep := range []string{`grep 'Server crashed' output.log`, `grep -Ei 'Server crashed' output.log`} {
		got := r.bash(t, grep)
		want := regexp.MustCompile(`^` + stamp + `\[SUPERVISOR\] ERROR: Server crashed \(exit code 137\), restarting \(restart #1\)$`)
		if len(got) != r.crashes || !want.MatchString(got[0]) {
			t.Errorf("%s: %q", grep, got)
		}
	}
	timeline := r.print(t, tools.python, filepath.Join(tools.root, "testdata", "timeline.py"))
	if supervisor := r.bash(t, `grep -c '\[SUPERVISOR\]' output.log`); strconv.Itoa(len(timeline)+1) != supervisor[0] {
		t.Errorf("timeline: %d deltas for %s lines: a line has no time stamp that the script can read", len(timeline), supervisor)
	}
	for _, line := range timeline {
		if !regexp.MustCompile(`^Delta: \d+:\d\d:\d\d(\.\d{6})?, Event: \[.*\] \[SUPERVISOR\] `).MatchString(line) {
			t.Errorf("timeline: %q", line)
		}
	}
}

// supervisorLines: the messages of WD-15 in their order.
func (r loggedRun) supervisorLines(t *testing.T) {
	wants := []string{
		`=== Watchdog Supervisor Starting ===`, `Python: \S+`, `PID: \d+`, `CWD: \S+`,
		`Starting MCP server \(restart #0\)`, `MCP server running \(PID: \d+\)`,
		`MCP server exited \(code: 137\)`, `ERROR: Server crashed \(exit code 137\), restarting \(restart #1\)`,
		`Starting MCP server \(restart #1\)`, `MCP server running \(PID: \d+\)`,
		`MCP server exited \(code: 42\)`, `Restart requested, spawning new server \(restart #2\)`,
		`Starting MCP server \(restart #2\)`, `MCP server running \(PID: \d+\)`,
		`MCP server exited \(code: \d+\)`, `Restart requested, spawning new server \(restart #3\)`,
		`Starting MCP server \(restart #3\)`, `MCP server running \(PID: \d+\)`,
		`=== Watchdog Supervisor Exiting \(code: 0\) ===`,
	}
	lines := r.bash(t, `grep '\[SUPERVISOR\]' output.log`)
	at := 0
	for _, want := range wants {
		pattern := regexp.MustCompile(`^` + stamp + `\[SUPERVISOR\] ` + want + `$`)
		for at < len(lines) && !pattern.MatchString(lines[at]) {
			at++
		}
		if at == len(lines) {
			t.Fatalf("no line %q in its place in\n%s", want, strings.Join(lines, "\n"))
		}
		at++
	}
	if got := r.bash(t, `grep -c '\[PROXY\] MCP Proxy starting (PID=' output.log`); got[0] != "1" {
		t.Errorf("[PROXY] MCP Proxy starting: %s times", got[0])
	}
}

// auditSnippets: every jq program of TP-10, word for word.
func (r loggedRun) auditSnippets(t *testing.T) {
	restarts := r.requests + r.crashes
	completed := r.objects(t, `jq 'select(.event_type == "restart_completed")' mcp_audit.log`)
	if len(completed) != restarts {
		t.Errorf("restart_completed: %d, want %d", len(completed), restarts)
	}
	average := r.bash(t, `jq -s 'map(select(.event_type == "restart_completed").restart_duration_ms) | add / length' mcp_audit.log`)
	if ms, err := strconv.ParseFloat(strings.Join(average, " "), 64); err != nil || ms <= 0 || ms > 20000 {
		t.Errorf("average restart time: %q", average)
	}
	blocked := r.objects(t, `jq 'select(.event_type == "validation_blocked")' mcp_audit.log`)
	if len(blocked) != 1 {
		t.Errorf("validation_blocked: %d, want 1", len(blocked))
	}
	if markers := r.objects(t, `jq 'select(.event_type == "restart_marker_detected")' mcp_audit.log`); len(markers) != 1 {
		t.Errorf("restart_marker_detected: %d, want 1", len(markers))
	}
	recent := r.bash(t, `jq 'select(.event_type == "restart_completed") | .restart_duration_ms' mcp_audit.log | tail -5`)
	if len(recent) != restarts {
		t.Errorf("recent restart times: %q", recent)
	}
	for _, ms := range recent {
		if n, err := strconv.Atoi(ms); err != nil || n < 0 {
			t.Errorf("restart time %q", ms)
		}
	}
	raw := r.bash(t, `jq 'select(.event_type == "validation_blocked") | .raw_line' mcp_audit.log`)
	if len(raw) != 1 || !strings.Contains(raw[0], `\\ud83d`) {
		t.Errorf("raw_line: %q", raw)
	}
	all := r.bash(t, `jq -c . mcp_audit.log | wc -l`)
	if lines := r.bash(t, `cat mcp_audit.log | jq | jq -c . | wc -l`); lines[0] != all[0] {
		t.Errorf("tail -f | jq shows %s of %s events", lines[0], all[0])
	}
	if n := r.bash(t, `jq -s 'map(select(.event_type == "restart_completed")) | length' mcp_audit.log`); n[0] != strconv.Itoa(restarts) {
		t.Errorf("restarts: %s, want %d", n[0], restarts)
	}
	if last := r.bash(t, `jq 'select(.event_type == "validation_blocked")' mcp_audit.log | tail -100`); len(last) < 5 {
		t.Errorf("validation errors: %q", last)
	}
}

// objects runs a jq line and reads the objects it prints.
func (r loggedRun) objects(t *testing.T, script string) []map[string]any {
	t.Helper()
	decoder := json.NewDecoder(strings.NewReader(strings.Join(r.bash(t, script), "\n")))
	var all []map[string]any
	for decoder.More() {
		var one map[string]any
		if err := decoder.Decode(&one); err != nil {
			t.Fatalf("%s: %v", script, err)
		}
		all = append(all, one)
	}
	return all
}

// auditEvents: the event types of TP-9 and the fields of TP-8.
func (r loggedRun) auditEvents(t *testing.T) {
	seen := map[string]int{}
	for _, e := range r.objects(t, `cat mcp_audit.log`) {
		kind, _ := e["event_type"].(string)
		seen[kind]++
		for _, key := range []string{"timestamp", "level", "logger", "message", "event_type", "proxy_pid", "restart_count"} {
			if e[key] == nil {
				t.Errorf("%s has no %s: %v", kind, key, e)
			}
		}
		if at, _ := e["timestamp"].(string); !regexp.MustCompile(`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$`).MatchString(at) {
			t.Errorf("%s: timestamp %q", kind, at)
		}
		if kind == "server_ready" {
			for _, key := range []string{"server_pid", "startup_time_ms"} {
				if n, ok := e[key].(float64); !ok || n <= 0 {
					t.Errorf("server_ready: %s is %v", key, e[key])
				}
			}
		}
	}
	want := map[string]int{
		"proxy_started": 1, "server_spawned": 4, "initialize_captured": 1, "initialize_replayed": 3, "server_ready": 4,
		"restart_marker_detected": 1, "restart_initiated": 3, "restart_completed": 3, "validation_blocked": 1, "proxy_stopped": 1,
	}
	for kind, n := range want {
		if seen[kind] != n {
			t.Errorf("%s: %d times, want %d (all: %v)", kind, seen[kind], n, seen)
		}
	}
}
