package recovery

import (
	"fmt"
	"hash/fnv"
	"slices"
	"time"
)

// Problem is the judged trouble of one agent. The zero value of Class is a healthy agent.
type Problem struct {
	Agent string
	// Class is the precise type of the stall, such as "model_silent". "": none.
	Class string
	// Stall is PIV's type that it belongs to, or "monitor_blind".
	Stall string
	// Confidence is "high" or "medium"; anything else is low.
	Confidence string
	// Phase is the agent's phase of work; any number that stays the same for an agent without phases.
	Phase int
	// Since is when this trouble began, and stays the same while it goes on. A process that died after it was started
	// gives one after the start. Zero: not known.
	Since time.Time
	// Sequence is the newest evidence of life's number. It only grows.
	Sequence int64
	// Until is when the trouble ends by itself, such as a rate limit. It may have passed, and the trouble goes on. Zero:
	// unknown.
	Until time.Time
	// Typed is when a person last typed in its living session, or joined its terminal. Zero: never, or not known.
	Typed time.Time
	// Host and Account are what the agent shares with others. "": nothing.
	Host, Account string
	// Reboot says that its process ended with a reboot: a shared cause that is over.
	Reboot bool
}

func (p Problem) sure() bool { return p.Confidence == "high" || p.Confidence == "medium" }

// Decision is the action for a problem now.
type Decision struct {
	// Rung is the action; [Nothing]: wait.
	Rung Rung
	// Reason says why, for people and the record.
	Reason string
	// Budget is how much of the class's starts is used, before this one.
	Budget Usage
	// VerifyWithin is how long new evidence is awaited after it.
	VerifyWithin time.Duration
	// Preamble is the first instruction of a started agent.
	Preamble Preamble
	// Attended says that no action is taken because a person is at the session.
	Attended bool
	// Skipped says why the steps of the ladder before this one could not be done, for people and the record.
	Skipped []string
	// LeftOut says the same of all steps that are not possible.
	LeftOut []string
	// Mass is the key of the mass incident that this [Escalate] reports, or that this agent waits for.
	Mass string
	// Canary says that this member of a mass is tried first.
	Canary bool
	// Queued says that it waits for its turn among all agents.
	Queued bool
}

// ReasonHuman is the reason of an [Escalate] before which there is nothing to try.
const ReasonHuman = "a human is needed"

// Act is the decision as it is written down before it is done.
func (d Decision) Act(p Problem, now time.Time) Act {
	return Act{
		Agent: p.Agent, At: now, Rung: d.Rung, Class: p.Class, Stall: p.Stall, Phase: p.Phase,
		Since: p.Since, Sequence: p.Sequence, Deadline: now.Add(d.VerifyWithin), Host: p.Host, Account: p.Account,
	}
}

// PIVAction is the decision in the words of PIV's records: restart, restart_with_preamble, escalate or skip.
func (d Decision) PIVAction() string {
	switch {
	case d.Rung.Starts() && d.Preamble != NoPreamble:
		return "restart_with_preamble"
	case d.Rung.Starts():
		return "restart"
	case d.Rung.Tells():
		return "escalate"
	}
	return "skip"
}

// Decide decides what to do about a problem now. It is pure.
func Decide(p Problem, h History, pol Policy, can Capabilities, f Fleet, now time.Time) Decision {
	switch {
	case p.Class == "":
		return Decision{Reason: "nothing is wrong"}
	case p.Class == classLost:
		return Decision{Reason: "the registry cannot be read"}
	case p.Stall == stallBlind && h.Blind < pol.BlindFor:
		return Decision{Reason: "it is looked at again"}
	}
	c := newJudged(p, h, pol, can, now)
	d := c.climb()
	skipped, closed := d.Skipped, false
	for _, gate := range []func(Decision, *Fleet) (Decision, bool){c.attended, c.mass, c.told, c.verified, c.pace, c.global} {
		if d, closed = gate(d, &f); closed {
			break
		}
	}
	d.Budget, d.Skipped = c.usage, skipped
	for _, r := range c.ladder {
		if why := c.leftOut(r); why != "" && !slices.Contains(d.LeftOut, why) {
			d.LeftOut = append(d.LeftOut, why)
		}
	}
	return d
}

