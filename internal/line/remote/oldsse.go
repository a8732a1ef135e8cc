package remote

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/outlive-mcp/outlive/internal/protocol/jsonrpc"
)

// endpointWait is how long a server may take to name its endpoint on a new stream.
const endpointWait = 10 * time.Second

// old is where messages go by HTTP+SSE of 2024-11-05, which has one stream for all that the server says; nil: it is not used.
func (c *Connection) old() *url.URL {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.session.old
}

// openOld opens the stream of 2024-11-05, as the protocol advises when initialize is refused. Answered says that it is open: then it
// is used for everything. Otherwise the outcome is what the server gave in its place.
func (c *Connection) openOld() (o outcome) {
	c.openingOld.Lock()
	defer c.openingOld.Unlock()
	if c.old() != nil {
		return outcome{answered: true}
	}
	ctx, cancel := context.WithCancel(c.ctx)
	came, watched := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(watched)
		cancelLate(cancel, came, c.oauth())
	}()
	resp, r, endpoint, o := c.askForEndpoint(ctx)
	close(came)
	<-watched
	if ctx.Err() != nil && c.ctx.Err() == nil {
		o = outcome{strange: fmt.Sprintf("no event stream that names an endpoint within %v", endpointWait)}
	}
	if !o.answered {
		cancel()
		if resp != nil {
			_ = resp.Body.Close() // it is not read
		}
		return o
	}
	c.mu.Lock()
	c.session.old = endpoint
	c.mu.Unlock()
	c.streams.Go(func() {
		defer cancel()
		defer resp.Body.Close()
		c.readOld(ctx, r)
	})
	return o
}

// cancelLate cancels when nothing has come for endpointWait. The time in which a token is got, which a user may have to consent to,
// does not count, nor does that before it.
func cancelLate(cancel func(), came <-chan struct{}, oauth *OAuth) {
	for was := true; ; {
		busy := oauth.busy()
		if !was && !busy {
			cancel()
			return
		}
		was = busy
		select {
		case <-came:
			return
		case <-time.After(endpointWait):
		}
	}
}

// askForEndpoint asks for the stream, and reads it up to the endpoint. The response is to be closed if there is one.
func (c *Connection) askForEndpoint(ctx context.Context) (*http.Response, *sseReader, *url.URL, outcome) {
	resp, err := c.get(ctx, "")
	if err != nil {
		return nil, nil, nil, unanswered(err)
	}
	r := newSSEReader(resp.Body, c.opts.MaxMessage)
	endpoint, o := endpointIn(c.endpoint, resp, r)
	return resp, r, endpoint, o
}

// endpointIn reads the stream at a URL up to the event that names the endpoint. It passes over what a server says before: comments,
// retry, pings and other events. The outcome is answered if it is there.
func endpointIn(at *url.URL, resp *http.Response, r *sseReader) (*url.URL, outcome) {
	if !isStream(resp) {
		body, _ := io.ReadAll(io.LimitReader(resp.Body, maxErrorBody)) // a partial body is used
		if resp.StatusCode < 200 || resp.StatusCode > 299 {
			return nil, outcome{status: resp.StatusCode, header: resp.Header, body: body}
		}
		return nil, outcome{strange: strings.TrimSuffix(fmt.Sprintf("HTTP %d with %q in place of an event stream: %s",
			resp.StatusCode, resp.Header.Get("Content-Type"), excerpt(body)), ": ")}
	}
	for {
		e, err := r.next()
		switch {
		case err == io.EOF:
			return nil, outcome{strange: "an event stream that ended without naming an endpoint"}
		case err != nil:
			return nil, outcome{err: err}
		case e.name != "endpoint":
			continue
		}
		endpoint, err := at.Parse(string(e.data))
		switch {
		case err != nil:
			return nil, outcome{strange: "an event stream whose endpoint cannot be read: " + excerpt(e.data)}
		case !sameOrigin(endpoint, at):
			return nil, outcome{strange: fmt.Sprintf("an event stream whose endpoint is of another origin, %s://%s, where nothing is sent",
				endpoint.Scheme, endpoint.Host)}
		}
		return endpoint, outcome{answered: true}
	}
}

// readOld forwards the server's messages. The session ends with the stream.
func (c *Connection) readOld(ctx context.Context, r *sseReader) {
	for {
		e, err := r.next()
		switch {
		case ctx.Err() != nil:
			return
		case err == io.EOF:
			c.fail(fmt.Errorf("%s: the server ended the stream", c.opts.Name))
			return
		case err != nil:
			c.fail(fmt.Errorf("%s: the connection broke off: %w", c.opts.Name, err))
			return
		case e.tooLong:
			c.fail(fmt.Errorf("%s: %w", c.opts.Name, errTooLong))
			return
		case len(e.data) > 0 && (e.name == "" || e.name == "message"):
			c.deliverOld(e.data)
		}
	}
}

// deliverOld hands on what the server says, and lets the requests go that it answers. An answer that is no message is handed on as it
// is: what stands above ends the request with what is wrong with it.
func (c *Connection) deliverOld(data []byte) {
	read := c.messages(data, func(e *jsonrpc.Envelope, line []byte) {
		m := c.asked(e, line)
		if m == nil {
			c.emit(line)
			return
		}
		line = m.withOwnID(e, line)
		c.emit(c.noteAnswer(m, e, line))
		m.answerCame()
	})
	if read {
		return
	}
	id, _ := jsonrpc.RecoverID(data, data)
	if m := c.withID(id); m != nil {
		c.emit(jsonrpc.Trim(data))
		m.answerCame()
	}
}

// askOld posts a request there and waits for its answer on the stream. Some servers accept the POST only once they have carried
// the request out, so it may take as long as that, and counts for nothing when the answer is there.
func (c *Connection) askOld(m *message, to *url.URL) outcome {
	ctx, cancel := context.WithCancel(m.ctx)
	defer cancel()
	came := make(chan outcome, 1)
	go func() { came <- c.postMessage(ctx, m, to) }()
	var o outcome
	select {
	case o = <-came:
	case <-m.answered:
		stop := time.AfterFunc(c.opts.Grace, cancel) // most servers accept it now, and the connection is of use again
		<-came
		stop.Stop()
		return outcome{answered: true, written: true}
	case <-c.failed.Done():
		cancel()
		o = <-came
	}
	if !o.answered && o.status != http.StatusGatewayTimeout { // a proxy that waited in vain has passed it on
		return o
	}
	m.onTheWire()
	select {
	case <-m.answered:
		return outcome{answered: true, written: true}
	case <-m.ctx.Done():
	case <-c.failed.Done():
	}
	return outcome{written: true, err: errors.New("the stream has ended")}
}
