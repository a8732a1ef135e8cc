package remote

import (
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"sync"
	"time"

	"github.com/outlive-mcp/outlive/internal/protocol/jsonrpc"
	"github.com/outlive-mcp/outlive/internal/protocol/mcp"
)

const (
	// resumePause is the pause before a broken stream is resumed, if the server names none.
	resumePause = time.Second
	// maxResumes is how often that is tried without success.
	maxResumes = 5
	// longestResume is the longest pause between two tries.
	longestResume = 30 * time.Second
)

// errTooLong is the end of a stream whose message exceeds Options.MaxMessage.
var errTooLong = errors.New("a message longer than is allowed")

// errOldStream is the end of a stream that names an endpoint. It is that of 2024-11-05, which some servers begin at a POST, too.
var errOldStream = errors.New("the stream of HTTP+SSE")

// cursor is the position in a stream.
type cursor struct {
	id    string        // of the last event, "": it has none
	retry time.Duration // the server's retry time; negative: none
	heard int           // events so far
}

// pause is the time before the n-th unsuccessful try to resume is repeated.
func (cur *cursor) pause(n int) time.Duration {
	if n == 0 && cur.retry >= 0 {
		return cur.retry
	}
	return min(max(cur.retry, resumePause)<<min(n, 10), longestResume)
}

// receiveStream reads the response to m as events, and resumes it if it breaks off.
func (c *Connection) receiveStream(ctx context.Context, m *message, resp *http.Response, o *outcome) {
	cur := cursor{retry: -1}
	err := c.readStream(resp.Body, m, &cur)
	for vain := 0; ; {
		o.heard = cur.heard > 0
		switch {
		case err == nil:
			o.answered = true
			return
		case errors.Is(err, errTooLong):
			o.tooLong = true
			return
		case errors.Is(err, errOldStream): // as the protocol wants it said
			o.status, o.body = http.StatusMethodNotAllowed, []byte(err.Error())
			return
		case m.version != "" || cur.id == "" || ctx.Err() != nil || vain >= maxResumes || c.failed.Err() != nil:
			o.ended = err == io.EOF
			o.err = err
			if o.ended {
				o.err = nil
			}
			return
		}
		if !c.wait(ctx, cur.pause(vain)) {
			o.err = err
			return
		}
		before := cur.id
		var refused bool
		if refused, err = c.resume(ctx, m, &cur); refused {
			o.err, o.lost = err, c.lost.Load()
			return
		}
		if vain++; cur.id != before {
			vain = 0
		}
	}
}

// resume requests the rest of the stream and forwards it. Like [Connection.readStream] it returns nil with the answer to
// m; refused says that the rest is not available.
func (c *Connection) resume(ctx context.Context, m *message, cur *cursor) (refused bool, err error) {
	resp, err := c.get(ctx, cur.id)
	if err != nil {
		return false, cause(err)
	}
	defer resp.Body.Close()
	switch {
	case isStream(resp):
		return false, c.readStream(resp.Body, m, cur)
	case refusedForNow(resp):
		return false, fmt.Errorf("resume: HTTP %d", resp.StatusCode)
	}
	body, _ := io.ReadAll(io.LimitReader(resp.Body, maxErrorBody)) // a partial body is used
	if sessionLost(outcome{status: resp.StatusCode, body: body}, false) && requestsAreRefused(ctx, c) {
		c.lost.Store(true)
	}
	return true, fmt.Errorf("a stream that broke off could not be resumed: HTTP %d", resp.StatusCode)
}

