package monitor

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/outlive-mcp/outlive/internal/agents/agentcli"
	"github.com/outlive-mcp/outlive/internal/agents/diagnose"
	"github.com/outlive-mcp/outlive/internal/agents/piv"
	"github.com/outlive-mcp/outlive/internal/agents/process"
)

// project collects the evidence of a project of a PIV registry, and its processes. Only a silent one needs more than its entry.
func (g *gathering) project() {
	p, e := g.agent.Project, g.e
	e.Status, e.Complete, e.Fault, e.Lost, e.Vanished = string(p.Status), p.Status == piv.Complete, p.Fault, g.lost, g.known.vanished
	e.Watched = p.Status == piv.Running || g.known.watched && (p.Status == piv.Stalled || p.Status == piv.Failed)
	g.f.phase, g.f.signs = p.ResumePhase(), p.Heartbeat
	if !e.Watched {
		return
	}
	if e.Fault == "" && !filepath.IsAbs(p.Path) {
		e.Fault = fmt.Sprintf("path %q is not absolute", p.Path)
	}
	beatAt, err := piv.ParseTime(p.Heartbeat)
	if p.Heartbeat != "" && err != nil {
		e.Fault = fmt.Sprintf("heartbeat: %v", err)
	}
	if e.Fault != "" {
		return
	}
	if !beatAt.IsZero() {
		g.beaten(&e.Beat, beatAt, g.known)
	}
	g.orchestrator(beatAt)
	e.Beat.Expected = true
	e.Artefact = diagnose.Artefact{Expected: true, Seen: !e.Process.AfterBeat}
	if e.Beat.Has && !e.Process.AfterBeat && g.heard(*e) <= g.agent.expect.Stale {
		return
	}
	g.readManifest()
	if e.Process.Life != diagnose.Dead {
		g.waitingSessions()
	}
}

// orchestrator finds whether the project's process lives, and what must be dead before another one starts.
func (g *gathering) orchestrator(beatAt time.Time) {
	e, t := g.e, &g.f.target
	if e.Beat.Age < 0 { // of the future: it is at most as young as our first sight of it
		beatAt = g.now.Wall.Add(-time.Duration(e.Beat.Seen))
	}
	if e.Beat.Has {
		t.LeftBefore = beatAt.Add(2 * beat)
	}
	e.Process.Life, e.Process.Detail = diagnose.Dead, "no orchestrator PID is known"
	if g.agent.PID != 0 {
		t.Leaders = append(t.Leaders, g.registered(beatAt))
	}
	if l := g.known.launch; l != nil {
		t.Leaders, t.Runs = append(t.Leaders, l.Process), append(t.Runs, l.Run)
		g.launched(l.Process)
		if e.Process.Life != diagnose.Dead && (!e.Beat.Has || beatAt.Before(l.StartedAt)) {
			g.younger(l.StartedAt)
		}
	}
}

// younger notes that the process was started after the last heartbeat, which then does not count for it.
func (g *gathering) younger(started time.Time) {
	p, age := &g.e.Process, g.age(started)
	if p.AfterBeat {
		age = min(age, p.Age) // the youngest counts
	}
	p.AfterBeat, p.Age = true, age
}

// nearDeath is how much older than a heartbeat its process must be, to be certainly older: two clocks are compared.
const nearDeath = time.Minute

// registered looks at the process that the registry names by its number alone. The zero identity: it cannot be told from a stranger.
func (g *gathering) registered(beatAt time.Time) process.Identity {
	pid, was := g.agent.PID, g.known.agentState.Identity
	proc, err := g.sources.procs.Look(pid)
	began := g.now.Wall.Add(-proc.Age)
	judge := func(id process.Identity, life diagnose.Life, format string, args ...any) process.Identity {
		g.e.Process.Life, g.e.Process.Detail = life, fmt.Sprintf("PID %d ", pid)+fmt.Sprintf(format, args...)
		return id
	}
	gone := process.Identity{PID: pid, Boot: g.now.Boot}
	switch {
	case errors.Is(err, os.ErrProcessDone):
		return judge(gone, diagnose.Dead, "is dead")
	case err != nil:
		return judge(proc.Identity, diagnose.Unsure, "cannot be looked at: %v", err)
	case was.PID == pid && was != proc.Identity:
		return judge(gone, diagnose.Dead, "is dead, its number is another process's now")
	case was.PID == pid, g.e.Beat.Has && !began.After(beatAt.Add(nearDeath)):
		return judge(proc.Identity, diagnose.Alive, "is alive")
	case !g.e.Beat.Has, g.sources.within(proc.Dir, g.agent.Path): // a new orchestrator without a heartbeat yet
		g.younger(began)
		return judge(proc.Identity, diagnose.Alive, "is alive")
	case proc.Dir == "" || Age(beatAt, g.now.Wall, g.sleeps) != g.now.Wall.Sub(beatAt):
		return judge(process.Identity{}, diagnose.Unsure, "is younger than the heartbeat and cannot be told from a stranger")
	}
	return judge(gone, diagnose.Dead, "is dead, its number is another process's now (in %s)", proc.Dir)
}

