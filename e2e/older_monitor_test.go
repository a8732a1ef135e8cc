package e2e

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/outlive-mcp/outlive/e2e/faketelegram"
)

// watchHome is a machine with a monitor of either release, whose messages go to a phone and, line by line, onto a paper that cannot be changed.
type watchHome struct {
	*joined
	phone   *faketelegram.Server
	monitor *exec.Cmd
	many    int    // monitors there were
	log     string // what the last of them writes
}

// newWatchHome has the agents declared, each in a directory of its name, in which start.sh starts one that does nothing. Some of what is said of all of
// them only the release before takes without a warning.
func newWatchHome(t *testing.T, agents map[string]string) *watchHome {
	t.Helper()
	h := &watchHome{joined: &joined{workspace: newWorkspace(t), name: "here"}, phone: faketelegram.New("7:secret")}
	t.Cleanup(h.phone.Close)
	h.more = []string{
		"PIV_MONITOR_INTERVAL_MS=1000", "TELEGRAM_BOT_TOKEN=" + h.phone.Token, "TELEGRAM_CHAT_ID=" + chatName, "TELEGRAM_API_URL=" + h.phone.URL(),
		"CLAUDE_CONFIG_DIR=" + h.path("user/.claude"),
	}
	registry := "version: 2\nchannels: {me: telegram, paper: \"exec:" + h.path("paper.sh") + " >/dev/null 2>&1\"}\n" +
		"defaults: {escalate: {to: [me, paper], repeat: 24h}, policy: {crashed: [escalate], monitor_blind: [escalate]}, budget: {kill_grace: 2m}}\nagents:\n"
	for name, declared := range agents {
		h.write(t, name+"/start.sh", "echo $$ >>started\necho $$ >pid\nexec sleep 600\n", 0o600)
		registry += fmt.Sprintf("  %s: {path: %s, %s}\n", name, h.path(name), declared)
	}
	h.write(t, "state/outlive/agents/registry.yaml", registry, 0o600)
	h.write(t, "paper.sh", "#!/bin/sh\nexec /bin/cat >>\""+h.path("paper")+"\"\n", 0o700)
	return h
}

func (h *watchHome) write(t *testing.T, name, text string, mode os.FileMode) {
	t.Helper()
	path := h.path(name)
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), mode)); err != nil {
		t.Fatal(err)
	}
}

// started are the processes that were started by start.sh.
func (h *watchHome) started(name string) []string {
	text, _ := os.ReadFile(h.path(name + "/started"))
	return strings.Fields(string(text))
}

// runs starts the process of an agent, and returns what ends it.
func (h *watchHome) runs(t *testing.T, name string, cmd *exec.Cmd) (end func()) {
	t.Helper()
	cmd.Dir, cmd.Env = h.path(name), append(h.env(), h.more...)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	over := make(chan struct{})
	go func() { defer close(over); _ = cmd.Wait() }()
	end = func() { _ = cmd.Process.Kill(); <-over }
	t.Cleanup(end)
	h.write(t, name+"/pid", fmt.Sprintln(cmd.Process.Pid), 0o600)
	return end
}

