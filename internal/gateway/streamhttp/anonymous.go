package streamhttp

import (
	"cmp"
	"context"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"
)

// greeting is how long a connection is safe until its first request is authorized. After that it may be closed for
// another one if there is no room.
const greeting = time.Second

// anonymousConns limits the connections of a listener, and those without an authorized request. If there is no room for another one, a connection without an authorized
// request within the time greeting is closed: the oldest of the address that has most of them. If there is none, the new
// one waits. So unauthorized clients cannot keep others out.
type anonymousConns struct {
	net.Listener
	most        int
	mostStrange int // 0: no other limit

	mu        sync.Mutex
	all       map[*anonymousConn]bool
	accepting bool // a connection is being accepted
	ending    bool // one that has had no request is closed
	strange   int  // how many have had no authorized request
	room      wake // once a connection has been closed, or was authorized
	closed    chan struct{}
	once      sync.Once

	held atomic.Pointer[chan struct{}] // closed when connections may be accepted and read again; nil: they may
}

func newAnonymousConns(l net.Listener, most, mostStrange int) *anonymousConns {
	return &anonymousConns{
		Listener: l, most: most, mostStrange: mostStrange, all: map[*anonymousConn]bool{},
		room: newWake(), closed: make(chan struct{}),
	}
}

// anonymousConn is one connection.
type anonymousConn struct {
	net.Conn
	all    *anonymousConns
	origin netip.Addr
	since  time.Time
	used   bool // it has had a request, guarded by all.mu

	asked sync.Once
	whose error       // the result of Options.Peer
	known atomic.Bool // it has had an authorized request; changed under all.mu

	reads   sync.Mutex // leaf
	begun   bool       // some of a request was read, whose answer is not written yet
	reading bool       // the first byte of a request may be read now
	early   bool       // the first byte of the next request was read before this one's end
}

// Accept implements net.Listener.
func (v *anonymousConns) Accept() (net.Conn, error) {
	conn, err := v.accept()
	if err != nil {
		return nil, err
	}
	defer v.accepted()
	one := &anonymousConn{Conn: conn, all: v, since: time.Now()}
	if remote, err := netip.ParseAddrPort(conn.RemoteAddr().String()); err == nil {
		one.origin = remote.Addr().Unmap().WithZone("")
	}
	for {
		in, displaced, wait := v.enter(one, time.Now())
		switch {
		case in:
			return one, nil
		case displaced != nil:
			_ = displaced.Close() // its client will connect again
			continue
		}
		select {
		case <-v.room:
		case <-time.After(wait):
		case <-v.closed:
			_ = conn.Close()
			return nil, net.ErrClosed
		}
	}
}

// enter gives a connection its place, or returns the one to be closed first, or how long that one is still safe.
func (v *anonymousConns) enter(one *anonymousConn, now time.Time) (in bool, displaced *anonymousConn, wait time.Duration) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if len(v.all) < v.most && (v.mostStrange == 0 || v.strange < v.mostStrange) {
		v.all[one] = true
		v.strange++
		return true, nil, 0
	}
	count := map[netip.Addr]int{}
	for c := range v.all {
		if !c.known.Load() {
			count[c.origin]++
		}
	}
	var first *anonymousConn
	for c := range v.all {
		if c.known.Load() {
			continue
		}
		if first == nil || cmp.Or(cmp.Compare(count[first.origin], count[c.origin]), c.since.Compare(first.since)) < 0 {
			first = c
		}
	}
	if first == nil {
		return false, nil, time.Hour // until there is room
	}
	if age := now.Sub(first.since); age < greeting {
		return false, nil, greeting - age
	}
	return false, first, 0
}

// Close implements net.Listener.
func (v *anonymousConns) Close() error {
	v.once.Do(func() { close(v.closed) })
	return v.Listener.Close()
}

// Close implements net.Conn, and releases the place.
func (c *anonymousConn) Close() error {
	err := c.Conn.Close()
	v := c.all
	v.mu.Lock()
	defer v.mu.Unlock()
	if !v.all[c] {
		return err
	}
	delete(v.all, c)
	if !c.known.Load() {
		v.strange--
	}
	v.room.signal()
	return err
}

// welcome records an authorized request on the connection.
func (c *anonymousConn) welcome() {
	v := c.all
	v.mu.Lock()
	defer v.mu.Unlock()
	if c.known.Swap(true) || !v.all[c] {
		return
	}
	if v.strange--; v.mostStrange > 0 {
		v.room.signal()
	}
}

type connKey struct{}

// rememberConn lets the requests of a connection find it.
func rememberConn(ctx context.Context, conn net.Conn) context.Context {
	return context.WithValue(ctx, connKey{}, connBelow(conn))
}

// connBelow is the connection below TLS, or conn itself.
func connBelow(conn net.Conn) *anonymousConn {
	if outer, ok := conn.(interface{ NetConn() net.Conn }); ok {
		conn = outer.NetConn()
	}
	c, _ := conn.(*anonymousConn)
	return c
}

// connOf is the connection a request came in on; nil where Serve does not serve it.
func connOf(r *http.Request) *anonymousConn {
	c, _ := r.Context().Value(connKey{}).(*anonymousConn)
	return c
}

// errNotServed is for requests that did not come through Serve.
var errNotServed = errors.New("the connection's user is not known")

// checkPeer returns why the other end of a request's connection is refused, if it is. Each connection is checked once.
func (f *Front) checkPeer(r *http.Request) error {
	c := connOf(r)
	switch {
	case f.opts.Peer == nil:
		return nil
	case c == nil:
		return errNotServed
	}
	c.asked.Do(func() { c.whose = f.opts.Peer(c.LocalAddr(), c.RemoteAddr()) })
	return c.whose
}

// stranger closes the connection with the answer, unless it was authorized.
func stranger(w http.ResponseWriter, r *http.Request) {
	if c := connOf(r); c != nil && !c.known.Load() {
		w.Header().Set("Connection", "close")
	}
}

// welcome keeps the connection of a request open for further ones.
func welcome(w http.ResponseWriter, r *http.Request) {
	if c := connOf(r); c != nil && !c.known.Load() {
		c.welcome()
		w.Header().Del("Connection")
	}
}