// launched looks at the process that we started, which may be only the launcher of the registered one.
func (g *gathering) launched(id process.Identity) {
	p := &g.e.Process
	if p.Life != diagnose.Dead {
		return
	}
	proc, err := g.sources.procs.Look(id.PID)
	switch {
	case id.PID == 0:
		p.Life, p.Detail = diagnose.Unsure, "a start was interrupted, and its outcome is not known"
	case err == nil && proc.Identity == id:
		p.Life, p.Detail = diagnose.Alive, fmt.Sprintf("PID %d, which was started, is alive", id.PID)
	case g.agent.PID == 0:
		p.Detail = fmt.Sprintf("PID %d, which was started, is dead", id.PID)
	}
}

// readManifest reads the manifest of the agent's directory, twice if it is incomplete, and returns its phase.
func (g *gathering) readManifest() (phase int) {
	path, m := piv.ManifestPath(g.agent.Path), &g.e.Manifest
	var manifest *piv.Manifest
	for try := range 2 {
		if try > 0 {
			time.Sleep(readPause)
		}
		text, err := piv.ReadFile(path)
		if errors.Is(err, os.ErrNotExist) {
			m.Fault = ""
			return piv.NoPhase
		}
		if err == nil {
			manifest, err = piv.ParseManifest(text)
		}
		if m.Fault = ""; err == nil {
			break
		}
		m.Fault = fmt.Sprintf("%s: %v", path, err)
	}
	if manifest == nil {
		return piv.NoPhase
	}
	m.Has, m.Complete = true, manifest.Complete
	if at := manifest.LastUpdated; !at.IsZero() {
		m.Dated, m.Age = true, diagnose.Span(Age(at, g.now.Wall, g.sleeps))
	}
	for _, f := range manifest.Failures {
		m.Failures = append(m.Failures, failure(f))
	}
	for _, n := range manifest.Notifications {
		m.Blocking = append(m.Blocking, notified(n))
	}
	return manifest.Phase
}

// waitingSessions are the sessions in a project's directory that wait for a human according to their files (rules W1 and
// W2). The files outlive a killed session, so the process must still be the one that wrote them.
func (g *gathering) waitingSessions() {
	reader := g.sources.reader
	all, err := reader.Sessions(agentcli.Query{Dirs: []string{g.agent.Path}})
	for _, cli := range agentcli.CLIs() {
		if fault := reader.Fault(cli.Kind); err != nil && cli.TellsStatus && fault != nil {
			g.miss(diagnose.FromSessions, fault.Error()) // one that waits may be among those
		}
	}
	for _, v := range all {
		proc, err := g.sources.procs.Look(v.PID)
		if !agentcli.Of(v.Kind).TellsStatus || v.Status != agentcli.Waiting || err != nil || proc.Start != v.Start {
			continue
		}
		g.e.Sessions = append(g.e.Sessions, diagnose.Session{
			Kind: v.Kind, ID: v.ID, Status: agentcli.Waiting, WaitingFor: v.WaitingFor,
			StatusAge: g.age(v.StatusAt),
		})
	}
}

func failure(f piv.Failure) diagnose.Failure {
	d := diagnose.Failure{Category: f.Category, Command: f.Command, Retries: f.Retries, MaxRetries: f.MaxRetries, Details: f.Details}
	if f.Phase != piv.NoPhase {
		d.Phase = &f.Phase
	}
	return d
}

func notified(n piv.Notification) string {
	s := "the agent waits for an answer"
	for _, part := range []string{n.Category, n.Details} {
		if part != "" {
			s += ": " + part
		}
	}
	return s
}
