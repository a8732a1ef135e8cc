package backend

import (
	"fmt"
	"slices"
	"time"

	"github.com/outlive-mcp/outlive/internal/keep/supervise"
	"github.com/outlive-mcp/outlive/internal/protocol/mcp"
	"github.com/outlive-mcp/outlive/internal/protocol/session"
)

// watchIdle begins to wait for a time without use.
func (u *limits) watchIdle() {
	u.lastUse = u.now
	if u.opts.IdleFor > 0 {
		u.arm(timerIdle, u.opts.IdleFor)
	}
}

// checkIdle lets the server sleep if nobody has used it for long enough. What it may still have to say of its own
// accord keeps it awake: an answer, a question to the client, a stream or a subscription.
func (u *limits) checkIdle() {
	if !u.process.up() {
		return // whoever serves next is watched anew
	}
	if left := u.opts.IdleFor - u.now.Sub(u.lastUse); left > 0 {
		u.arm(timerIdle, left)
		return
	}
	if u.awaited() {
		u.watchIdle()
		return
	}
	u.life.step(supervise.Sleep{Gen: u.process.gen, Reason: fmt.Sprintf("not used for %s (--idle-timeout)", u.opts.IdleFor.Round(time.Second))})
	if u.process.up() && u.machine.State() == supervise.Serving {
		u.watchIdle() // not now: a reload is under way
		return
	}
	u.eras.restSeam()
}

// awaited reports whether somebody waits for what the server has to say. What a bridge listens for of its own accord is no
// wish of the client's.
func (u *limits) awaited() bool {
	if u.asks.of(u.process.gen) || len(u.session.Subscribed()) > 0 {
		return true
	}
	for c := range u.calls.all {
		if !u.eras.own(c.id) && c.state != kept {
			return true
		}
	}
	return slices.ContainsFunc(u.session.Listens(), func(l *session.Listen) bool {
		c := u.calls.find(l.ID)
		return !u.eras.own(l.ID) && (c == nil || c.state != kept)
	})
}

// use notes that the client wants something of the server. A ping is no use: clients send it by the clock.
func (u *limits) use(m mcp.Method) {
	if m != mcp.Ping {
		u.lastUse = u.now
	}
}
