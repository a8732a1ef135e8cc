package monitor

import (
	"context"
	"database/sql"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/outlive-mcp/outlive/internal/agents/agentcli"
	"github.com/outlive-mcp/outlive/internal/agents/agentrun"
	"github.com/outlive-mcp/outlive/internal/agents/heartbeat"
	"github.com/outlive-mcp/outlive/internal/agents/hooks"
	"github.com/outlive-mcp/outlive/internal/agents/process"
	"github.com/outlive-mcp/outlive/internal/agents/registry"
)

// BeatDir is the heartbeat directory of declared agents in a home.
func BeatDir(home string) string { return filepath.Join(home, "hb") }

// sources is what is read for declared agents at one look, with caches.
type sources struct {
	home   string
	places agentcli.Places // by our own environment
	reader *agentcli.Reader
	procs  processes

	steps    []Sleep // when the clock was set forward, and how far; what was started before End was started before that
	table    process.Table
	placed   map[process.Identity]placed
	programs map[process.Identity]program // that run, by identity
	clis     []process.Identity           // of these, agent CLIs
	real     map[string]string            // directories with links resolved
	looks    int

	agents []agent
	claims map[string]process.Identity // by agent: its process, by its wrapper or its pidfile
	beats  map[string]heartbeat.Observation
	broken map[string]string // agent: why its heartbeat cannot be read
	runs   map[string]agentrun.Report
	// unreported are the reports of wrappers that cannot be read, by agent.
	unreported map[string]unreadReport
	sessions   []agentcli.Session
	holders    map[int]agentcli.Kind      // living processes that run one of these
	requests   map[string][]hooks.Request // by agent, the longest waiting first
	fault      error                      // why the sessions cannot be read
	// requestsFault is why the requests cannot be read, or not all.
	requestsFault error
}

// sessionsSince is the maximum age of a transcript without a known living process.
const sessionsSince = 48 * time.Hour

// program is what a process was recognised as.
type program struct {
	kind agentcli.Kind // "": not an agent CLI
	// told says that its arguments are known. Not every system tells them.
	told bool
	dir  string
	user string
	// headless says that it works on one prompt and exits.
	headless bool
	// prompted says that its command line has a prompt.
	prompted bool
	// streamed says that it takes prompts from a stream, and does not end with its turn.
	streamed bool
	// place is where it keeps its files, if that is elsewhere than ours. "": it is not, or is not known.
	place string
	// moved is what of its environment says so, see [agentcli.Place.Moved], with line ends in between.
	moved string
	at    time.Time // when it was examined
}

// A process may become another program with the same PID, as a shell does with exec.
const (
	settled = 30 * time.Second // until this age it is examined at each look,
	again   = time.Minute      // and then this often
)

// due reports whether a process has to be examined again.
func (p program) due(e process.Process, now time.Time) bool {
	return p.kind == "" && (e.Age < settled || now.Sub(p.at).Abs() >= again)
}

// faults say what could not be read of the files of CLIs and of requests. It is evidence that is missing, of those agents
// alone that it concerns.
func (s *sources) faults() error { return errors.Join(s.fault, s.requestsFault) }

// refresh reads all sources of declared agents. The error is what concerns all of them; [sources.faults] has the rest.
func (s *sources) refresh(ctx context.Context, kept *store, now time.Time, agents []agent, agentStates map[string]agentState) error {
	s.lookAtProcesses()
	known := s.recognise(now)
	s.readElsewhere(agents)
	var errs []error
	pings, err := kept.pings(ctx)
	errs = append(errs, err)
	if s.beats == nil {
		s.beats, s.broken, s.runs = map[string]heartbeat.Observation{}, map[string]string{}, map[string]agentrun.Report{}
		s.unreported = map[string]unreadReport{}
	}
	for _, a := range agents {
		s.readBeat(a.Key, pings)
		if err != nil {
			s.broken[a.Key] = err.Error()
		}
		s.readRun(a.Key)
	}
	s.claim(agents, agentStates)
	var dirs []string
	for _, a := range agents {
		if a.says("transcript") && a.ownsDirectory() && vendorKind(a.Kind) != "" {
			dirs = append(dirs, a.Path)
		}
	}
	s.sessions, s.fault = nil, nil
	if len(dirs) > 0 {
		s.sessions, s.fault = s.reader.Sessions(agentcli.Query{Dirs: dirs, Processes: known, Since: now.Add(-sessionsSince)})
	}
	s.hold()
	var open []hooks.Request
	open, s.requestsFault = hooks.Requests(hooks.Dir(s.home))
	s.requests = map[string][]hooks.Request{}
	for _, q := range open {
		if a := s.agentOf(hooks.Event{Vendor: q.Vendor, Session: q.Session, PID: q.PID, Dir: q.Dir}, agents, agentStates); a != nil {
			s.requests[a.Key] = append(s.requests[a.Key], q)
		}
	}
	return errors.Join(errs...)
}

