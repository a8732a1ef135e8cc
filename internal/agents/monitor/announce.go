package monitor

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"github.com/outlive-mcp/outlive/internal/agents/diagnose"
	"github.com/outlive-mcp/outlive/internal/agents/incident"
	"github.com/outlive-mcp/outlive/internal/agents/process"
)

// restTold is how long an agent must be idle before that is announced: often the next prompt follows at once.
const restTold = diagnose.Span(time.Minute)

// ended is the run that ended with its work done, zero if there is none.
func (c *examined) ended() process.Identity {
	switch {
	case c.diagnosis.Class != diagnose.Done:
		return process.Identity{}
	case c.subject.dead != (process.Identity{}):
		return c.subject.dead
	}
	return c.subject.process
}

// rememberWork records whether the agent has worked since the last announcement that it is idle or done.
func rememberWork(c *examined, s *agentState) {
	switch class := c.diagnosis.Class; {
	case class == diagnose.AtWork, class == diagnose.Healthy, !c.diagnosis.Well():
		s.Worked = true
	case class == diagnose.Done && s.DoneRun != c.ended():
		s.Worked = true // it was too quick to be seen at work
	case class == diagnose.NotWatched: // a person has left the session
		s.Worked = false
	}
}

// announce sends one message when an agent has finished or becomes idle.
func (r *round) announce(ctx context.Context, c *examined) error {
	v, s := c.diagnosis, c.agentState
	done := v.Class == diagnose.Done
	rests := v.Class == diagnose.Idle && !c.since.IsZero() && diagnose.Span(r.now.Wall.Sub(c.since)) >= restTold
	if !s.Worked || !done && !rests {
		return nil
	}
	p := r.incidents.policyOf(c.agent)
	wanted := c.Declared.NotifyDone && len(p.Tiers) > 0
	if wanted && p.Silent(r.now.Wall) {
		return nil // it waits for the end of the quiet hours
	}
	s.Worked, s.DoneRun = false, c.ended()
	work := incident.WorkUnknown
	if m := c.Declared.Expect.Done; done {
		work = incident.WorkDone
	} else if m.Exit != nil || m.Manifest != "" {
		work = incident.WorkLeft
	}
	message := incident.Rested(c.Name, work, v.Details, r.opts.redact(c.subject.text))
	message.Key = fmt.Sprintf("rested/%s/%d", c.Key, r.now.Wall.UnixMilli())
	err := r.store.do(ctx, func(tx *sql.Tx) error {
		if err := putState(ctx, tx, c.Key, s); err != nil || !wanted {
			return err
		}
		return r.put(ctx, tx, p.Tiers[0], message)
	})
	if err != nil {
		return err
	}
	c.agentState, r.agentStates.all[c.Key] = s, s
	return nil
}
