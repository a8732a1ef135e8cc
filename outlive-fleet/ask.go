package main

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/outlive-mcp/outlive/internal/fleet/engine"
	"github.com/outlive-mcp/outlive/internal/fleet/judge"
	"github.com/outlive-mcp/outlive/internal/view/fleetsocket"
)

const (
	// partLimit is how long one answer of a machine is waited for, patience how long it may give none until it counts as gone. A
	// command that runs there goes on that long without us.
	partLimit = 4 * time.Second
	patience  = 12 * time.Second
	// askAgain is the pause before a question that was not delivered is sent again.
	askAgain = 300 * time.Millisecond
)

// ask has outlive on a machine do something, and hands on what it writes. The last frame says how it has ended.
func (m *member) ask(ctx context.Context, c fleetsocket.Command, each func(fleetsocket.Frame) error) {
	o := order{Op: "run", ID: rand.Text(), Args: c.Args}
	p, ending := m.request(ctx, c.Host, o, true)
	if ending == nil {
		defer func() {
			ended, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
			defer cancel()
			_, _ = m.send(ended, c.Host, order{Op: "end", ID: o.ID}) // it ends by itself otherwise
		}()
	}
	for number := 1; ending == nil && p.Failed == ""; {
		if p, ending = m.request(ctx, c.Host, order{Op: "next", ID: o.ID, Part: number}, false); ending != nil || p.None || p.Failed != "" {
			continue
		}
		number++
		if each(fleetsocket.Frame{Out: p.Out, Err: p.Err, Exit: p.Exit}) != nil || p.Exit != nil {
			return
		}
	}
	if ctx.Err() != nil {
		return
	}
	if p.Failed != "" {
		ending = &fleetsocket.Ending{Word: fleetsocket.NoAnswer, Why: p.Failed}
	}
	_ = each(fleetsocket.Frame{Ended: ending}) // who has asked may be gone
}

// reconnects is how long a machine may be away that goes to another server of a cluster, when its own was lost.
const reconnects = 3 * time.Second

// request sends an order until it is answered: all may be sent again. A machine that is not there at the first word is not waited for, unless
// it, or this one, may be on its way to another server.
func (m *member) request(ctx context.Context, host string, o order, first bool) (part, *fleetsocket.Ending) {
	began, outcome := time.Now(), ""
	if !first {
		outcome = "; what was asked for may have happened"
	}
	for {
		p, err := m.send(ctx, host, o)
		connected, since, why := m.linkNow()
		switch {
		case err == nil:
			return p, nil
		case ctx.Err() != nil:
			return part{}, &fleetsocket.Ending{Word: fleetsocket.NoAnswer, Why: ctx.Err().Error()}
		case errors.Is(err, engine.ErrNoOwner) && (first && !(m.view.at(host).ending == nil && time.Since(began) < reconnects) || time.Since(began) > patience):
			e := m.view.missed(ctx, host)
			e.Why += outcome
			return part{}, e
		case !connected && (first && time.Since(since) > reconnects || time.Since(began) > patience):
			return part{}, &fleetsocket.Ending{Word: fleetsocket.Unknown, Why: "this machine has no connection to the hub: " + why + outcome, From: since}
		case time.Since(began) > patience:
			return part{}, &fleetsocket.Ending{Word: fleetsocket.NoAnswer, Why: fmt.Sprintf("%s has not answered within %s", host, patience) + cmp.Or(outcome, "; what was asked for is not done")}
		}
		select {
		case <-ctx.Done():
		case <-time.After(askAgain):
		}
	}
}

func (m *member) send(ctx context.Context, host string, o order) (p part, err error) {
	text, err := json.Marshal(o)
	if err != nil {
		return p, err
	}
	ctx, cancel := context.WithTimeout(ctx, partLimit)
	defer cancel()
	answer, err := m.engine.Request(ctx, judge.Address(host), text)
	if err != nil {
		return p, err
	}
	return p, json.Unmarshal(answer, &p)
}
