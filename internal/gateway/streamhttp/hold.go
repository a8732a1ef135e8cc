package streamhttp

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"sync"
	"time"
)

const (
	// holdFor is how long new requests are held back so that those in progress can end. Then they pass for as long, before
	// the next try.
	holdFor = 3 * time.Second
	// holdLook is how often a front that holds requests back looks whether the others have ended.
	holdLook = 2 * time.Millisecond
)

// ErrNotQuiet is wrapped by the error of [Front.Hold] when requests were in progress all the time.
var ErrNotQuiet = errors.New("no quiet moment")

// Hold returns when no request is in progress and quiet says nothing else that is; from then on new requests wait, unread, on
// connections that are accepted or not yet. Endless streams are ended for it; their clients open them again. The
// connections can then be given to another process, which reads those requests; everything is stored. If ctx ends first, everything goes
// on. Serve must have been called.
func (f *Front) Hold(ctx context.Context, quiet func() (why string)) error {
	conns := f.conns.Load()
	if conns == nil {
		return errNotServed
	}
	begun := time.Now()
	for {
		conns.hold()
		why := f.untilQuiet(ctx, conns, quiet)
		if why == "" {
			return nil
		}
		f.Release()
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w within %s: %s; nothing has changed, try again later", ErrNotQuiet, time.Since(begun).Round(100*time.Millisecond), why)
		case <-f.stop:
			return http.ErrServerClosed
		case <-time.After(holdFor):
		}
	}
}

// untilQuiet waits for the end of the requests in progress, and says why it has given up; "": it has not.
func (f *Front) untilQuiet(ctx context.Context, conns *connections, quiet func() string) (why string) {
	late := time.After(holdFor)
	for {
		switch requests, streams := conns.busy(), int(f.endless.Load()); {
		case requests < 0:
			why = "a connection is being accepted"
		case requests > streams:
			why = fmt.Sprintf("%d requests are in progress", requests-streams)
		case streams > 0:
			f.drain.begin()
			why = "streams are ending"
		default:
			if why = quiet(); why == "" && f.writer.busy() {
				why = "sessions are being stored"
			}
		}
		if why == "" {
			return ""
		}
		select {
		case <-late:
			return why
		case <-ctx.Done():
			return why
		case <-f.stop:
			return why
		case <-time.After(holdLook):
		}
	}
}

// Release lets requests and streams pass again.
func (f *Front) Release() {
	f.drain.renew()
	if conns := f.conns.Load(); conns != nil {
		conns.release()
	}
}

// Connections returns copies of clients' connections of a front that holds requests back, for another process. Those of TLS, such as
// other gateways have, cannot be handed on. The caller closes them.
func (f *Front) Connections() (all []*os.File, err error) {
	conns := f.conns.Load()
	if conns == nil || f.opts.TLS != nil {
		return nil, nil
	}
	v := conns.clients
	v.mu.Lock()
	defer v.mu.Unlock()
	for c := range v.all {
		filer, ok := c.Conn.(interface{ File() (*os.File, error) })
		if !ok {
			continue
		}
		file, err := filer.File()
		if err != nil {
			return all, fmt.Errorf("copy a connection: %w", err)
		}
		all = append(all, file)
	}
	return all, nil
}

// ending tells endless streams that they must end.
type ending struct {
	mu sync.Mutex
	ch chan struct{}
}

// done is closed when streams that begin now must end.
func (e *ending) done() <-chan struct{} {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.ch
}

func (e *ending) begin() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !closed(e.ch) {
		close(e.ch)
	}
}

// renew lets streams begin again.
func (e *ending) renew() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if closed(e.ch) {
		e.ch = make(chan struct{})
	}
}

// hold keeps every connection without a request in progress from reading, and new ones from being accepted.
func (v *anonymousConns) hold() {
	released := make(chan struct{})
	v.held.Store(&released)
	v.acceptUntil(longAgo)
	v.mu.Lock()
	defer v.mu.Unlock()
	for c := range v.all {
		c.reads.Lock()
		if !c.begun {
			_ = c.Conn.SetReadDeadline(longAgo) // a read in progress returns
		}
		c.reads.Unlock()
	}
}

