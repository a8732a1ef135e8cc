package supervise

import "time"

// rung is how far the ending of a process has come. The rungs are in rising order; some ladders leave some out.
type rung uint8

const (
	ground   rung = iota // it is not being ended
	draining             // requests in flight may finish
	coming               // its stdin is closed, but it may still come up first
	closing              // its stdin is closed
	ending               // it was asked to end
	killed               // it was killed; there is nothing harder
)

// ladder is how one process is ended, step by step.
type ladder struct {
	gen  int // of the process
	rung rung
	at   time.Time // the next step is due; zero: none is

	out []Action
}

func (l *ladder) do(a Action) { l.out = append(l.out, a) }

// drain lets what is in flight finish, for that long.
func (l *ladder) drain(now time.Time, long time.Duration) {
	l.rung = draining
	l.at = now.Add(long)
	l.do(BeginDrain{l.gen})
}

// leave asks the process to end in both ways: servers that take no signal notice that their stdin is closed.
func (l *ladder) leave(now time.Time, grace time.Duration) {
	l.do(CloseStdin{l.gen})
	l.terminate(now, grace)
}

func (l *ladder) terminate(now time.Time, grace time.Duration) {
	l.rung = ending
	l.at = now.Add(grace)
	l.do(Terminate{l.gen})
}

func (l *ladder) kill() {
	l.rung = killed
	l.at = time.Time{}
	l.do(Kill{l.gen})
}

// hurry makes the ending under way at least as fast as one that begins with Terminate now and has that grace.
func (l *ladder) hurry(now time.Time, grace time.Duration) {
	switch by := now.Add(grace); {
	case l.rung < ending:
		l.terminate(now, grace)
	case l.rung == ending && by.Before(l.at):
		l.at = by
	}
}

// beginStop steps on the ladder of a profile. A process that is still coming up gets time to do so when the client has
// left: what the client asked before is still worth an answer.
func (m *Machine) beginStop(now time.Time, p Profile, starting bool) {
	if p == Signal {
		m.terminate(now, m.opts.SignalGrace)
		return
	}
	m.rung, m.at = closing, now.Add(m.opts.InputGrace)
	if starting {
		m.rung, m.at = coming, now.Add(m.opts.StartingGrace)
	}
	m.do(CloseStdin{m.gen})
}

// nextRung goes on when a rung has had its time.
func (m *Machine) nextRung(now time.Time) {
	switch m.rung {
	case draining:
		m.leave(now, m.opts.RestartGrace)
	case coming:
		m.cameUp(now)
	case closing:
		m.terminate(now, m.opts.EOFGrace)
	case ending:
		m.kill()
	}
}

// cameUp lets the time after the closing of stdin begin.
func (m *Machine) cameUp(now time.Time) {
	m.rung = closing
	m.at = now.Add(m.opts.InputGrace)
}

// whileStopping takes an event while a process is being ended.
func (m *Machine) whileStopping(now time.Time, ev Event) {
	switch ev := ev.(type) {
	case Exited:
		m.exited(now, ev)
	case Drained:
		if m.rung == draining {
			m.leave(now, m.opts.RestartGrace)
		}
	case Ready:
		if m.rung == coming {
			m.cameUp(now)
		}
	case Condemned:
		// Why it is being ended stays as it is: a wish is not to be taken for a crash because it took too long.
		if ev.condemns() && m.rung < killed {
			m.kill()
		}
	case Start:
		m.needed = true
	case Restart:
		m.remember(ev)
		if ev.Cause == Replace || ev.Cause == ProbeExit {
			m.hurryReplace(now)
		}
	case Stop:
		m.stop = true
		m.overtake(now, ev.Profile)
	}
}

// hurryReplace ends a drain: its owner no longer wants what is in flight. A stop keeps its own pace.
func (m *Machine) hurryReplace(now time.Time) {
	if !m.stop {
		m.hurry(now, m.opts.ReplaceGrace)
	}
}

// overtake makes the ending under way as fast as the profile asks.
func (m *Machine) overtake(now time.Time, p Profile) {
	switch {
	case p == Signal:
		m.hurry(now, m.opts.SignalGrace)
	case m.rung == draining:
		m.beginStop(now, ClientEOF, false)
	case m.rung == ending:
		m.hurry(now, m.opts.EOFGrace)
	}
}

// remember keeps a wish for a restart until it is clear whether one follows anyhow. However many there are, one
// restart fulfils them. What the process has used up is of no interest any more.
func (m *Machine) remember(ev Restart) {
	switch {
	case ev.Cause == Replace || ev.Cause == ProbeExit:
		m.needed = true
	case ev.Cause != Requested || ev.Source == SourceLimit || m.pending != nil:
	case m.why.cause == Idle && ev.Source.own(): // however a process goes to sleep, it sleeps
	default:
		m.pending = &ev
	}
}
