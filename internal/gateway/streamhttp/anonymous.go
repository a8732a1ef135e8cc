package streamhttp

import (
	"container/list"
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
	accepting bool               // a connection is being accepted
	ending    bool               // one that has had no request is closed
	strange   *list.List         // *anonymousConn, the oldest first: without an authorized request
	byOrigin  map[netip.Addr]int // how many of them each address has
	room      wake               // once a connection has been closed, or was authorized
	closed    chan struct{}
	once      sync.Once

	held atomic.Pointer[chan struct{}] // closed when connections may be accepted and read again; nil: they may
}

func newAnonymousConns(l net.Listener, most, mostStrange int) *anonymousConns {
	return &anonymousConns{
		Listener: l, most: most, mostStrange: mostStrange, strange: list.New(), byOrigin: map[netip.Addr]int{}, all: map[*anonymousConn]bool{},
		room: newWake(), closed: make(chan struct{}),
	}
}

// anonymousConn is one connection.
type anonymousConn struct {
	net.Conn
	all    *anonymousConns
	origin netip.Addr
	since  time.Time
	place  *list.Element // among the strange, guarded by all.mu; nil: authorized or closed
	used   bool          // it has had a request, guarded by all.mu

	asked sync.Once
	whose error       // the result of Options.Peer
	known atomic.Bool // it has had an authorized request

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
	if len(v.all) < v.most && (v.mostStrange == 0 || v.strange.Len() < v.mostStrange) {
		v.all[one] = true
		v.byOrigin[one.origin]++
		one.place = v.strange.PushBack(one)
		return true, nil, 0
	}
	largest := 0
	for _, n := range v.byOrigin {
		largest = max(largest, n)
	}
	for e := v.strange.Front(); e != nil; e = e.Next() {
		other := e.Value.(*anonymousConn)
		if v.byOrigin[other.origin] < largest {
			continue
		}
		if age := now.Sub(other.since); age < greeting {
			return false, nil, greeting - age
		}
		return false, other, 0
	}
	return false, nil, time.Hour // until there is room
}

// forget removes a connection from the strange. The lock is held.
func (v *anonymousConns) forget(one *anonymousConn) {
	if one.place == nil {
		return
	}
	v.strange.Remove(one.place)
	one.place = nil
	if v.byOrigin[one.origin]--; v.byOrigin[one.origin] == 0 {
		delete(v.byOrigin, one.origin)
	}
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
	v.forget(c)
	if !v.all[c] {
		return err
	}
	delete(v.all, c)
	v.room.signal()
	return err
}

// welcome records an authorized request on the connection.
func (c *anonymousConn) welcome() {
	if c.known.Swap(true) {
		return
	}
	c.all.mu.Lock()
	defer c.all.mu.Unlock()
	c.all.forget(c)
	if c.all.mostStrange > 0 {
		c.all.room.signal()
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
