package diagnose

import "github.com/outlive-mcp/outlive/internal/agents/agentcli"

// lingering returns the last session of a headless command that lives on after its turn, or says why there is none.
// Such a command exits within seconds, unless it waits for something; it is given as long as a tool that does nothing.
func (e *Evidence) lingering(p Policy) (last *Session, why string) {
	switch {
	case !e.Process.Headless || p.BeatDecides:
		return nil, "it is no command that works on one prompt and exits"
	case e.Process.Life != Alive:
		return nil, "its process is not known to live"
	case len(e.Missing) > 0:
		return nil, "not everything of it could be read"
	case e.CPU.Works() || e.firstAtWork(p, e.Nested, nil) != nil:
		return nil, "what it has started is at work"
	}
	why = "no session of it is known"
	for i := range e.Sessions {
		s := &e.Sessions[i]
		switch {
		case !s.Ended || s.Status == agentcli.Waiting:
			return nil, s.name() + " is in a turn"
		case s.Error.Kind != "" || s.EndedAsking || s.Interrupted:
			return nil, s.name() + " has not ended its turn with an answer"
		case len(s.Tasks) > 0 || s.WakesItself:
			return nil, s.name() + " waits for a background task, or for a time"
		case s.LastAge > e.Process.Age:
			return nil, s.name() + " was last written before its process was started"
		case s.LastAge <= p.Tool:
			return nil, s.name() + " has ended its turn only " + ago(s.LastAge)
		case last == nil || s.LastAge < last.LastAge:
			last = s
		}
	}
	return last, why
}

// enough reports whether the end of a headless command's turn is the end of its work. No script goes on after it, and
// its owner has declared no other mark, or that one is seen.
func (e *Evidence) enough(p Policy) bool {
	return p.Done == DoneWhen{} && !e.Process.Scripted || !p.Done.Exit && e.Manifest.Has && e.Manifest.Complete
}

// doneAndLiving holds for a headless command whose work is done, and whose process does not exit.
func doneAndLiving(e *Evidence, p Policy) answer {
	s, why := e.lingering(p)
	switch {
	case s == nil:
		return no("%s", why)
	case !e.enough(p):
		return no("%s has ended its turn, and nothing marks its work as done", s.name())
	}
	return yes(s.LastAge, "its work is done: %s has ended its turn %s; its process has not exited since: it hangs, and can be ended; %s", s.name(), ago(s.LastAge), e.Process.text())
}

// hungAtItsEnd holds for a headless command that does not exit and whose work is not done with its turn.
func hungAtItsEnd(e *Evidence, p Policy) answer {
	s, why := e.lingering(p)
	switch {
	case s == nil:
		return no("%s", why)
	case e.enough(p):
		return no("%s has ended its turn, and with it its work", s.name())
	}
	return yes(s.LastAge, "%s has ended its turn %s, and its process has not exited since: it hangs, and nothing marks its work as done; %s", s.name(), ago(s.LastAge), e.Process.text())
}
