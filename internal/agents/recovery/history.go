package recovery

import (
	"cmp"
	"slices"
	"time"
)

// Act is one thing that was done about an agent.
type Act struct {
	Agent    string    `json:"agent"`
	At       time.Time `json:"at"`
	Rung     Rung      `json:"rung"`
	Class    string    `json:"class"`
	Stall    string    `json:"stall,omitempty"`
	Phase    int       `json:"phase"`
	Since    time.Time `json:"since,omitzero"` // of the problem
	Sequence int64     `json:"sequence"`       // of the evidence then
	// Deadline is until when new evidence is awaited.
	Deadline time.Time `json:"deadline,omitzero"`
	// Proved is when new evidence was first seen; zero: never.
	Proved time.Time `json:"proved,omitzero"`
	// Host and Account are what the agent shared with others then.
	Host    string `json:"host,omitempty"`
	Account string `json:"account,omitempty"`
	// Asked is the verb that a person has asked with; "": it was done by itself.
	Asked string `json:"asked,omitempty"`
	// Refunded says that it was not done in the end, and is not counted.
	Refunded bool `json:"refunded,omitempty"`
}

// began is when the trouble began that the act was for.
func (a Act) began() time.Time {
	if a.Since.IsZero() {
		return a.At
	}
	return a.Since
}

// History is what was done about one agent before.
type History struct {
	// Acts are all that may still count, the oldest first.
	Acts []Act
	// Open says that a human was notified of this problem, and it is not resolved.
	Open bool
	// Held says that a human was notified of trouble that a restart does not fix ([NeedsHuman]).
	Held bool
	// Blind is how many looks in a row saw nothing, with this one.
	Blind int
	// Reset is when a person reset the budgets; earlier acts are not counted. Zero: never.
	Reset time.Time
}

// Prove marks the acts before new evidence of a healthy agent; sequence is the evidence's. It reports whether that is
// new. The acts still count; their episode ends when the agent stays healthy.
func Prove(acts []Act, sequence int64, now time.Time) ([]Act, bool) {
	var news bool
	out := slices.Clone(acts)
	for i := range out {
		if a := &out[i]; a.Proved.IsZero() && !a.Refunded && a.Sequence < sequence {
			a.Proved, news = now, true
		}
	}
	return out, news
}

// counted are the acts that were done and not forgiven.
func (h History) counted() []Act {
	var acts []Act
	for _, a := range h.Acts {
		if !a.Refunded && (h.Reset.IsZero() || a.At.After(h.Reset)) {
			acts = append(acts, a)
		}
	}
	return acts
}

// episode is what was done since the agent was last healthy for long enough.
func episode(acts []Act, since time.Time, stable time.Duration) []Act {
	start := 0
	for i := range acts {
		if e := EffectOf(acts, i, since, since); !e.Again.IsZero() && e.Lasted >= stable {
			start = i + 1
		}
	}
	return acts[start:]
}

// Effect is what came of an act.
type Effect struct {
	Again  time.Time     // when the agent worked again; zero: it was not seen to, or only after a later act
	Lasted time.Duration // for how long it did, until now if it still does
	Over   bool          // its next trouble has ended that
	// Helped is when that had lasted long enough: as long as the trouble before it, and as long as the act had to show an
	// effect. Zero: it has not, or not yet.
	Helped time.Time
}

// EffectOf is what came of an agent's n-th act. trouble is when its present trouble began; zero: it is in none.
func EffectOf(acts []Act, n int, trouble, now time.Time) (e Effect) {
	a, until := acts[n], cmp.Or(trouble, now)
	next := slices.IndexFunc(acts[n+1:], func(a Act) bool { return !a.Refunded })
	if next >= 0 {
		until = acts[n+1+next].began()
	}
	if a.Refunded || a.Proved.IsZero() || until.Before(a.Proved) {
		return e
	}
	e = Effect{Again: a.Proved, Lasted: until.Sub(a.Proved), Over: next >= 0 || !trouble.IsZero()}
	if need := max(a.At.Sub(a.began()), a.Deadline.Sub(a.At), 0); e.Lasted >= need {
		e.Helped = a.Proved.Add(need)
	}
	return e
}

func times(acts []Act) []time.Time {
	var ts []time.Time
	for _, a := range acts {
		ts = append(ts, a.At)
	}
	return ts
}

// only are the acts for which keep holds.
func only(acts []Act, keep func(Act) bool) []Act {
	var some []Act
	for _, a := range acts {
		if keep(a) {
			some = append(some, a)
		}
	}
	return some
}

// open is until when a crash loop allows no start; zero: no crash loop. starts are those of one episode.
func (b Breaker) open(starts []Act) time.Time {
	if b.Starts <= 0 {
		return time.Time{}
	}
	opened, probes := false, 0
	for i, a := range starts {
		switch {
		case opened:
			probes++
		case i+1 >= b.Starts && a.At.Sub(starts[i+1-b.Starts].At) < b.Window:
			opened = true
		}
	}
	if !opened {
		return time.Time{}
	}
	return b.after(starts, probes)
}

// spent is until when a used-up sequence of steps, whose last one was repeated as often as the budget allows, is not
// tried again; zero: it is not used up. A window alone would not suffice: where many wait for their turn, it never
// fills.
func (b Breaker) spent(starts []Act, allowed int) time.Time {
	if b.Cooldown == 0 || len(starts) < allowed || len(starts) == 0 {
		return time.Time{}
	}
	return b.after(starts, len(starts)-allowed)
}

func (b Breaker) after(starts []Act, probes int) time.Time {
	pause := b.Cooldown
	for ; probes > 0 && pause < b.CooldownMax; probes-- {
		pause = min(2*pause, b.CooldownMax)
	}
	return starts[len(starts)-1].At.Add(pause)
}