// get asks for a stream of server messages; lastID, if not "", for the rest of one that broke off.
func (c *Connection) get(ctx context.Context, lastID string) (*http.Response, error) {
	req, err := c.request(ctx, http.MethodGet, c.endpoint, nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Accept", "text/event-stream")
	if lastID != "" {
		req.Header.Set(headerEventID, lastID)
	}
	return c.do(req)
}

func isStream(resp *http.Response) bool {
	kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	return resp.StatusCode == http.StatusOK && kind == "text/event-stream"
}

// readStream forwards a stream's messages until the answer to m has come (nil), or returns why it did not; io.EOF: the
// stream has ended.
func (c *Connection) readStream(body io.Reader, m *message, cur *cursor) error {
	r := newSSEReader(body, c.opts.MaxMessage)
	r.lastID, r.retry = cur.id, cur.retry
	for {
		e, err := r.next()
		cur.id, cur.retry = r.lastID, r.retry
		switch {
		case err != nil:
			return err
		case e.tooLong && m != nil:
			return errTooLong
		case m != nil && e.name == "endpoint":
			return errOldStream
		case e.tooLong:
			c.logf("%s: %v discarded", c.opts.Name, errTooLong)
		}
		cur.heard++
		if len(e.data) > 0 && (e.name == "" || e.name == "message") && c.deliver(m, e.data) {
			return nil
		}
	}
}

// firstStream is how long the first requests of a session wait for the stream of server messages, since messages before
// it may be lost, and some servers send requests with the first call. The limit is for servers that send the stream's
// header only with its first message.
const firstStream = time.Second

// openStream requests the server's own messages after the handshake. Servers without any answer 405.
func (c *Connection) openStream() {
	c.mu.Lock()
	skip := c.session.followed || c.session.old != nil || c.failed.Err() != nil
	c.session.followed = true
	c.mu.Unlock()
	if skip {
		return
	}
	first := make(chan struct{})
	known := sync.OnceFunc(func() { close(first) })
	c.streams.Go(func() {
		defer known()
		c.follow(c.ctx, known)
	})
	select {
	case <-first:
	case <-time.After(firstStream):
	case <-c.failed.Done():
	}
}

// follow reads the stream of server messages as long as the server offers one. If it cannot be requested any more, and
// nothing else works, not even a ping, the server counts as gone, which is better known before the next request. known is called at the
// first response.
func (c *Connection) follow(ctx context.Context, known func()) {
	cur := cursor{retry: -1}
	for vain := 0; ; vain++ {
		before, began := cur.heard, time.Now()
		resp, err := c.get(ctx, cur.id)
		known()
		switch {
		case ctx.Err() != nil || c.failed.Err() != nil:
			if err == nil {
				_ = resp.Body.Close() // it is not read
			}
			return
		case errors.As(err, &authError{}):
			return // the requests will report the error
		case err != nil && c.works(outcome{err: err}) >= brokenFor && vain >= maxResumes:
			if o, _ := c.ping(ctx); c.works(o) < brokenFor {
				break // requests go through
			}
			if ctx.Err() == nil {
				c.fail(fmt.Errorf("%s: cannot be reached any more: %w", c.opts.Name, cause(err)))
			}
			return
		case err != nil:
		case isStream(resp):
			c.works(outcome{})
			_ = c.readStream(resp.Body, nil, &cur) // it is requested again in any case
			_ = resp.Body.Close()
			if cur.heard > before || time.Since(began) > longestResume {
				vain = 0
			}
		case c.streamRefused(resp):
			return
		}
		if !c.wait(ctx, cur.pause(vain)) {
			return
		}
	}
}

// streamRefused reads a response that is not a stream and reports whether there will be none.
func (c *Connection) streamRefused(resp *http.Response) bool {
	body, _ := io.ReadAll(io.LimitReader(resp.Body, maxErrorBody)) // a partial body is used
	_ = resp.Body.Close()
	q := c.question(&message{kind: jsonrpc.Notification}, 1)
	found := outcome{status: resp.StatusCode, header: resp.Header, body: body}
	if resp.StatusCode == http.StatusNotFound && q.session && requestsAreRefused(c.ctx, c) {
		c.lost.Store(true)
		c.fail(judge(q, found).reason(c.opts.Name))
		return true
	}
	return !refusedForNow(resp)
}

// refusedForNow reports whether a stream may be had later. The server is busy or at fault, or has not noticed that the stream before has
// broken off, and allows one at a time (409).
func refusedForNow(resp *http.Response) bool {
	return resp.StatusCode == http.StatusConflict || resp.StatusCode == http.StatusTooManyRequests || resp.StatusCode >= 500
}

// requestsAreRefused asks in the session, and reports whether the server has lost it. A refused GET says little: many servers without
// streams answer 404 to it in the middle of a session that lives.
func requestsAreRefused(ctx context.Context, c *Connection) bool {
	_, v := c.ping(ctx)
	return v.lostSession
}

// ping asks in the session whether requests go through.
func (c *Connection) ping(ctx context.Context) (outcome, decision) {
	ctx, cancel := context.WithTimeout(ctx, c.opts.NoteTimeout)
	defer cancel()
	ping := newMessage(ctx, jsonrpc.AppendRequest(nil, c.owned.next(), mcp.Ping.String(), nil))
	ping.quiet = func([]byte) {}
	o := c.post(ping)
	c.release(ping)
	return o, judge(c.question(ping, 1), o)
}
