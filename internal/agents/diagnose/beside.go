package diagnose

import (
	"slices"

	"github.com/outlive-mcp/outlive/internal/agents/agentcli"
)

// beside says what is at work besides one of the agent's sessions: another one, or a CLI that it runs. "": nothing.
func (e *Evidence) beside(p Policy, but *Session) string {
	if e.firstAtWork(p, e.Sessions, but) != nil {
		return "another session of it is at work"
	}
	if s := e.firstAtWork(p, e.Nested, nil); s != nil {
		return "the " + string(s.Kind) + " that it runs is at work"
	}
	if e.delegates(p) {
		return "a subagent that it has left running is at work"
	}
	return ""
}

// delegates reports whether a subagent in the background has written something more recently than a model may be silent. Its end is that
// of its session's process.
func (e *Evidence) delegates(p Policy) bool {
	return slices.ContainsFunc(e.Sessions, func(s Session) bool {
		return slices.ContainsFunc(s.Tasks, func(t Task) bool { return !t.Shell && t.SilentKnown && t.Silent <= p.ModelSilent })
	})
}

// worksOn reports whether a session other than but is at work, and not with an error.
func (e *Evidence) worksOn(p Policy, but *Session) bool {
	for i := range e.Sessions {
		if s := &e.Sessions[i]; s != but && s.Error.Kind == "" && !s.asks() && s.atWork(e, p) {
			return true
		}
	}
	return false
}

// asks reports whether the session waits for a person, or for a call that may.
func (s *Session) asks() bool {
	return s.Open == agentcli.Question || s.Open == agentcli.Plan || s.Open == agentcli.Permission
}

// EndsWork reports whether ending the agent would end work that the diagnosis is not about. That is another of its
// sessions, a subagent, a CLI that it runs, or a script between two of them. What is stopped by job control does not work; a budget is
// for all of it.
func (v Diagnosis) EndsWork(e Evidence, p Policy) bool {
	if e.Process.Life == Dead || v.Class == Stopped || v.Class == BudgetExceeded {
		return false
	}
	p = p.filled()
	others := 0 // own sessions at work
	for i := range e.Sessions {
		if s := &e.Sessions[i]; !s.asks() && s.atWork(&e, p) {
			others++
		}
	}
	if v.Class == Loop || v.Class == ServerHung || v.Tier == Hook { // it is about one of them
		others--
	}
	script := e.Process.Bare && v.Class != HeartbeatLost // that is the script's own silence
	return others > 0 || script || e.firstAtWork(p, e.Nested, nil) != nil || e.delegates(p)
}