// claim notes whose process it is certain to be that runs in a directory.
func (s *sources) claim(agents []agent, agentStates map[string]agentState) {
	s.agents, s.claims = agents, map[string]process.Identity{}
	for _, a := range agents {
		if r, ok := s.runs[a.Key]; ok {
			s.claims[a.Key] = identityOfRun(&r)
		} else if a.Declared.Match.PIDFile != "" {
			s.claims[a.Key] = agentStates[a.Key].Identity
		}
	}
}

// ofAnother reports whether what a CLI does in an agent's directory is another agent's. That agent's directory is below this one, as
// with worktrees, or it is the same, and the process is certainly that agent's. pid 0: the process is not known.
func (s *sources) ofAnother(a agent, kind agentcli.Kind, dir string, pid int) bool {
	return slices.ContainsFunc(s.agents, func(o agent) bool {
		switch {
		case o.Key == a.Key || !o.ownsDirectory() || !s.within(dir, o.Path) || len(o.Path) < len(a.Path):
			return false
		case len(o.Path) > len(a.Path):
			return vendorKind(o.Kind) == kind
		}
		return s.below(pid, s.claims[o.Key])
	})
}

// placed is a process's user and directory, with the time it was read.
type placed struct {
	process.Process
	at time.Time
}

// place reads a process's user and directory, with a cache: with a thousand agents, reading all at every look is too
// slow. Failures are not cached.
func (s *sources) place(id process.Identity, now time.Time) (process.Process, error) {
	if p, known := s.placed[id]; known && now.Sub(p.at).Abs() < again {
		return p.Process, nil
	}
	delete(s.placed, id)
	p, err := s.procs.Look(id.PID)
	if err != nil || p.Start != id.Start {
		return p, err
	}
	if s.placed == nil {
		s.placed = map[process.Identity]placed{}
	}
	s.placed[id] = placed{p, now}
	return p, nil
}

// lookAtProcesses reads the process table.
func (s *sources) lookAtProcesses() {
	s.table = process.TableOf(s.procs.All())
	for id := range s.placed {
		if e, lives := s.table.Entry(id.PID); !lives || e.Start != id.Start {
			delete(s.placed, id)
		}
	}
}

// recognise finds the agent CLIs among all processes.
func (s *sources) recognise(now time.Time) []agentcli.Process {
	programs := make(map[process.Identity]program, len(s.table.All))
	s.clis = s.clis[:0]
	var found []agentcli.Process
	for _, e := range s.table.All {
		p, known := s.programs[e.Identity]
		if !known || p.due(e, now) {
			p = s.programOf(e.PID)
			p.at = now
		}
		programs[e.Identity] = p
		if p.kind != "" {
			s.clis = append(s.clis, e.Identity)
			found = append(found, agentcli.Process{Kind: p.kind, PID: e.PID, Start: e.Start, Began: s.began(e.Age, now), Dir: p.dir})
		}
	}
	s.programs = programs
	return found
}

func (s *sources) programOf(pid int) (p program) {
	if args := s.procs.Args(pid); len(args) > 0 {
		p.told = len(args) > 1
		p.kind, _ = agentcli.Recognise(args)
		p.headless, p.prompted, p.streamed = agentcli.Headless(args, true), agentcli.Prompted(args), agentcli.Streamed(args)
	}
	if p.kind != "" {
		if proc, err := s.procs.Look(pid); err == nil {
			p.dir, p.user = proc.Dir, proc.User
		}
		env := func(name string) string { return s.procs.Variable(pid, name) }
		if p.place = s.placeOf(p.kind, env); p.place != "" {
			p.moved = strings.Join(agentcli.Of(p.kind).Place.Moved(env), "\n")
		}
	}
	return p
}

// placeOf is where a CLI with that environment keeps its files, if that is elsewhere than ours. "": it is not, or is not known.
func (s *sources) placeOf(kind agentcli.Kind, env func(name string) string) string {
	place := agentcli.Of(kind).Place.In(env("HOME"), env)
	if ours := s.places[kind]; ours == "" || place == ours || !filepath.IsAbs(place) {
		return ""
	}
	return place
}

// readElsewhere has the files of the agents' CLIs read where their processes or their declarations say.
func (s *sources) readElsewhere(agents []agent) {
	for _, id := range s.clis {
		p := s.programs[id]
		if p.place != "" && slices.ContainsFunc(agents, func(a agent) bool { return a.ownsDirectory() && s.within(p.dir, a.Path) }) {
			s.reader.Also(p.kind, p.place)
		}
	}
	for _, a := range agents {
		kind := vendorKind(a.Kind)
		if place := s.placeOf(kind, func(name string) string { return a.Declared.Start.Env[name] }); place != "" {
			s.reader.Also(kind, place)
		}
	}
}

