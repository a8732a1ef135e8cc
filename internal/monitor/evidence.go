package monitor

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/outlive-mcp/outlive/internal/piv"
	"github.com/outlive-mcp/outlive/internal/process"
)

// setting is what evidence is gathered with at one look.
type setting struct {
	now       Moment
	sleeps    []Sleep
	grace     string // why silence is no evidence now
	graceDead bool
	lost      string // why the registry is not what the agents beat into
	processes processes
	claudeDir string
	stale     time.Duration
}

// known is what earlier looks have left of one project.
type known struct {
	sight    sight
	launch   *recovery // the last start of ours; nil: there was none
	watched  bool      // a human was told of it, and it is watched although the registry calls it stalled
	vanished bool
}

// gather collects the evidence of one project, and what would have to be stopped. It only looks.
func (s setting) gather(p piv.Project, k known) (Evidence, process.Target) {
	e := Evidence{
		Project: p, Watched: p.Status == piv.Running || k.watched && (p.Status == piv.Stalled || p.Status == piv.Failed),
		Fault: p.Fault, Lost: s.lost, Vanished: k.vanished, Grace: s.grace, GraceDead: s.graceDead,
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
	e.HasBeat = p.Heartbeat != ""
	target := s.live(&e, p, k, beatAt)
	s.silence(&e, k, beatAt)
	if e.Silence <= s.stale { // the rest is asked of the silent only
		return e, target
	}
	s.readManifest(&e)
	if e.Life != Dead {
		e.Signs = append(e.Signs, claudeSigns(s.claudeDir, p.Path, s.processes)...)
	}
	return e, target
}

// silence sets how long nothing was heard.
func (s setting) silence(e *Evidence, k known, beatAt time.Time) {
	now := s.now.Wall
	if e.HasBeat {
		e.BeatAge = now.Sub(beatAt)
		if e.BeatAge >= 0 {
			e.BeatAge = Age(beatAt, now, s.sleeps)
		}
	}
	switch {
	case e.Starting: // live has set it
	case !e.HasBeat:
		e.Silence = 1<<63 - 1
	case e.BeatAge < 0 && k.sight.Ahead == e.Project.Heartbeat:
		e.Silence = Age(k.sight.AheadSince, now, s.sleeps)
	case e.BeatAge < 0:
		e.Silence = 0
	default:
		e.Silence = e.BeatAge
	}
}

// live finds out whether the orchestrator lives, and what belongs to it.
func (s setting) live(e *Evidence, p piv.Project, k known, beatAt time.Time) process.Target {
	var t process.Target
	if e.HasBeat {
		t.LeftBefore = beatAt.Add(2 * beat)
	}
	e.Life, e.LifeDetail = Dead, "no orchestrator PID is known"
	if p.PID != 0 {
		id, since := s.registered(e, p, k, beatAt)
		t.Leaders = append(t.Leaders, id)
		s.starts(e, since)
	}
	if l := k.launch; l != nil {
		t.Runs = append(t.Runs, l.Run)
		s.launched(e, l, &t)
		if e.Life != Dead && (!e.HasBeat || beatAt.Before(l.StartedAt)) {
			s.starts(e, l.StartedAt)
		}
	}
	return t
}

// starts notes that the process is younger than the last heartbeat, which says nothing of it then.
func (s setting) starts(e *Evidence, since time.Time) {
	if since.IsZero() {
		return
	}
	silence := max(Age(since, s.now.Wall, s.sleeps), 0)
	if e.Starting {
		silence = min(silence, e.Silence) // the youngest counts
	}
	e.Starting, e.Silence = true, silence
}

// registered looks at the process that the registry names. since is set when it was started after the last heartbeat.
func (s setting) registered(e *Evidence, p piv.Project, k known, beatAt time.Time) (id process.Identity, since time.Time) {
	proc, err := s.processes.Look(p.PID)
	id = proc.Identity
	switch {
	case errors.Is(err, os.ErrProcessDone):
		e.Life, e.LifeDetail = Dead, fmt.Sprintf("PID %d is dead", p.PID)
		return process.Identity{PID: p.PID, Boot: s.now.Boot}, since
	case err != nil:
		e.Life, e.LifeDetail = Unsure, fmt.Sprintf("PID %d cannot be looked at: %v", p.PID, err)
		return id, since
	case k.sight.Identity.PID == p.PID:
		if k.sight.Identity != id {
			e.Life, e.LifeDetail = Dead, fmt.Sprintf("PID %d is dead, its number is another process's now", p.PID)
			return process.Identity{PID: p.PID, Boot: s.now.Boot}, since
		}
		e.Life, e.LifeDetail = Alive, fmt.Sprintf("PID %d is alive", p.PID)
		return id, since
	}
	began := s.now.Wall.Add(-proc.Age)
	e.Life, e.LifeDetail = Alive, fmt.Sprintf("PID %d is alive", p.PID)
	if !e.HasBeat {
		return id, began
	}
	if !began.After(beatAt.Add(nearDeath)) {
		return id, since
	}
	// It is younger than the heartbeat: a new orchestrator that has not beaten yet, or a stranger.
	switch {
	case within(proc.Dir, p.Path):
		return id, began
	case proc.Dir == "" || Age(beatAt, s.now.Wall, s.sleeps) != s.now.Wall.Sub(beatAt):
		e.Life, e.LifeDetail = Unsure, fmt.Sprintf("PID %d is younger than the heartbeat and cannot be told from a stranger", p.PID)
		return process.Identity{}, since
	}
	e.Life, e.LifeDetail = Dead, fmt.Sprintf("PID %d is dead, its number is another process's now (in %s)", p.PID, proc.Dir)
	return process.Identity{PID: p.PID, Boot: s.now.Boot}, since
}

// launched looks at the process that we have started, which may be only the launcher of the registered one.
func (s setting) launched(e *Evidence, l *recovery, t *process.Target) {
	proc, err := s.processes.Look(l.Process.PID)
	alive := err == nil && proc.Identity == l.Process
	t.Leaders = append(t.Leaders, l.Process)
	switch {
	case l.Process.PID == 0 && e.Life == Dead:
		e.Life, e.LifeDetail = Unsure, "a start was interrupted, and nobody knows what became of it"
	case alive && e.Life == Dead:
		e.Life, e.LifeDetail = Alive, fmt.Sprintf("PID %d, which was started, is alive", l.Process.PID)
	case !alive && e.Life == Dead && e.Project.PID == 0:
		e.LifeDetail = fmt.Sprintf("PID %d, which was started, is dead", l.Process.PID)
	}
}

// within reports whether dir is the project's directory or below it.
func within(dir, project string) bool {
	if real, err := filepath.EvalSymlinks(project); err == nil {
		project = real
	}
	rel, err := filepath.Rel(project, dir)
	return dir != "" && err == nil && rel != ".." && !strings.HasPrefix(rel, ".."+string(filepath.Separator))
}

// readManifest reads the project's manifest, twice if it is met half written.
func (s setting) readManifest(e *Evidence) {
	path := piv.ManifestPath(e.Project.Path)
	for try := range 2 {
		if try > 0 {
			time.Sleep(readPause)
		}
		text, err := piv.ReadFile(path)
		if errors.Is(err, os.ErrNotExist) {
			e.ManifestFault = ""
			return
		}
		if err == nil {
			e.Manifest, err = piv.ParseManifest(text)
		}
		if err == nil {
			e.ManifestFault = ""
			break
		}
		e.ManifestFault = fmt.Sprintf("%s: %v", path, err)
	}
	if e.Manifest == nil {
		return
	}
	if at := e.Manifest.LastUpdated; !at.IsZero() {
		e.ManifestAge = Age(at, s.now.Wall, s.sleeps)
	}
	for _, n := range e.Manifest.Notifications {
		if n.Waits() {
			e.Signs = append(e.Signs, Sign{Notified, notified(n)})
		}
	}
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
