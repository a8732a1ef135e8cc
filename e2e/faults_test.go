package e2e

import (
	"context"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/outlive-mcp/outlive/e2e/mockmodel"
)

// What a call came to, in the words of the document. What is not among them is shown as the client put it.
const (
	answered  = "answered"
	uncertain = "told: may or may not have taken effect, not repeated"
	gone      = "tool gone"
	usable    = "usable"
	notUsable = "not usable"
)

// The bounds of the waits. A client alone waits for minutes for a server that is stopped; -long waits that long, too.
const (
	stoppedFor  = time.Minute
	stoppedLong = 6 * time.Minute
	newToolFor  = 10 * time.Second
)

// faultRow is one event and what is seen of it.
type faultRow struct {
	key, title string
	terminal   bool                     // there are turns only in a terminal
	others     bool                     // tried with the other clients, too
	promise    func(kind string) string // the cell behind outlive
}

func always(word string) func(string) string { return func(string) string { return word } }

var faultRows = []faultRow{
	{"idle", "killed between two calls of a turn: the next call", false, true, always(answered)},
	{"idle-later", "killed between two calls of a turn: later calls", false, true, always(answered)},
	{"turn", "killed between two turns: the next call", true, false, always(answered)},
	{"read", "killed in a read-only call: that call", false, true, always(answered)},
	{"read-later", "killed in a read-only call: later calls", false, true, always(answered)},
	{"write", "killed in a call that may write: that call", false, true, always(uncertain)},
	{"write-later", "killed in a call that may write: later calls", false, true, always(answered)},
	{"stopped", fmt.Sprintf("stopped (SIGSTOP) in a read-only call: that call, within %.0f s", stoppedFor.Seconds()), false, false, always(answered)},
	{"stopped-long", fmt.Sprintf("stopped (SIGSTOP) in a read-only call: that call, within %.0f s", stoppedLong.Seconds()), false, false, always(answered)},
	{"new-tool", fmt.Sprintf("started again with a new tool: that tool, within %.0f s", newToolFor.Seconds()), false, false, func(kind string) string {
		if kind == "codex" {
			return notUsable // it is told of the change, and does not ask
		}
		return usable
	}},
}

// usage is a client as it is used, and whether outlive stands between it and the server.
type usage struct {
	kind     string // of agentCLIs
	headless bool
	behind   bool
}

func (u usage) name() string {
	form, lane := "terminal", "alone"
	if u.headless {
		form = "headless"
	}
	if u.behind {
		lane = "outlive"
	}
	return u.kind + "/" + form + "/" + lane
}

// clientTables are the kinds in each table of the document. The four that share one are only headless.
var clientTables = [][]string{{"claude"}, {"codex"}, {"gemini", "opencode", "copilot", "qwen"}}

// others says whether the table is that of the other clients.
func others(kinds []string) bool { return len(kinds) > 1 }

// usages are those in a table, in the order of its columns.
func usages(kinds []string) (all []usage) {
	for _, kind := range kinds {
		if !others(kinds) {
			all = append(all, usage{kind, false, false}, usage{kind, false, true})
		}
		all = append(all, usage{kind, true, false}, usage{kind, true, true})
	}
	return all
}

// faults are the cells that were filled: what was seen, by usage and row.
type faults struct {
	mu    sync.Mutex
	cells map[string]map[string]string
}

func (f *faults) put(t *testing.T, u usage, row, word string) {
	t.Helper()
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.cells[u.name()] == nil {
		f.cells[u.name()] = map[string]string{}
	}
	f.cells[u.name()][row] = word
	at := slices.IndexFunc(faultRows, func(r faultRow) bool { return r.key == row })
	if want := faultRows[at].promise(u.kind); u.behind && word != want {
		t.Errorf("%s, %s: %s, want %s", u.name(), row, word, want)
	}
}