var longAgo = time.Unix(1, 0)

// acceptUntil limits an Accept in progress; zero: not at all.
func (v *anonymousConns) acceptUntil(t time.Time) {
	if l, ok := v.Listener.(interface{ SetDeadline(time.Time) error }); ok {
		_ = l.SetDeadline(t)
	}
}

// release lets all go on.
func (v *anonymousConns) release() {
	v.acceptUntil(time.Time{})
	if released := v.held.Swap(nil); released != nil {
		close(*released)
	}
}

// connections are those of Serve.
type connections struct {
	clients *anonymousConns
	all     []*anonymousConns // these, and those of other gateways
	others  *http.Server      // which serves the latter
}

// hold keeps requests from being read. Other gateways lose connections that they do not use: what they would send there is not handed on.
func (c *connections) hold() {
	for _, v := range c.all {
		v.hold()
	}
	c.others.SetKeepAlivesEnabled(false)
}

func (c *connections) release() {
	c.others.SetKeepAlivesEnabled(true)
	for _, v := range c.all {
		v.release()
	}
}

// busy is how many connections have a request in progress, or may have one in a moment; -1: one is being accepted.
func (c *connections) busy() (n int) {
	for _, v := range c.all {
		some := v.busy()
		if some < 0 {
			return some
		}
		n += some
	}
	return n
}

// busy is how many of these connections are, likewise.
func (v *anonymousConns) busy() (n int) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.accepting {
		return -1
	}
	for c := range v.all {
		c.reads.Lock()
		if c.begun || c.reading {
			n++
		}
		c.reads.Unlock()
	}
	return n
}

// accept is Accept of the listener, unless connections are held back.
func (v *anonymousConns) accept() (net.Conn, error) {
	for {
		v.mu.Lock()
		held := v.held.Load()
		v.accepting = held == nil
		v.mu.Unlock()
		if held != nil {
			select {
			case <-*held:
				continue
			case <-v.closed:
				return nil, net.ErrClosed
			}
		}
		conn, err := v.Listener.Accept()
		if err != nil {
			v.accepted()
			if errors.Is(err, os.ErrDeadlineExceeded) {
				continue // connections are held back, or were a moment ago
			}
		}
		return conn, err
	}
}

// accepted says that what was accepted has its place, or is closed.
func (v *anonymousConns) accepted() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.accepting = false
}

// Read implements net.Conn. Between two requests it waits while they are held back.
func (c *anonymousConn) Read(p []byte) (int, error) {
	for {
		c.reads.Lock()
		held := c.all.held.Load()
		if held != nil && !c.begun {
			c.reads.Unlock()
			<-*held
			_ = c.Conn.SetReadDeadline(time.Now().Add(idleConnection)) // net/http has set one for this read, or will for the next
			continue
		}
		c.reading = !c.begun
		c.reads.Unlock()
		n, err := c.Conn.Read(p)
		c.reads.Lock()
		again := n == 0 && !c.begun && c.all.held.Load() != nil && errors.Is(err, os.ErrDeadlineExceeded)
		// While a request is carried out net/http reads one byte, to learn of a client that has gone. What it gets instead
		// is the beginning of the next request, which this process must then read to its end.
		c.early = c.early || c.begun && len(p) == 1 && n == 1
		c.reading, c.begun = false, c.begun || n > 0
		c.reads.Unlock()
		if !again {
			return n, err
		}
	}
}

// note records a change of the connection's state.
func (c *anonymousConn) note(state http.ConnState) {
	c.all.mu.Lock()
	c.used = c.used || state != http.StateNew
	cut := c.all.ending && !c.used
	c.all.mu.Unlock()
	if cut {
		_ = c.Close()
	}
	if state == http.StateIdle {
		c.reads.Lock()
		c.begun, c.early = c.early, false
		c.reads.Unlock()
	}
}
