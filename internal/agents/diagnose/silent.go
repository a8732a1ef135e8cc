package diagnose

import (
	"fmt"
	"time"

	"github.com/outlive-mcp/outlive/internal/agents/agentcli"
)

// mute says why the silence of a process that is not known to live cannot be trusted.
func (e *Evidence) mute() string {
	if e.Process.Life == Alive {
		return ""
	}
	return "it is not known whether its process lives"
}

// promised reports whether the agent has announced a silence that is not over yet.
func (e *Evidence) promised() bool {
	return e.Beat.Has && !e.Process.AfterBeat && e.Beat.Next > 0 && e.silence() <= min(e.Beat.Next, longestPromise)
}

// modelSilent: from outside, a model call that hangs looks like one that thinks; only the time distinguishes them.
func modelSilent(e *Evidence, p Policy) answer {
	if e.promised() {
		return no("it has announced a silence of %s", e.Beat.Next)
	}
	for i := range e.Sessions {
		s := &e.Sessions[i]
		since, doubt := s.OpenAge, e.mute()
		switch {
		case s.Status == agentcli.Idle && s.Open == agentcli.Model: // a prompt was accepted, but no turn was begun
			doubt = "its status calls it idle"
		case !s.busy() || s.backsOff(p):
			continue
		case s.Open == agentcli.Model:
			since = s.asking()
		case s.Open == "" && !s.Unwritten && (s.Status == agentcli.Busy || s.Status == agentcli.Retrying):
			since, doubt = s.LastAge, "its transcript does not show what it waits for"
		default:
			continue
		}
		if since <= p.ModelSilent {
			continue
		}
		if beside := e.beside(p, s); beside != "" {
			return no("a model has been silent for %s, and %s", since.brief(), beside)
		}
		if e.CPU.Works() {
			if since <= p.ModelSilent+readingTakes {
				return no("a model has been silent for %s, and what the agent has started is at work", since.brief())
			}
			doubt = "what it has started is at work"
		}
		return yes(since, "%s has had no answer from its model for %s (limit %s); %s", s.name(), since.brief(), p.ModelSilent, e.heard()).unless(doubt)
	}
	return no("no model has been silent for more than %s", p.ModelSilent)
}

// readingTakes is how long beyond its limit a tool is not judged while its use of the processor is being read, nor a silent model
// beside processes that work: they may have worked only before, and who was told at once would be told in vain.
const readingTakes = Span(30 * time.Second)

// toolHung: a tool that runs for long is not trouble while its processes work, or it writes.
func toolHung(e *Evidence, p Policy) answer {
	if e.promised() {
		return no("it has announced a silence of %s", e.Beat.Next)
	}
	for i := range e.Sessions {
		s := &e.Sessions[i]
		if s.Open != agentcli.Tool || !s.busy() || s.OpenAge <= p.Tool {
			continue
		}
		switch beside := e.beside(p, s); {
		case e.served(p) != nil:
			return no("%s has run for %s: %s, which goes on with it", s.Tool, s.OpenAge.brief(), e.served(p).text())
		case e.worked(p):
			return no("%s has run for %s, and %s", s.Tool, s.OpenAge.brief(), e.CPU.text())
		case e.Output.Known && e.Output.text() <= p.Tool:
			return no("%s has run for %s, and something was written %s", s.Tool, s.OpenAge.brief(), ago(e.Output.text()))
		case beside != "":
			return no("%s has run for %s, and %s", s.Tool, s.OpenAge.brief(), beside)
		}
		doubt := e.mute()
		if !e.CPU.Known {
			if e.CPU.Pending && s.OpenAge <= p.Tool+readingTakes {
				return no("%s has run for %s, and it is not known yet whether it uses the processor", s.Tool, s.OpenAge.brief())
			}
			doubt = "it is not known whether the tool uses the processor"
		}
		return yes(s.OpenAge, "%s of %s has run for %s (limit %s), and does nothing; %s", s.Tool, s.name(), s.OpenAge.brief(), p.Tool, e.Process.text()).unless(doubt)
	}
	return no("no tool has run for more than %s", p.Tool)
}

