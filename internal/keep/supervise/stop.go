package supervise

import "time"

// stopStep is the progress of ending a process, in rising order. Some sequences skip steps.
type stopStep uint8

const (
	notStopping stopStep = iota // it is not being ended
	draining                    // requests in flight may finish
	answering                   // its stdin is closed, but it may still come up, and answer its requests
	closing                     // its stdin is closed
	ending                      // it was asked to end
	killed                      // it was killed; there is nothing harder
)

// stopSequence ends one process step by step.
type stopSequence struct {
	gen      int // of the process
	stopStep stopStep
	at       time.Time // the next step is due; zero: none is

	out []Action
}

func (l *stopSequence) do(a Action) { l.out = append(l.out, a) }

// drain lets requests in flight finish, for that long.
func (l *stopSequence) drain(now time.Time, long time.Duration) {
	l.stopStep = draining
	l.at = now.Add(long)
	l.do(BeginDrain{l.gen})
}

// leave asks the process to end in both ways: servers that take no signal notice that their stdin is closed.
func (l *stopSequence) leave(now time.Time, grace time.Duration) {
	l.do(CloseStdin{l.gen})
	l.terminate(now, grace)
}

func (l *stopSequence) terminate(now time.Time, grace time.Duration) {
	l.stopStep = ending
	l.at = now.Add(grace)
	l.do(Terminate{l.gen})
}

func (l *stopSequence) kill() {
	l.stopStep = killed
	l.at = time.Time{}
	l.do(Kill{l.gen})
}

// hurry makes the ending under way at least as fast as one that begins with Terminate now and has that grace.
func (l *stopSequence) hurry(now time.Time, grace time.Duration) {
	switch by := now.Add(grace); {
	case l.stopStep < ending:
		l.terminate(now, grace)
	case l.stopStep == ending && by.Before(l.at):
		l.at = by
	}
}

// beginStop begins the stop steps of a profile. If the client has left, its requests are still answered first: asked says that there may
// be some.
func (m *Machine) beginStop(now time.Time, p Profile, asked bool) {
	if p == Signal {
		m.terminate(now, signalGrace)
		return
	}
	m.stopStep, m.at = closing, now.Add(inputGrace)
	if asked {
		m.stopStep, m.at = answering, now.Add(AnswerGrace)
	}
	m.do(CloseStdin{m.gen})
}

// nextStep goes on when a step has had its time.
func (m *Machine) nextStep(now time.Time) {
	switch m.stopStep {
	case draining:
		m.leave(now, restartGrace)
	case answering, closing:
		m.terminate(now, m.grace(eofGrace))
	case ending:
		m.kill()
	}
}

// whileStopping takes an event while a process is being ended.
func (m *Machine) whileStopping(now time.Time, ev Event) {
	switch ev := ev.(type) {
	case Exited:
		m.exited(now, ev)
	case Drained:
		switch m.stopStep {
		case draining:
			m.leave(now, restartGrace)
		case answering:
			m.stopStep, m.at = closing, now.Add(inputGrace)
		}
	case Refused: // it does not come up, and has nothing else to answer
		if m.stopStep == answering {
			m.terminate(now, eofGrace)
		}
	case MarkUnhealthy:
		// The reason stays: a request that takes too long is no crash.
		if m.stopStep < killed {
			m.kill()
		}
	case Start:
		m.needed = true
	case Restart:
		m.remember(ev)
		if (ev.Cause == Replace || ev.Cause == ProbeExit) && !m.stop { // a stop keeps its own pace
			m.hurry(now, m.grace(replaceGrace)) // requests in flight are not waited for
		}
	case Stop:
		m.stop = true
		m.overtake(now, ev.Profile)
	}
}

// overtake makes the ending under way as fast as the profile asks.
func (m *Machine) overtake(now time.Time, p Profile) {
	switch {
	case p == Signal:
		m.hurry(now, signalGrace)
	case m.stopStep == draining:
		m.beginStop(now, ClientEOF, true)
	case m.stopStep == ending:
		m.hurry(now, m.grace(eofGrace))
	}
}

// remember keeps a request for a restart until it is clear whether one follows anyway. One restart fulfils any number of
// requests; one because of resource use is dropped.
func (m *Machine) remember(ev Restart) {
	switch {
	case ev.Cause == Replace || ev.Cause == ProbeExit:
		m.needed = true
	case ev.Cause != Requested || ev.Source == SourceLimit || m.pending != nil:
	case m.why.cause == Idle && ev.Source.own(): // it sleeps, however it ends
	default:
		m.pending = &ev
	}
}