// TestFaults: what AI clients make of a stdio server that is killed, stopped, or comes back with another tool.
// Each is tried alone and behind outlive: Claude Code and Codex in a terminal and headless, four others headless, and of
// them only what a kill does. What is seen is in docs/COMPATIBILITY.md, and the test fails when it is something else.
//
//	E2E_WRITE_COMPATIBILITY=1 e2e/run.sh -run TestFaults    writes that part of the document
//
// With -long it also waits for minutes for a call to a server that is stopped (with -timeout 40m).
func TestFaults(t *testing.T) {
	needFull(t, "it waits for a minute for what a stopped server does to the CLIs, and writes a document")
	needOutlive(t)
	t.Parallel()
	f := &faults{cells: map[string]map[string]string{}}
	plays := []struct {
		name     string
		terminal bool // not headless
		others   bool // with the other clients, too
		play     func(x *exchange)
	}{
		{"stopped", false, false, (*exchange).stopped}, // the longest first
		{"idle", false, true, (*exchange).idle},
		{"turn", true, false, (*exchange).betweenTurns},
		{"read", false, true, func(x *exchange) { x.during("look", "read") }},
		{"write", false, true, func(x *exchange) { x.during("bump", "write") }},
	}
	t.Run("seen", func(t *testing.T) {
		for _, p := range plays {
			for _, kinds := range clientTables {
				if others(kinds) && !p.others {
					continue
				}
				for _, u := range usages(kinds) {
					if p.terminal && u.headless {
						continue
					}
					t.Run(u.name()+"/"+p.name, func(t *testing.T) {
						t.Parallel()
						x := f.begin(t, u)
						x.newTool = !others(kinds)
						p.play(x)
					})
				}
			}
		}
	})
	t.Run("document", f.document)
}

// exchange is one agent with one server, and what the model has it do.
type exchange struct {
	*faults
	t      *testing.T
	u      usage
	a      *agent
	prompt string // of the agent, where its model has several. "": it has one
	turns  int    // that ended

	newTool bool // idle gives the server a new tool at its next start
}

// begin starts the agent and has it call the server once.
func (f *faults) begin(t *testing.T, u usage) *exchange {
	t.Helper()
	server := []string{tools.goserver}
	if u.behind {
		server = []string{tools.outlive, "run", "--", tools.goserver}
	}
	x := &exchange{faults: f, t: t, u: u}
	x.a = startAgent(t, u.kind, mockmodel.Told, agentSetup{headless: u.headless, noHooks: true, server: server})
	x.greet()
	return x
}

// greet has the agent call the server once.
func (x *exchange) greet() {
	x.t.Helper()
	x.a.await("an answer of the server", func() bool { // some clients begin before they have its tools
		word := x.call("look", "first", 0, patience)
		if word != answered {
			x.t.Logf("the first call: %s", word)
			x.pause()
		}
		return word == answered
	})
}

// TestClassicModelCallsTools: the models before Codex' newest search for an MCP server's tool first.
func TestClassicModelCallsTools(t *testing.T) {
	needFull(t, "it tries what a CLI makes of an older model, and nothing of outlive")
	t.Parallel()
	x := &exchange{t: t, u: usage{kind: "codex", headless: true}}
	x.a = startAgent(t, "codex", mockmodel.Told, agentSetup{headless: true, noHooks: true, model: codexClassic, server: []string{tools.goserver}})
	x.greet()
}

// pid is the server that was started last.
func (x *exchange) pid() int {
	pids := x.a.w.starts()
	return pids[len(pids)-1]
}

// killIdle kills the server while nothing is asked of it, and returns when whoever started it has seen that.
func (x *exchange) killIdle() {
	x.t.Helper()
	pid := x.pid()
	kill(x.t, pid)
	if !eventually(func() bool { return syscall.Kill(pid, 0) != nil }) {
		x.t.Fatalf("nobody waits for server %d", pid)
	}
}

// call has the agent call a tool that takes pause, and says what that came to. It does not end the test: it also runs
// beside it.
func (x *exchange) call(tool, value string, pause, limit time.Duration) string {
	ctx, cancel := context.WithTimeout(x.t.Context(), limit)
	defer cancel()
	began := time.Now()
	result, err := x.a.model.Call(ctx, mockmodel.Call{Server: serverName, Tool: tool, Args: map[string]any{"value": value, "ms": pause.Milliseconds()}, Prompt: x.prompt})
	x.a.w.note("%s %s: %v %.2000q after %v", tool, value, err, result.Text, time.Since(began))
	if err != nil {
		return noAnswer(limit)
	}
	return words(result.Text, tool+" "+value)
}

func noAnswer(limit time.Duration) string { return fmt.Sprintf("no answer in %.0f s", limit.Seconds()) }

// saidWords are parts of what clients say, and what the document says instead.
var saidWords = []struct{ part, words string }{
	{"may or may not have taken effect and was NOT repeated", uncertain},
	{"No such tool available", gone},
	{"is not a function", gone},
	{"MCP tool catalog changed before tool", "error: MCP tool catalog changed"},
	{"unavailable tool", gone},
	{"does not exist", gone},
	{"Not connected", "error: Not connected"},
	{"MCP transport closed before the tool responded", "error: MCP transport closed"},
	{"Transport closed", "error: Transport closed"},
	{"Connection closed", "error: Connection closed"},
	{"timed out awaiting tools/call after 300s", "error: timed out after 300 s"},
	{"is still running after 120s. It was moved to the background", "moved to the background after 120 s"},
}

