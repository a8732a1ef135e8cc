package monitor

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/outlive-mcp/outlive/internal/agents/agentcli"
	"github.com/outlive-mcp/outlive/internal/agents/diagnose"
	"github.com/outlive-mcp/outlive/internal/agents/hooks"
	"github.com/outlive-mcp/outlive/internal/agents/piv"
)

// A result that is still being written may end the call that seems to hang: nothing is ended on that. The same line,
// once it is complete and no record, hides nothing.
func TestNothingIsEndedWhileALineIsWritten(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		size  int
		end   string
		rungs []string
	}{
		"complete":               {5 << 20, `"}` + "\n", []string{"new"}},
		"being written":          {5 << 20, "", nil},
		"cut off by a full disk": {100, "", nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.declare("", w.agent("shop", "kind: claude\n"+starts+"policy: {tool_hung: [restart]}\n"))
			c := w.claude("shop", 1001).headless()
			c.prompt()
			c.tool("Read", `"file_path":"plan.pdf"`)
			c.cuts(tt.size, tt.end)
			w.spends(33*time.Minute, time.Minute) // the new process shows no session, which is another trouble soon
			if got := w.rungs(); !slices.Equal(got, tt.rungs) || len(w.stopped) != len(tt.rungs) {
				t.Errorf("started %v, stopped %v, want %v; said %q", got, w.stopped, tt.rungs, w.said)
			}
		})
	}
}

// cuts begins a record of that size in the transcript, and ends the file so.
func (c *claude) cuts(size int, end string) {
	c.w.t.Helper()
	transcript := filepath.Join("projects", noWord.ReplaceAllString(c.w.dir(c.name), "-"), c.session+".jsonl")
	c.file(transcript, os.O_APPEND, `{"type":"user","message":{"content":"`+strings.Repeat("x", size)+end)
}

// What a process had not finished writing when it ended never comes: it is gone on with like any other.
func TestAProcessThatEndedWhileItWroteIsResumed(t *testing.T) {
	t.Parallel()
	for _, size := range []int{100, 5 << 20} {
		w := newWorld(t)
		w.declare("", w.agent("shop", "kind: claude\n"+starts))
		c := w.claude("shop", 1001)
		c.prompt()
		w.cycle()
		w.pass(10 * time.Second)
		c.cuts(size, "")
		w.cycle()
		clear(w.living)
		w.spends(time.Minute, 10*time.Second)
		if got := w.rungs(); !slices.Equal(got, []string{"resume"}) {
			t.Errorf("within %d bytes: started %v, said %q", size, got, w.said)
		}
	}
}

