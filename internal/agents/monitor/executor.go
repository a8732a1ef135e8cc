package monitor

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/outlive-mcp/outlive/internal/agents/incident"
	"github.com/outlive-mcp/outlive/internal/agents/piv"
	"github.com/outlive-mcp/outlive/internal/agents/process"
	"github.com/outlive-mcp/outlive/internal/agents/recovery"
)

// executor performs decisions step by step. Each step starts after the previous one was recorded.
type executor struct {
	m         *Monitor
	snapshot  *snapshot // the round's
	now       time.Time
	ledger    *ledger
	incidents *incidents
	round     *round

	recovered int // agents started at this look
}

// resume continues a recovery of an earlier run. Meanwhile a person may have started the agent, or our start succeeded
// but was not recorded.
func (x *executor) resume(ctx context.Context, rec *attempt) error {
	if !rec.Act.Rung.Starts() {
		return x.resumeNonRestart(ctx, rec)
	}
	if why := x.overtaken(rec); why != "" {
		x.m.opts.Logger.Info("the recovery is given up", slog.String("agent", rec.Entry.Name), slog.String("reason", why))
		rec.Outcome = "nothing is done: " + why
		return x.ledger.step(ctx, rec, abandoned)
	}
	other, alive := x.otherProcess(rec)
	switch rec.Step {
	case begun:
		if x.snapshot.Lost != "" && !rec.Declared {
			return nil // nothing was done yet, and it may no longer be needed
		}
	case stopping, stopped:
		if alive {
			return x.ledger.step(ctx, rec, abandoned)
		}
	case starting:
		if alive {
			rec.Process = other
		}
		if alive || !process.FindsStarts { // otherwise its heartbeat shows whether it was started
			if err := x.ledger.step(ctx, rec, started); err != nil {
				return err
			}
		}
	}
	return x.advance(ctx, rec)
}

// resumeNonRestart ends an interrupted text or signal. What had not begun is decided again, unless a person requested it.
// What had begun may or may not have been done; it is not repeated, because doing it twice could do harm.
func (x *executor) resumeNonRestart(ctx context.Context, rec *attempt) error {
	switch {
	case rec.Step == begun && rec.UserRequest != 0:
		return x.advance(ctx, rec)
	case rec.Step == begun:
		return x.ledger.step(ctx, rec, abandoned)
	}
	rec.Outcome = "interrupted: it is not known whether it was done"
	return x.ledger.step(ctx, rec, completed, rec.entry(rec.action(), rec.Outcome))
}

// overtaken says why the recovery of a declared agent is not gone on with. "": nothing stands against it. Its owner may have
// started, paused or removed the agent while no monitor ran.
func (x *executor) overtaken(rec *attempt) string {
	if !rec.Declared || rec.Step == begun || rec.Step == started {
		return "" // it is looked at before it begins; what was started is recorded
	}
	a, there := x.snapshot.agent(rec.Agent)
	if !there || a.isProject() {
		return "it is no longer in the registry"
	}
	id := x.round.lookAt(a).subject.process
	switch {
	case a.Declared.Paused && rec.UserRequest == 0:
		return "it is paused"
	case rec.Step != starting && id.PID != 0 && !slices.Contains(rec.Target.Leaders, id):
		return fmt.Sprintf("it runs in another process now, PID %d", id.PID)
	}
	return ""
}

// otherProcess is a living process that the registry names now but did not when the recovery began.
func (x *executor) otherProcess(rec *attempt) (process.Identity, bool) {
	if rec.Declared {
		return process.Identity{}, false // the start's token finds its process
	}
	a, there := x.snapshot.agent(rec.Agent)
	if !there || a.PID == 0 || a.PID == rec.Entry.PID {
		return process.Identity{}, false
	}
	proc, err := x.m.opts.processes.Look(a.PID)
	return proc.Identity, err == nil && (proc.Dir == "" || x.m.sources.within(proc.Dir, a.Path))
}

// advance performs the steps of a recovery, recording each before the next.
func (x *executor) advance(ctx context.Context, rec *attempt) error {
	x.m.opts.Acting()
	if rec.Step == begun {
		if why := x.cameBack(ctx, rec); why != "" {
			x.m.opts.Logger.Info("nothing is done", slog.String("agent", rec.Entry.Name), slog.String("reason", why))
			return x.ledger.step(ctx, rec, abandoned)
		}
		if !rec.Act.Rung.Starts() {
			return x.nonRestart(ctx, rec)
		}
		if err := x.ledger.step(ctx, rec, stopping); err != nil {
			return err
		}
	}
	if rec.Step == stopping {
		if err := x.m.opts.processes.Stop(ctx, rec.Target); err != nil {
			if ctx.Err() != nil {
				return nil // the next run continues here
			}
			return x.fail(ctx, rec, err.Error())
		}
		x.m.opts.checkpoint("killed")
		if err := x.ledger.step(ctx, rec, stopped); err != nil {
			return err
		}
	}
	if rec.Step == stopped {
		rec.StartedAt = x.m.opts.clock().Wall.Round(0)
		if err := x.ledger.step(ctx, rec, starting); err != nil {
			return err
		}
	}
	if rec.Step == starting {
		id, err := x.m.opts.processes.Start(process.Launch{
			Run: rec.Run, Command: rec.Command, Dir: rec.Entry.Path,
			Environ: slices.Concat(x.m.opts.environFor(x.snapshot), rec.Environ),
		})
		if err != nil {
			return x.fail(ctx, rec, err.Error())
		}
		x.m.opts.checkpoint("spawned")
		rec.Process = id
		if err := x.ledger.step(ctx, rec, started); err != nil {
			return err
		}
	}
	return x.complete(ctx, rec)
}