var spaces = regexp.MustCompile(`\s+`)

func words(text, want string) string {
	if regexp.MustCompile(regexp.QuoteMeta(want) + ` \d+`).MatchString(text) {
		return answered
	}
	for _, s := range saidWords {
		if strings.Contains(text, s.part) {
			return s.words
		}
	}
	return fmt.Sprintf("%.100s", spaces.ReplaceAllString(text, " "))
}

// endTurn has the model end its turn and waits until the agent says that it has.
func (x *exchange) endTurn() {
	x.t.Helper()
	ctx, cancel := context.WithTimeout(x.t.Context(), 2*patience)
	defer cancel()
	if err := x.a.model.Say(ctx, "Done."); err != nil {
		x.t.Fatal(err)
	}
	x.turns++
	if x.u.kind == "claude" {
		x.a.awaitStatus("idle", "")
		return
	}
	x.a.await("the end of the turn", func() bool { return x.a.transcriptCount("event_msg/task_complete") >= x.turns })
}

// pause lets a moment pass before the same is tried again: a turn where there are turns.
func (x *exchange) pause() {
	x.t.Helper()
	if x.u.headless {
		time.Sleep(300 * time.Millisecond)
		return
	}
	x.endTurn()
	x.a.again()
}

// later makes two more calls.
func (x *exchange) later() string {
	first, second := x.call("look", "later", 0, patience), x.call("look", "last", 0, patience)
	if first != second {
		return first + ", then " + second
	}
	return first
}

func (x *exchange) idle() {
	if x.newTool {
		if err := os.WriteFile(x.a.w.path("newtool"), nil, 0o600); err != nil { // the server has the tool from its next start on
			x.t.Fatal(err)
		}
	}
	x.killIdle()
	x.put(x.t, x.u, "idle", x.call("look", "next", 0, patience))
	x.put(x.t, x.u, "idle-later", x.later())
	if !x.newTool {
		return
	}
	word := notUsable
	for end := time.Now().Add(newToolFor); word == notUsable && time.Now().Before(end); {
		x.pause()
		if x.call("newtool", "new", 0, patience) == answered {
			word = usable
		}
	}
	x.put(x.t, x.u, "new-tool", word)
}

func (x *exchange) betweenTurns() {
	x.endTurn()
	x.killIdle()
	x.a.again()
	x.put(x.t, x.u, "turn", x.call("look", "next", 0, patience))
}

// during kills the server in a call. That a client calls once more what may write is part of what is seen.
func (x *exchange) during(tool, row string) {
	seen := make(chan string, 1)
	go func() { seen <- x.call(tool, "killed", 3*time.Second, 2*patience) }()
	x.a.w.awaitTrace(x.t, tool+" killed", 1)
	kill(x.t, x.pid())
	word := <-seen
	later := x.later()
	if n := x.a.w.count("bump killed"); n > 1 {
		word += fmt.Sprintf(", and called %d times", n)
	}
	x.put(x.t, x.u, row, word)
	x.put(x.t, x.u, row+"-later", later)
}

// stopped stops the server in a call. A test without -long leaves the row about minutes as the document has it, unless
// the call has come to its end before.
func (x *exchange) stopped() {
	limit, soon := stoppedFor, (<-chan time.Time)(nil)
	if *long {
		limit, soon = stoppedLong, time.After(stoppedFor)
	}
	seen := make(chan string, 1)
	go func() { seen <- x.call("look", "stopped", 3*time.Second, limit) }()
	x.a.w.awaitTrace(x.t, "look stopped", 1)
	if err := syscall.Kill(x.pid(), syscall.SIGSTOP); err != nil {
		x.t.Fatal(err)
	}
	began := time.Now()
	select {
	case word := <-seen:
		x.put(x.t, x.u, "stopped", word)
		if word != noAnswer(stoppedFor) {
			x.put(x.t, x.u, "stopped-long", word)
		}
	case <-soon:
		x.put(x.t, x.u, "stopped", noAnswer(stoppedFor))
		x.put(x.t, x.u, "stopped-long", <-seen)
	}
	x.t.Logf("seen for %v", time.Since(began).Round(time.Second))
}
