package health

import "time"

// lookEvery is the time between two looks while an answer is awaited. A short one shows an interruption of outlive,
// and a stopped process, in time; a server that has been silent for long is looked at less often.
func (w *Watch) lookEvery() time.Duration {
	if w.rounds < enoughRounds {
		return patience / 5
	}
	return patience
}

// rest waits until the next probe is due.
func (w *Watch) rest(now time.Time, v View) []Action {
	if due := w.due(now, v); due.After(now) {
		w.deadline = due
		return nil
	}
	return w.ask(now, v)
}

// due is when the next probe is due if the server gives no sign until then.
func (w *Watch) due(now time.Time, v View) time.Time {
	at := later(w.signed, v.Heard).Add(w.interval)
	switch {
	case w.open:
		at = w.roundAt.Add(w.spacing())
	case v.Heard.After(w.called):
	case w.exceeded:
		at = now
	case !w.called.IsZero():
		if w.grace.IsZero() {
			w.grace = now.Add(afterwork)
		}
		at = w.grace
	}
	return later(at, later(w.fresh, w.pinged).Add(every))
}

// spacing is the time between the beginnings of two rounds. It is longer after the rounds that suffice for a server
// that uses no CPU time.
func (w *Watch) spacing() time.Duration {
	d := every
	for n := enoughRounds; n <= w.rounds && d < slowest; n++ {
		d = doubled(d)
	}
	return d
}

// ask begins a round.
func (w *Watch) ask(now time.Time, v View) []Action {
	first := !w.open
	if first {
		w.open, w.since = true, now
		w.evidence = gather(v.Look)
	}
	w.phase, w.roundAt, w.pinged = waiting, now, now
	w.waited, w.lists = 0, 0
	w.deadline = now.Add(w.lookEvery())
	switch {
	case !first && v.Unread > 0: // the last round's probes are still unread: more of them would fill the pipe
		return nil
	case w.noPing:
		return []Action{Send{Lists}}
	}
	w.ping = true
	return []Action{Send{Ping}}
}

// wait waits for the answer to a probe, then sends the other probe, then ends the round.
func (w *Watch) wait(now time.Time, v View) []Action {
	var acts []Action
	switch {
	case w.lists > 0 && w.waited >= w.lists+patience, w.lists == 0 && w.waited >= 2*patience:
		return w.fail(now, v)
	case w.lists == 0 && w.ping && w.waited >= patience && v.Unread == 0:
		// It has read the ping and does not answer. Some servers do not know ping, and must not be killed for that.
		w.lists = w.waited
		acts = []Action{Send{Lists}}
	}
	end := 2 * patience
	if w.lists > 0 {
		end = w.lists + patience
	}
	w.deadline = now.Add(min(w.lookEvery(), end-w.waited))
	return acts
}

// fail ends a round without an answer.
func (w *Watch) fail(now time.Time, v View) []Action {
	w.rounds++
	w.phase = resting
	w.tally.count(&w.evidence, w.proven)
	if w.tally.enough() {
		return w.condemn(w.reason(now, v))
	}
	var acts []Action
	if w.tally.any() && !w.suspected {
		w.suspected = true
		acts = []Action{Suspect{Reason: w.reason(now, v)}}
	}
	w.evidence = gather(v.Look)
	w.deadline = later(now, w.roundAt.Add(w.spacing()))
	return acts
}
