package supervise

import "time"

// Retirement is the end of a process that serves no more, or never did: another one has taken over from it, or it is a
// spare that was dismissed. It decides when that process is asked to go and when it is killed; it is over when the
// process has exited, which the owner sees. Use [NewRetirement].
type Retirement struct {
	stopSequence
	opts  Options
	up    bool          // it had come up
	grace time.Duration // between Terminate and Kill
}

// NewRetirement begins the retirement of process gen. A busy one may finish its requests, for Options.RetireFor at most;
// any other is asked to end at once; up says that it has come up. Begin returns the first actions.
func NewRetirement(gen int, opts Options, now time.Time, up, busy bool) *Retirement {
	r := &Retirement{stopSequence: stopSequence{gen: gen}, opts: opts.withDefaults(), up: up}
	r.grace = r.opts.graceOf(restartGrace, up)
	if busy {
		r.drain(now, r.opts.RetireFor)
	} else {
		r.leave(now, r.grace)
	}
	return r
}

// Begin returns the first actions. The caller owns the result, like that of the other methods: performing one action may
// lead to the next call.
func (r *Retirement) Begin() []Action { return r.take() }

// Drained records that nothing is in flight at the process.
func (r *Retirement) Drained(now time.Time) []Action {
	if r.stopStep == draining {
		r.leave(now, r.grace)
	}
	return r.take()
}

// Hurry ends the process now, killing it after that grace: everything ends, as the profile says. One that has not come up has
// Options.InstallGrace at least, unless outlive itself was told to end.
func (r *Retirement) Hurry(now time.Time, p Profile, grace time.Duration) []Action {
	if p != Signal {
		grace = r.opts.graceOf(grace, r.up)
	}
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
		r.leave(now, r.grace)
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
