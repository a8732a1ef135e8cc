package monitor

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/outlive-mcp/outlive/internal/agents/diagnose"
	"github.com/outlive-mcp/outlive/internal/agents/notify"
	"github.com/outlive-mcp/outlive/internal/agents/process"
	"github.com/outlive-mcp/outlive/internal/agents/recovery"
	"github.com/outlive-mcp/outlive/internal/testing/agenttest"
)

// scenario is one of agenttest's scenarios, lived through by the engine: what the script shows is its evidence, and what it does
// is done to the world's processes.
type scenario struct {
	agenttest.Scenario
	*world
	begin time.Time
	done  map[string][]time.Time // agent: when its process was ended, interrupted or started
	told  map[string][]time.Time // agent: when a human was
	held  map[string]bool        // agent: it waits for the end of a limit
	twice []string               // who was started beside a living one
}

// Send implements [notify.Channel].
func (n *scenario) Send(_ context.Context, m notify.Message) (string, error) {
	for agent := range n.done {
		if strings.Contains(m.Text.Body, agent) {
			n.told[agent] = append(n.told[agent], n.wall)
		}
	}
	return "", nil
}

// Update implements [notify.Editor]: a message that changes tells of whoever it names now.
func (n *scenario) Update(ctx context.Context, _ string, m notify.Message) error {
	_, err := n.Send(ctx, m)
	return err
}

// Stop, Interrupt and Start do what the world does, and take down whom it was done to.
func (n *scenario) Stop(ctx context.Context, t process.Target) error {
	for _, l := range t.Leaders {
		n.note(n.living[l.PID].Dir)
	}
	return n.world.Stop(ctx, t)
}

func (n *scenario) Interrupt(id process.Identity) error {
	n.note(n.living[id.PID].Dir)
	return n.world.Interrupt(id)
}

func (n *scenario) Start(l process.Launch) (process.Identity, error) {
	for _, p := range n.living {
		if p.Dir == l.Dir {
			n.twice = append(n.twice, filepath.Base(l.Dir))
		}
	}
	n.note(l.Dir)
	return n.world.Start(l)
}

// note takes down what is done to an agent. Two things harm nobody, and are not what is meant by a scenario in which nothing
// may be ended: a turn that costs more than it may is broken off, and where a limit, or a model that cannot be reached, has ended
// it, it is gone on with.
func (n *scenario) note(dir string) {
	agent := filepath.Base(dir)
	if l, e := n.latest(agent); dir == "" || l.Want == diagnose.BudgetExceeded || goneOnWith(l.Want) && e.Sessions[0].Ended {
		return
	}
	n.done[agent] = append(n.done[agent], n.wall)
}

func goneOnWith(c diagnose.Class) bool { return c == diagnose.RateLimited || c == diagnose.APIFailed }

// latest is the look at an agent that the script had last, and its evidence as it is now.
func (n *scenario) latest(agent string) (look agenttest.Look, e diagnose.Evidence) {
	now := diagnose.Span(n.wall.Sub(n.begin))
	for _, l := range n.Looks {
		if l.Agent == agent && l.At <= now {
			look, e = l, agenttest.Later(l.Evidence, now-l.At)
		}
	}
	return look, e
}

// shows is the evidence of an agent now, and whom an act would be for.
func (n *scenario) shows(a *agent) (diagnose.Evidence, finding) {
	a.expect = n.Policy
	f := finding{phase: -1}
	last, e := n.latest(a.Key)
	well := 0
	for _, l := range n.Looks {
		if l.Agent == a.Key && l.At <= last.At && slices.Contains(shown, l.Want) {
			well++
		}
	}
	f.signs, f.session = fmt.Sprint(well), "s"
	for pid, p := range n.living {
		switch {
		case p.Dir != a.Path:
		case e.Process.Life == diagnose.Dead: // the script says so
			f.dead = p.Identity
			delete(n.living, pid)
		default:
			f.process, f.target.Leaders = p.Identity, []process.Identity{p.Identity}
		}
	}
	return e, f
}

