package monitor

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"github.com/outlive-mcp/outlive/internal/agents/incident"
)

// digest sends the daily summary of minor events and of what was done.
func (r *round) digest(ctx context.Context) error {
	if r.snapshot.Registry.Digest.At == "" {
		return nil
	}
	at, err := incident.ParseClock(r.snapshot.Registry.Digest.At)
	if err != nil {
		return nil // checked when the registry was read
	}
	now := r.now.Wall.Round(0)
	var last time.Time
	known, err := fact(ctx, r.store.db, "digest", &last)
	if err != nil {
		return err
	}
	if !known {
		return setFact(ctx, r.store.db, "digest", now) // the first digest counts from here
	}
	if incident.NextDigest(last, at, r.snapshot.Registry.Zone).After(now) {
		return nil
	}
	incidents, err := r.store.incidentsSince(ctx, last)
	if err != nil {
		return err
	}
	d := incident.Digest{From: last, To: now, Incidents: incidents, Tallies: r.ledger.tallies(r.snapshot.Agents, last, incidents)}
	message := d.Message(incident.Policy{Location: r.snapshot.Registry.Zone})
	message.Key = "digest/" + now.Format(time.RFC3339)
	return r.store.do(ctx, func(tx *sql.Tx) error {
		errs := []error{setFact(ctx, tx, "digest", now)}
		if !d.Empty() {
			errs = append(errs, r.put(ctx, tx, r.digestTo(), message))
		}
		return errors.Join(errs...)
	})
}

// digestTo returns the digest's channels: those named, or those of escalations.
func (r *round) digestTo() []string {
	if to := r.snapshot.Registry.Digest.To; len(to) > 0 {
		return to
	}
	p := policyOf(anyone(&r.snapshot), r.snapshot.Registry, r.opts)
	if len(p.Tiers) == 0 {
		return nil
	}
	return p.Tiers[0]
}
