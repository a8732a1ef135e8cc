package diagnose

import (
	"fmt"

	"github.com/outlive-mcp/outlive/internal/agents/agentcli"
)

// silence is the time since the last beat, or since the start of a process that has not beaten.
func (e *Evidence) silence() Span {
	switch {
	case e.Process.AfterBeat:
		return e.Process.Age
	case !e.Beat.Has:
		return Never
	case e.Beat.Age < 0: // the beat's time is in the future: our clock is used
		return e.Beat.Seen
	}
	return e.Beat.Age
}

// fresh: a beat whose age is exactly the threshold is not stale. One with a future time is fresh while it is new
// (PIV-3).
func fresh(e *Evidence, p Policy) answer {
	limit := max(p.Stale, min(e.Beat.Next, longestPromise))
	switch {
	case !e.Beat.Has:
		return no("no heartbeat was ever written")
	case e.Process.AfterBeat:
		return no("its process was started after the latest heartbeat")
	case e.Beat.State == Waits, e.Beat.State == Stuck:
		return no("it beats, and calls itself %s", e.Beat.State)
	case e.silence() > limit:
		return no("%s, more than %s", e.beatText(), limit)
	}
	return yes(e.silence(), "%s", e.beatText())
}

// beatIdle holds when the agent beats and reports that it has nothing to do.
func beatIdle(e *Evidence, p Policy) answer {
	if !e.says(Idles) {
		return no("it does not call itself idle")
	}
	return fresh(e, p)
}

// busy reports whether the session is in a turn, according to its files.
func (s Session) busy() bool {
	return (s.Status != agentcli.Idle && s.Status != agentcli.Waiting || s.mayEnd()) && !s.Ended
}

// worked reports whether the agent's descendants work, or have been idle for less than the limit for a tool: a build
// may wait for a lock or a download in between. So do the MCP servers that go on with its calls, wherever they run.
func (e *Evidence) worked(p Policy) bool {
	return e.CPU.Works() || e.CPU.Known && e.CPU.Worked && e.CPU.Idle <= p.Tool || e.served(p) != nil
}

// text describes what the descendants do.
func (c CPU) text() string {
	if c.Starts {
		return "starts new processes"
	}
	if c.Worked && c.Idle > 0 {
		return "has last worked " + ago(c.Idle)
	}
	return fmt.Sprintf("uses %.0f %% of a core", 100*c.Share)
}

// asking is the time since the model was last asked: since its CLI said that it would ask again, or else since the call.
func (s *Session) asking() Span {
	if s.Error.RetryKnown {
		return min(s.OpenAge, max(-s.Error.RetryIn, 0))
	}
	return s.OpenAge
}

// atWork reports whether the session waits for something that is not overdue, or has just written something.
func (s Session) atWork(e *Evidence, p Policy) bool {
	switch {
	case !s.busy():
		return false
	case s.Unwritten: // it may run a tool
		return s.Status == agentcli.Busy && (s.LastAge <= p.Tool || e.worked(p))
	case s.Open == agentcli.Model:
		return s.asking() <= p.ModelSilent
	case s.Open == agentcli.Tool:
		return s.OpenAge <= p.Tool || e.worked(p)
	}
	return (s.Status == agentcli.Busy || s.Status == agentcli.Retrying || s.mayEnd()) && s.LastAge <= max(p.Stale, p.ModelSilent)
}

// firstAtWork returns the first of some sessions that is at work, other than but; nil: there is none.
func (e *Evidence) firstAtWork(p Policy, sessions []Session, but *Session) *Session {
	for i := range sessions {
		if s := &sessions[i]; s != but && s.atWork(e, p) {
			return s
		}
	}
	return nil
}

func atWork(e *Evidence, p Policy) answer {
	if s := e.firstAtWork(p, e.Sessions, nil); s != nil {
		what := "is at work"
		switch s.Open {
		case agentcli.Model:
			what = "has asked its model " + ago(s.OpenAge)
		case agentcli.Tool:
			what = "runs " + s.Tool + " since " + s.OpenAge.brief()
		}
		return yes(s.LastAge, "%s %s", s.name(), what)
	}
	if rest := idle(e, p); rest.held { // a terminal program writes at its prompt, too, and its helpers use some CPU time
		return no("%s", rest.why)
	}
	switch m, nested := e.Manifest, e.firstAtWork(p, e.Nested, nil); {
	case nested != nil:
		return yes(nested.LastAge, "the %s that it runs is at work", nested.Kind)
	case e.delegates(p):
		return yes(0, "a subagent that it has left running is at work")
	case m.Has && m.Dated && m.Age <= p.Stale:
		return yes(m.Age, "the manifest was written %s", ago(m.Age))
	case e.Output.Known && e.Output.Age <= p.Stale:
		return yes(e.Output.Age, "it has written something %s", ago(e.Output.Age))
	case e.CPU.Works():
		return yes(0, "what it has started %s", e.CPU.text())
	}
	return no("nothing that it writes or has started is younger than %s", p.Stale)
}

// idle: an agent at rest is not silent, however long it rests. Where beats decide it is, because beats continue at
// rest.
func idle(e *Evidence, p Policy) answer {
	if p.BeatDecides {
		return no("beats decide, and they go on at rest")
	}
	found := answer{why: "nothing says that it is at rest"}
	for _, s := range e.Sessions {
		if s.busy() {
			return no("%s is in a turn", s.name())
		}
		if s.Status == agentcli.Idle || s.Ended {
			found = yes(s.LastAge, "%s is at its prompt", s.name())
		}
	}
	switch {
	case found.held:
	case e.says(Idles):
		found = yes(e.Beat.Age, "its latest beat says that it has nothing to do; %s", e.heard())
	case e.Title.Status == agentcli.Idle:
		found = yes(e.Title.Age, "its terminal's title is %q", e.Title.Text)
	}
	return found
}
