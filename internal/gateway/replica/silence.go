package replica

import (
	"context"
	"errors"
	"net"
	"sync"
	"time"
)

// errSilent is why a replica gives up a core that says nothing any more.
var errSilent = errors.New("the core says nothing any more: its machine is cut off, or its process is stopped or hangs")

// connections are those to a core that are open. The zero value has none.
type connections struct {
	mu  sync.Mutex
	all map[*connection]bool
}

type connection struct {
	net.Conn
	of *connections
}

func (c *connections) add(conn net.Conn) net.Conn {
	one := &connection{conn, c}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.all == nil {
		c.all = map[*connection]bool{}
	}
	c.all[one] = true
	return one
}

// Close implements net.Conn.
func (c *connection) Close() error {
	c.of.mu.Lock()
	delete(c.of.all, c)
	c.of.mu.Unlock()
	return c.Conn.Close()
}

// closeAll breaks them: what waits for an answer on one gets an error.
func (c *connections) closeAll() {
	c.mu.Lock()
	all := c.all
	c.all = nil
	c.mu.Unlock()
	for one := range all {
		_ = one.Conn.Close()
	}
}

// hearing ends an attendance at a core that says nothing for too long.
type hearing struct {
	long  time.Duration
	timer *time.Timer
}

// listen begins one: silent is called, and all connections are closed, when nothing was heard for Options.Silence.
func (r *Replica) listen(silent context.CancelCauseFunc) *hearing {
	h := &hearing{long: r.opts.Silence}
	if h.long > 0 {
		h.timer = time.AfterFunc(h.long, func() {
			silent(errSilent)
			r.conns.closeAll()
		})
	}
	return h
}

func (h *hearing) heard() {
	if h.timer != nil {
		h.timer.Reset(h.long)
	}
}

func (h *hearing) stop() {
	if h.timer != nil {
		h.timer.Stop()
	}
}

// orSilent is errSilent if that is why the attendance has ended.
func (h *hearing) orSilent(ctx context.Context, err error) error {
	if errors.Is(context.Cause(ctx), errSilent) {
		return errSilent
	}
	return err
}
