package supervise

import (
	"cmp"
	"fmt"
	"time"

	"github.com/outlive-mcp/outlive/internal/keep/restart"
)

// whileStopped takes an event before there was any process.
func (m *Machine) whileStopped(now time.Time, ev Event) {
	switch ev := ev.(type) {
	case Start:
		m.spawn(now)
	case Restart:
		if ev.Cause == Requested {
			m.why.because(Requested, ev.Source, ev.Reason)
			m.spawn(now)
		}
	case Stop:
		m.finish(now)
	}
}

// whileStarting takes an event while a process runs that has not come up.
func (m *Machine) whileStarting(now time.Time, rnd float64, ev Event) {
	switch ev := ev.(type) {
	case SpawnFailed:
		if ev.Status != 0 && ev.Gen == 0 && !m.opts.Exits.Endless {
			m.finishWith(now, ev.Status)
			return
		}
		m.why.because(StartFail, NoSource, "it could not be started")
		m.decide(now, rnd, respawnAfter)
	case Handshake:
		m.at = now.Add(m.opts.StartTimeout)
	case Ready:
		m.serve(now, Report{})
	case Sleep:
		if m.Unasked() {
			m.fallAsleep(now, ev)
		}
	case Restart:
		m.replaceStarting(now, ev)
	case Refused:
		m.why.because(StartFail, NoSource, cmp.Or(ev.Reason, "it refused the handshake"))
		m.enter(now, Stopping, Report{})
		m.terminate(now, replaceGrace)
	default:
		m.whileRunning(now, ev)
	}
}

// replaceStarting takes a request while a process is coming up. Constant requests must not keep every process from that: one
// that was requested in place of another is replaced when it is up.
func (m *Machine) replaceStarting(now time.Time, ev Restart) {
	asked := ev.Cause == Requested && !m.Unasked()
	switch {
	case asked && m.anew && ev.Source == SourceLimit:
	case asked && m.anew:
		m.later = &ev
	default:
		m.anew = m.anew || asked
		m.whileRunning(now, ev)
	}
}

// begins reports whether a restart that waited for the process to come up begins now. The owner has sent it what waited for it.
func (m *Machine) begins() bool { return m.state == Serving && m.later != nil }

// serve begins the time that a process is up.
func (m *Machine) serve(now time.Time, r Report) {
	m.anew = false
	m.tracker.Ready(now)
	r.Recovered = m.broken
	m.enter(now, Serving, r)
	m.broken = false
	if after := m.tracker.Policy().ResetAfter; after > 0 {
		m.at = now.Add(after)
	}
}

// whileServing takes an event while a process is up.
func (m *Machine) whileServing(now time.Time, ev Event) {
	switch ev := ev.(type) {
	case Sleep:
		m.fallAsleep(now, ev)
	case Handshake:
		m.tracker.Unready()
		m.enter(now, Starting, Report{})
		m.at = now.Add(m.opts.StartTimeout)
	case Restart:
		if ev.Cause != Requested {
			m.whileRunning(now, ev)
			return
		}
		m.later = nil
		if ev.Overlap {
			m.beginReload(now, ev)
			return
		}
		m.why.because(Requested, ev.Source, ev.Reason)
		m.enter(now, Stopping, Report{})
		m.drain(now, m.opts.DrainFor)
	default:
		m.whileRunning(now, ev)
	}
}

// whileRunning handles events that mean the same for every running process.
func (m *Machine) whileRunning(now time.Time, ev Event) {
	switch ev := ev.(type) {
	case Exited:
		m.exited(now, ev)
	case StdoutClosed:
		m.why.because(Crash, NoSource, "it closed its stdout and did not exit")
		m.enter(now, Stopping, Report{})
		m.kill()
	case MarkUnhealthy:
		m.why.because(ev.Cause, NoSource, ev.Reason)
		m.enter(now, Stopping, Report{})
		m.kill()
	case Restart:
		m.why.because(ev.Cause, ev.Source, ev.Reason)
		m.enter(now, Stopping, Report{})
		m.terminate(now, m.grace(replaceGrace))
	case Stop:
		m.stop = true
		m.why.because(Shutdown, NoSource, ev.Profile.why())
		asked := !m.Unasked() // an unasked process need not be waited for
		m.enter(now, Stopping, Report{})
		m.beginStop(now, ev.Profile, asked)
	}
}

// restarts reports whether a restart may be requested for this cause.
func restarts(c Cause) bool { return c == Requested || c == Replace || c == ProbeExit }

// exited handles the leader's death. What follows is decided when nothing of the process is left.
func (m *Machine) exited(now time.Time, ev Exited) {
	reason := cmp.Or(ev.Reason, fmt.Sprintf("exit %d", ev.Code))
	switch meaning := m.opts.Exits.Meaning(ev.Code, ev.Signalled); {
	case ev.Probe:
		m.why.because(ProbeExit, NoSource, "a probe ended it")
	case meaning == restart.Clean:
		m.why.because(Clean, NoSource, reason)
	case meaning == restart.Requested:
		m.why.because(Requested, SourceExit, reason)
	case meaning == restart.Fail:
		m.why.because(Misconfigured, NoSource, reason)
	default:
		m.why.because(Crash, NoSource, reason)
	}
	m.enter(now, Sweeping, Report{})
}

func (p Profile) why() string {
	if p == Signal {
		return "told to end"
	}
	return "the client left"
}