// limited starts what looks like Claude Code at its prompt, whose usage limit is lifted at that time.
func (h *watchHome) limited(t *testing.T, name string, lifted time.Time) {
	t.Helper()
	const id = "7db09f2f-1950-48db-8ef5-29488de17465"
	cmd := &exec.Cmd{Path: tools.node, Args: []string{"claude"}} // it reads its script from a pipe that says nothing
	if _, err := cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	h.runs(t, name, cmd)
	pid, dir := cmd.Process.Pid, h.path(name)
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		t.Fatal(err)
	}
	start := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))[19]
	time.Sleep(time.Second) // the turn must be younger than the process
	at := time.Now().UTC()
	text := ""
	line := func(values map[string]any) {
		maps.Copy(values, map[string]any{
			"isSidechain": false, "userType": "external", "entrypoint": "cli", "cwd": dir, "sessionId": id, "version": "2.1.330",
			"timestamp": at.Format("2006-01-02T15:04:05.000Z"),
		})
		encoded, _ := json.Marshal(values)
		text += string(encoded) + "\n"
		at = at.Add(10 * time.Millisecond)
	}
	line(map[string]any{"type": "user", "message": map[string]any{"role": "user", "content": "Check the shop"}, "promptSource": "typed"})
	line(map[string]any{"type": "api-request", "querySource": "repl_main_thread"})
	line(map[string]any{
		"type": "assistant", "isApiErrorMessage": true, "apiErrorStatus": 429, "error": "rate_limit",
		"message": map[string]any{
			"id": "e", "model": "<synthetic>", "role": "assistant", "type": "message", "stop_reason": "stop_sequence",
			"content": []any{map[string]any{"type": "text", "text": fmt.Sprintf("Claude AI usage limit reached|%d", lifted.Unix())}},
		},
	})
	line(map[string]any{"type": "system", "subtype": "turn_duration", "durationMs": 1000, "isMeta": false})
	h.write(t, "user/.claude/projects/"+regexp.MustCompile(`[^a-zA-Z0-9]`).ReplaceAllString(dir, "-")+"/"+id+".jsonl", text, 0o600)
	session, _ := json.Marshal(map[string]any{
		"pid": pid, "sessionId": id, "cwd": dir, "procStart": start, "version": "2.1.330", "kind": "interactive", "status": "idle", "statusUpdatedAt": at.UnixMilli(),
	})
	h.write(t, fmt.Sprintf("user/.claude/sessions/%d.json", pid), string(session), 0o600)
}

// watch starts a monitor; program "" is the one that is tested.
func (h *watchHome) watch(t *testing.T, program string) {
	t.Helper()
	h.program = program
	h.many++
	h.log = fmt.Sprintf("monitor%d.log", h.many)
	h.monitor = h.begin(t, h.log, h.command("monitor", "--answers", "off"))
	h.looks(t)
}

// looks waits until the monitor has looked at everything some times more.
func (h *watchHome) looks(t *testing.T) {
	t.Helper()
	looked := func() int {
		text, _ := os.ReadFile(h.path(h.log))
		return bytes.Count(text, []byte("Monitor cycle complete"))
	}
	from := looked()
	if !eventually(func() bool { return looked() >= from+3 }) {
		text, _ := os.ReadFile(h.path(h.log))
		t.Fatalf("the monitor does not go on:\n%s", text)
	}
}

// crash ends the monitor as a crash of the machine would.
func (h *watchHome) crash() {
	_ = h.monitor.Process.Kill()
	_ = h.monitor.Wait()
}

// told counts the messages about an agent, on the phone and on paper.
func (h *watchHome) told(name string) [2]int {
	word := regexp.MustCompile(`\b` + name + `\b`)
	var n [2]int
	for _, m := range h.phone.Messages() {
		if word.MatchString(m.Text) {
			n[0]++
		}
	}
	paper, _ := os.ReadFile(h.path("paper"))
	for line := range bytes.Lines(paper) {
		if word.Match(line) {
			n[1]++
		}
	}
	return n
}

// crashes ends an agent and waits until that is told on both ways.
func (h *watchHome) crashes(t *testing.T, name string, end func()) {
	t.Helper()
	end()
	h.says(t, "paper", name+" has crashed")
	if !eventually(func() bool { return h.told(name)[0] > 0 }) {
		t.Fatalf("nothing of %s on the phone: %+v", name, h.phone.Messages())
	}
}

func sleeps() *exec.Cmd { return exec.Command("sleep", "600") }

