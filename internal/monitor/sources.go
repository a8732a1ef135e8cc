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
	"time"

	"github.com/outlive-mcp/outlive/internal/agentrun"
	"github.com/outlive-mcp/outlive/internal/heartbeat"
	"github.com/outlive-mcp/outlive/internal/hooks"
	"github.com/outlive-mcp/outlive/internal/process"
	"github.com/outlive-mcp/outlive/internal/roster"
	"github.com/outlive-mcp/outlive/internal/vendors"
)

// BeatDir is where declared agents leave their heartbeats, in a home.
func BeatDir(home string) string { return filepath.Join(home, "hb") }

// sources are what is read of declared agents at one look, and what is remembered so that reading it again costs little.
type sources struct {
	home   string
	reader *vendors.Reader
	procs  processes

	table    []process.Entry
	programs map[process.Identity]program // that run, by identity: their command lines do not change

	beats    map[string]heartbeat.Observation
	broken   map[string]string // agent: why its heartbeat cannot be read
	runs     map[string]agentrun.Report
	sessions []vendors.Session
	requests []hooks.Request
	fault    error // why the sessions cannot be read
}

// sessionsSince is how old a transcript may be of which no living process is known.
const sessionsSince = 48 * time.Hour

// program is what a process turned out to be.
type program struct {
	kind vendors.Kind // "": none of the agents' CLIs
	dir  string
}

// refresh reads everything that declared agents show. What cannot be read is no evidence, and says so in the error.
func (s *sources) refresh(ctx context.Context, r *round, agents []agent) error {
	s.table = s.procs.All()
	known := s.recognise()
	var errs []error
	pings, err := r.store.pings(ctx)
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
		s.sessions, s.fault = s.reader.Sessions(vendors.Query{Dirs: dirs, Processes: known, Since: r.now.Wall.Add(-sessionsSince)})
	}
	if s.requests, err = hooks.Requests(hooks.Dir(s.home)); err != nil {
		errs = append(errs, err)
	}
	return errors.Join(append(errs, s.fault)...)
}

// recognise finds the agents' CLIs among all processes. A command line is read once.
func (s *sources) recognise() []vendors.Process {
	programs := map[process.Identity]program{}
	var found []vendors.Process
	for _, e := range s.table {
		p, known := s.programs[e.Identity]
		if !known {
			if args := s.procs.Args(e.PID); len(args) > 0 {
				p.kind, _ = vendors.Recognise(args, "")
			}
			if p.kind != "" {
				if proc, err := s.procs.Look(e.PID); err == nil {
					p.dir = proc.Dir
				}
			}
		}
		programs[e.Identity] = p
		if p.kind != "" {
			found = append(found, vendors.Process{Kind: p.kind, PID: e.PID, Start: e.Start, Began: time.Now().Add(-e.Age), Dir: p.dir})
		}
	}
	s.programs = programs
	return found
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

// descendants are the processes below one, without it.
func (s *sources) descendants(id process.Identity) []process.Entry {
	tree := process.Tree(s.table, id.PID)
	return slices.DeleteFunc(tree, func(e process.Entry) bool { return e.PID == id.PID })
}

// alive reports whether a process is in the table, as itself.
func (s *sources) alive(id process.Identity) bool {
	return slices.ContainsFunc(s.table, func(e process.Entry) bool {
		return e.PID == id.PID && (id.Start == 0 || e.Start == id.Start)
	})
}

// entry is a process's line of the table.
func (s *sources) entry(pid int) (process.Entry, bool) {
	i := slices.IndexFunc(s.table, func(e process.Entry) bool { return e.PID == pid })
	if i < 0 {
		return process.Entry{}, false
	}
	return s.table[i], true
}

// vendorKind is the CLI that an agent of a kind runs; "" when its files are not known.
func vendorKind(k roster.Kind) vendors.Kind {
	switch k {
	case roster.Claude, roster.Codex, roster.Gemini, roster.OpenCode:
		return vendors.Kind(k)
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
