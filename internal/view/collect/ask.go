package collect

import (
	"context"
	"errors"
	"maps"
	"reflect"
	"slices"
	"sync/atomic"
	"time"

	"github.com/outlive-mcp/outlive/internal/line/backend"
	"github.com/outlive-mcp/outlive/internal/record/curve"
	"github.com/outlive-mcp/outlive/internal/view/control"
	"github.com/outlive-mcp/outlive/internal/view/overview"
)

const (
	// giveUp is when a question is asked anew.
	giveUp = 30 * time.Second
	// unheardFor is how long nothing is heard of an outlive before it counts as silent. With the time that passes without a question it
	// makes the 7 s of docs/TOP.md.
	unheardFor = 5 * time.Second
	// backWithin is how soon an outlive that was silent must answer to be back. One that takes longer would be silent again at once.
	backWithin = 3 * time.Second
)

// question is one that was asked. It may take longer than a look: what does not answer keeps nothing else from being seen.
type question[T any] struct {
	done   chan struct{} // closed when answer and err are there
	answer T
	err    error
	took   time.Duration
	cancel context.CancelFunc
	late   atomic.Bool // a look has given up waiting for it
}

// begin asks in a goroutine of its own.
func begin[T any](ctx context.Context, c *Collector, ask func(context.Context) (T, error)) *question[T] {
	ctx, cancel := context.WithTimeout(ctx, giveUp)
	begun := time.Now()
	q := &question[T]{done: make(chan struct{}), cancel: cancel}
	c.done.Go(func() {
		defer cancel()
		q.answer, q.err = ask(ctx)
		q.took = time.Since(begun)
		close(q.done)
		if q.late.Load() {
			c.lookAgain()
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

// said is what a running outlive answers.
type said struct {
	status control.Status
	curves map[string]curve.Part // what is new of them, if that was asked for
}

// known is what a running outlive has said last.
type known struct {
	one    overview.Instance
	asked  time.Time
	still  int       // how many answers in a row were the same
	minute time.Time // of the curves that was asked for last
	newest int64     // minute of them that is there
}

// stillFor is how many looks pass without a question to an outlive that tells nothing and whose answers are the same.
const stillFor = 5

// due reports whether it is asked again because of the time: at the next look while its answers differ, and less and less often then.
func (k *known) due(now time.Time, every time.Duration) bool {
	return k.one.Silent || now.Sub(k.asked) >= time.Duration(min(k.still, stillFor-1))*every+every/2 // looks are not on time to the instant
}

// due are those that are asked at this look.
func (c *Collector) due(found []control.Instance) map[string]bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	now, due := time.Now(), map[string]bool{}
	for _, i := range found {
		k := c.known[i.Path]
		due[i.Path] = c.all || c.told[i.Path] || k == nil || k.due(now, c.opts.Every)
	}
	c.all = false
	clear(c.told)
	return due
}

// moving is what of a status changes while a server works, and at rest only if something happens.
func moving(s control.Status) control.Status {
	rest := func(b *backend.Status) { b.UptimeMS, b.RSS, b.CPUMS, b.Beside = 0, 0, 0, nil }
	rest(&s.Status)
	s.Servers = slices.Clone(s.Servers)
	for n := range s.Servers {
		m := &s.Servers[n]
		m.Links = slices.Clone(m.Links)
		for l := range m.Links {
			rest(&m.Links[l].Status)
		}
	}
	return s
}

// ask asks the running outlives that are due for their status, at once. One that still owes an answer to an earlier look is not waited
// for. Of the others holds what they have said last.
func (c *Collector) ask(ctx context.Context, found []control.Instance) (all []overview.Instance) {
	due := c.due(found)
	look, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	over, end := context.WithCancel(ctx)
	end()
	late, now := map[string]bool{}, time.Now()
	for _, i := range found {
		k := c.known[i.Path]
		if k == nil {
			k = &known{one: overview.Instance{Instance: i}}
			c.known[i.Path] = k
		}
		if late[i.Path] = c.asked[i.Path] != nil; !late[i.Path] && due[i.Path] {
			curves, after := c.curvesDue(k, now), k.after(now)
			c.asked[i.Path] = begin(ctx, c, func(ctx context.Context) (said, error) { return c.askOne(ctx, i, curves, after) })
		}
	}
	for _, i := range found {
		k := c.known[i.Path]
		q, wait := c.asked[i.Path], look
		if late[i.Path] {
			wait = over
		}
		if q != nil && !k.take(c, q, wait) {
			continue // it has ended since
		}
		all = append(all, k.one)
	}
	c.forget(found)
	return all
}

// askOne asks one, when its events are heard: what happened between the two would be told by none of them.
func (c *Collector) askOne(ctx context.Context, i control.Instance, curves bool, after int64) (s said, err error) {
	c.mu.Lock()
	f := c.followed[i.Path]
	c.mu.Unlock()
	if f != nil {
		select {
		case <-f.heard:
		case <-ctx.Done():
			return said{}, ctx.Err()
		}
	}
	if s.status, err = i.Status(ctx); err == nil && curves {
		s.curves, _ = i.Curves(ctx, after) // what is missing now is new a minute later, too
	}
	return s, err
}

// take takes the answer to a question, if it comes in time. false: the outlive is gone.
func (k *known) take(c *Collector, q *question[said], wait context.Context) bool {
	path, was := k.one.Path, k.one
	if !q.answered(wait) {
		k.unheard()
		return true
	}
	delete(c.asked, path)
	if errors.Is(q.err, control.ErrGone) {
		delete(c.known, path)
		return false
	}
	if q.err != nil || q.answer.status.State == control.NoAnswer { // its socket answers, and its loop does not
		k.unheard()
		return true
	}
	k.asked = time.Now()
	k.one.Heard = k.asked
	if was.Silent && !was.Heard.IsZero() && q.took > backWithin {
		return true
	}
	k.one.Status, k.one.Silent = q.answer.status, false
	k.addCurves(q.answer.curves)
	if k.still++; was.Silent || !reflect.DeepEqual(moving(was.Status), moving(q.answer.status)) {
		k.still = 0
	}
	return true
}

// unheard notes that there is no answer yet. What it has said last holds for a while: an outlive on a busy machine may be late.
func (k *known) unheard() {
	if time.Since(k.one.Heard) >= unheardFor {
		k.one.Status, k.one.Silent = control.Status{LogPath: k.one.Status.LogPath}, true // what it has written may say why
	}
}

// forget drops what is known of those that are not there any more.
func (c *Collector) forget(found []control.Instance) {
	there := func(path string) bool {
		return slices.ContainsFunc(found, func(i control.Instance) bool { return i.Path == path })
	}
	maps.DeleteFunc(c.known, func(path string, _ *known) bool { return !there(path) })
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
	case !c.homeDue && time.Since(c.homeAt) < max(c.opts.HomeEvery, c.homeRest):
		return ""
	default:
		c.homeDue, c.homeBegun = false, time.Now()
		c.asking = begin(ctx, c, c.opts.Home)
	}
	if !c.asking.answered(look) {
		if c.homeAt.IsZero() {
			return "agents: their home has not been seen yet: it takes long to look at it"
		}
		return "agents: their home was last seen at " + c.homeAt.Local().Format(time.TimeOnly) + ": it takes long to look at it"
	}
	h, err := c.asking.answer, c.asking.err
	c.asking, c.homeRest = nil, min(homeShare*time.Since(c.homeBegun), homeSeldom)
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
