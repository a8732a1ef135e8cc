package hosts

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"
)

// Carrier brings commands to hosts in another way than ssh.
type Carrier interface {
	// Carry runs outlive on a host and hands on what it writes, first the line "outlive VERSION". The error is a [*Failure] if outlive
	// there has failed, or could not be reached. out and errs are written by one goroutine.
	Carry(ctx context.Context, host string, args []string, out, errs io.Writer) error
}

// carried is Run by a carrier.
func (s *Set) carried(ctx context.Context, h Host, c Command) Answer {
	select {
	case s.slots <- struct{}{}:
	case <-ctx.Done():
		return Answer{Host: h, Err: ctx.Err()}
	}
	give := sync.OnceFunc(func() { <-s.slots })
	defer give()
	one, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	timer := time.AfterFunc(s.opts.Limit, func() { cancel(errLate) })
	defer timer.Stop()
	first := &opening{out: c.Out, most: c.Most}
	first.heard = c.heard(give, timer)
	var said ending
	errs := io.Writer(&said)
	if c.Errs != nil {
		first.errs = &held{to: c.Errs}
		errs = io.MultiWriter(&said, first.errs)
	}
	err := s.opts.Carrier.Carry(one, h.Name, c.Args, first, errs)
	a := Answer{Host: h, Version: first.version, Err: err}
	var f *Failure
	switch {
	case err == nil && first.spoke:
	case ctx.Err() != nil:
		a.Err = ctx.Err()
	case errors.Is(context.Cause(one), errLate):
		a.Err = silent(s.opts.Limit, said.String())
	case first.full:
		a.Err = &Failure{Kind: Unreadable, Text: "its answer is too long"}
	case err == nil:
		a.Err = &Failure{Kind: Unreadable, Text: "it did not say which version of outlive it is" + after(lastLines(said.String()))}
	case errors.As(err, &f) && f.Kind == Refused:
		a.Err = &Failure{Kind: Refused, Code: f.Code, Text: failedText(said.String(), fmt.Sprintf("exit status %d", f.Code))}
	}
	return a
}
