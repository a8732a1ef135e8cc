package replica

import (
	"context"
	"errors"
	"net"
	"net/http/httptrace"
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

// closeTo breaks those to an address, and all if that is "": what waits for an answer on one gets an error. Those to a core that has taken
// over meanwhile stay.
func (c *connections) closeTo(address string) {
	var broken []*connection
	c.mu.Lock()
	for one := range c.all {
		if address == "" || one.RemoteAddr().String() == address {
			broken = append(broken, one)
			delete(c.all, one)
		}
	}
	c.mu.Unlock()
	for _, one := range broken {
		_ = one.Conn.Close()
	}
}

// hearing ends an attendance at a core that says nothing for too long.
type hearing struct {
	long  time.Duration
	timer *time.Timer

	mu sync.Mutex
	at string // the core's address; "": not known yet
}

// listen begins one: silent is called, and the connections to that core are closed, when nothing was heard for Options.Silence.
func (r *Replica) listen(silent context.CancelCauseFunc) *hearing {
	h := &hearing{long: r.opts.Silence}
	if h.long > 0 {
		h.timer = time.AfterFunc(h.long, func() {
			silent(errSilent)
			h.mu.Lock()
			at := h.at
			h.mu.Unlock()
			r.conns.closeTo(at)
		})
	}
	return h
}

// traced has a request with this context tell which core it goes to.
func (h *hearing) traced(ctx context.Context) context.Context {
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(got httptrace.GotConnInfo) {
		h.mu.Lock()
		h.at = got.Conn.RemoteAddr().String()
		h.mu.Unlock()
	}})
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