// judged is one problem with the inputs of its decision.
type judged struct {
	Problem
	h       History
	pol     Policy
	now     time.Time
	can     Capabilities
	ladder  Ladder
	acts    []Act // of the agent, that count
	episode []Act // of these, since it was last well for long enough
	own     []Act // of these, for the same class in the same phase
	budget  Budget
	usage   Usage
}

func newJudged(p Problem, h History, pol Policy, can Capabilities, now time.Time) *judged {
	c := &judged{Problem: p, h: h, pol: pol, now: now, can: can, ladder: pol.ladder(p, can), acts: h.counted()}
	since := p.Since
	if since.IsZero() {
		since = now
	}
	c.episode = episode(c.acts, since, pol.StableAfter)
	c.own = only(c.episode, func(a Act) bool { return c.same(a) && a.Phase == p.Phase })
	if remediesOf(p.Class, p.Stall).anew && !pol.Coarse && !p.Since.IsZero() {
		c.own = only(c.own, func(a Act) bool { return !a.At.Before(p.Since) })
	}
	if c.starting() {
		c.budget = pol.budget(p)
		c.usage = c.budget.usage(times(only(c.acts, func(a Act) bool {
			return a.Rung.Starts() && c.same(a) && (!c.budget.PerPhase || a.Phase == p.Phase)
		})), now)
	}
	return c
}

func (c *judged) same(a Act) bool {
	return c.pol.key(a.Class, a.Stall) == c.pol.key(c.Class, c.Stall)
}

// starting reports whether the ladder has a rung that the budget is for.
func (c *judged) starting() bool {
	return slices.ContainsFunc(c.ladder, func(r Rung) bool { return r.Starts() && c.possible(r) })
}

// climb finds the rung, without asking whether it is time for it.
func (c *judged) climb() Decision {
	r, skipped := c.next()
	d := Decision{Rung: r, Skipped: skipped, Reason: fmt.Sprintf("step %d of what is tried for it", len(c.own)+1)}
	if r == Hold {
		return c.hold(d)
	}
	if r == Escalate {
		d.Reason = ReasonHuman
		if len(c.own) > 0 {
			d.Reason = "nothing else is left to try"
		}
		return d
	}
	d.VerifyWithin = c.pol.Verify[r]
	if !r.Starts() {
		return d
	}
	d.Preamble = c.preamble(r)
	if c.usage.Used >= c.usage.Max {
		return Decision{Rung: Escalate, Reason: c.used()}
	}
	starts := only(c.episode, func(a Act) bool { return a.Rung.Starts() })
	mine := only(c.own, func(a Act) bool { return a.Rung.Starts() })
	b := c.pol.Breaker
	for _, brake := range []struct {
		until time.Time
		why   string
	}{
		{b.open(starts), fmt.Sprintf("a crash loop: %d starts of this agent within %s, for whatever problem", b.Starts, FormatDuration(b.Window))},
		{b.spent(mine, c.usage.Max), fmt.Sprintf("%d starts in a row for this problem did not help", len(mine))},
	} {
		if !brake.until.IsZero() && (c.now.Before(brake.until) || !c.h.Open) {
			return Decision{Rung: Escalate, Reason: brake.why}
		}
	}
	return d
}

// used says that the budget is spent. More than it allows was started by people, or before it was made smaller.
func (c *judged) used() string {
	used, most := c.usage.Used, c.usage.Max
	text := fmt.Sprintf("%d of %d starts are used", used, most)
	switch {
	case used > most:
		text = fmt.Sprintf("%d starts, more than are allowed", used)
	case most == 1:
		text = "1 of 1 start is used"
	}
	return fmt.Sprintf("%s (%s, for this problem)", text, c.budget)
}

