package monitor

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/outlive-mcp/outlive/internal/agents/diagnose"
	"github.com/outlive-mcp/outlive/internal/agents/incident"
	"github.com/outlive-mcp/outlive/internal/agents/process"
)

// till is a kept MCP server of an agent: its outlive and its own process are below the agent's.
type till struct {
	w         *world
	server    Server
	gone      bool
	helpless  bool // a restart changes nothing
	broken    error
	restarted []string
}

const (
	tillRun    = 1100
	tillServer = 1101
)

// keeps lets outlive keep a server for a process.
func (w *world) keeps(client int) *till {
	w.process(tillRun, w.home, 0)
	w.process(tillServer, w.home, 0)
	w.parents[tillRun], w.parents[tillServer] = client, tillRun
	k := &till{w: w, server: Server{Key: "till@1100", Name: "till", Client: w.living[client].Identity, Ready: true, Restartable: true, Processes: []int{tillServer}}}
	w.opts.Servers = k
	return k
}

func (k *till) All(context.Context) ([]Server, error) {
	if k.gone {
		return nil, nil
	}
	return []Server{k.server}, nil
}

func (k *till) Restart(_ context.Context, key, reason string) error {
	k.restarted = append(k.restarted, key)
	if !strings.Contains(reason, "shop") {
		k.w.t.Errorf("the reason does not name the agent: %s", reason)
	}
	if k.broken == nil && !k.helpless {
		k.server.Calls = nil
	}
	return k.broken
}

// asked is a call that the server begins now.
func (k *till) asked(tool string) {
	k.server.Calls = []ServerCall{{Tool: tool, Since: k.w.wall, Moved: k.w.wall}}
}

// payWorld is an agent in the middle of a call of its server.
func payWorld(t *testing.T) (*world, *claude, *till) {
	w := newWorld(t)
	w.declare("", w.agent("shop", "kind: claude\nexpect: {tool: 10m}\n"+starts))
	c := w.claude("shop", 1001).headless()
	k := w.keeps(1001)
	w.cycle()
	w.pass(time.Minute)
	c.prompt()
	c.tool("mcp__till__pay", `"sum":3`)
	k.asked("pay")
	return w, c, k
}

// An agent that waits for a server which does nothing is not ended: its server is restarted, it goes on, and nobody is told.
func TestTheServerIsRestartedAndNotTheAgent(t *testing.T) {
	t.Parallel()
	w, c, k := payWorld(t)
	w.spends(9*time.Minute, 15*time.Second)
	if v := w.diagnosis(); v.Class != diagnose.AtWork || len(k.restarted) > 0 {
		t.Fatalf("within its time it is called %s (%s), restarts: %v", v.Class, v.Details, k.restarted)
	}
	w.spends(3*time.Minute, 15*time.Second)
	if len(k.restarted) != 1 || k.restarted[0] != "till@1100" {
		t.Fatalf("restarted: %v; the agent is called %+v", k.restarted, w.diagnosis())
	}
	c.writes(`"type":"user","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":"outcome unknown"}]}`)
	c.ends("I have looked again.")
	w.spends(10*time.Minute, 30*time.Second)
	if len(k.restarted) != 1 || len(w.started)+len(w.stopped)+len(w.interrupted) > 0 || len(w.said) > 0 {
		t.Errorf("restarted %v; started %v, stopped %v, interrupted %v; told %q", k.restarted, w.started, w.stopped, w.interrupted, w.said)
	}
	if log := w.read("improvement-log.md"); !strings.Contains(log, "restart_server") || !strings.Contains(log, "its MCP server was restarted") {
		t.Errorf("the log: %s", log)
	}
}

// A server that works, or reports progress, is left alone, however long its call takes; so is one whose owner does not let it be
// restarted, and one that is at work for others. That a restart helps nothing leads on.
func TestWhichServersAreRestarted(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		each     func(*world, *till) // before each look
		restarts int
		agent    bool // it is started anew in the end
		told     bool
	}{
		"it uses the processor":     {func(w *world, _ *till) { w.used[tillServer] += 3 * time.Second }, 0, false, false},
		"it reports progress":       {func(w *world, k *till) { k.server.Calls[0].Moved = w.wall }, 0, false, false},
		"it does nothing":           {nil, 2, true, false},
		"its restart fails":         {func(_ *world, k *till) { k.broken = errors.New("it does not come up") }, 2, true, false},
		"it may not be restarted":   {func(_ *world, k *till) { k.server.Restartable = false }, 0, true, false},
		"it is at work for another": {func(w *world, k *till) { k.server.Others = []ServerCall{{Tool: "sum", Since: w.wall, Moved: w.wall}} }, 0, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, _, k := payWorld(t)
			k.helpless = true
			for range 3 * 6 {
				w.cycles(3, func() {
					w.pass(20 * time.Second)
					if _, lives := w.living[1001]; !lives {
						k.gone = true // it ends with its client
					}
					if tc.each != nil && !k.gone {
						tc.each(w, k)
					}
				})
			}
			if len(k.restarted) != tc.restarts {
				t.Errorf("restarted: %v, want %d", k.restarted, tc.restarts)
			}
			if slices.Contains(w.stopped, 1001) != tc.agent || len(w.said) > 0 != tc.told {
				t.Errorf("stopped %v, told %q", w.stopped, w.said)
			}
		})
	}
}