// unborne holds for a session that its CLI has called busy for long, while nothing bears that out. It may work all the same, with a CLI
// that is told to write no transcript: nothing is ended for it.
func unborne(e *Evidence, p Policy) answer {
	for i := range e.Sessions {
		s := &e.Sessions[i]
		wrote := e.Output.Known && e.Output.text() <= p.Tool
		if p.BeatDecides || !s.Unwritten || s.Status != agentcli.Busy || s.atWork(e, p) || wrote || e.beside(p, s) != "" {
			continue
		}
		return yes(s.LastAge, "%s is called busy by its CLI for %s (limit %s), and nothing bears that out: it has no record, and what it has started does nothing; %s%s",
			s.name(), s.LastAge.brief(), p.Tool, e.Process.text(), e.blindFor())
	}
	return no("no session is called busy for more than %s without anything to bear it out", p.Tool)
}

func looping(e *Evidence, _ Policy) answer {
	for _, s := range e.Sessions {
		if !s.busy() {
			continue
		}
		r, what := s.Repeats, ""
		switch {
		case r.SameCall >= sameCalls:
			what = fmt.Sprintf("has made the same call with the same result %d times", r.SameCall)
		case r.SameError >= sameErrors:
			what = fmt.Sprintf("has met the same error %d times", r.SameError)
		case r.Alternating >= alternations:
			what = fmt.Sprintf("has alternated between two calls %d times", r.Alternating)
		default:
			continue
		}
		return yes(0, "%s %s%s", s.name(), what, noted(s.openText()))
	}
	return no("no session repeats itself")
}

// noProgress is only a suspicion, because thinking and reading are work, too. It is reported, and never a reason to
// end anything.
func noProgress(e *Evidence, p Policy) answer {
	for _, s := range e.Sessions {
		spends := s.Tokens > 0 || s.CostUSD > 0
		if s.busy() && s.Open != agentcli.Tool && s.LastAge <= p.Stale && spends && s.ProgressKnown && s.ProgressAge > p.Progress {
			return yes(s.ProgressAge, "%s works (%d tokens, %.2f USD), and nothing has changed for %s", s.name(), s.Tokens, s.CostUSD, s.ProgressAge.brief())
		}
	}
	return no("no session works for more than %s without progress", p.Progress)
}

func overBudget(e *Evidence, p Policy) answer {
	cost := 0.0
	for _, s := range e.Sessions {
		cost += s.CostUSD
	}
	if p.MaxCostUSD > 0 && cost > p.MaxCostUSD {
		return yes(0, "it has cost %.2f USD, more than %.2f", cost, p.MaxCostUSD)
	}
	return no("no limit of its cost is exceeded")
}

// orphaned is heartbeat_lost for an agent whose wrapper or terminal has ended.
func orphaned(e *Evidence, _ Policy) answer {
	switch {
	case !e.Process.Orphaned:
		return no("what has started it lives")
	case !e.Beat.Has && len(e.Sessions) == 0:
		return no("what has started it has ended, and nothing shows whether it works")
	}
	return yes(e.silence(), "what has started it has ended, and it is silent; %s", e.heard()).unless(e.mute())
}

// heartbeatLost comes after every rule about an agent at work or at rest.
func heartbeatLost(e *Evidence, p Policy) answer {
	if !e.Beat.Has && !p.BeatDecides {
		return no("it has never beaten: its silence says nothing")
	}
	why := e.heard()
	if e.Manifest.Has && e.Manifest.Dated {
		why += "; manifest written " + ago(e.Manifest.Age)
	}
	doubt := e.mute()
	if p.BeatDecides && e.Process.Life == Unknown && doubt != "" {
		doubt = "its process is not certain"
	}
	since := e.silence()
	if since == Never {
		since = 0
	}
	return yes(since, "%s", why).unless(doubt)
}
