package remote

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/outlive-mcp/outlive/internal/protocol/jsonrpc"
)

// oldTransport is HTTP+SSE of 2024-11-05: one stream for all server messages, and an endpoint for those to it.
type oldTransport struct {
	c        *Connection
	endpoint *url.URL
}

// endpointWait is how long a server may take to name its endpoint on a new stream.
const endpointWait = 10 * time.Second

func (c *Connection) old() *oldTransport {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.session.old
}

// openOld tries the transport of 2024-11-05, as the protocol advises when initialize is refused. It reports whether the
// server has it; then it is used for everything.
func (c *Connection) openOld(m *message) bool {
	if c.old() != nil {
		return false
	}
	ctx, cancel := context.WithCancel(c.ctx)
	tooSlow := time.AfterFunc(endpointWait, cancel)
	resp, err := c.get(ctx, "")
	if err != nil {
		cancel()
		return false
	}
	r := newSSEReader(resp.Body, c.opts.MaxMessage)
	endpoint, err := c.firstEvent(resp, r)
	if !tooSlow.Stop() || err != nil {
		cancel()
		_ = resp.Body.Close() // it has not
		return false
	}
	old := &oldTransport{c: c, endpoint: endpoint}
	c.mu.Lock()
	c.session.old = old
	c.mu.Unlock()
	c.streams.Go(func() {
		defer cancel()
		defer resp.Body.Close()
		old.read(ctx, r)
	})
	return true
}

// firstEvent reads the endpoint at the beginning of the stream.
func (c *Connection) firstEvent(resp *http.Response, r *sseReader) (*url.URL, error) {
	if !isStream(resp) {
		return nil, errors.New("no stream")
	}
	e, err := r.next()
	if err != nil {
		return nil, err
	}
	endpoint, err := c.endpoint.Parse(string(e.data))
	if e.name != "endpoint" || err != nil || !sameOrigin(endpoint, c.endpoint) {
		return nil, errors.New("no endpoint of the same origin")
	}
	return endpoint, nil
}

// read forwards the server's messages. The session ends with the stream.
func (t *oldTransport) read(ctx context.Context, r *sseReader) {
	for {
		e, err := r.next()
		switch {
		case ctx.Err() != nil:
			return
		case err == io.EOF:
			t.c.fail(fmt.Errorf("%s: the server ended the stream", t.c.opts.Name))
			return
		case err != nil:
			t.c.fail(fmt.Errorf("%s: the connection broke off: %w", t.c.opts.Name, err))
			return
		case e.tooLong:
			t.c.fail(fmt.Errorf("%s: %w", t.c.opts.Name, errTooLong))
			return
		case len(e.data) > 0 && (e.name == "" || e.name == "message"):
			t.deliver(e.data)
		}
	}
}

// deliver hands on one message, and lets the request go that it answers.
func (t *oldTransport) deliver(data []byte) {
	line := oneLine(data)
	var e jsonrpc.Envelope
	if err := e.Scan(line); err != nil {
		t.c.logf("not a message (%v): %s", err, excerpt(line))
		return
	}
	m := t.c.asked(&e, line)
	if m == nil {
		t.c.emit(line)
		return
	}
	line = t.c.withOwnID(m, &e, line)
	t.c.emit(t.c.noteAnswer(m, &e, line))
	m.answerCame()
}

// asked returns the request in flight that a line answers, or nil: the one with its id, otherwise the one whose number its id has
// as text.
func (c *Connection) asked(e *jsonrpc.Envelope, line []byte) *message {
	c.mu.Lock()
	defer c.mu.Unlock()
	var byText *message
	for _, m := range c.inFlight {
		switch {
		case m.answers(e, line):
			return m
		case m.answersAsText(e, line):
			byText = m
		}
	}
	return byText
}

// withOwnID returns an answer to m with the id that m has, where the server has made a text of it.
func (c *Connection) withOwnID(m *message, e *jsonrpc.Envelope, line []byte) []byte {
	if m.answers(e, line) {
		return line
	}
	c.idAsText.Do(func() { c.logf("%s: the server answers the request %s as %s, which is taken for the same", c.opts.Name, m.id, e.ID.Of(line)) })
	line = jsonrpc.Replace(nil, line, e.ID, m.id)
	_ = e.Scan(line) // only the id is another one
	return line
}

// post posts a message. The answer comes on the stream.
func (t *oldTransport) post(m *message) outcome {
	ctx, cancel := context.WithTimeout(m.ctx, t.c.opts.NoteTimeout)
	defer cancel()
	o := t.c.postMessage(ctx, m, t.endpoint)
	if !o.answered || m.kind != jsonrpc.Request {
		return o
	}
	m.onTheWire()
	select {
	case <-m.answered:
		return o
	case <-m.ctx.Done():
	case <-t.c.failed:
	}
	return outcome{written: true, err: errors.New("the stream has ended")}
}
