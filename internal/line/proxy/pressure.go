package proxy

import (
	"time"

	"github.com/outlive-mcp/outlive/internal/files/deadline"
)

const (
	// serverBehind is how many bytes may wait for the server before the client is not read any more: then further
	// bytes wait in the client's pipe, as they would without outlive.
	serverBehind = 256 << 10
	// stalledAfter is how long a server may accept nothing before it counts as stuck. Then the client is read again,
	// into the queue, because a cancellation or restart_server must be received.
	stalledAfter = 300 * time.Millisecond
)

// pressure watches whether the server accepts its input.
type pressure struct {
	taken uint64    // bytes the server's pipe had accepted at the last check
	since time.Time // when that last changed
	held  bool      // the client is not being read
}

// mayReadClient is called before each wait.
func (p *Proxy) mayReadClient() bool {
	if p.handover.size >= serverBehind {
		return false
	}
	refused, taken, running := p.host.Stalled()
	if !running || refused < serverBehind {
		p.pressure.held = false
		return true
	}
	if !p.pressure.held || taken != p.pressure.taken {
		p.pressure = pressure{taken: taken, since: p.loop.Now(), held: true}
	}
	return p.loop.Now().Sub(p.pressure.since) >= stalledAfter
}

// deadline is the backend's, or the time at which a held-back client is to be read again.
func (p *Proxy) deadline() time.Time {
	at := p.host.Deadline()
	if look := p.pressure.since.Add(stalledAfter); p.pressure.held && look.After(p.loop.Now()) {
		at = deadline.Earliest(at, look)
	}
	return at
}
