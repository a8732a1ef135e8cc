package monitor

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/outlive-mcp/outlive/internal/diagnose"
	"github.com/outlive-mcp/outlive/internal/escalate"
	"github.com/outlive-mcp/outlive/internal/piv"
	"github.com/outlive-mcp/outlive/internal/wholefile"
)

// fail ends a recovery that cannot be done, and tells a human.
func (r *round) fail(ctx context.Context, rec *recovery, why string) error {
	r.opts.Logger.Error("the recovery failed", slog.String("project", rec.Entry.Name), slog.String("reason", why))
	a := agent{Key: rec.Agent, Name: rec.Entry.Name, Entry: rec.Entry}
	key := escalate.Key{Agent: rec.Agent, Class: rec.Act.Stall, Phase: piv.PhaseName(rec.Act.Phase)}
	if rec.Declared {
		a = r.agentOf(escalate.Incident{Key: key, Facts: escalate.Facts{Name: a.Name}})
		if key.Class = rec.Act.Class; rec.Act.Phase == piv.NoPhase {
			key.Phase = ""
		}
	}
	f := escalate.Facts{
		Name: a.Name, Phase: key.Phase, Stall: rec.Act.Stall, Severity: escalate.Critical,
		Details: r.opts.redact(why + "; " + rec.Details), Action: rec.action() + " failed", Used: rec.Used + 1, Max: rec.Max,
	}
	entry := rec.entry(rec.action()+", escalate", "")
	entry.Details = fmt.Sprintf("[%s %s] %s; %s", rec.Rule, rec.Act.Class, r.opts.redact(why), rec.Details)
	return r.raise(ctx, a, key, f, entry, func(tx *sql.Tx) error {
		return setRecovery(ctx, tx, rec, failed)
	})
}

// registryKey stands for the registry where an agent is told of.
const registryKey = ""

// tellOfRegistry tells once that the registry cannot be used.
func (r *round) tellOfRegistry(ctx context.Context, taken string) error {
	stall := string(diagnose.Blind)
	f := escalate.Facts{
		Name: "registry", Phase: piv.PhaseName(piv.NoPhase), Stall: stall, Severity: escalate.Critical,
		Details: r.opts.redact(r.page.Lost), Action: taken,
	}
	entry := piv.Intervention{
		Time: r.now.Wall, Project: "registry", Phase: piv.NoPhase, Stall: stall, Action: "escalate", Details: "[R1 registry] " + r.opts.redact(r.page.Lost),
	}
	key := escalate.Key{Agent: registryKey, Class: stall}
	return r.raise(ctx, r.agentOf(escalate.Incident{Key: key, Facts: f}), key, f, entry, nil)
}

// registryQuiet is how long S4's registry must be in order until its next breaking is news: with writers like its own, one
// comes seldom alone.
const registryQuiet = time.Hour

func (r *round) closeRegistryIncident(ctx context.Context) error {
	for _, i := range r.open(registryKey) {
		if !r.page.declared() && r.now.Wall.Sub(i.Opened) < registryQuiet {
			continue
		}
		var e escalate.Event = escalate.Gone{Why: "it can be read again"}
		if r.page.declared() {
			e = escalate.Recovered{How: "it can be read again"}
		}
		if err := r.tell(ctx, r.agentOf(i), i, e, nil); err != nil {
			return err
		}
	}
	return nil
}

// restoreRegistry puts the last good copy in the place of a broken registry of S4.
func (r *round) restoreRegistry(ctx context.Context) error {
	if err := r.book.restore(r.page); err != nil && !errors.Is(err, wholefile.ErrChanged) && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	// The heartbeats in the copy are old; everybody writes a new one into it soon.
	r.grace, r.why = r.now.Wall.Add(resumeGrace), "the registry was restored only just"
	r.setting.grace = r.why
	return r.store.setFact(ctx, "grace", r.grace)
}