// An agent is not ended for having no session while the files of sessions cannot be read. Another kind of agent is judged
// as ever.
func TestNothingIsEndedWhileSessionsCannotBeRead(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	policy := starts + "policy: {startup_blocked: [restart], crashed: [restart]}\n"
	w.declare("", w.agent("shop", "kind: claude\n"+policy), w.agent("depot", "kind: codex\n"+policy))
	w.opts.Places = agentcli.Places{agentcli.Claude: filepath.Join(w.home, "claude"), agentcli.Codex: filepath.Join(w.home, "codex")}
	sessions := filepath.Join(w.home, "claude", "sessions")
	if err := os.MkdirAll(filepath.Dir(sessions), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(sessions, sessions); err != nil {
		t.Skipf("a folder that cannot be read is made by a link that leads to itself: %v", err)
	}
	for pid, command := range map[int][]string{1001: {"claude", "-p", "go on"}, 1002: {"codex", "exec", "go on"}} {
		w.process(pid, w.dir(map[int]string{1001: "shop", 1002: "depot"}[pid]), 0)
		w.args[pid] = command
	}
	m, err := Open(t.Context(), w.opts)
	if err != nil {
		t.Fatal(err)
	}
	for range 20 {
		w.pass(30 * time.Second)
		if _, err := m.Once(t.Context()); err == nil {
			t.Error("nobody is told that the sessions cannot be read")
		}
	}
	if err := m.Close(); err != nil {
		t.Fatal(err)
	}
	if slices.Contains(w.stopped, 1001) || !slices.Contains(w.stopped, 1002) {
		t.Errorf("stopped %v; said %q", w.stopped, w.said)
	}
}

func TestWhatIsMissingOfRequests(t *testing.T) {
	t.Parallel()
	noon := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	for name, tt := range map[string]struct {
		g    gathering
		miss bool
	}{
		"nothing":                  {gathering{}, false},
		"they cannot be read":      {gathering{setting: &setting{sources: &sources{requestsFault: errors.New("no access")}}}, true},
		"events were dropped":      {gathering{known: known{agentState: agentState{Unheard: noon}}}, true},
		"it was started since":     {gathering{known: known{agentState: agentState{Unheard: noon}}, began: noon.Add(time.Second)}, false},
		"it has gone on since":     {gathering{known: known{agentState: agentState{Unheard: noon}}, e: &diagnose.Evidence{Sessions: []diagnose.Session{{Kind: agentcli.Codex, LastAge: diagnose.Span(time.Minute)}}}}, false},
		"it has not gone on since": {gathering{known: known{agentState: agentState{Unheard: noon}}, e: &diagnose.Evidence{Sessions: []diagnose.Session{{Kind: agentcli.Codex, LastAge: diagnose.Span(2 * time.Hour)}}}}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := tt.g
			if g.setting == nil {
				g.setting = &setting{sources: &sources{}}
			}
			if g.e == nil {
				g.e = &diagnose.Evidence{}
			}
			g.setting.now = Clocks{Wall: noon.Add(time.Hour)}
			g.missRequests()
			if got := slices.Contains(g.e.Missing, diagnose.FromHooks); got != tt.miss || (len(g.e.Unread) > 0) != tt.miss {
				t.Errorf("missing %v, unread %q", g.e.Missing, g.e.Unread)
			}
		})
	}
}

// A report of a wrapper that cannot be read may say how the agent has ended, unless the machine was started since.
func TestAReportThatCannotBeRead(t *testing.T) {
	t.Parallel()
	written := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	for name, tt := range map[string]struct {
		up   time.Duration
		miss bool
	}{"of this start of the machine": {time.Hour, true}, "of the one before": {time.Minute, false}} {
		g := gathering{
			setting: &setting{
				now:     Clocks{Wall: written.Add(10 * time.Minute), Up: tt.up},
				sources: &sources{unreported: map[string]unreadReport{"shop": {"it is half written", written}}},
			},
			agent: agent{Project: piv.Project{Key: "shop"}}, e: &diagnose.Evidence{},
		}
		g.missReport()
		if got := slices.Contains(g.e.Missing, diagnose.FromExit); got != tt.miss {
			t.Errorf("%s: missing %v", name, g.e.Missing)
		}
	}
}

// That events of hooks were dropped is remembered until the agent is heard of.
func TestDroppedEventsAreRemembered(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.declare("", w.agent("shop", "kind: codex\n"+starts))
	w.process(1001, w.dir("shop"), 0)
	w.args[1001] = []string{"codex"}
	w.cycle()
	unheard := func() time.Time {
		m, err := Open(t.Context(), w.opts)
		if err != nil {
			t.Fatal(err)
		}
		states, err := m.store.agentStates(t.Context())
		if err := errors.Join(err, m.Close()); err != nil {
			t.Fatal(err)
		}
		return states["shop"].Unheard
	}
	if _, err := hooks.Prepare(hooks.Dir(w.home)); err != nil {
		t.Fatal(err)
	}
	w.write(filepath.Join("hooks", "events", "dropped"), "")
	w.cycle()
	at := w.wall
	w.pass(time.Minute)
	w.cycle()
	if got := unheard(); !got.Equal(at) {
		t.Errorf("unheard since %v, want %v", got, at)
	}
	if err := hooks.Drop(hooks.Dir(w.home), hooks.Event{Time: w.wall, Vendor: "codex", Name: "PostToolUse", Session: "x", Dir: w.dir("shop")}); err != nil {
		t.Fatal(err)
	}
	w.cycle()
	if got := unheard(); !got.IsZero() {
		t.Errorf("it was heard of, and is unheard since %v", got)
	}
}
