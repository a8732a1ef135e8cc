package monitor

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
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

// BeatDir is where declared agents leave their heartbeats, in a home.
func BeatDir(home string) string { return filepath.Join(home, "hb") }

// sources are what is read of declared agents at one look, and what is remembered so that reading it again costs little.
type sources struct {
	home   string
	reader *agentcli.Reader
	procs  processes

	table    []process.Entry
	entries  map[int]process.Entry // the same by number
	children map[int][]int         // and by parent
	places   map[process.Identity]placed
	programs map[process.Identity]program // that run, by identity
	clis     []process.Identity           // of these, the agents' CLIs
	real     map[string]string            // directories without links
	looks    int

	beats    map[string]heartbeat.Observation
	broken   map[string]string // agent: why its heartbeat cannot be read
	runs     map[string]agentrun.Report
	sessions []agentcli.Session
	requests map[string][]hooks.Request // by agent, the longest waiting first
	fault    error                      // why the sessions cannot be read
}

// sessionsSince is how old a transcript may be of which no living process is known.
const sessionsSince = 48 * time.Hour

// program is what a process turned out to be.
type program struct {
	kind agentcli.Kind // "": none of the agents' CLIs
	dir  string
	user string
	// headless says that it works on one prompt and ends: nobody types in it.
	headless bool
	// prompted says that its command has given it something to do.
	prompted bool
	at       time.Time // when that was looked at
}

// A process may still become another program: a shell that starts one in its own place keeps its number.
const (
	settled = 30 * time.Second // until then it is looked at each time,
	again   = time.Minute      // and then so often
)

// due reports whether what a process is has to be looked at once more.
func (p program) due(e process.Entry, now time.Time) bool {
	return p.kind == "" && (e.Age < settled || now.Sub(p.at).Abs() >= again)
}

// refresh reads everything that declared agents show. What cannot be read is not evidence, and says so in the error.
func (s *sources) refresh(ctx context.Context, kept *store, now time.Time, agents []agent, sights map[string]sight) error {
	s.looks++
	s.lookAtProcesses()
	known := s.recognise(now)
	var errs []error
	pings, err := kept.pings(ctx)
	errs = append(errs, err)
	if s.beats == nil {
		s.beats, s.broken, s.runs = map[string]heartbeat.Observation{}, map[string]string{}, map[string]agentrun.Report{}
	}
	for _, a := range agents {
		s.readBeat(a.Key, pings)
		s.readRun(a.Key)
	}
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
	open, err := hooks.Requests(hooks.Dir(s.home))
	s.requests = map[string][]hooks.Request{}
	for _, q := range open {
		if a := s.agentOf(hooks.Event{Vendor: q.Vendor, Session: q.Session, PID: q.PID, Dir: q.Dir}, agents, sights); a != nil {
			s.requests[a.Key] = append(s.requests[a.Key], q)
		}
	}
	return errors.Join(append(errs, err, s.fault)...)
}

// placed is a process as it was looked at by itself: whose it is and where.
type placed struct {
	process.Process
	at time.Time
}

// place looks at a process by itself, unless that was done only just: a thousand agents would cost a look at each at every look.
// What cannot be looked at is not remembered.
func (s *sources) place(id process.Identity, now time.Time) (process.Process, error) {
	if p, known := s.places[id]; known && now.Sub(p.at).Abs() < again {
		return p.Process, nil
	}
	delete(s.places, id)
	p, err := s.procs.Look(id.PID)
	if err != nil || p.Start != id.Start {
		return p, err
	}
	if s.places == nil {
		s.places = map[process.Identity]placed{}
	}
	s.places[id] = placed{p, now}
	return p, nil
}

// lookAtProcesses reads the table of all processes.
func (s *sources) lookAtProcesses() {
	s.table = s.procs.All()
	s.entries, s.children = make(map[int]process.Entry, len(s.table)), map[int][]int{}
	for _, e := range s.table {
		s.entries[e.PID] = e
		s.children[e.Parent] = append(s.children[e.Parent], e.PID)
	}
	for id := range s.places {
		if e, lives := s.entries[id.PID]; !lives || e.Start != id.Start {
			delete(s.places, id)
		}
	}
}

// recognise finds the agents' CLIs among all processes.
func (s *sources) recognise(now time.Time) []agentcli.Process {
	programs := make(map[process.Identity]program, len(s.table))
	s.clis = s.clis[:0]
	var found []agentcli.Process
	for _, e := range s.table {
		p, known := s.programs[e.Identity]
		if !known || p.due(e, now) {
			p = s.programOf(e.PID)
			p.at = now
		}
		programs[e.Identity] = p
		if p.kind != "" {
			s.clis = append(s.clis, e.Identity)
			found = append(found, agentcli.Process{Kind: p.kind, PID: e.PID, Start: e.Start, Began: now.Add(-e.Age), Dir: p.dir})
		}
	}
	s.programs = programs
	return found
}

