package faults

import (
	"context"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sys/unix"
)

// sweptByNext kills outlive and its keeper at once: each is stopped first, so that neither acts after the other's death.
// Then the next outlive must end what they left. Whoever runs another outlive meanwhile spoils the figure: that one
// sweeps, too.
func (c *cell) sweptByNext(ctx context.Context, r *Result, all []process) error {
	both := []int{c.client.PID()}
	for _, k := range c.keeper {
		both = append(both, k.pid)
	}
	for _, sig := range []unix.Signal{unix.SIGSTOP, unix.SIGKILL} {
		for _, pid := range both {
			_ = unix.Kill(pid, sig)
		}
	}
	<-c.client.Exited()
	time.Sleep(5 * time.Millisecond) // what goes with its parent has gone
	strays := c.ours()
	r.Before, r.Note = len(all), fmt.Sprintf("%d before it", len(strays))
	next := &cell{Setup: c.Setup, shape: Shapes()[0], token: c.token, state: c.state}
	begin := time.Now()
	p, err := next.start(ctx, c.token)
	if err != nil {
		return fmt.Errorf("the next outlive: %w", err)
	}
	defer p.Close()
	left, gone := untilNone(begin, limit, func() []process { return still(strays) })
	r.Left, r.Gone = lines(left), gone
	next.client = p
	return next.leave(ctx, r)
}

// hangs stops the server and waits, with nobody calling it, until it goes on or has been replaced.
func (c *cell) hangs(ctx context.Context, r *Result) error {
	old := familyOf(c.theirs(), c.server)
	at := slices.IndexFunc(old, func(p process) bool { return p.pid == c.server })
	if at < 0 {
		return fmt.Errorf("the server %d is not to be seen", c.server)
	}
	begin := time.Now()
	if err := unix.Kill(c.server, unix.SIGSTOP); err != nil {
		return fmt.Errorf("stop the server: %w", err)
	}
	stopped := old[at : at+1]
	for {
		now := still(stopped)
		switch {
		case len(now) == 0:
			left, gone := untilNone(begin, limit, func() []process { return still(old) })
			pid, err := serving(ctx, c.client)
			if err != nil {
				return err
			}
			if pid == c.server {
				return fmt.Errorf("the dead server %d answers", pid)
			}
			r.Before, r.Left, r.Gone, r.Back, r.Note = len(old), lines(left), gone, time.Since(begin), "replaced"
			return c.leave(ctx, r)
		case now[0].state != 'T' && time.Since(begin) > time.Second: // the signal has arrived long ago
			pid, err := serving(ctx, c.client)
			if err != nil {
				return err
			}
			if pid == c.server { // otherwise it was seen dying
				r.Back, r.Note = time.Since(begin), "told to go on"
				return c.leave(ctx, r)
			}
		case time.Since(begin) > hangTime:
			return fmt.Errorf("nobody has noticed that the server is stopped within %s", brief(hangTime))
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(20 * time.Millisecond):
		}
	}
}
