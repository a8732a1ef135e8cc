package remote

import (
	"context"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/outlive-mcp/outlive/internal/protocol/jsonrpc"
	"github.com/outlive-mcp/outlive/internal/protocol/mcp"
)

// run sends the lines, one after another, until the connection ends.
func (c *Connection) run() {
	for m := c.next(); m != nil; m = c.next() {
		c.begin(m)
	}
	c.end()
}

// next waits for a line; nil: there will be none.
func (c *Connection) next() *message {
	c.mu.Lock()
	defer c.mu.Unlock()
	for !c.closing && len(c.queue) == 0 {
		c.changed.Wait()
	}
	if c.failed.Err() != nil || len(c.queue) == 0 {
		return nil
	}
	m := c.queue[0]
	c.queue = c.queue[1:]
	return m
}

// begin sends one line and waits until the next one may be sent.
func (c *Connection) begin(m *message) {
	modern := c.noteEra(m)
	switch {
	case m.kind == jsonrpc.Request:
		c.mu.Lock()
		c.inFlight = append(c.inFlight, m)
		c.mu.Unlock()
		c.exchange.Go(func() { c.carry(m) })
		var until <-chan struct{} = m.begun
		if m.method == mcp.Initialize {
			until = m.ctx.Done() // the session has its id then
		}
		select {
		case <-until:
		case <-c.failed.Done():
		}
	case m.kind == jsonrpc.Invalid || m.kind == jsonrpc.Batch:
		c.logf("not sent, one message is expected: %s", excerpt(m.line))
		c.settle(m)
	case modern && m.method == mcp.NoteCancelled:
		c.forget(m) // closing the response is the cancellation
		c.settle(m)
	case modern && m.kind != jsonrpc.Notification:
		c.logf("not sent, a server of %s takes no answers: %s", m.version, excerpt(m.line))
		c.settle(m)
	case m.method == mcp.NoteInitialized:
		c.carry(m)
		c.openStream()
	default:
		c.inTurn(m)
	}
}

// inTurn sends a notification or an answer after the earlier ones; requests need not wait for it.
func (c *Connection) inTurn(m *message) {
	c.mu.Lock()
	before, mine := c.session.after, make(chan struct{})
	c.session.after = mine
	c.mu.Unlock()
	c.exchange.Go(func() {
		defer close(mine)
		if before != nil {
			<-before
		}
		if c.failed.Err() != nil { // it waits for the next connection, like the rest of the queue
			return
		}
		c.carry(m)
		if m.method == mcp.NoteCancelled {
			c.forget(m) // the server may never end the response
		}
	})
}

// noteEra records how the client speaks and reports whether m belongs to the stateless era. A message without a version
// follows the earlier ones.
func (c *Connection) noteEra(m *message) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := &c.session
	switch {
	case m.version != "":
		s.modern, s.version = true, m.version
	case m.method == mcp.Initialize:
		s.modern, s.version = false, ""
	case m.kind == jsonrpc.Request:
		s.modern = false
	case s.modern:
		m.version = s.version
	}
	return s.modern
}

// forget drops the request that a notifications/cancelled names.
func (c *Connection) forget(note *message) {
	id := jsonrpc.FindPath(note.line, "params", "requestId").Of(note.line)
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, m := range c.inFlight {
		if id != nil && jsonrpc.SameID(m.id, id) && m.method != mcp.Initialize {
			m.cancel()
		}
	}
}

// settle removes m from the account: messages before it count as taken.
func (c *Connection) settle(m *message) {
	c.mu.Lock()
	c.account = slices.Delete(c.account, 0, slices.Index(c.account, m)+1)
	c.mu.Unlock()
	c.dismiss(m)
}

// release drops m without a result.
func (c *Connection) release(m *message) {
	m.onTheWire()
	m.cancel()
}

// endListens ends requests that only wait for notifications, which a closing connection need not wait for.
func (c *Connection) endListens() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, m := range c.inFlight {
		if m.method == mcp.Listen {
			m.cancel()
		}
	}
}

