package monitor

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/outlive-mcp/outlive/internal/agents/agentcli"
	"github.com/outlive-mcp/outlive/internal/agents/agentrun"
	"github.com/outlive-mcp/outlive/internal/agents/diagnose"
	"github.com/outlive-mcp/outlive/internal/agents/heartbeat"
	"github.com/outlive-mcp/outlive/internal/agents/piv"
	"github.com/outlive-mcp/outlive/internal/agents/process"
)

// setting has the inputs for gathering evidence at one look.
type setting struct {
	now       Clocks
	sleeps    []Sleep
	grace     string // why silence is not evidence now
	graceDead bool
	lost      string // why the registry cannot be read; one of PIV's does not show the current heartbeats then
	sources   *sources
	kept      *kept
}

// age is how long ago t was, without the time that the machine slept.
func (s *setting) age(t time.Time) diagnose.Span {
	return diagnose.Span(max(Age(t, s.now.Wall, s.sleeps), 0))
}

// beaten notes the time of a heartbeat. One of the future is as old as our first sight of it.
func (s *setting) beaten(b *diagnose.Beat, at time.Time, k known) {
	b.Has, b.Age = true, s.age(at)
	if at.After(s.now.Wall) {
		b.Age = diagnose.Span(s.now.Wall.Sub(at))
		if ahead := k.agentState.AheadSince; !ahead.IsZero() {
			b.Seen = s.age(ahead)
		}
	}
}

// heard is how long ago the agent last gave a sign of life by a heartbeat.
func (s *setting) heard(e diagnose.Evidence) diagnose.Span {
	if e.Beat.Age < 0 {
		return e.Beat.Seen
	}
	return e.Beat.Age
}

// gather collects the evidence of one agent, and what an action needs besides. It changes nothing.
func (s *setting) gather(a agent, k known) (diagnose.Evidence, finding) {
	e := diagnose.Evidence{
		Status: "declared", Paused: a.Declared.Paused, Grace: s.grace, GraceDead: s.graceDead, BlindTicks: k.agentState.Blind,
	}
	f := finding{phase: piv.NoPhase}
	if k.agentState.Declared {
		f.phase = k.agentState.Phase
	}
	g := &gathering{setting: s, agent: a, known: k, e: &e, f: &f}
	if a.isProject() {
		g.project()
		return e, f
	}
	g.report = g.presentRun()
	g.beat()
	g.process()
	g.run()
	g.ownCLIs()
	g.sessions()
	g.told()
	g.quietCommand()
	g.hooks()
	g.manifest()
	g.cpu()
	g.servers()
	g.lookForPerson()
	g.conclude()
	return e, f
}

// gathering is the evidence of one agent while it is collected.
type gathering struct {
	*setting
	agent agent
	known known
	e     *diagnose.Evidence
	f     *finding

	stranger process.Process // a process named by the pidfile that may not be the agent's

	report     *agentrun.Report    // of the wrapper around the present run; nil if there is none
	began      time.Time           // when the process was started; zero: unknown
	nested     []process.Identity  // the living CLIs that it has started
	own        []*agentcli.Session // its sessions
	signs      []string            // signs of life
	died       bool                // the known process has ended, and there is no other
	left       bool                // a person had interrupted its last turn just before
	errorShown bool                // the dead process's session is readable and would show an error at its end
}

