package backend

import (
	"fmt"
	"time"

	"github.com/outlive-mcp/outlive/internal/keep/supervise"
	"github.com/outlive-mcp/outlive/internal/protocol/bridge"
	"github.com/outlive-mcp/outlive/internal/protocol/mcp"
)

// watchIdle begins to wait for idle time.
func (u *limits) watchIdle() {
	u.lastUse = u.now
	if u.opts.IdleFor > 0 {
		u.arm(timerIdle, u.opts.IdleFor)
	}
}

// checkIdle stops the server if it was idle long enough. Pending answers, questions, streams and subscriptions keep it
// running.
func (u *limits) checkIdle() {
	if !u.process.up() {
		return // the next process is watched from its start
	}
	if left := u.opts.IdleFor - u.now.Sub(u.lastUse); left > 0 {
		u.arm(timerIdle, left)
		return
	}
	if u.awaited() {
		u.watchIdle()
		return
	}
	u.rest(fmt.Sprintf("not used for %s (--idle-timeout)", u.opts.IdleFor.Round(time.Second)))
	if u.process.up() && u.machine.State() == supervise.Serving {
		u.watchIdle() // not now: a reload is under way
	}
}

// rest lets the server sleep.
func (u *limits) rest(reason string) {
	u.life.step(supervise.Sleep{Gen: u.process.gen, Reason: reason})
	if !u.process.up() || u.machine.State() != supervise.Serving {
		u.eras.tellBridge((*bridge.Bridge).Rest)
	}
}

// awaited reports whether the client waits for messages of the server. A bridge's own subscription does not count.
func (u *limits) awaited() bool {
	if u.asks.of(u.process.gen) || len(u.session.Subscribed()) > 0 {
		return true
	}
	for c := range u.calls.all {
		if !u.eras.own(c) && c.state != kept {
			return true
		}
	}
	return false
}

// use notes that the client uses the server. A ping does not count: clients send it periodically.
func (u *limits) use(m mcp.Method) {
	if m != mcp.Ping {
		u.lastUse = u.now
	}
}
