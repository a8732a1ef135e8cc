package monitor

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"slices"
	"strconv"

	"github.com/outlive-mcp/outlive/internal/piv"
	"github.com/outlive-mcp/outlive/internal/process"
)

// restart begins a recovery and brings it as far as it goes.
func (r *round) restart(ctx context.Context, p piv.Project, v Verdict, a Action, t process.Target) error {
	rec := recovery{
		Project: p.Key, Stall: v.Stall, Phase: p.ResumePhase(), At: r.now.Wall, Step: begun,
		Entry: p, Class: v.Class, Rule: v.Rule, Details: v.Details, Action: a.Kind, Count: a.Count, Max: a.Max,
		Target: t, Run: rand.Text(),
	}
	if err := r.store.addRecovery(ctx, &rec); err != nil {
		return err
	}
	r.opts.checkpoint("begun")
	return r.advance(ctx, &rec)
}

// reconcile brings to an end what an earlier run has left half done.
func (r *round) reconcile(ctx context.Context) error {
	var errs []error
	for _, key := range slices.Sorted(maps.Keys(r.recoveries)) {
		list := r.recoveries[key]
		last := &list[len(list)-1]
		if !last.unfinished() {
			continue
		}
		r.opts.Logger.Info("a recovery goes on", slog.String("project", last.Entry.Name), slog.String("step", string(last.Step)))
		errs = append(errs, r.resume(ctx, last))
	}
	if len(errs) == 0 {
		return nil
	}
	// What was done just now is in the registry, and must be judged by it.
	if r.page.Lost == "" {
		r.page = r.book.read(ctx)
	}
	var err error
	r.incidents, err = r.store.openIncidents(ctx)
	return errors.Join(append(errs, err)...)
}

// resume goes on with a recovery of an earlier run. Meanwhile somebody may have started the orchestrator by hand, or it
// is the one that was started and not written down.
func (r *round) resume(ctx context.Context, rec *recovery) error {
	other, alive := r.otherProcess(rec)
	switch rec.Step {
	case begun:
		if r.page.Lost != "" {
			return nil // nothing was done yet, and nothing tells whether it still should be
		}
	case stopping, stopped:
		if alive {
			return r.step(ctx, rec, abandoned)
		}
	case starting:
		if alive {
			rec.Process = other
		}
		if alive || !process.FindsStarts { // without either, its heartbeat will tell whether it was started
			if err := r.step(ctx, rec, started); err != nil {
				return err
			}
		}
	}
	return r.advance(ctx, rec)
}

// otherProcess is a living process that the registry names now, and did not when the recovery began.
func (r *round) otherProcess(rec *recovery) (process.Identity, bool) {
	for _, p := range r.page.Registry.Projects {
		if p.Key != rec.Project || p.PID == 0 || p.PID == rec.Entry.PID {
			continue
		}
		proc, err := r.opts.processes.Look(p.PID)
		return proc.Identity, err == nil && (proc.Dir == "" || within(proc.Dir, p.Path))
	}
	return process.Identity{}, false
}

func (r *round) step(ctx context.Context, rec *recovery, to step) error {
	err := r.store.do(ctx, func(tx *sql.Tx) error { return setRecovery(ctx, tx, rec, to) })
	if err == nil {
		r.opts.checkpoint(string(to))
	}
	return err
}

// advance does the steps of a recovery, each after the one before was written down.
func (r *round) advance(ctx context.Context, rec *recovery) error {
	if rec.Step == begun {
		if why := r.cameBack(rec); why != "" {
			r.opts.Logger.Info("nothing is done", slog.String("project", rec.Entry.Name), slog.String("reason", why))
			return r.step(ctx, rec, abandoned)
		}
		if err := r.step(ctx, rec, stopping); err != nil {
			return err
		}
	}
	if rec.Step == stopping {
		if err := r.opts.processes.Stop(ctx, rec.Target); err != nil {
			if ctx.Err() != nil {
				return nil // the next run goes on from here
			}
			return r.fail(ctx, rec, err.Error())
		}
		r.opts.checkpoint("killed")
		if err := r.step(ctx, rec, stopped); err != nil {
			return err
		}
	}
	if rec.Step == stopped {
		rec.StartedAt = r.opts.clock().Wall.Round(0)
		if err := r.step(ctx, rec, starting); err != nil {
			return err
		}
	}
	if rec.Step == starting {
		id, err := r.opts.processes.Start(r.launch(rec))
		if err != nil {
			return r.fail(ctx, rec, err.Error())
		}
		r.opts.checkpoint("spawned")
		rec.Process = id
		if err := r.step(ctx, rec, started); err != nil {
			return err
		}
	}
	return r.complete(ctx, rec)
}

