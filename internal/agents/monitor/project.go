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

// gatherProject collects the evidence of one project of a PIV registry, and the processes to stop. It changes nothing.
func (s *setting) gatherProject(a agent, k known) (diagnose.Evidence, process.Target) {
	p := a.Project
	e := diagnose.Evidence{
		Status: string(p.Status), Complete: p.Status == piv.Complete,
		Watched: p.Status == piv.Running || k.watched && (p.Status == piv.Stalled || p.Status == piv.Failed),
		Fault:   p.Fault, Lost: s.lost, Vanished: k.vanished, Grace: s.grace, GraceDead: s.graceDead, BlindTicks: k.agentState.Blind,
	}
	if !e.Watched {
		return e, process.Target{}
	}
	if e.Fault == "" && !filepath.IsAbs(p.Path) {
		e.Fault = fmt.Sprintf("path %q is not absolute", p.Path)
	}
	beatAt, err := piv.ParseTime(p.Heartbeat)
	if p.Heartbeat != "" && err != nil {
		e.Fault = fmt.Sprintf("heartbeat: %v", err)
	}
	if e.Fault != "" {
		return e, process.Target{}
	}
	if !beatAt.IsZero() {
		s.beaten(&e.Beat, beatAt, k)
	}
	target := s.live(&e, p, k, beatAt)
	e.Beat.Expected = true
	e.Artefact = diagnose.Artefact{Expected: true, Seen: !e.Process.AfterBeat}
	if e.Beat.Has && !e.Process.AfterBeat && s.heard(e) <= a.expect.Stale {
		return e, target // further evidence is needed only for silent projects
	}
	s.readManifest(&e, p.Path)
	if e.Process.Life != diagnose.Dead {
		s.waitingSessions(&e, p.Path)
	}
	return e, target
}

// live finds whether the orchestrator lives, and its processes.
func (s *setting) live(e *diagnose.Evidence, p piv.Project, k known, beatAt time.Time) process.Target {
	var t process.Target
	if e.Beat.Age < 0 { // of the future: it is at most as young as our first sight of it
		beatAt = s.now.Wall.Add(-time.Duration(e.Beat.Seen))
	}
	if e.Beat.Has {
		t.LeftBefore = beatAt.Add(2 * beat)
	}
	e.Process.Life, e.Process.Detail = diagnose.Dead, "no orchestrator PID is known"
	if p.PID != 0 {
		id, since := s.registered(e, p, k, beatAt)
		t.Leaders = append(t.Leaders, id)
		s.starts(e, since)
	}
	if l := k.launch; l != nil {
		t.Runs = append(t.Runs, l.Run)
		s.launched(e, p, l, &t)
		if e.Process.Life != diagnose.Dead && (!e.Beat.Has || beatAt.Before(l.StartedAt)) {
			s.starts(e, l.StartedAt)
		}
	}
	return t
}

// starts notes that the process is younger than the last heartbeat, which then does not count for it.
func (s *setting) starts(e *diagnose.Evidence, since time.Time) {
	if since.IsZero() {
		return
	}
	age := s.age(since)
	if e.Process.AfterBeat {
		age = min(age, e.Process.Age) // the youngest counts
	}
	e.Process.AfterBeat, e.Process.Age = true, age
}

// registered looks at the process that the registry names. since is set when it was started after the last heartbeat.
func (s *setting) registered(e *diagnose.Evidence, p piv.Project, k known, beatAt time.Time) (id process.Identity, since time.Time) {
	proc, err := s.sources.procs.Look(p.PID)
	id = proc.Identity
	gone := process.Identity{PID: p.PID, Boot: s.now.Boot}
	judge := func(life diagnose.Life, format string, args ...any) {
		e.Process.Life, e.Process.Detail = life, fmt.Sprintf("PID %d ", p.PID)+fmt.Sprintf(format, args...)
	}
	switch {
	case errors.Is(err, os.ErrProcessDone):
		judge(diagnose.Dead, "is dead")
		return gone, since
	case err != nil:
		judge(diagnose.Unsure, "cannot be looked at: %v", err)
		return id, since
	case k.agentState.Identity.PID == p.PID:
		if k.agentState.Identity != id {
			judge(diagnose.Dead, "is dead, its number is another process's now")
			return gone, since
		}
		judge(diagnose.Alive, "is alive")
		return id, since
	}
	began := s.now.Wall.Add(-proc.Age)
	judge(diagnose.Alive, "is alive")
	if !e.Beat.Has {
		return id, began
	}
	if !began.After(beatAt.Add(nearDeath)) {
		return id, since
	}
	// Younger than the heartbeat: a new orchestrator without a heartbeat yet, or an unrelated process.
	switch {
	case s.sources.within(proc.Dir, p.Path):
		return id, began
	case proc.Dir == "" || Age(beatAt, s.now.Wall, s.sleeps) != s.now.Wall.Sub(beatAt):
		judge(diagnose.Unsure, "is younger than the heartbeat and cannot be told from a stranger")
		return process.Identity{}, since
	}
	judge(diagnose.Dead, "is dead, its number is another process's now (in %s)", proc.Dir)
	return gone, since
}

