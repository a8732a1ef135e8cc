package lease

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// Held is a lease that is ours until its context ends. Its methods may be called by any goroutine.
type Held struct {
	name string
	from Registry
	key  string
	opts Options

	ctx      context.Context
	lose     context.CancelCauseFunc
	releases chan chan<- error // to the goroutine that renews, with room for what comes of it

	mu    sync.Mutex
	least uint64        // the epoch is to be that at least
	term  Term          // this and what follows that goroutine alone changes
	until time.Duration // by Options.Up
	alarm *time.Timer
}

func hold(ctx context.Context, from Registry, name string, g got, opts Options) *Held {
	h := &Held{name: name, from: from, key: Key(name), opts: opts, releases: make(chan chan<- error)}
	h.ctx, h.lose = context.WithCancelCause(ctx)
	h.alarm = time.AfterFunc(opts.TTL, h.expire)
	h.set(g)
	go h.renew(g)
	return h
}

// set notes what is ours, and until when.
func (h *Held) set(g got) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.term = Term{Lease: h.name, Holder: g.Holder, Epoch: g.Epoch}
	h.until = g.sent + h.opts.TTL - h.opts.Skew
	h.alarm.Reset(h.until - h.opts.Up())
}

// expire ends the context when the time is over. A renewal may have come meanwhile.
func (h *Held) expire() {
	h.mu.Lock()
	over := h.opts.Up() >= h.until
	h.mu.Unlock()
	if over {
		h.lose(ErrUnanswered)
	}
}

// Term returns what a command to a machine has to carry, or [ErrLost]. It looks at the clock: after the process was stopped for
// a while it knows before Context does.
func (h *Held) Term() (Term, error) {
	h.expire()
	if h.ctx.Err() != nil {
		return Term{}, h.why()
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.term, nil
}

// Context ends when the lease is lost or released: TTL less Skew after the last acknowledged renewal was sent, at the latest.
func (h *Held) Context() context.Context { return h.ctx }

func (h *Held) why() error { return fmt.Errorf("lease %s: %w", h.name, context.Cause(h.ctx)) }

// Raise has the next renewal make the epoch higher than floor, that of a record which is later than the present one. The lease stays ours.
func (h *Held) Raise(floor uint64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.least = max(h.least, floor+1)
}

// Release gives the lease up, so that another can have it at once. On an error others have to wait for TTL.
func (h *Held) Release(ctx context.Context) error {
	done := make(chan error, 1)
	select {
	case h.releases <- done:
	case <-h.ctx.Done():
		return h.why()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// renew is the goroutine of a lease: it owns what is written.
func (h *Held) renew(g got) {
	defer h.alarm.Stop()
	tick := time.NewTicker(h.opts.Renew)
	defer tick.Stop()
	for {
		select {
		case <-h.ctx.Done():
			return
		case <-tick.C:
			g = h.write(g)
		case done := <-h.releases:
			h.lose(ErrReleased)
			done <- h.free(g)
			return
		}
	}
}

// ErrReleased is the cause of the end of a lease that was released.
var ErrReleased = errors.New("the lease was released")

// free writes down that nobody holds the lease. The epoch stays.
func (h *Held) free(g got) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(h.ctx), h.opts.Skew)
	defer cancel()
	_, err := h.from.CAS(ctx, h.key, record{Epoch: g.Epoch, Beat: g.Beat + 1}.text(), g.revision)
	if err != nil {
		return fmt.Errorf("release the lease %s: %w", h.name, err)
	}
	return nil
}

// write writes what is to be ours until that is acknowledged or the lease is lost, and returns what is ours then.
func (h *Held) write(g got) got {
	next := g.record
	h.mu.Lock()
	next.Epoch = max(next.Epoch, h.least)
	h.mu.Unlock()
	for h.ctx.Err() == nil {
		next.Beat++
		sent := h.opts.Up()
		ctx, cancel := context.WithTimeout(h.ctx, h.opts.Skew)
		revision, err := h.from.CAS(ctx, h.key, next.text(), g.revision)
		cancel()
		if err == nil {
			g = got{next, revision, sent}
			h.set(g)
			return g
		}
		h.again(&g, &next)
	}
	return g
}

// again finds out at which revision a write that has failed is to be tried again, or that the lease is lost. What is read may be
// old, so nothing is ours by it.
func (h *Held) again(g *got, next *record) {
	ctx, cancel := context.WithTimeout(h.ctx, h.opts.Skew)
	defer cancel()
	r, revision, err := read(ctx, h.from, h.key)
	switch {
	case err != nil:
	case revision == 0: // the registry has lost it: who writes it first has it
		g.revision = 0
	case r.Holder == g.Holder: // the write was carried out after all, or this is an old value
		g.revision, next.Beat = max(g.revision, revision), max(next.Beat, r.Beat)
	case revision > g.revision:
		h.lose(fmt.Errorf("%w: somebody else has taken or ended it: %q", ErrLost, r.Holder))
	}
	select {
	case <-h.ctx.Done():
	case <-time.After(h.opts.Renew / 10):
	}
}
