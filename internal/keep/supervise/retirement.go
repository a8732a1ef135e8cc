package supervise

import "time"

// Retirement is the end of a process that serves no more, or never did: another one has taken over from it, or it is a
// spare that was dismissed. It decides when that process is asked to go and when it is killed; it is over when the
// process has exited, which the owner sees. Use [NewRetirement].
type Retirement struct {
	stopSequence
	opts Options
}

// NewRetirement returns the retirement of process gen from now on. A busy one has been asked something that it may
// finish, for Options.RetireFor at most; any other is asked to go at once. What is to be done first, Begin tells.
func NewRetirement(gen int, opts Options, now time.Time, busy bool) *Retirement {
	r := &Retirement{stopSequence: stopSequence{gen: gen}, opts: opts.withDefaults()}
	if busy {
		r.drain(now, r.opts.RetireFor)
	} else {
		r.leave(now, r.opts.RestartGrace)
	}
	return r
}

// Begin returns what is to be done at first. The result is the caller's own, like that of the other methods: what it
// does about one action may lead to the next call.
func (r *Retirement) Begin() []Action { return r.take() }

// Drained takes note that nothing is in flight at the process any more.
func (r *Retirement) Drained(now time.Time) []Action {
	if r.stopStep == draining {
		r.leave(now, r.opts.RestartGrace)
	}
	return r.take()
}

// Hurry makes the process go now, with that grace at most before it is killed: outlive is told to end.
func (r *Retirement) Hurry(now time.Time, grace time.Duration) []Action {
	if r.stopStep < ending {
		r.leave(now, grace)
	} else {
		r.hurry(now, grace)
	}
	return r.take()
}

// Tick does what is due at now, if anything. It is valid at any time.
func (r *Retirement) Tick(now time.Time) []Action {
	if r.at.IsZero() || now.Before(r.at) {
		return nil
	}
	switch r.stopStep {
	case draining:
		r.leave(now, r.opts.RestartGrace)
	case ending:
		r.kill()
	}
	return r.take()
}

// Deadline returns when [Retirement.Tick] is to be called; the zero time means not at all.
func (r *Retirement) Deadline() time.Time { return r.at }

func (r *Retirement) take() []Action {
	actions := r.out
	r.out = nil
	return actions
}
