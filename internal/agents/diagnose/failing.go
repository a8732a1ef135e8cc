package diagnose

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/outlive-mcp/outlive/internal/agents/agentcli"
)

// lifted is how long after the end of a rate limit a session whose turn has not ended may take to continue by itself.
const lifted = Span(120e9)

// humanCategories are categories of failures that a restart does not fix, whether or not the agent lives (PIV-8).
var humanCategories = map[string]bool{"integration_auth": true}

// pending returns the failure to report: one that needs a human before others.
func (e *Evidence) pending() *Failure {
	var found *Failure
	for i := range e.Manifest.Failures {
		f := &e.Manifest.Failures[i]
		if found == nil || humanCategories[f.Category] && !humanCategories[found.Category] {
			found = f
		}
	}
	return found
}

func (f *Failure) text() string {
	s := cmp.Or(f.Category, "failure")
	if f.Command != "" {
		s += " in " + f.Command
	}
	if f.Phase != nil {
		s += fmt.Sprintf(", phase %d", *f.Phase)
	}
	if f.MaxRetries > 0 {
		s += fmt.Sprintf(", retried %d of %d times", f.Retries, f.MaxRetries)
	}
	return s + noted(f.Details)
}

func humanRequired(e *Evidence, _ Policy) answer {
	f := e.pending()
	if f == nil || !humanCategories[f.Category] {
		return no("the manifest has no pending failure that needs a human")
	}
	return yes(0, "%s; %s", f.text(), e.Process.text())
}

// manifestFailure holds only for a silent agent: one that beats or works may be handling the failure.
func manifestFailure(e *Evidence, p Policy) answer {
	f := e.pending()
	if f == nil {
		return no("the manifest has no pending failure")
	}
	if a := fresh(e, p); a.held {
		return no("a failure is pending, and it beats: it may be dealing with it")
	}
	if s := e.firstAtWork(p, e.Sessions, nil); s != nil {
		return no("a failure is pending, and %s is at work: it may be dealing with it", s.name())
	}
	return yes(0, "%s; %s", f.text(), e.Process.text())
}

// reportedFailure holds for a process that is not watched and has reported its own failure.
func reportedFailure(e *Evidence, _ Policy) answer {
	if e.Process.Life != Unknown || !e.Exit.Known || e.Exit.Code == 0 && e.Exit.Signal == "" {
		return no("it has reported no failure")
	}
	return yes(e.Process.Gone, "it has reported a failure: %s; %s", e.Exit.text(), e.beatText())
}

// failing returns the first session that an error of a kind keeps from going on. While another one works without an error,
// that is the agent's state: not every CLI's files show which process has written them.
func (e *Evidence) failing(p Policy, kind agentcli.FailureKind) *Session {
	for i := range e.Sessions {
		if s := &e.Sessions[i]; s.Error.Kind == kind && s.heldUp() && !e.worksOn(p, s) {
			return s
		}
	}
	return nil
}

// heldUp reports whether the session's error keeps it from going on. Errors of the model pass, and its CLI tries again: one
// holds it up when that has given up, or for as long as a limit says. After a limit that has ended the turn the session does
// not go on by itself either.
func (s Session) heldUp() bool {
	over := s.Ended || s.gaveUp()
	switch s.Error.Kind {
	case agentcli.APIFailure:
		return over
	case agentcli.RateLimited:
		return over || s.Error.ResetKnown && s.Error.ResetIn > -lifted
	}
	return true
}

// held are the words for an error of each kind: that no session has one, and that one does.
var held = map[agentcli.FailureKind]struct{ none, one string }{
	agentcli.AuthFailure:     {"no login has expired", "%s cannot log in"},
	agentcli.CreditEmpty:     {"no account is out of credit", "the account of %s has no credit left"},
	agentcli.RateLimited:     {"no limit holds a session up", "%s is held up by a limit"},
	agentcli.APIFailure:      {"no session has given its model up", "%s has given up on its model"},
	agentcli.ExecutionFailed: {"no session has ended with an error", "%s has failed"},
}

// failedBy holds for a living agent with a session that an error of this kind holds up.
func failedBy(kind agentcli.FailureKind) func(*Evidence, Policy) answer {
	return func(e *Evidence, p Policy) answer {
		s := e.failing(p, kind)
		if s == nil {
			return no("%s", held[kind].none)
		}
		a := yes(s.LastAge, held[kind].one+": %s", s.name(), s.Error.text())
		a.hold = s.Error.ResetIn
		return a
	}
}

// endedBy holds for a process that ended after an error of this kind: the error, not the end, decides what can be
// done.
func endedBy(kind agentcli.FailureKind) func(*Evidence, Policy) answer {
	return func(e *Evidence, _ Policy) answer {
		if e.Process.Life != Dead || e.LastError.Kind != kind {
			return no("it has not ended after such an error")
		}
		a := yes(e.Process.Gone, "%s; the last that it has shown is an error: %s", e.Process.text(), e.LastError.text())
		a.hold = e.LastError.ResetIn
		return a
	}
}

func backingOff(e *Evidence, p Policy) answer {
	for _, s := range e.Sessions {
		if s.backsOff(p) {
			a := yes(s.LastAge, "%s tries again by itself: %s", s.name(), s.Error.text())
			if s.Error.RetryKnown && s.Error.RetryIn > p.ModelSilent {
				a.hold = s.Error.RetryIn // shorter waits follow each other
			}
			return a
		}
	}
	return no("no session tries again by itself")
}

// backsOff requires a recent attempt, or one that its CLI has announced: otherwise the session does not retry any more.
func (s Session) backsOff(p Policy) bool {
	transient := s.Error.Kind == agentcli.APIFailure || s.Error.Kind == agentcli.RateLimited || s.Error.Kind == "" && s.Status == agentcli.Retrying
	return transient && !s.Ended && (s.LastAge <= p.ModelSilent || s.Error.RetryKnown && s.Error.RetryIn > 0)
}

// gaveUp reports whether all attempts are used. The last one counts only when it is over.
func (s Session) gaveUp() bool {
	return s.Error.Max > 0 && s.Error.Attempt >= s.Error.Max && s.Status != agentcli.Retrying && s.Status != agentcli.Busy
}

// contextExhausted waits for what the agent has left at work: only a new session helps, and that would end it.
func contextExhausted(e *Evidence, p Policy) answer {
	s := e.failing(p, agentcli.ContextFull)
	if s == nil {
		return no("no conversation is too long")
	}
	doubt := ""
	if e.CPU.Works() {
		doubt = "what it has started is at work"
	}
	switch beside := e.beside(p, s); {
	case beside != "":
		return no("the conversation of %s is too long, and %s", s.name(), beside)
	case doubt != "" && s.LastAge <= p.Tool:
		return no("the conversation of %s is too long, and %s", s.name(), doubt)
	}
	return yes(s.LastAge, "the conversation of %s is too long: %s", s.name(), s.Error.text()).unless(doubt)
}

func (x SessionError) text() string {
	s := cmp.Or(strings.ReplaceAll(string(x.Kind), "_", " "), "retrying")
	if x.Status != 0 {
		s += fmt.Sprintf(" %d", x.Status)
	}
	if x.Attempt > 0 {
		s += fmt.Sprintf(", attempt %d", x.Attempt)
		if x.Max > 0 {
			s += fmt.Sprintf(" of %d", x.Max)
		}
	}
	switch {
	case x.ResetKnown && x.ResetIn > 0:
		s += ", lifted in " + x.ResetIn.brief()
	case x.ResetKnown:
		s += ", lifted " + ago(-x.ResetIn)
	}
	return s + noted(x.Text)
}