// launched inspects the process that we started, which may be only the launcher of the registered one.
func (s *setting) launched(e *diagnose.Evidence, p piv.Project, l *attempt, t *process.Target) {
	proc, err := s.sources.procs.Look(l.Process.PID)
	alive := err == nil && proc.Identity == l.Process
	t.Leaders = append(t.Leaders, l.Process)
	dead := e.Process.Life == diagnose.Dead
	switch {
	case l.Process.PID == 0 && dead:
		e.Process.Life, e.Process.Detail = diagnose.Unsure, "a start was interrupted, and its outcome is not known"
	case alive && dead:
		e.Process.Life, e.Process.Detail = diagnose.Alive, fmt.Sprintf("PID %d, which was started, is alive", l.Process.PID)
	case !alive && dead && p.PID == 0:
		e.Process.Detail = fmt.Sprintf("PID %d, which was started, is dead", l.Process.PID)
	}
}

// readManifest reads the manifest of a directory, twice if it is incomplete, and returns its phase.
func (s *setting) readManifest(e *diagnose.Evidence, dir string) (phase int) {
	path := piv.ManifestPath(dir)
	var manifest *piv.Manifest
	for try := range 2 {
		if try > 0 {
			time.Sleep(readPause)
		}
		text, err := piv.ReadFile(path)
		if errors.Is(err, os.ErrNotExist) {
			e.Manifest.Fault = ""
			return piv.NoPhase
		}
		if err == nil {
			manifest, err = piv.ParseManifest(text)
		}
		if e.Manifest.Fault = ""; err == nil {
			break
		}
		e.Manifest.Fault = fmt.Sprintf("%s: %v", path, err)
	}
	if manifest == nil {
		return piv.NoPhase
	}
	m := &e.Manifest
	m.Has, m.Complete = true, manifest.Complete
	if at := manifest.LastUpdated; !at.IsZero() {
		m.Dated, m.Age = true, diagnose.Span(Age(at, s.now.Wall, s.sleeps))
	}
	for _, f := range manifest.Failures {
		if f.Pending() {
			m.Failures = append(m.Failures, failure(f))
		}
	}
	for _, n := range manifest.Notifications {
		if n.Waits() {
			m.Blocking = append(m.Blocking, notified(n))
		}
	}
	return manifest.Phase
}

// waitingSessions are the sessions in a project's directory that wait for a human according to their files (rules W1 and
// W2). The files outlive a killed session, so the process must still be the one that wrote them.
func (s *setting) waitingSessions(e *diagnose.Evidence, dir string) {
	all, err := s.sources.reader.Sessions(agentcli.Query{Dirs: []string{dir}})
	for _, cli := range agentcli.CLIs() {
		if fault := s.sources.reader.Fault(cli.Kind); err != nil && cli.TellsStatus && fault != nil {
			miss(e, diagnose.FromSessions, fault.Error()) // one that waits may be among those
		}
	}
	for _, v := range all {
		proc, err := s.sources.procs.Look(v.PID)
		if !agentcli.Of(v.Kind).TellsStatus || v.Status != agentcli.Waiting || err != nil || proc.Start != v.Start {
			continue
		}
		e.Sessions = append(e.Sessions, diagnose.Session{
			Kind: v.Kind, ID: v.ID, Status: agentcli.Waiting, WaitingFor: v.WaitingFor,
			StatusAge: s.age(v.StatusAt),
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