// lives goes through the scenario, looking as often as the script and every 30 seconds for some minutes after each of its
// looks, as long as what was seen then still means the same; and then for half an hour, in which everything stays as it was.
func (n *scenario) lives() {
	n.t.Helper()
	m, err := Open(n.t.Context(), n.opts)
	if err != nil {
		n.t.Fatal(err)
	}
	defer m.Close()
	times := map[time.Duration]bool{}
	for i, l := range n.Looks {
		at := time.Duration(l.At)
		times[at] = true
		more, until := 6, time.Duration(1<<62)
		if i == len(n.Looks)-1 {
			more = 60
		} else {
			until = time.Duration(n.Looks[i+1].At)
		}
		for range more {
			at += 30 * time.Second
			if e := agenttest.Later(l.Evidence, diagnose.Span(at)-l.At); at < until && diagnose.Classify(e, n.Policy).Class == l.Want {
				times[at] = true
			}
		}
	}
	for _, at := range slices.Sorted(maps.Keys(times)) {
		n.pass(n.begin.Add(at).Sub(n.wall))
		if _, err := m.look(n.t.Context()); err != nil {
			n.t.Fatal(err)
		}
		m.notifiers.outbox.Drain(n.t.Context())
		for agent, list := range m.recoveries {
			n.held[agent] = n.held[agent] || list[len(list)-1].Act.Rung == recovery.Hold
		}
	}
}

// How long the gentler steps of a ladder may take before something is ended, and all of them before a human is told: the
// times of a scenario are those at which there is a reason.
const (
	helped = 5 * time.Minute
	asked  = 30 * time.Minute
)

// violates says what of a demand was not met.
func (n *scenario) violates(d agenttest.Demand) string {
	end := n.begin.Add(time.Duration(n.Looks[len(n.Looks)-1].At))
	before := func(list []time.Time, limit time.Time) bool {
		return slices.ContainsFunc(list, func(t time.Time) bool { return !t.After(limit) })
	}
	by := n.begin.Add(time.Duration(d.By))
	met := true
	switch d.Kind {
	case agenttest.NeverKill:
		met = !before(n.done[d.Agent], end)
	case agenttest.NeverTell:
		met = !before(n.told[d.Agent], end)
	case agenttest.MustTell:
		met = before(n.told[d.Agent], by.Add(asked))
	case agenttest.MustWait:
		met = n.held[d.Agent] && !before(n.told[d.Agent], end)
	case agenttest.MustRestart:
		met = before(n.done[d.Agent], by.Add(helped))
	}
	if met {
		return ""
	}
	return fmt.Sprintf("done %v, told %v", n.after(n.done[d.Agent]), n.after(n.told[d.Agent]))
}

func (n *scenario) after(times []time.Time) (list []time.Duration) {
	for _, t := range times {
		list = append(list, t.Sub(n.begin))
	}
	return list
}

// The scenarios of package diagnose, with everything that follows from a diagnosis: nobody healthy is ended or started anew,
// nobody is woken for nothing, whoever needs help gets it in time, and no agent ever runs twice.
func TestScenarios(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("../diagnose/testdata/scenarios/*.txtar")
	if err != nil || len(files) < 40 {
		t.Fatalf("%d scenarios, %v", len(files), err)
	}
	for n := 0; n < len(files); n += scenarioStride {
		file := files[n]
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			t.Parallel()
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			script, err := agenttest.ReadScenario(text)
			if err != nil {
				t.Fatal(err)
			}
			w := newWorld(t)
			n := &scenario{Scenario: script, world: w, begin: w.wall, done: map[string][]time.Time{}, told: map[string][]time.Time{}, held: map[string]bool{}}
			var agents []string
			for i, l := range script.Looks {
				if _, there := n.done[l.Agent]; !there {
					agents = append(agents, w.agent(l.Agent, "kind: claude\n"+starts))
					n.done[l.Agent] = nil
					w.process(1001+i, w.dir(l.Agent), time.Hour)
				}
			}
			w.declare("", agents...)
			w.opts.processes, w.opts.evidence = n, n.shows
			w.opts.Channels = map[string]notify.Channel{"telegram": n}
			n.lives()
			for _, d := range script.Demands {
				if why := n.violates(d); why != "" {
					t.Errorf("%s %s by %s: %s", d.Kind, d.Agent, d.By, why)
				}
			}
			if len(n.twice) > 0 {
				t.Errorf("started beside a living one: %v", n.twice)
			}
		})
	}
}