// possible reports whether a rung of the ladder can be done.
func (c *judged) possible(r Rung) bool {
	return c.can.Can(r) && (c.pol.Coarse || c.sure() || !r.Touches() || c.Stall == stallBlind)
}

// next is the lowest rung of the ladder that has not been taken in this episode. skipped says why those before it could not be.
func (c *judged) next() (lowest Rung, skipped []string) {
	taken := map[Rung]int{}
	for _, a := range c.own {
		taken[a.Rung]++
	}
	var last Rung
	for _, r := range c.ladder {
		if !c.possible(r) {
			skipped = append(skipped, c.leftOut(r))
			continue
		}
		again := r == Hold && last == Hold // no step in between could have shown whether it has passed
		last = r
		if again {
			continue
		}
		if r == Hold && c.Until.After(c.now) {
			return Hold, skipped // even if it was held before: nothing else makes sense until then
		}
		if taken[r] == 0 {
			if why := c.leftOut(r); why != "" {
				skipped = append(skipped, why)
			}
			return r, skipped
		}
		taken[r]--
		skipped = nil
	}
	if last.Starts() {
		return last, skipped
	}
	return Escalate, skipped
}

// leftOut says why a rung is not done or has no effect; "": it is done.
func (c *judged) leftOut(r Rung) string {
	why := c.can.leftOut(r)
	switch {
	case c.Stall == stallBlind:
		return ""
	case why == "" && !c.possible(r):
		return fmt.Sprintf("%s was left out: the diagnosis is of low confidence", r)
	}
	return why
}

const (
	// slack is how long after a known end it is tried first. Providers name it by the minute, and clocks differ.
	slack = time.Minute
	// spread is by how much agents that wait for the same moment go on one after the other.
	spread = time.Minute
	// overdue is the first wait for something that should have ended by now; each further one is twice as long.
	overdue = 5 * time.Minute
)

// hold waits for a known end, unless that is too far off to wait silently.
func (c *judged) hold(d Decision) Decision {
	if !c.Until.After(c.now) {
		d.VerifyWithin = c.growing()
		return d
	}
	sum := fnv.New64a()
	_, _ = sum.Write([]byte(c.Agent)) // a hash never fails
	end := c.Until.Add(slack + time.Duration(sum.Sum64()%uint64(spread)))
	began := c.now
	for _, a := range c.own {
		if a.Rung == Hold {
			began = a.At
			break
		}
	}
	if c.pol.HoldMax > 0 && c.Until.Sub(began) > c.pol.HoldMax && !c.h.Open {
		return Decision{Rung: Escalate, Reason: "it lasts until " + c.Until.Format("2006-01-02 15:04 MST")}
	}
	for _, a := range c.own {
		if a.Rung == Hold && !a.Deadline.Before(end) {
			return Decision{Reason: "held until " + a.Deadline.Format("15:04:05")}
		}
	}
	d.VerifyWithin = end.Sub(c.now)
	return d
}

// growing is the wait for something that ends at an unknown time, or should have ended. It grows with each
// unsuccessful try.
func (c *judged) growing() time.Duration {
	wait := remediesOf(c.Class, c.Stall).hold
	switch {
	case wait != 0:
	case c.Until.IsZero():
		wait = c.pol.Verify[Hold]
	default:
		wait = overdue
	}
	most := max(wait, holdMost)
	for _, a := range c.own {
		if a.Rung == Hold {
			wait = min(2*wait, most)
		}
	}
	return wait
}

func (c *judged) preamble(r Rung) Preamble {
	switch {
	case c.Stall == stallWaiting && c.usage.Used > 0:
		return NoQuestions
	case c.Stall == stallWaiting || r != Restart:
		return Autonomous
	}
	return NoPreamble
}