// readBeat takes an agent's youngest heartbeat, from a file or a ping. If the file cannot be read, the last good one
// counts.
func (s *sources) readBeat(name string, pings map[string]heartbeat.Observation) {
	delete(s.broken, name)
	o, err := heartbeat.ReadFile(filepath.Join(BeatDir(s.home), name+heartbeat.Suffix))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		s.broken[name] = err.Error()
		o = s.beats[name]
	}
	if p, ok := pings[name]; ok && p.Wall.After(o.Wall) {
		o = p
	}
	if o.Wall.IsZero() {
		delete(s.beats, name)
		return
	}
	s.beats[name] = o
}

// unreadReport is a report that cannot be read: why, and when it was written.
type unreadReport struct {
	why string
	at  time.Time
}

func (s *sources) readRun(name string) {
	path := agentrun.Path(s.home, name)
	report, err := agentrun.Read(path)
	delete(s.unreported, name)
	if err == nil {
		s.runs[name] = report
		return
	}
	delete(s.runs, name)
	if st, statErr := os.Lstat(path); statErr == nil {
		s.unreported[name] = unreadReport{err.Error(), st.ModTime()}
	}
}

// resolveEvery is after how many looks links in the agents' directories are resolved again.
const resolveEvery = 64

// within reports whether a directory is the agent's or below it. Links are resolved, since a process knows its directory
// only without links.
func (s *sources) within(dir, place string) bool {
	if s.real == nil || s.looks%resolveEvery == 0 && s.looks > 0 {
		s.real, s.looks = map[string]string{}, 0
	}
	real, known := s.real[place]
	if !known {
		real = filepath.Clean(place)
		if resolved, err := filepath.EvalSymlinks(place); err == nil {
			real = resolved
		}
		s.real[place] = real
	}
	return agentcli.Within(dir, filepath.Clean(place)) || agentcli.Within(dir, real)
}

// helpers are the descendants without the CLI itself, which is a descendant behind npx or its own launcher, and uses CPU
// to redraw its screen. A CLI that it has started is one.
func (s *sources) helpers(id process.Identity) []process.Process {
	kind := s.programs[id].kind
	return slices.DeleteFunc(s.descendants(id), func(e process.Process) bool {
		p := s.programs[e.Identity]
		return p.kind != "" && (kind == "" || p.kind == kind) && !s.nested(e.PID, p.kind, id)
	})
}

// stopped reports whether job control has stopped an agent: its process, or the CLI behind its launcher.
func (s *sources) stopped(agent process.Process) bool {
	return agent.Stopped || slices.ContainsFunc(s.descendants(agent.Identity), func(e process.Process) bool {
		kind, its := s.programs[agent.Identity].kind, s.programs[e.Identity].kind
		return e.Stopped && its != "" && (kind == "" || its == kind) && !s.nested(e.PID, its, agent.Identity)
	})
}

// descendants are the processes below one, each behind its parent; none if it is not known.
func (s *sources) descendants(id process.Identity) []process.Process {
	if _, there := s.entry(id); !there {
		return nil
	}
	return s.table.Tree(id.PID)[1:]
}

// below reports whether a PID is that of root or of one of its descendants.
func (s *sources) below(pid int, root process.Identity) bool {
	if _, there := s.entry(root); !there {
		return false
	}
	for e := range s.table.Lineage(pid) {
		if e.PID == root.PID {
			return true
		}
	}
	return false
}

// began is when a process of that age was started, by the clock of then. Its age does not count what that was set forward since.
func (s *sources) began(age time.Duration, now time.Time) time.Time {
	at := now.Add(-age)
	for _, step := range slices.Backward(s.steps) {
		if at.Before(step.End) {
			at = at.Add(-step.Length)
		}
	}
	return at
}

// entry is a process's entry in the table. Unknown parts of its identity are not compared.
func (s *sources) entry(id process.Identity) (process.Process, bool) {
	e, there := s.table.Entry(id.PID)
	there = there && id.PID > 0 && (id.Start == 0 || e.Start == id.Start) && (id.Boot == "" || e.Boot == "" || e.Boot == id.Boot)
	if !there {
		return process.Process{}, false
	}
	return e, true
}

// vendorKind is the CLI of an agent kind; "" if its files are not known.
func vendorKind(k registry.Kind) agentcli.Kind {
	if agentcli.Of(k).Known() {
		return k
	}
	return ""
}

// pings are the last pings received over the network, by agent.
func (s *store) pings(ctx context.Context) (map[string]heartbeat.Observation, error) {
	list, err := query(ctx, s.db, `SELECT data FROM ping`, func(r *sql.Rows) (o heartbeat.Observation, err error) {
		err = r.Scan(asJSON{&o})
		return o, err
	})
	m := map[string]heartbeat.Observation{}
	for _, o := range list {
		m[o.Agent] = o
	}
	return m, err
}

// setPing stores a ping received over the network.
func (s *store) setPing(ctx context.Context, o heartbeat.Observation) error {
	_, err := write(ctx, s.db, `INSERT INTO ping VALUES (?, ?) ON CONFLICT (agent) DO UPDATE SET data = excluded.data`, o.Agent, asJSON{o})
	return err
}