// cameBack looks once more, immediately before something is ended: a verdict is as old as its evidence, and the registry
// may have been read while somebody was writing it.
func (r *round) cameBack(rec *recovery) string {
	if r.page.Lost != "" {
		return "" // only what is proven dead gets here
	}
	text, err := piv.ReadFile(r.opts.Registry)
	if err != nil {
		return err.Error()
	}
	reg, err := r.book.parse(text)
	if err != nil {
		return err.Error()
	}
	for _, p := range reg.Projects {
		switch {
		case p.Key != rec.Project:
		case p.Heartbeat != rec.Entry.Heartbeat:
			return "the agent has beaten meanwhile"
		case p.Status != rec.Entry.Status:
			return "its status is " + string(p.Status) + " now"
		case p.PID != rec.Entry.PID:
			return "it has another process now"
		default:
			return ""
		}
	}
	return "it is no longer in the registry"
}

// launch is how a project's orchestrator is started. It finds the phase itself, in its manifest (S4); the variables
// tell a wrapper the same.
func (r *round) launch(rec *recovery) process.Launch {
	l := process.Launch{Run: rec.Run, Command: r.opts.Command, Dir: rec.Entry.Path, Environ: append([]string{}, r.opts.Environ...)}
	if rec.Action == RestartWithPreamble {
		l.Environ = append(l.Environ, "PIV_AUTONOMOUS_PREAMBLE=strict")
	}
	if rec.Phase != piv.NoPhase {
		l.Environ = append(l.Environ, "OUTLIVE_AGENT_PHASE="+strconv.Itoa(rec.Phase))
	}
	l.Environ = append(l.Environ, "OUTLIVE_AGENT_STALL="+string(rec.Stall), "OUTLIVE_AGENT_ATTEMPT="+strconv.Itoa(rec.Count+1))
	return l
}

// complete tells the registry of the new process, and the improvement log of the recovery. No heartbeat is written:
// that the new one lives, it has to show itself.
func (r *round) complete(ctx context.Context, rec *recovery) error {
	running := piv.Running
	change := piv.Change{Key: rec.Project, Status: &running}
	if rec.Process.PID != 0 {
		change.PID = &rec.Process.PID
	}
	if err := r.publish(rec, change); err != nil {
		return fmt.Errorf("the registry does not know of the restart yet: %w", err)
	}
	r.opts.checkpoint("published")
	err := r.store.do(ctx, func(tx *sql.Tx) error {
		outcome := fmt.Sprintf("restarted, PID %d (%d of %d restarts)", rec.Process.PID, rec.Count+1, rec.Max)
		return errors.Join(journal(ctx, tx, r.entry(rec, string(rec.Action), outcome)), setRecovery(ctx, tx, rec, completed))
	})
	if err == nil {
		r.summary.Recovered++
		r.opts.checkpoint(string(completed))
	}
	return err
}

// publish changes the registry, unless the new process has already written more than we know.
func (r *round) publish(rec *recovery, change piv.Change) error {
	text, err := piv.ReadFile(r.opts.Registry)
	if errors.Is(err, os.ErrNotExist) {
		return nil // nobody reads it
	}
	if err != nil {
		return err
	}
	reg, err := piv.ParseRegistry(text)
	if err != nil {
		return err
	}
	for _, p := range reg.Projects {
		if p.Key == rec.Project && p.Heartbeat != rec.Entry.Heartbeat {
			return nil
		}
	}
	return r.book.change([]piv.Change{change}, r.now.Wall)
}

func (r *round) entry(rec *recovery, action, outcome string) piv.Intervention {
	return piv.Intervention{
		Time: rec.At, Project: rec.Entry.Name, Phase: rec.Phase, Stall: string(rec.Stall),
		Action: action, Outcome: outcome, Details: fmt.Sprintf("[%s %s] %s", rec.Rule, rec.Class, rec.Details),
	}
}

// fail ends a recovery that cannot be done, and tells a human.
func (r *round) fail(ctx context.Context, rec *recovery, why string) error {
	r.opts.Logger.Error("the recovery failed", slog.String("project", rec.Entry.Name), slog.String("reason", why))
	v := Verdict{Rule: rec.Rule, Class: rec.Class, Stall: rec.Stall, Details: why + "; " + rec.Details}
	a := Action{Kind: rec.Action, Count: rec.Count + 1, Max: rec.Max}
	return r.tell(ctx, rec.Entry, v, a, string(rec.Action)+" failed", func(tx *sql.Tx) error {
		return setRecovery(ctx, tx, rec, failed)
	})
}