// attended leaves a session alone if a person has typed in it recently.
func (c *judged) attended(d Decision, _ *Fleet) (Decision, bool) {
	until := c.Typed.Add(c.pol.Attended)
	if c.Typed.IsZero() || c.can.Ended || !d.Rung.Touches() || !c.now.Before(until) {
		return d, false
	}
	typed := "a person typed in it, or joined its terminal, at " + c.Typed.Format("15:04:05")
	if remediesOf(c.Class, c.Stall).human { // the person may not see this trouble, such as money being spent
		return Decision{Rung: Escalate, Reason: fmt.Sprintf("%s: no %s", typed, d.Rung)}, false
	}
	return Decision{
		Reason: fmt.Sprintf("%s: %s waits until %s", typed, d.Rung, until.Format("15:04:05")), Attended: true,
	}, true
}

// mass makes the members of a mass incident wait, but for one.
func (c *judged) mass(d Decision, f *Fleet) (Decision, bool) {
	m := f.Held(c.Agent)
	if m == nil || remediesOf(c.Class, c.Stall).scope == ownCause {
		return d, false
	}
	wait := func(why string) (Decision, bool) {
		return Decision{Reason: fmt.Sprintf("%d agents of %s fail together: %s", len(m.Members), m.Key, why), Mass: m.Key}, true
	}
	switch {
	case !m.Told && (d.Rung == Escalate || !remediesOf(c.Class, c.Stall).quiet || c.now.Sub(m.Opened) >= holdMost):
		return Decision{Rung: Escalate, Reason: fmt.Sprintf("%d agents of %s fail together", len(m.Members), m.Key), Mass: m.Key}, true
	case d.Rung == Escalate:
		return wait("they are left to a human")
	case !d.Rung.Acts():
		return d, false
	case !m.mayTry(c.Agent):
		return wait("another is tried first")
	}
	d.Canary, d.Mass = true, m.Key
	return d, false
}

// told avoids a second escalation, and leaves alone what only a human can fix.
func (c *judged) told(d Decision, _ *Fleet) (Decision, bool) {
	if d.Rung == Escalate && c.h.Open || d.Rung.Acts() && c.h.Held {
		return Decision{Reason: "it is left to a human"}, d.Rung != Nothing
	}
	return d, d.Rung == Nothing
}

// verified waits for the deadline of the last action, unless the trouble is new.
func (c *judged) verified(d Decision, _ *Fleet) (Decision, bool) {
	if d.Rung.Tells() && len(c.own) == 0 || d.Rung == Hold && c.Until.After(c.now) {
		return d, false // nothing was tried that could still help
	}
	for i := len(c.episode) - 1; i >= 0; i-- {
		a := c.episode[i]
		if !a.Rung.Acts() && !c.same(a) {
			continue
		}
		fresh := a.Rung != Hold && c.Since.After(a.At)
		if fresh || !c.now.Before(a.Deadline) || c.now.Before(a.At) {
			return d, false
		}
		return Decision{Reason: fmt.Sprintf("what %s comes to is awaited until %s", a.Rung, a.Deadline.Format("15:04:05"))}, true
	}
	return d, false
}

// pace leaves time between two acts on one agent. One in the future, from before the clock was set back, is not waited
// for.
func (c *judged) pace(d Decision, _ *Fleet) (Decision, bool) {
	var last time.Time
	for _, a := range c.acts {
		if a.Rung.Acts() {
			last = a.At
		}
	}
	if last.IsZero() || c.now.Before(last) || c.now.Sub(last) >= c.pol.Pace {
		return d, false
	}
	return Decision{Reason: "the last step was a moment ago"}, true
}

// global takes a turn among all agents.
func (c *judged) global(d Decision, f *Fleet) (Decision, bool) {
	if !d.Rung.Touches() || f.turn(c.Problem, c.pol.Fleet, c.now) {
		return d, false
	}
	return Decision{Reason: "waits for its turn: " + c.pol.Fleet.limits(), Queued: true, Canary: d.Canary, Mass: d.Mass}, true
}