// A person is told which server needs what, once, and that it is over; not of what mends itself, nor of servers that nobody uses any
// more.
func TestPeopleAreToldOfServers(t *testing.T) {
	t.Parallel()
	login := func(k *till) {
		k.server.Ready, k.server.Trouble = false, diagnose.ServerLogin
		k.server.Why, k.server.ToDo = "the server wants a login", "log in: outlive login https://till.example/mcp"
	}
	t.Run("a login", func(t *testing.T) {
		t.Parallel()
		w, c, k := payWorld(t)
		k.server.Calls = nil
		c.ends("done")
		login(k)
		w.spends(30*time.Second, 5*time.Second)
		if len(w.said) != 1 {
			t.Fatalf("told: %q", w.said)
		}
		for _, want := range []string{"The MCP server till of shop wants a login", "To do: log in: outlive login https://till.example/mcp"} {
			if !strings.Contains(w.said[0], want) {
				t.Errorf("the message has no %q:\n%s", want, w.said[0])
			}
		}
		k.server.Ready, k.server.Trouble, k.server.Why = true, "", ""
		w.spends(time.Minute, 5*time.Second)
		if len(w.said) != 2 || !strings.Contains(w.said[1], "The MCP server till of shop works again") {
			t.Errorf("told: %q", w.said)
		}
		w.spends(20*time.Minute, time.Minute)
		if len(w.said) != 2 || len(w.stopped)+len(w.started)+len(k.restarted) > 0 {
			t.Errorf("told %q, stopped %v, started %v, restarted %v", w.said, w.stopped, w.started, k.restarted)
		}
	})
	t.Run("a login, and its client gives up", func(t *testing.T) {
		t.Parallel()
		w, c, k := payWorld(t)
		k.server.Calls = nil
		c.ends("done")
		login(k)
		w.spends(30*time.Second, 5*time.Second)
		k.gone = true
		w.spends(5*time.Minute, 30*time.Second)
		view, err := Inspect(t.Context(), w.opts)
		if err != nil || len(w.said) != 1 || len(view.Incidents) != 1 {
			t.Fatalf("told %q; incidents %+v, %v", w.said, view.Incidents, err)
		}
		delete(w.living, 1001)
		w.spends(time.Minute, 30*time.Second)
		if view, err := Inspect(t.Context(), w.opts); err != nil || slices.ContainsFunc(view.Incidents, func(i incident.Incident) bool { return incident.AboutServer(i.Key.Class) }) {
			t.Errorf("the agent has ended; incidents %+v, %v", view.Incidents, err)
		}
	})
	t.Run("a login that the agent waits for", func(t *testing.T) {
		t.Parallel()
		w, _, k := payWorld(t)
		login(k)
		w.spends(20*time.Second, 5*time.Second)
		if v := w.diagnosis(); v.Class != diagnose.WaitingServer {
			t.Errorf("it is called %s: %s", v.Class, v.Details)
		}
		if len(w.said) != 1 || !strings.Contains(w.said[0], "🔴 The MCP server till of shop wants a login") || !strings.Contains(w.said[0], "for pay of the MCP server till") {
			t.Errorf("told: %q", w.said)
		}
		w.spends(25*time.Minute, 30*time.Second)
		if len(w.said) != 1 || len(w.stopped)+len(w.started)+len(k.restarted) > 0 {
			t.Errorf("told %q, stopped %v, started %v, restarted %v", w.said, w.stopped, w.started, k.restarted)
		}
	})
	t.Run("a pause that mends itself", func(t *testing.T) {
		t.Parallel()
		w, _, k := payWorld(t)
		k.server.Calls = nil
		for range 6 {
			k.server.Ready, k.server.Trouble = false, diagnose.ServerPaused
			w.spends(40*time.Second, 5*time.Second)
			k.server.Ready, k.server.Trouble = true, ""
			w.spends(40*time.Second, 5*time.Second)
		}
		if len(w.said) > 0 {
			t.Errorf("told: %q", w.said)
		}
	})
	t.Run("a pause, tried again and again", func(t *testing.T) {
		t.Parallel()
		w, _, k := payWorld(t)
		k.server.Calls = nil
		for range 6 {
			k.server.Ready, k.server.Trouble, k.server.Why, k.server.ToDo = false, diagnose.ServerPaused, "exit status 3", "outlive restart till@1100"
			w.spends(40*time.Second, 5*time.Second)
			k.server.Trouble = "" // it is started, and ends again
			w.spends(10*time.Second, 5*time.Second)
		}
		if len(w.said) != 1 || !strings.Contains(w.said[0], "is paused after too many crashes") || !strings.Contains(w.said[0], "To do: outlive restart till@1100") {
			t.Errorf("told: %q", w.said)
		}
	})
	t.Run("broken, seen between two starts", func(t *testing.T) {
		t.Parallel()
		w, _, k := payWorld(t)
		broken := Server{Key: "gate@9/till", Name: "gate/till", Trouble: diagnose.ServerFailed, Why: "exit status 3", ToDo: "see why (outlive logs gate@9/till)"}
		k.server = broken
		w.spends(2*time.Minute, 10*time.Second)
		for name, seen := range map[string]Server{
			"a start runs":                 {Key: broken.Key, Name: broken.Name},
			"ready until the next crash":   {Key: broken.Key, Name: broken.Name, Ready: true},
			"asked for a sign of life":     {Key: broken.Key, Name: broken.Name, Trouble: "hung"},
			"its outlive does not answer":  {Key: broken.Key, Name: broken.Name, Trouble: diagnose.ServerFailed, Silent: true},
			"its outlive never answered":   {Key: "gate@9", Name: "gate", Ready: true, Silent: true},
			"its outlive does not, for it": {Key: "gate@9", Name: "gate", Silent: true},
		} {
			k.server = seen
			w.spends(20*time.Second, 10*time.Second)
			view, err := Inspect(t.Context(), w.opts)
			about := func(i incident.Incident) bool { return i.Key.Agent == "server:gate/till:" && i.Reopened == 0 }
			if err != nil || len(w.said) != 1 || !slices.ContainsFunc(view.Incidents, about) {
				t.Fatalf("%s: told %q; incidents %+v, %v", name, w.said, view.Incidents, err)
			}
			k.server = broken
			w.spends(20*time.Second, 10*time.Second)
		}
		k.server = Server{Key: broken.Key, Name: broken.Name, Ready: true}
		w.spends(2*time.Minute, 10*time.Second)
		if len(w.said) != 2 || !strings.Contains(w.said[1], "The MCP server gate/till works again") {
			t.Errorf("told %q", w.said)
		}
	})
	t.Run("it never comes up", func(t *testing.T) {
		t.Parallel()
		w, _, k := payWorld(t)
		k.server.Calls = nil
		k.server.Ready, k.server.Why = false, "exit status 1"
		w.spends(4*time.Minute, 15*time.Second)
		if len(w.said) > 0 {
			t.Errorf("told too soon: %q", w.said)
		}
		w.spends(4*time.Minute, 15*time.Second)
		if len(w.said) != 1 || !strings.Contains(w.said[0], "The MCP server till of shop cannot be started") {
			t.Errorf("told: %q", w.said)
		}
	})
	t.Run("its client is gone", func(t *testing.T) {
		t.Parallel()
		w, _, k := payWorld(t)
		login(k)
		k.server.Calls = nil
		k.server.Client = process.Identity{PID: 9, Start: 9, Boot: w.boot}
		w.spends(10*time.Minute, 30*time.Second)
		if len(w.said) > 0 {
			t.Errorf("told: %q", w.said)
		}
	})
	t.Run("a client that nobody watches", func(t *testing.T) {
		t.Parallel()
		w, _, k := payWorld(t)
		login(k)
		k.server.Calls = nil
		w.process(9, w.home, 0)
		k.server.Client = w.living[9].Identity
		w.spends(10*time.Minute, 30*time.Second)
		view, err := Inspect(t.Context(), w.opts)
		if err != nil || len(w.said) > 0 || len(view.Incidents) != 1 || view.Incidents[0].Facts.Severity != "info" {
			t.Errorf("told %q; incidents %+v, %v", w.said, view.Incidents, err)
		}
	})
	t.Run("a gateway's server", func(t *testing.T) {
		t.Parallel()
		w, _, k := payWorld(t)
		login(k)
		k.server.Calls, k.server.Name, k.server.Client = nil, "gate/till", process.Identity{}
		w.spends(10*time.Minute, 30*time.Second)
		if len(w.said) != 1 || !strings.Contains(w.said[0], "The MCP server gate/till wants a login") {
			t.Errorf("told %q", w.said)
		}
		k.gone = true
		w.spends(time.Minute, 15*time.Second)
		if view, err := Inspect(t.Context(), w.opts); err != nil || len(view.Incidents) > 0 {
			t.Errorf("it has ended, and its incidents are %+v, %v", view.Incidents, err)
		}
		if last := w.shown[len(w.shown)-1].Text.Body; !strings.Contains(last, "the outlive that kept it has ended") || strings.Contains(last, "works again") || strings.Contains(last, "🟢") {
			t.Errorf("told %q", last)
		}
	})
}