// cameBack inspects the agent again immediately before acting, because evidence ages.
func (x *executor) cameBack(ctx context.Context, rec *attempt) string {
	if rec.UserRequest != 0 || rec.Act.Rung == recovery.Observe || rec.Act.Rung == recovery.Hold || rec.Act.Rung == recovery.AskPhone {
		return "" // a person requested it, or it is harmless
	}
	if rec.Declared {
		return x.agentCameBack(ctx, rec)
	}
	if x.snapshot.Lost != "" {
		return "" // only agents proven dead get here
	}
	// The registry may have been read during a write.
	_, p, err := x.m.registryStore.current()
	if err != nil {
		return err.Error()
	}
	switch a, there := p.agent(rec.Agent); {
	case !there:
		return "it is no longer in the registry"
	case a.Heartbeat != rec.Entry.Heartbeat:
		return "the agent has beaten meanwhile"
	case a.Status != rec.Entry.Status:
		return "its status is " + string(a.Status) + " now"
	case a.PID != rec.Entry.PID:
		return "it has another process now"
	}
	return ""
}

// complete records the new process in the PIV registry, and the recovery in the improvement log. It writes no heartbeat:
// the new process must show itself that it lives.
func (x *executor) complete(ctx context.Context, rec *attempt) error {
	if !rec.Declared {
		if err := x.publish(rec); err != nil {
			return fmt.Errorf("the registry does not know of the restart yet: %w", err)
		}
	}
	x.m.opts.checkpoint("published")
	word := "restarted"
	if rec.Verb == verbStart {
		word = "started"
	}
	if rec.Outcome = fmt.Sprintf("%s, PID %d", word, rec.Process.PID); rec.UserRequest == 0 {
		rec.Outcome += fmt.Sprintf(" (%d of %d restarts)", rec.Used+1, rec.Max)
	}
	err := x.ledger.step(ctx, rec, completed, rec.entry(rec.action(), rec.Outcome))
	if err == nil {
		x.recovered++
	}
	return err
}

// publish has the PIV registry name the new process, unless that has written newer data.
func (x *executor) publish(rec *attempt) error {
	_, p, err := x.m.registryStore.current()
	if errors.Is(err, os.ErrNotExist) {
		return nil // there is no entry to change
	}
	if err != nil {
		return err
	}
	if a, there := p.agent(rec.Agent); there && a.Heartbeat != rec.Entry.Heartbeat {
		return nil
	}
	return x.m.registryStore.change([]piv.Change{{Key: rec.Agent, Status: piv.Running, PID: rec.Process.PID}}, x.now)
}

// fail ends a recovery that is not possible and notifies a human.
func (x *executor) fail(ctx context.Context, rec *attempt, why string) error {
	x.m.opts.Logger.Error("the recovery failed", slog.String("agent", rec.Entry.Name), slog.String("reason", why))
	a := x.m.opts.ofProject(rec.Entry)
	key := incidentKey(rec.Declared, rec.Agent, rec.Act.Class, rec.Act.Stall, rec.Act.Phase)
	if rec.Declared {
		a = x.incidents.agentOf(incident.Incident{Key: key, Facts: incident.Facts{Name: a.Name}})
	}
	f := incident.Facts{
		Name: a.Name, Phase: key.Phase, Stall: rec.Act.Stall, Severity: incident.Critical,
		Details: x.m.opts.redact(why + "; " + rec.Details), Action: rec.action() + " failed", Used: rec.Used + 1, Max: rec.Max,
	}
	entry := rec.entry(rec.action()+", escalate", "")
	entry.Details = fmt.Sprintf("[%s %s] %s; %s", rec.Rule, rec.Act.Class, x.m.opts.redact(why), rec.Details)
	return x.incidents.raise(ctx, a, key, f, entry, func(tx *sql.Tx) error {
		return setRecovery(ctx, tx, rec, failed)
	})
}

// environFor is the base environment of agents: without variables that give access to the monitor or its channels.
func (o *Options) environFor(p *snapshot) []string {
	secret := slices.Concat(o.Secrets, p.Registry.Variables())
	return slices.DeleteFunc(slices.Clone(o.Environ), func(kv string) bool {
		name, _, _ := strings.Cut(kv, "=")
		return slices.Contains(secret, name)
	})
}
