package monitor

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/outlive-mcp/outlive/internal/notify"
	"github.com/outlive-mcp/outlive/internal/piv"
)

// escalate tells a human, once.
func (r *round) escalate(ctx context.Context, p piv.Project, v Verdict, a Action, taken string) error {
	return r.tell(ctx, p, v, a, taken, func(*sql.Tx) error { return nil })
}

// tell opens an incident, queues its message and its entry of the improvement log, and does also, all in one
// transaction: whatever kills us, either all of it has happened or nothing.
func (r *round) tell(ctx context.Context, p piv.Project, v Verdict, a Action, taken string, also func(*sql.Tx) error) error {
	i := incident{
		Project: p.Key, Stall: v.Stall, Phase: p.ResumePhase(), Opened: r.now.Wall,
		Name: p.Name, Details: v.Details, Action: taken, Count: a.Count, Max: a.Max,
	}
	r.opts.checkpoint("escalate-before")
	fresh := false
	err := r.store.do(ctx, func(tx *sql.Tx) (err error) {
		if fresh, err = openIncident(ctx, tx, &i); err != nil {
			return err
		}
		outcome := "a human was told before"
		if fresh {
			outcome = "logged only: Telegram is not configured"
			if r.opts.Sender != nil {
				outcome = "Telegram message queued"
				err = notify.Put(ctx, tx, fmt.Sprintf("incident/%d", i.ID), escalationText(i))
			}
		}
		if !fresh && a.Kind == Escalate {
			return also(tx) // nothing is new
		}
		action := "escalate"
		if a.Kind != Escalate {
			action = string(a.Kind) + ", escalate"
		}
		return errors.Join(err, also(tx), journal(ctx, tx, piv.Intervention{
			Time: i.Opened, Project: i.Name, Phase: i.Phase, Stall: string(i.Stall), Action: action, Outcome: outcome,
			Details: fmt.Sprintf("[%s %s] %s", v.Rule, v.Class, v.Details),
		}))
	})
	if err == nil && fresh {
		r.summary.Escalated++
		r.opts.checkpoint("escalated")
	}
	return err
}

// detailsLimit is how much of the details a message shows, in characters: the rest is in the improvement log.
const detailsLimit = 1500

// escalationText is S4's template.
func escalationText(i incident) notify.Text {
	var t notify.Text
	t.WriteBold("🔴 Supervisor Escalation")
	t.Write("\n")
	for _, line := range []struct{ name, value string }{
		{"Project", i.Name},
		{"Phase", piv.PhaseName(i.Phase)},
		{"Stall Type", string(i.Stall)},
		{"Details", shorten(i.Details, detailsLimit)},
		{"Action Taken", i.Action},
		{"Restarts", fmt.Sprintf("%d/%d", i.Count, i.Max)},
	} {
		t.Write("\n")
		t.WriteBold(line.name + ":")
		t.Write(" " + line.value)
	}
	return t
}

func shorten(s string, limit int) string {
	n := 0
	for at := range s {
		if n++; n > limit {
			return s[:at] + "…"
		}
	}
	return s
}

// well closes what is over: the agent works again, or nobody wants it to.
func (r *round) well(ctx context.Context, p piv.Project, k known, e Evidence, v Verdict) error {
	works := v.Rule == "OK"
	if works && k.launch != nil && k.launch.Step == completed {
		if err := r.step(ctx, k.launch, recovered); err != nil {
			return err
		}
		r.opts.Logger.Info("the agent works again", slog.String("project", p.Name))
	}
	if !works && e.Watched {
		return nil // it has not shown anything yet
	}
	for _, i := range r.incidents[p.Key] {
		err := r.store.do(ctx, func(tx *sql.Tx) error {
			if works && r.opts.Sender != nil {
				key := fmt.Sprintf("incident/%d/recovered", i.ID)
				if err := notify.Put(ctx, tx, key, recoveredText(i, r.now.Wall)); err != nil {
					return err
				}
			}
			return closeIncident(ctx, tx, i.ID, r.now.Wall)
		})
		if err != nil {
			return err
		}
	}
	if works && len(r.incidents[p.Key]) > 0 && p.Status != piv.Running {
		running := piv.Running
		return r.book.change([]piv.Change{{Key: p.Key, Status: &running}}, r.now.Wall)
	}
	return nil
}

// recoveredText ends an incident for whoever was told of it.
func recoveredText(i incident, now time.Time) notify.Text {
	var t notify.Text
	t.WriteBold("🟢 Recovered")
	t.Write("\n\n")
	t.WriteBold("Project:")
	t.Write(" " + i.Name + "\n")
	t.WriteBold("Stall Type:")
	t.Write(fmt.Sprintf(" %s, after %s", i.Stall, now.Sub(i.Opened).Round(time.Second)))
	return t
}
