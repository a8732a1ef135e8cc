package remote

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// ErrKilled is the end of a connection that was killed.
var ErrKilled = errors.New("the connection was killed")

// Connection is one server reached by HTTP, from its first line to its end. Its methods may be called from any goroutine and
// do not block.
type Connection struct {
	opts     Options
	events   Events
	endpoint *url.URL
	place    string // the endpoint for people
	owned    ownIDs
	client   *http.Client
	ctx      context.Context // ends what is in flight
	cancel   context.CancelFunc
	exchange sync.WaitGroup // goroutines that send a message
	streams  sync.WaitGroup // goroutines that read server messages

	failed   context.Context // ends with the first failure, its cause
	failWith context.CancelCauseFunc
	lost     atomic.Bool // the server no longer knows the session

	idAsText    sync.Once // tells that the server answers numbers as strings
	memberTwice sync.Once // tells that its messages have a member twice

	openingOld sync.Mutex // one at a time opens the stream of 2024-11-05; taken before mu

	mu       sync.Mutex // guards what follows; never held while calling out
	queue    []*message // not sent yet
	account  []*message // messages that may turn out not to have been taken, oldest first, see Pending
	inFlight []*message
	closing  bool
	session  session
	failing  time.Time // since when only network failures have come; zero: not now
	trouble  string    // why the last request failed in transit; "": it did not

	held    bool
	changed *sync.Cond // held, queue or closing has changed; its lock is mu

	out sync.Mutex // one event at a time; taken before mu
}

// session is the state negotiated with one server.
type session struct {
	id      string   // Mcp-Session-Id, "": none
	version string   // of the legacy handshake, or of the last modern request
	modern  bool     // the last message carries its version itself
	old     *url.URL // where messages go by the transport of 2024-11-05; nil: it is not used
	tools   toolHeaders
	after   chan struct{} // closed after the last notification; nil: there was none

	followed bool // the stream of server messages was asked for
}

// Open begins a connection; nothing is sent before the first line. It never fails: errors are reported as the reason of
// the end.
func Open(opts Options, events Events) *Connection {
	c := &Connection{opts: opts.withDefaults(), events: events}
	c.failed, c.failWith = context.WithCancelCause(context.Background())
	c.changed = sync.NewCond(&c.mu)
	c.ctx, c.cancel = context.WithCancel(context.Background())
	context.AfterFunc(c.ctx, func() { c.Hold(false) }) // received messages are forwarded before the end
	u, err := url.Parse(c.opts.URL)
	switch {
	case err != nil:
		c.fail(fmt.Errorf("read the server's URL: %w", err))
	case u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
		c.fail(fmt.Errorf("the server's URL %q is neither http nor https", c.opts.URL))
	default:
		u.Fragment = ""
		c.endpoint, c.place = u, placeOf(u)
		if c.opts.Name == "" {
			c.opts.Name = u.Host
		}
		c.client = newClient(c.opts)
		c.client.Jar = newCookies(u)
	}
	go c.run()
	return c
}

// ownIDs are the ids of a connection's own requests: whole numbers, since some servers read no other, above those of the backend.
type ownIDs struct{ last atomic.Uint32 }

func (o *ownIDs) next() []byte {
	const from = 1_600_000_000
	return strconv.AppendUint(nil, from+uint64(o.last.Add(1))%100_000_000, 10)
}

// placeOf is a URL without parts that may be secret.
func placeOf(u *url.URL) string {
	text := u.Scheme + "://" + u.Host
	if strings.Trim(u.Path, "/") != "" || u.RawQuery != "" {
		text += "/…"
	}
	return text
}

// Send sends a message to the server, given without newline. The line is copied. Initialize is answered and initialized
// accepted before anything later is sent; other requests run concurrently. After Close, Kill or the end it is only
// counted as pending.
func (c *Connection) Send(line []byte) {
	m := newMessage(c.ctx, bytes.Clone(line))
	c.mu.Lock()
	defer c.mu.Unlock()
	c.account = append(c.account, m)
	if c.closing {
		return
	}
	c.queue = append(c.queue, m)
	c.changed.Broadcast()
}

// Pending is how many of the bytes given to Send, a newline for each line included, the server has never taken: the last
// lines that still wait here, or whose delivery certainly failed. A line before a delivered one does not count. Call it
// after the end (in Events.End or later); before, it counts what waits.
func (c *Connection) Pending() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := 0
	for i := len(c.account) - 1; i >= 0 && !c.account[i].taken.Load(); i-- {
		n += len(c.account[i].line) + 1
	}
	return n
}

// Hold stops or resumes the forwarding of server messages, which wait on the network meanwhile.
func (c *Connection) Hold(held bool) {
	c.mu.Lock()
	c.held = held && c.ctx.Err() == nil
	c.mu.Unlock()
	c.changed.Broadcast()
}

// Close is like closing the stdin of a process: open requests are still answered, notification streams are ended, then
// the session is ended at the server, and the connection with it.
func (c *Connection) Close() {
	c.mu.Lock()
	c.closing = true
	c.mu.Unlock()
	c.changed.Broadcast()
}

// Kill ends the connection now and cuts what is in flight. The server is still told of the session's end, for at most
// 300 ms.
func (c *Connection) Kill() {
	c.fail(ErrKilled)
	c.cancel()
}

// fail ends the connection; the first reason counts.
func (c *Connection) fail(err error) {
	c.failWith(err)
	c.Close()
}

// logf writes to the server's log.
func (c *Connection) logf(format string, args ...any) {
	c.opts.Log(oneLineText(fmt.Sprintf(format, args...)))
}

// emit forwards a message of the server.
func (c *Connection) emit(line []byte) {
	c.out.Lock()
	defer c.out.Unlock()
	c.mu.Lock()
	for c.held {
		c.changed.Wait()
	}
	c.mu.Unlock()
	c.events.Line(line)
}

// killedFor is how long a killed connection tries to end the session at the server.
const killedFor = 300 * time.Millisecond

// end waits for what is in flight while that is useful, and reports the end.
func (c *Connection) end() {
	idle := make(chan struct{})
	go func() { c.exchange.Wait(); close(idle) }()
	c.endListens()
	grace := time.After(c.opts.Grace)
	select {
	case <-idle:
	case <-c.failed.Done():
		select {
		case <-idle:
		case <-grace:
		case <-c.ctx.Done():
		}
	}
	c.cancel()
	<-idle
	c.streams.Wait()
	c.leave()
	err := context.Cause(c.failed)
	if err != nil && !errors.Is(err, ErrKilled) {
		c.logf("%v", err)
	}
	c.events.End(err)
}

// leave ends the session at the server, and closes its connections.
func (c *Connection) leave() {
	if c.client == nil {
		return
	}
	if c.opts.Transport == nil { // otherwise others use its connections, too
		defer c.client.CloseIdleConnections()
	}
	c.mu.Lock()
	s := c.session
	c.mu.Unlock()
	if s.id == "" || c.lost.Load() {
		return
	}
	limit := closeTimeout
	if errors.Is(context.Cause(c.failed), ErrKilled) {
		limit = min(limit, killedFor)
	}
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	req, err := c.request(ctx, http.MethodDelete, c.endpoint, nil)
	if err != nil {
		return
	}
	if oauth := c.oauth(); oauth != nil {
		if token, _ := oauth.token(ctx); token != "" {
			req.Header.Set("Authorization", "Bearer "+token)
		}
	}
	if resp, err := c.client.Do(req); err == nil { // 405 and other errors do not matter now
		discard(resp)
	}
}
