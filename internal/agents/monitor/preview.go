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
	Trace           diagnose.Trace // of every rule
	Decision        recovery.Decision
	LeftOut         []string // steps of the ladder that cannot be done, and why
	Action          string   // the decision, in PIV's words where it is PIV's
	Process         process.Identity
	Session         string
	Joinable        bool                // people can join its terminal (outlive agent attach)
	Joined          []agentrun.Joined   // who has
	Pane            *HerdrPane          // that it runs in; nil: none is known
	Acts            []recovery.Act      // that were done, the oldest first
	Incidents       []incident.Incident // that are not over
	Stopped         bool                // by a person
}

// String is one line for people.
func (f Finding) String() string { return logline.Printable(f.text()) }

func (f Finding) text() string {
	s := fmt.Sprintf("%s (Phase %s): ", f.Name, f.Phase)
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
	Registry  *registry.Registry  // nil: a PIV registry
	Lost      string              // why the registry cannot be used; "": it can
	Running   int                 // the PID of the monitor that has the home; 0: none
	At        time.Time
}

// Inspect looks as a cycle would (--dry-run) without any effect: no signal, no message, no file is changed. A monitor
// may run at the same time.
func Inspect(ctx context.Context, opts Options) (View, error) {
	return InspectSince(ctx, opts, time.Time{})
}

// InspectSince is [Inspect], with the incidents that were open at the given time. Zero: none.
func InspectSince(ctx context.Context, opts Options, since time.Time) (view View, err error) {
	opts = opts.withDefaults()
	dir, err := os.MkdirTemp("", "outlive-monitor-")
	if err != nil {
		return View{}, fmt.Errorf("inspect: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	// Earlier state is read from a copy.
	copied := filepath.Join(dir, "monitor.db")
	for _, suffix := range []string{"", "-wal"} {
		if err := copyFile(opts.Database()+suffix, copied+suffix); err != nil {
			return View{}, fmt.Errorf("inspect: %w", err)
		}
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
	view = View{Registry: r.snapshot.Registry, Lost: r.snapshot.Lost, Running: holder(opts.PIDFile), At: r.now.Wall}
	var errs []error // unreadable sources are in the evidence
	for _, c := range r.examine(ctx, &errs) {
		view.Findings = append(view.Findings, r.finding(c))
	}
	if !since.IsZero() {
		if view.Past, err = m.store.incidentsSince(ctx, since); err != nil {
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
		Evidence: c.redacted(r.opts), Policy: c.expect, Diagnosis: c.diagnosis, Trace: diagnose.Explain(c.evidence, c.expect), Decision: d,
		Process: c.subject.process, Session: c.subject.session, Joinable: c.subject.joinable, Joined: c.subject.joined, Acts: acts(r.ledger.all[c.Key]), Incidents: r.incidents.open(c.Key), Stopped: c.agentState.Stopped,
	}
	f.Trace = diagnose.Explain(f.Evidence, c.expect)
	if p, ok := r.panes.of(c); ok {
		f.Pane = &p
	}
	for _, o := range d.LeftOut {
		f.LeftOut = append(f.LeftOut, o.Why)
	}
	if c.Declared == nil {
		f.Action = d.PIVAction()
	} else if f.Action = string(d.Rung); d.Rung == recovery.Nothing {
		f.Action = "wait"
	}
	return f
}

func copyFile(from, to string) error {
	in, err := os.Open(from)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}