// TestOlderMonitorIsReplaced: a monitor goes on with what the one of the release before has left when it was killed: an incident that was told, one
// that is over, and an agent that waits for its limit. Nothing is told twice, and nothing is done twice. A request that the older command
// line has left is done once.
func TestOlderMonitorIsReplaced(t *testing.T) {
	before := older(t)
	t.Parallel()
	h := newWatchHome(t, map[string]string{
		"till":  "kind: command, match: {pidfile: pid}, start: {cmd: [sh, start.sh]}",
		"shelf": "kind: command, match: {pidfile: pid}",
		"lamp":  "kind: claude, start: {resume: [sh, start.sh]}, expect: {attended: 1s}",
	})
	till, shelf := h.runs(t, "till", sleeps()), h.runs(t, "shelf", sleeps())
	h.watch(t, before)
	h.crashes(t, "shelf", shelf)
	again := sleeps()
	h.runs(t, "shelf", again)
	h.run(t, 0, "heartbeat", "shelf", "--pid", fmt.Sprint(again.Process.Pid))
	h.says(t, "paper", "shelf works again")
	h.crashes(t, "till", till)
	h.limited(t, "lamp", time.Now().Add(90*time.Second))
	h.says(t, "state/outlive/agents/evidence.jsonl", `"lamp".*rate_limited`)
	h.looks(t)
	h.crash()
	names := []string{"till", "shelf", "lamp"}
	was := map[string][2]int{}
	for _, name := range names {
		was[name] = h.told(name)
	}
	if n := len(h.started("lamp")); n != 0 {
		t.Fatalf("the monitor before has resumed the agent %d times", n)
	}

	h.watch(t, "")
	h.looks(t)
	for _, name := range names {
		if now := h.told(name); now != was[name] {
			paper, _ := os.ReadFile(h.path("paper"))
			t.Errorf("%s: %v messages on phone and paper, %v before\n%+v\n%s", name, now, was[name], h.phone.Messages(), paper)
		}
	}
	if open := h.run(t, 0, "ack"); strings.Count(open, " till ") != 1 || strings.Contains(open, " shelf ") {
		t.Errorf("open incidents:\n%s", open)
	}
	if out := h.run(t, 0, "agent", "list"); strings.Contains(out, "No monitor") {
		t.Errorf("agent list: %s", out)
	}
	if !within(5*time.Minute, func() bool { return len(h.started("lamp")) > 0 }) {
		t.Fatalf("it was not resumed when its limit was lifted:\n%s", h.run(t, 0, "agent", "explain", "lamp"))
	}

	h.crash()
	h.program = before
	want(t, h.run(t, 1, "agent", "start", "till"), `no monitor is running here: it is done once one does`)
	h.watch(t, "")
	if !eventually(func() bool { return len(h.started("till")) > 0 }) {
		t.Errorf("what the older command line had asked for was not done")
	}
	h.looks(t)
	h.looks(t)
	for _, name := range []string{"till", "lamp"} {
		if n := len(h.started(name)); n != 1 {
			t.Errorf("%s was started %d times", name, n)
		}
	}
}

// TestOlderCommandsAndMonitor: the command line of each release works beside a running monitor of the other, and takes it for running.
func TestOlderCommandsAndMonitor(t *testing.T) {
	before := older(t)
	t.Parallel()
	for name, programs := range map[string][2]string{"the monitor is older": {before, ""}, "the command line is older": {"", before}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newWatchHome(t, map[string]string{"till": "kind: command, match: {pidfile: pid}, start: {cmd: [sh, start.sh]}"})
			till := h.runs(t, "till", sleeps())
			h.watch(t, programs[0])
			h.crashes(t, "till", till)
			h.program = programs[1]
			for _, args := range [][]string{
				{"agent", "list"}, {"agent", "show", "till"}, {"agent", "explain", "till"}, {"agent", "report"}, {"ack"}, {"status"}, {"top", "--plain"},
			} {
				out := h.run(t, 0, args...)
				if args[0] != "status" && !strings.Contains(out, "till") {
					t.Errorf("outlive %s does not name the agent:\n%s", strings.Join(args, " "), out)
				}
				if strings.Contains(strings.ToLower(out), "no monitor") {
					t.Errorf("outlive %s:\n%s", strings.Join(args, " "), out)
				}
			}
			want(t, h.run(t, 1, "monitor", "--answers", "off"), fmt.Sprintf(`another monitor is running \(PID %d\)`, h.monitor.Process.Pid))
			h.run(t, 0, "ack", "till")
			want(t, h.run(t, 0, "ack"), `till .*acknowledged`)
			h.run(t, 0, "agent", "start", "till")
			h.looks(t)
			if n := len(h.started("till")); n != 1 {
				t.Errorf("started %d times", n)
			}
		})
	}
}