func (s *sources) programOf(pid int) (p program) {
	if args := s.procs.Args(pid); len(args) > 0 {
		p.kind, _ = agentcli.Recognise(args, "")
		p.headless, p.prompted = agentcli.Headless(args), agentcli.Prompted(args)
	}
	if p.kind != "" {
		if proc, err := s.procs.Look(pid); err == nil {
			p.dir, p.user = proc.Dir, proc.User
		}
	}
	return p
}

// readBeat takes the youngest of an agent's signs of life, whatever they came as. A file that cannot be read leaves the
// last one that could.
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

func (s *sources) readRun(name string) {
	report, err := agentrun.Read(agentrun.Path(s.home, name))
	if err != nil {
		delete(s.runs, name)
		return
	}
	s.runs[name] = report
}

// resolveEvery is at how many looks links in the agents' directories are followed anew.
const resolveEvery = 64

// within reports whether a directory is an agent's or below it, which may be written with links: a process knows its own
// only without.
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
	return inside(dir, filepath.Clean(place)) || inside(dir, real)
}

// inside compares clean paths.
func inside(dir, place string) bool {
	rest, below := strings.CutPrefix(dir, place)
	return below && place != "" && (rest == "" || rest[0] == filepath.Separator || place[len(place)-1] == filepath.Separator)
}

// helpers are the descendants but the CLI itself: behind npx or its own launcher it is one, and redraws its screen.
func (s *sources) helpers(id process.Identity) []process.Entry {
	kind := s.programs[id].kind
	return slices.DeleteFunc(s.descendants(id), func(e process.Entry) bool {
		p := s.programs[e.Identity]
		return p.kind != "" && (kind == "" || p.kind == kind)
	})
}

// stopped reports whether job control has stopped an agent: its process, or the CLI behind its launcher.
func (s *sources) stopped(agent process.Entry) bool {
	return agent.Stopped || slices.ContainsFunc(s.descendants(agent.Identity), func(e process.Entry) bool {
		kind := s.programs[agent.Identity].kind
		return e.Stopped && s.programs[e.Identity].kind != "" && (kind == "" || s.programs[e.Identity].kind == kind)
	})
}

// descendants are the processes below one, without it; of one that is not known, none.
func (s *sources) descendants(id process.Identity) []process.Entry {
	if _, there := s.entry(id); !there {
		return nil
	}
	var below []process.Entry
	seen := map[int]bool{id.PID: true}
	for rest := slices.Clone(s.children[id.PID]); len(rest) > 0; rest = rest[1:] {
		if pid := rest[0]; !seen[pid] {
			seen[pid] = true
			below = append(below, s.entries[pid])
			rest = append(rest, s.children[pid]...)
		}
	}
	return below
}

// below reports whether a number is that of a process, or of one of its descendants.
func (s *sources) below(pid int, root process.Identity) bool {
	if _, there := s.entry(root); !there {
		return false
	}
	for n := 0; pid > 1 && n < deepest; n++ {
		if pid == root.PID {
			return true
		}
		pid = s.entries[pid].Parent
	}
	return false
}

// deepest is how far up the parents are followed: a table that is read while it changes may have a ring.
const deepest = 256

// entry is a process's line of the table. What is not known of its identity is not asked for.
func (s *sources) entry(id process.Identity) (process.Entry, bool) {
	e, there := s.entries[id.PID]
	there = there && id.PID > 0 && (id.Start == 0 || e.Start == id.Start) && (id.Boot == "" || e.Boot == "" || e.Boot == id.Boot)
	if !there {
		return process.Entry{}, false
	}
	return e, true
}

// vendorKind is the CLI that an agent of a kind runs; "" when its files are not known.
func vendorKind(k registry.Kind) agentcli.Kind {
	if agentcli.Of(k).Known() {
		return k
	}
	return ""
}

// pings are the last signs of life that came over the network, by agent.
func (s *store) pings(ctx context.Context) (map[string]heartbeat.Observation, error) {
	list, err := query(ctx, s.db, `SELECT data FROM ping`, func(r *sql.Rows) (o heartbeat.Observation, err error) {
		var data string
		if err := r.Scan(&data); err != nil {
			return o, err
		}
		return o, json.Unmarshal([]byte(data), &o)
	})
	m := map[string]heartbeat.Observation{}
	for _, o := range list {
		m[o.Agent] = o
	}
	return m, err
}

// setPing keeps a sign of life that came over the network.
func (s *store) setPing(ctx context.Context, o heartbeat.Observation) error {
	o.Body = "" // whatever it says, nobody asks for it later
	data, err := json.Marshal(o)
	if err != nil {
		return err
	}
	_, err = s.db.ExecContext(ctx, `INSERT INTO ping VALUES (?, ?) ON CONFLICT (agent) DO UPDATE SET data = excluded.data`, o.Agent, string(data))
	if err != nil {
		return fmt.Errorf("monitor.db: %w", err)
	}
	return nil
}
