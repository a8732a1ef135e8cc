package hooks

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"time"
)

const (
	// lookEvery is how often a waiting hook looks for an answer, and whether agent and monitor live.
	lookEvery = 200 * time.Millisecond
	// awayGrace is how long the program that answers may be absent: restarting the monitor takes a few seconds.
	awayGrace = 30 * time.Second
)

// approvalWait waits for the end of a request.
type approvalWait struct {
	// answered returns how the request was settled, if it has been.
	answered func() (Settlement, bool)
	// attended and waited report whether a process answers here, and whether the agent still waits.
	attended, waited func() bool
	deadline         time.Time
}

// wait returns how the request ended. ctx ends when the CLI ends the hook.
func (v *approvalWait) wait(ctx context.Context) Settlement {
	deadline := time.NewTimer(time.Until(v.deadline))
	defer deadline.Stop()
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	seen := time.Now() // when a process was last there to answer
	for {
		if s, ok := v.answered(); ok {
			return s
		}
		select {
		case <-ctx.Done():
			return Settlement{Outcome: Withdrawn, At: time.Now()}
		case <-deadline.C:
			return Settlement{Outcome: Expired, At: time.Now()}
		case <-tick.C:
			now := time.Now()
			switch {
			case !v.waited():
				return Settlement{Outcome: Withdrawn, At: now}
			case v.attended():
				seen = now
			case now.Sub(seen) >= awayGrace:
				return Settlement{Outcome: Unattended, At: now}
			}
		}
	}
}

// ask publishes a permission request, waits for its answer and returns how it ended.
func ask(ctx context.Context, dir string, r *Request, waited func() bool) (s Settlement, err error) {
	if _, err := Prepare(dir); err != nil {
		return s, err
	}
	lock, err := r.open(dir)
	if err != nil {
		return s, err
	}
	defer func() { err = errors.Join(err, r.close(dir, lock)) }()
	v := approvalWait{
		answered: func() (Settlement, bool) {
			s, err := settlement(dir, r.ID)
			return s, err == nil
		},
		attended: func() bool { return Attended(dir) }, waited: waited, deadline: r.Deadline,
	}
	s = v.wait(ctx)
	if s.Outcome != Allowed && s.Outcome != Denied {
		s, err = r.end(dir, s)
	}
	if err != nil {
		return s, err
	}
	if !sameNonce(s.Nonce, r.Nonce) {
		return s, fmt.Errorf("request %s: %w", r.ID, ErrNonce)
	}
	return s, record(dir, Record{
		Asked: r.Asked, Ended: s.At, ID: r.ID, Vendor: r.Vendor, Session: r.Session, Dir: r.Dir, Tool: r.Tool,
		Command: r.Command, Outcome: s.Outcome, By: s.By, Message: s.Message,
	})
}

// end settles the request without an answer. If an answer came at the last moment, that one is returned.
func (r *Request) end(dir string, s Settlement) (Settlement, error) {
	s.Nonce = r.Nonce
	err := settle(dir, r.ID, s)
	if errors.Is(err, fs.ErrExist) {
		return settlement(dir, r.ID)
	}
	return s, err
}