// beat takes the agent's youngest heartbeat.
func (g *gathering) beat() {
	if !g.agent.says("heartbeat") {
		return
	}
	g.e.Artefact.Expected = g.agent.Declared.Expect.Beat > 0
	g.e.Beat.Expected = g.e.Artefact.Expected
	if why := g.sources.broken[g.agent.Key]; why != "" {
		g.miss(diagnose.FromBeat, why)
	}
	o, ok := g.sources.beats[g.agent.Key]
	if !ok {
		return
	}
	g.e.Artefact.Expected = true // an agent that has sent heartbeats is expected to go on
	b := &g.e.Beat
	b.State, b.Note, b.Next = diagnose.State(o.State), o.Note, diagnose.Span(o.Next)
	g.beaten(b, o.Wall, g.known)
	switch {
	case o.Exit != nil && (o.Kind == heartbeat.Success || o.Kind == heartbeat.Failure):
		g.e.Exit = diagnose.Exit{Known: true, Code: *o.Exit}
	case o.Kind == heartbeat.Failure: // a ping of /fail has no number
		g.e.Exit = diagnose.Exit{Known: true, Code: 1}
	}
	if o.Phase != nil {
		g.f.phase = *o.Phase
	}
	g.signs = append(g.signs, o.Wall.UTC().Format(time.RFC3339Nano))
}

// manifest reads PIV's manifest if the directory has one.
func (g *gathering) manifest() {
	if g.agent.Path == "" || g.agent.Kind != "piv" && g.agent.Declared.Expect.Done.Manifest == "" {
		return
	}
	if phase := g.readManifest(); phase != piv.NoPhase {
		g.f.phase = phase
	}
}

// cpu is the CPU time of the descendants since the last look.
func (g *gathering) cpu() {
	m := g.known.agentState.CPU
	switch age := g.now.Mono - m.Mono; {
	case g.e.Process.Life != diagnose.Alive:
	case !m.Known:
		g.e.CPU.Pending = m.Mono != 0 && age >= 0 && age < 2*cpuWindow
	default:
		g.e.CPU = diagnose.CPU{Known: true, Share: m.Share, Starts: m.Starts}
		if idle := g.now.Mono - m.Worked; m.Worked > 0 && idle >= 0 {
			g.e.CPU.Worked, g.e.CPU.Idle = true, diagnose.Span(idle)
		}
	}
}

// headless reports whether the run works on one prompt and exits.
func (g *gathering) headless() bool { return g.report != nil && g.report.Headless }

// rested reports whether the dead process had been idle for a while when it ended. It may have ended between two looks.
func (g *gathering) rested() bool {
	since := g.known.agentState.RestSince
	ended := g.now.Wall.Add(-time.Duration(g.e.Process.Gone))
	return !since.IsZero() && ended.Sub(since) >= restAfter
}

// conclude decides whether the agent is watched at all. Agents that were never seen are not, nor those that a person has
// left: by the CLI's word, or because they exited normally while idle.
func (g *gathering) conclude() {
	s := g.known.agentState
	if g.e.Process.Life == diagnose.Dead && g.report != nil && g.report.Exit != nil && !g.left {
		g.markDone(g.report)
	}
	if g.e.Done == "" && g.f.dead.PID != 0 && s.DoneRun == g.f.dead && g.undeclared() && vendorKind(g.agent.Kind) != "" {
		g.e.Done = "its work was done before its process ended"
	}
	seen := g.e.Beat.Has || g.e.Process.Life != diagnose.Unknown || len(g.e.Sessions) > 0 || g.report != nil
	failed := g.e.Exit.Known && (g.e.Exit.Code != 0 || g.e.Exit.Signal != "")
	judged := g.e.Exit.Known && g.agent.Declared.Expect.Done.Exit != nil // its exit status decides whether it is done
	switch {
	case !seen:
		g.e.Status = "declared, and not seen yet"
	case s.Stopped && g.e.Process.Life != diagnose.Alive:
		g.e.Status = "stopped by a person"
	case g.left:
		g.e.Status = "ended by a person, who had interrupted it"
	case g.e.Process.Life == diagnose.Dead && !failed && !judged && !g.headless() && (g.rested() || s.Left):
		g.e.Status = "ended at its prompt"
	default:
		g.e.Status, g.e.Watched = "watched", true
	}
	if id := g.f.process; len(g.signs) == 0 && id.PID != 0 { // no other evidence is available
		g.signs = append(g.signs, fmt.Sprintf("%d/%d", id.PID, id.Start))
	}
	slices.Sort(g.signs)
	g.f.signs = strings.Join(g.signs, " ")
}