// carry sends one message and handles its outcome until nothing more follows.
func (c *Connection) carry(m *message) {
	began := time.Now()
	for try, repeats := 1, 0; ; try++ {
		o := c.post(m)
		if !o.answered && m.ctx.Err() != nil { // it was cancelled
			c.abandoned(m)
			return
		}
		if o.heard && m.method == mcp.Listen {
			try, m.reopened = 1, true
		}
		q := c.question(m, try)
		q.repeats, q.since, q.failing = repeats, time.Since(began), c.works(o)
		v := judge(q, o)
		if v.act == fallBack {
			v = v.fallenBack(judge(q, c.openOld()))
		}
		c.noteTrouble(v)
		if v.act == doubt {
			v.act = answer
			if c.mayRepeat(m, v) {
				v.act = again
			}
		}
		if !v.undone {
			repeats++
		}
		m.taken.Store(repeats > 0)
		switch {
		case v.act == relist && c.relist(m):
		case v.act == again:
			if !c.wait(m.ctx, v.after) {
				c.abandoned(m)
				return
			}
		case v.act == end:
			if v.lostSession {
				c.lost.Store(true)
			}
			c.fail(v.reason(c.opts.Name))
			c.dismiss(m)
			return
		default:
			v.tries = repeats
			c.reply(m, v)
			c.settle(m)
			return
		}
	}
}

// works records an outcome's effect on the network state, and returns how long there were only failures.
func (c *Connection) works(o outcome) time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case !o.ofNetwork():
		c.failing = time.Time{}
		return 0
	case c.failing.IsZero() || o.heard:
		c.failing = time.Now()
	}
	return time.Since(c.failing)
}

// noteTrouble records a failure for the status.
func (c *Connection) noteTrouble(v decision) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case v.act == finish || v.rpc != nil:
		c.trouble = ""
	case v.label == labelUnauthorized || v.label == labelUnavailable || v.label == "connection_lost":
		c.trouble = v.why
	}
}

// Trouble is why the last request failed in transit; "": it did not.
func (c *Connection) Trouble() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.trouble
}

// mayRepeat reports whether a message that the server may have processed may be sent again. Messages other than requests
// always may.
func (c *Connection) mayRepeat(m *message, v decision) bool {
	switch {
	case m.kind != jsonrpc.Request:
		return true
	case c.events.Repeat == nil || m.quiet != nil:
		return m.method.Resendable()
	}
	said := make(chan bool, 1)
	c.events.Repeat(m.id, m.method, v.why, func(yes bool) { said <- yes })
	select {
	case yes := <-said:
		return yes
	case <-m.ctx.Done():
	case <-c.failed.Done():
	}
	return false
}

// abandoned drops a message that was cancelled, or whose connection ends; in that case it is not settled.
func (c *Connection) abandoned(m *message) {
	if c.ctx.Err() == nil && c.failed.Err() == nil {
		c.settle(m)
		return
	}
	c.dismiss(m)
}

// dismiss drops a message that the next connection decides about.
func (c *Connection) dismiss(m *message) {
	c.mu.Lock()
	c.inFlight = slices.DeleteFunc(c.inFlight, func(one *message) bool { return one == m })
	c.mu.Unlock()
	c.release(m)
}

// question is the input for judging the outcome of m.
func (c *Connection) question(m *message, try int) question {
	c.mu.Lock()
	defer c.mu.Unlock()
	return question{
		kind: m.kind, method: m.method, id: m.id, modern: m.version != "", session: c.session.id != "", old: c.session.old != nil,
		place: c.place, onlyOld: c.opts.OldSSE, relisted: m.relisted, try: try, chance: rand.Float64(),
	}
}

// wait waits; it returns false when ctx or the connection has ended.
func (c *Connection) wait(ctx context.Context, d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-ctx.Done():
	case <-c.failed.Done():
	}
	return false
}
