package monitor

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/outlive-mcp/outlive/internal/agents/agentrun"
	"github.com/outlive-mcp/outlive/internal/agents/diagnose"
	"github.com/outlive-mcp/outlive/internal/agents/incident"
	"github.com/outlive-mcp/outlive/internal/agents/process"
	"github.com/outlive-mcp/outlive/internal/agents/recovery"
	"github.com/outlive-mcp/outlive/internal/agents/registry"
	"github.com/outlive-mcp/outlive/internal/record/logline"
)

// Finding is a monitor's view of one agent, and what it would do.
type Finding struct {
	Key, Name, Path string
	Kind            registry.Kind
	Phase           string // as people write it
	Evidence        diagnose.Evidence
	Policy          diagnose.Policy // that it is judged by
	Diagnosis       diagnose.Diagnosis
	Since           time.Time // when it began to stand so, as far as is known; zero: not known
	Decision        recovery.Decision
	Action          string // the decision, in PIV's words where it is PIV's
	Process         process.Identity
	Session         string
	incident.Ways                       // in which people reach it
	Joined          []agentrun.Joined   // who has joined its terminal
	Acts            []recovery.Act      // that were done, the oldest first
	Incidents       []incident.Incident // that are not over
	Stopped         bool                // by a person
}

// String is one line for people.
func (f Finding) String() string { return logline.Printable(f.text()) }

func (f Finding) text() string {
	s := f.Name + ": "
	if f.Phase != "" {
		s = fmt.Sprintf("%s (Phase %s): ", f.Name, f.Phase)
	}
	if f.Diagnosis.Stall == diagnose.NoStall {
		return s + string(f.Diagnosis.Class) + ": " + f.Diagnosis.Details
	}
	s += fmt.Sprintf("%s [%s %s, %s confidence]: %s -> %s", f.Diagnosis.Stall, f.Diagnosis.Rule, f.Diagnosis.Class, f.Diagnosis.Confidence, f.Diagnosis.Details, f.Action)
	if f.Decision.Rung == recovery.Nothing {
		return s + " (" + f.Decision.Reason + ")"
	}
	return s + fmt.Sprintf(" (%d of %d restarts used)", f.Decision.Budget.Used, f.Decision.Budget.Max)
}

// View is everything that a monitor sees now.
type View struct {
	Findings []Finding
	// Incidents are all that are not over: of agents, of many at once, and of the registry. The oldest first.
	Incidents []incident.Incident
	Past      []incident.Incident // that were not over at the time of [InspectSince], the oldest first
	// Verdicts say how each agent stood since then, by its key; Watched when a monitor looked. The oldest first.
	Verdicts map[string][]Verdict
	Watched  []Period
	Registry *registry.Registry // nil: a PIV registry
	Lost     string             // why the registry cannot be used; "": it can
	Running  int                // the PID of the monitor that has the home; 0: none
	Channels int                // that the monitor last could tell people by
	// Unsent is what has not arrived of the incidents' messages, by their ids.
	Unsent map[string][]Unsent
	At     time.Time
}

// Inspect looks as a cycle would (--dry-run) without any effect: no signal, no message, no file is changed. A monitor
// may run at the same time.
func Inspect(ctx context.Context, opts Options) (View, error) {
	return InspectSince(ctx, opts, time.Time{})
}

// InspectSince is [Inspect], with the incidents, verdicts and looks of a monitor since the given time. Zero: none.
func InspectSince(ctx context.Context, opts Options, since time.Time) (view View, err error) {
	opts = opts.withDefaults()
	dir, err := os.MkdirTemp("", "outlive-monitor-")
	if err != nil {
		return View{}, fmt.Errorf("inspect: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	// Earlier state is read from a copy.
	copied := filepath.Join(dir, "monitor.db")
	if err := copyDatabase(opts.Database(), copied); err != nil {
		return View{}, fmt.Errorf("inspect: %w", err)
	}
	opts.Record, opts.OpenChannel = "", nil
	m := &Monitor{opts: opts, judged: map[string]string{}, kept: kept{from: opts.Servers}}
	if err := m.load(ctx, copied); err != nil {
		return View{}, err
	}
	defer func() { err = errors.Join(err, m.store.close()) }()
	r, err := m.begin(ctx)
	if err != nil {
		return View{}, err
	}
	view = View{Registry: r.snapshot.own(), Lost: r.snapshot.Lost, Running: holder(opts.PIDFile), At: r.now.Wall}
	var can reach
	if _, err := fact(ctx, m.store.db, "reach", &can); err != nil {
		return View{}, err
	}
	view.Channels = can.Channels
	if view.Unsent, err = m.store.unsent(ctx); err != nil {
		return View{}, err
	}
	var errs []error // unreadable sources are in the evidence
	for _, c := range r.examine(ctx, &errs) {
		view.Findings = append(view.Findings, r.finding(c))
	}
	if !since.IsZero() {
		var errs [3]error
		view.Past, errs[0] = m.store.incidentsSince(ctx, since)
		view.Verdicts, errs[1] = m.store.verdictsSince(ctx, since)
		view.Watched, errs[2] = m.store.watchedSince(ctx, since)
		if err := errors.Join(errs[:]...); err != nil {
			return View{}, err
		}
	}
	for _, i := range r.incidents.list {
		if i.State != incident.Resolved {
			view.Incidents = append(view.Incidents, i)
		}
	}
	return view, nil
}

func (r *round) finding(c *examined) Finding {
	d := r.decide(c)
	f := Finding{
		Key: c.Key, Name: c.Name, Path: c.Path, Kind: c.Kind, Phase: c.incidentKey().Phase,
		Evidence: c.redacted(r.opts), Policy: c.expect, Diagnosis: c.diagnosis, Since: c.since, Decision: d,
		Process: c.subject.process, Session: c.subject.session, Ways: r.incidents.ways(c), Joined: c.subject.joined, Acts: acts(r.ledger.all[c.Key]), Incidents: r.incidents.open(c.Key), Stopped: c.agentState.Stopped,
	}
	if c.isProject() {
		f.Action = d.PIVAction()
	} else if f.Action = string(d.Rung); d.Rung == recovery.Nothing {
		f.Action = "wait"
	}
	return f
}

// copyTries is how often a database is copied that its writer meanwhile begins a new log of.
const copyTries = 5

// copyDatabase copies a database that may be written to meanwhile, with its write-ahead log. Pages that a checkpoint changes under our hands
// are in the log as well, as long as it is the same log: then the copy is whole. A new one has another salt in its header
// (https://www.sqlite.org/fileformat2.html#walformat).
func copyDatabase(from, to string) error {
	for try := 1; ; try++ {
		before, err := logHeader(from)
		if err != nil {
			return err
		}
		for _, suffix := range []string{"", "-wal"} {
			if err := copyFile(from+suffix, to+suffix); err != nil {
				return err
			}
		}
		after, err := logHeader(from)
		if err != nil || before == after || try == copyTries {
			return err
		}
	}
}

// logHeader is the header of a database's write-ahead log; "" if there is no log.
func logHeader(database string) (string, error) {
	f, err := os.Open(database + "-wal")
	if errors.Is(err, os.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	defer f.Close()
	var header [32]byte
	n, err := io.ReadFull(f, header[:])
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		err = nil // it has just been made
	}
	return string(header[:n]), err
}

// copyFile copies a file; of one that is not there, there is no copy.
func copyFile(from, to string) error {
	in, err := os.Open(from)
	if errors.Is(err, os.ErrNotExist) {
		_ = os.Remove(to) // of an earlier try
		return nil
	}
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.Create(to)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}
