package backend

import (
	"fmt"
	"slices"
	"time"

	"github.com/outlive-mcp/outlive/internal/mcp"
	"github.com/outlive-mcp/outlive/internal/session"
	"github.com/outlive-mcp/outlive/internal/supervise"
)

// watchIdle begins to wait for a time without use.
func (b *Backend) watchIdle() {
	b.lastUse = b.now
	if b.opts.IdleFor > 0 {
		b.arm(timerIdle, b.opts.IdleFor)
	}
}

// checkIdle lets the server sleep if nobody has used it for long enough. What it may still have to say of its own
// accord keeps it awake: an answer, a question to the client, a stream or a subscription.
func (b *Backend) checkIdle() {
	if !b.process.up {
		return // whoever serves next is watched anew
	}
	if left := b.opts.IdleFor - b.now.Sub(b.lastUse); left > 0 {
		b.arm(timerIdle, left)
		return
	}
	if b.awaited() {
		b.watchIdle()
		return
	}
	b.step(supervise.Sleep{Gen: b.process.gen, Reason: fmt.Sprintf("not used for %s (--idle-timeout)", b.opts.IdleFor.Round(time.Second))})
	if b.process.up && b.machine.State() == supervise.Serving {
		b.watchIdle() // not now: a reload is under way
		return
	}
	b.restSeam()
}

// awaited reports whether somebody waits for what the server has to say. What a bridge listens for of its own accord is no
// wish of the client's.
func (b *Backend) awaited() bool {
	if b.asks.of(b.process.gen) || len(b.session.Subscribed()) > 0 {
		return true
	}
	own := func(id []byte) bool { return b.seam != nil && b.seam.bridge != nil && b.seam.bridge.Own(id) }
	for c := range b.calls.all {
		if !own(c.id.raw) && c.state != kept {
			return true
		}
	}
	return slices.ContainsFunc(b.session.Listens(), func(l *session.Listen) bool {
		c := b.calls.find(l.ID)
		return !own(l.ID) && (c == nil || c.state != kept)
	})
}

// asleep reports whether there is no process because none is needed.
func (b *Backend) asleep() bool { return b.machine.State() == supervise.Stopped && !b.over }

// Asleep reports whether there is no process because none is needed: the next one that is will be new.
func (b *Backend) Asleep() bool { return b.asleep() }

// wake starts a process if there is none because none was needed.
func (b *Backend) wake() { b.step(supervise.Start{}) }

// use notes that the client wants something of the server. A ping is no use: clients send it by the clock.
func (b *Backend) use(m mcp.Method) {
	if m != mcp.Ping {
		b.lastUse = b.now
	}
}
