package diagnose

import "slices"

// Later returns the evidence as it is d later if nothing has happened since: every age is increased.
func (e Evidence) Later(d Span) Evidence {
	if e.Beat.Has {
		grow(&e.Beat.Age, d)
		grow(&e.Beat.Seen, d)
	}
	if e.Process.Life != Unknown {
		grow(&e.Process.Age, d)
	}
	if e.Process.Life == Dead {
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
		e.Sessions[i].grow(d)
	}
	e.Nested = slices.Clone(e.Nested)
	for i := range e.Nested {
		e.Nested[i].grow(d)
	}
	e.Servers = slices.Clone(e.Servers)
	for i := range e.Servers {
		e.Servers[i].grow(d)
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

func (c *ServerCall) grow(d Span) {
	grow(&c.Age, d)
	grow(&c.Still, d)
	if c.WorkKnown {
		grow(&c.Idle, d)
	}
}

func (s *Session) grow(d Span) {
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

func grow(age *Span, d Span) { *age = age.plus(d) }
