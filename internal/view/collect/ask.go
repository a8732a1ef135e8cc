package collect

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"time"

	"github.com/outlive-mcp/outlive/internal/view/control"
	"github.com/outlive-mcp/outlive/internal/view/overview"
)

// giveUp is when a question is asked anew.
const giveUp = 30 * time.Second

// question is one that was asked. It may take longer than a look: what does not answer keeps nothing else from being seen.
type question[T any] struct {
	done   chan struct{} // closed when answer and err are there
	answer T
	err    error
	cancel context.CancelFunc
	late   atomic.Bool // a look has given up waiting for it
}

// begin asks in a goroutine of its own.
func begin[T any](ctx context.Context, c *Collector, ask func(context.Context) (T, error)) *question[T] {
	ctx, cancel := context.WithTimeout(ctx, giveUp)
	q := &question[T]{done: make(chan struct{}), cancel: cancel}
	c.done.Go(func() {
		defer cancel()
		q.answer, q.err = ask(ctx)
		close(q.done)
		if q.late.Load() {
			c.LookSoon()
		}
	})
	return q
}

// answered waits for the answer for as long as ctx lasts; a context that is over only looks whether it is there. If it is not, the
// collector looks again as soon as it comes.
func (q *question[T]) answered(ctx context.Context) bool {
	select {
	case <-q.done:
		return true
	case <-ctx.Done():
		q.late.Store(true)
	}
	select {
	case <-q.done:
		return true
	default:
		return false
	}
}

// ask asks every running outlive for its status, at once. One that still owes an answer to an earlier look is not waited for.
func (c *Collector) ask(ctx context.Context, found []control.Instance) (all []overview.Instance) {
	look, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	over, end := context.WithCancel(ctx)
	end()
	late := map[string]bool{}
	for _, i := range found {
		if late[i.Path] = c.asked[i.Path] != nil; !late[i.Path] {
			c.asked[i.Path] = begin(ctx, c, i.Status)
		}
	}
	for _, i := range found {
		q, wait := c.asked[i.Path], look
		if late[i.Path] {
			wait = over
		}
		one := overview.Instance{Instance: i, Silent: true, Heard: c.heard[i.Path]}
		if q.answered(wait) {
			delete(c.asked, i.Path)
			if errors.Is(q.err, control.ErrGone) {
				continue // it has ended since
			}
			if q.err == nil {
				one.Status, one.Silent, one.Heard = q.answer, false, time.Now()
				c.heard[i.Path] = one.Heard
			}
		}
		all = append(all, one)
	}
	c.forget(found)
	return all
}

// forget drops what is known of those that are not there any more.
func (c *Collector) forget(found []control.Instance) {
	there := func(path string) bool {
		return slices.ContainsFunc(found, func(i control.Instance) bool { return i.Path == path })
	}
	for path := range c.heard {
		if !there(path) {
			delete(c.heard, path)
		}
	}
	for path, q := range c.asked {
		if !there(path) {
			q.cancel()
			delete(c.asked, path)
		}
	}
}

// lookHome has the monitor's home looked at, and says so if that takes long.
func (c *Collector) lookHome(ctx context.Context) (trouble string) {
	look, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	switch {
	case c.opts.Home == nil:
		return ""
	case c.asking != nil:
		cancel() // an earlier look has waited
	case time.Since(c.homeAt) < c.opts.HomeEvery:
		return ""
	default:
		c.asking = begin(ctx, c, c.opts.Home)
	}
	if !c.asking.answered(look) {
		if c.homeAt.IsZero() {
			return "agents: their home has not been seen yet: it takes long to look at it"
		}
		return "agents: their home was last seen at " + c.homeAt.Local().Format(time.TimeOnly) + ": it takes long to look at it"
	}
	h, err := c.asking.answer, c.asking.err
	c.asking = nil
	c.mu.Lock()
	was := c.home
	if c.homeAt, c.homeErr = time.Now(), err; err == nil {
		c.home = h
	}
	c.mu.Unlock()
	if err == nil {
		for _, e := range overview.Changes(was, h) {
			c.add(e, nil)
		}
	}
	return ""
}
