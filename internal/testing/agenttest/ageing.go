package agenttest

import (
	"slices"

	"github.com/outlive-mcp/outlive/internal/agents/diagnose"
)

// Later returns evidence as it is d later if nothing has happened since: every age is increased.
func Later(e diagnose.Evidence, d diagnose.Span) diagnose.Evidence {
	if e.Beat.Has {
		grow(&e.Beat.Age, d)
		grow(&e.Beat.Seen, d)
	}
	if e.Process.Life != diagnose.Unknown {
		grow(&e.Process.Age, d)
	}
	if e.Process.Life == diagnose.Dead {
		grow(&e.Process.Gone, d)
	}
	if e.Manifest.Dated {
		grow(&e.Manifest.Age, d)
	}
	if e.Title.Status != "" {
		grow(&e.Title.Age, d)
	}
	if e.CPU.Worked {
		grow(&e.CPU.Idle, d)
	}
	if e.Output.Known {
		grow(&e.Output.Age, d)
		if e.Output.Drawn > 0 {
			grow(&e.Output.Drawn, d)
		}
	}
	e.Sessions = slices.Clone(e.Sessions)
	for i := range e.Sessions {
		growSession(&e.Sessions[i], d)
	}
	e.Nested = slices.Clone(e.Nested)
	for i := range e.Nested {
		growSession(&e.Nested[i], d)
	}
	e.Servers = slices.Clone(e.Servers)
	for i := range e.Servers {
		growCall(&e.Servers[i], d)
	}
	if e.LastError.ResetKnown {
		grow(&e.LastError.ResetIn, -d)
	}
	e.Hooks = slices.Clone(e.Hooks)
	for i := range e.Hooks {
		grow(&e.Hooks[i].Age, d)
	}
	return e
}

func growCall(c *diagnose.ServerCall, d diagnose.Span) {
	grow(&c.Age, d)
	grow(&c.Still, d)
	if c.WorkKnown {
		grow(&c.Idle, d)
	}
}

func growSession(s *diagnose.Session, d diagnose.Span) {
	grow(&s.LastAge, d)
	if s.Status != "" {
		grow(&s.StatusAge, d)
	}
	if s.Open != "" {
		grow(&s.OpenAge, d)
	}
	if s.ProgressKnown {
		grow(&s.ProgressAge, d)
	}
	if s.Error.ResetKnown {
		grow(&s.Error.ResetIn, -d)
	}
	if s.Error.RetryKnown {
		grow(&s.Error.RetryIn, -d)
	}
}

// grow adds without overflow.
func grow(age *diagnose.Span, d diagnose.Span) {
	switch sum := *age + d; {
	case *age == diagnose.Never, d > 0 && sum < *age:
		*age = diagnose.Never
	case d < 0 && sum > *age:
		*age = -diagnose.Never
	default:
		*age = sum
	}
}
