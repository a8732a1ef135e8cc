package monitor

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/outlive-mcp/outlive/internal/agents/incident"
)

// others are the rest of a fleet.
type others struct {
	reached bool // the member of this machine reaches them
	late    bool // it answers once more, and then later than one waits
	asked   int  // since it is late
	heard   []SharedTrouble
}

func (o *others) Share(ctx context.Context, list []SharedTrouble) (left []string, err error) {
	if o.late {
		o.asked++
	}
	if o.asked > 1 {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	if !o.reached {
		return nil, errors.New("no member")
	}
	o.heard = list
	for _, t := range list {
		if !t.Told {
			left = append(left, t.Cause)
		}
	}
	return left, nil
}

// noCredit lets an agent end for want of credit, in a fleet.
func noCredit(t *testing.T, fleet *others) *world {
	w := newWorld(t)
	w.opts.Fleet = fleet
	w.declare("", w.agent("shop", "kind: claude\nstart: {cmd: [agent, new], resume: [agent, resume, \"{session}\"]}\n"))
	c := w.claude("shop", 1001)
	w.process(1000, w.dir("shop"), time.Minute)
	w.reportsOf("shop", 1001, true, nil)
	c.prompt()
	w.cycle()
	w.pass(10 * time.Second)
	c.fails("billing_error", "400", "Credit balance is too low")
	c.exits(1)
	w.spends(2*time.Minute, 10*time.Second)
	return w
}

const creditSpent = "account:claude:credit"

// What machines share is left to the fleet: this machine shows it, and tells nobody.
func TestSharedIsLeft(t *testing.T) {
	fleet := &others{reached: true}
	w := noCredit(t, fleet)
	if len(w.said) != 0 {
		t.Errorf("people are told %q", w.said)
	}
	if d := cmp.Diff([]SharedTrouble{{Cause: creditSpent, Agent: "shop"}}, fleet.heard); d != "" {
		t.Errorf("the fleet hears\n%s", d)
	}
	view, err := Inspect(t.Context(), w.opts)
	if err != nil || len(view.Incidents) != 1 || view.Incidents[0].Facts.Severity != incident.Info {
		t.Fatalf("%+v, %v", view.Incidents, err)
	}
	fleet.late = true
	w.cycles(3, func() { w.pass(10 * time.Second) })
	if len(w.said) != 0 || fleet.asked < 2 {
		t.Errorf("while the fleet's answer is late, %d times, people are told %q", fleet.asked-1, w.said)
	}
	fleet.late, fleet.asked = false, 0
	fleet.reached = false // cut off for good
	w.spends(time.Minute, 10*time.Second)
	if len(w.said) != 1 || !strings.Contains(w.said[0], "has no credit left") {
		t.Errorf("alone: people are told %q", w.said)
	}
	fleet.reached = true
	w.spends(time.Minute, 10*time.Second)
	if d := cmp.Diff([]SharedTrouble{{Cause: creditSpent, Agent: "shop", Told: true}}, fleet.heard); d != "" {
		t.Errorf("back: the fleet hears\n%s", d)
	}
	c := w.claude("shop", 5001) // a person has started it again
	w.process(5001, w.dir("shop"), time.Second)
	w.reportsOf("shop", 5001, true, nil)
	c.prompt()
	w.spends(10*time.Minute, 10*time.Second)
	if len(fleet.heard) != 0 {
		t.Errorf("over: the fleet hears %+v", fleet.heard)
	}
}

// Without a fleet, or with one that is not reached, each machine tells of its own.
func TestSharedAlone(t *testing.T) {
	w := noCredit(t, &others{})
	if len(w.said) != 1 || !strings.Contains(w.said[0], "has no credit left") {
		t.Errorf("people are told %q", w.said)
	}
}
