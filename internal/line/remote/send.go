package remote

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"github.com/outlive-mcp/outlive/internal/files/peer"
	"github.com/outlive-mcp/outlive/internal/protocol/jsonrpc"
	"github.com/outlive-mcp/outlive/internal/protocol/mcp"
)

const (
	// maxErrorBody is how much of an HTTP error's body is read, in bytes: enough for every JSON-RPC error.
	maxErrorBody = 64 << 10
	// maxRedirects within one origin.
	maxRedirects = 5
	// maxChallenges is how often one request is sent again with another token: the first, and those that [consentsMost] allows.
	maxChallenges = 4
)

// Header names of the protocol.
const (
	headerSession = "Mcp-Session-Id"
	headerVersion = "Mcp-Protocol-Version"
	headerEventID = "Last-Event-Id"
)

// userAgent is ours, since some hosts refuse the one of Go's library.
const userAgent = "outlive"

// newClient is the HTTP client of one connection.
func newClient(o Options) *http.Client {
	transport := o.Transport
	if transport == nil {
		transport = &http.Transport{
			Proxy: http.ProxyFromEnvironment, DialContext: dialer{peer.Dialer(connectTimeout), systemLookup}.dial, ForceAttemptHTTP2: true,
			TLSHandshakeTimeout: connectTimeout, MaxIdleConnsPerHost: 16, IdleConnTimeout: 90 * time.Second,
			HTTP2: &http.HTTP2Config{SendPingTimeout: peer.Silence / 2, PingTimeout: peer.Silence / 2},
		}
	}
	return &http.Client{Transport: transport, CheckRedirect: sameOriginOnly}
}

// sameOriginOnly follows redirects that repeat the request at the same origin, as for a missing slash. One from http to https at the same
// host counts as that. Headers may hold secrets for that origin alone, and a request that becomes a GET is another request.
func sameOriginOnly(req *http.Request, via []*http.Request) error {
	first := via[0]
	if len(via) > maxRedirects || !sameOrigin(req.URL, first.URL) && !upgrades(req.URL, first.URL) || req.Method != first.Method {
		return http.ErrUseLastResponse
	}
	return nil
}

// sameOrigin compares as browsers do: the scheme's own port is the same as none.
func sameOrigin(a, b *url.URL) bool {
	return a.Scheme == b.Scheme && strings.EqualFold(a.Hostname(), b.Hostname()) && portOf(a) == portOf(b)
}

// upgrades reports whether to is the host of from by https in place of http, each at its own port.
func upgrades(to, from *url.URL) bool {
	return strings.EqualFold(to.Hostname(), from.Hostname()) && from.Scheme+portOf(from) == "http80" && to.Scheme+portOf(to) == "https443"
}

func portOf(u *url.URL) string {
	return cmp.Or(u.Port(), map[string]string{"http": "80", "https": "443"}[u.Scheme])
}

// request makes a request in the session, without its authorization.
func (c *Connection) request(ctx context.Context, method string, to *url.URL, body []byte) (*http.Request, error) {
	req, err := http.NewRequestWithContext(ctx, method, to.String(), bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("ask %s: %w", to.Redacted(), err)
	}
	req.Header.Set("User-Agent", userAgent)
	for key, value := range c.opts.Headers {
		req.Header.Set(key, value)
		if http.CanonicalHeaderKey(key) == "Host" {
			req.Host = value
		}
	}
	if c.opts.Bearer != "" {
		req.Header.Set("Authorization", "Bearer "+c.opts.Bearer)
	}
	c.mu.Lock()
	id, version := c.session.id, c.session.version
	c.mu.Unlock()
	if id != "" {
		req.Header.Set(headerSession, id)
	}
	if version != "" {
		req.Header.Set(headerVersion, version)
	}
	return req, nil
}

// authError is a failure to get a token.
type authError struct{ error }

// oauth is the source of tokens, nil if there is a static token or no authorization.
func (c *Connection) oauth() *OAuth {
	if c.opts.Bearer != "" {
		return nil
	}
	return c.opts.OAuth
}

// do sends a request with a token, and again with another token if the server asks for that.
func (c *Connection) do(req *http.Request) (*http.Response, error) {
	oauth := c.oauth()
	if oauth == nil {
		return c.client.Do(req)
	}
	var wanted []challenge // so far by the server of this request
	for try := 1; ; try++ {
		used, err := oauth.token(req.Context())
		switch {
		case err != nil && used == "":
			return nil, authError{err}
		case err != nil:
			c.logf("%s: %v", c.opts.Name, err)
		}
		if used != "" {
			req.Header.Set("Authorization", "Bearer "+used)
		}
		resp, err := c.client.Do(req)
		if err != nil || try > maxChallenges || !isChallenge(resp) {
			if err == nil && resp.StatusCode < 400 {
				oauth.vain.over(wanted)
			}
			return resp, err
		}
		wanted = append(wanted, challengeOf(resp))
		discard(resp)
		if err := oauth.answerChallenge(req.Context(), used, resp); err != nil {
			return nil, authError{err}
		}
		if req, err = rewound(req); err != nil {
			return nil, err
		}
	}
}

// rewound is the request prepared to be sent again.
func rewound(req *http.Request) (*http.Request, error) {
	next := req.Clone(req.Context())
	if req.GetBody != nil {
		body, err := req.GetBody()
		if err != nil {
			return nil, fmt.Errorf("send again: %w", err)
		}
		next.Body = body
	}
	return next, nil
}

// discard ends a response so that its connection can be reused.
func discard(resp *http.Response) {
	_, _ = io.CopyN(io.Discard, resp.Body, maxErrorBody) // otherwise the connection is closed
	_ = resp.Body.Close()
}

// post posts one message and hands on what the server says to it.
func (c *Connection) post(m *message) outcome {
	defer m.onTheWire()
	if c.opts.OldSSE {
		if m.kind == jsonrpc.Request && m.version != "" { // as a server would say it that could be asked without a session
			return outcome{status: http.StatusNotFound, body: jsonrpc.AppendError(nil, m.id, jsonrpc.MethodNotFound, "HTTP+SSE of 2024-11-05 has no stateless requests", nil)}
		}
		if o := c.openOld(); !o.answered {
			return o
		}
	}
	old, to := c.old(), c.endpoint
	switch {
	case m.kind == jsonrpc.Request && old != nil:
		return c.askOld(m, old)
	case m.kind == jsonrpc.Request:
		return c.postMessage(m.ctx, m, to)
	case old != nil:
		to = old
	}
	ctx, cancel := context.WithTimeout(m.ctx, c.opts.NoteTimeout)
	defer cancel()
	return c.postMessage(ctx, m, to)
}

// postMessage sends a message by POST and reads the response to its end.
func (c *Connection) postMessage(ctx context.Context, m *message, to *url.URL) outcome {
	before, written := m.taken.Load(), atomic.Bool{}
	var req *http.Request
	traced := httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		// net/http looks for another connection by itself only if nothing of a POST has left the first one, or if it was answered:
		// by a redirect or a challenge. Headers count as written as soon as they are in its buffer.
		GetConn: func(string) {
			if !idempotent(req.Header) && written.CompareAndSwap(true, false) {
				m.taken.Store(before)
			}
		},
		WroteHeaders: func() {
			if written.CompareAndSwap(false, true) {
				m.taken.Store(true)
			}
		},
		WroteRequest: func(httptrace.WroteRequestInfo) { m.onTheWire() },
	})
	var err error
	if req, err = c.request(traced, http.MethodPost, to, m.line); err != nil {
		return outcome{strange: err.Error()}
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	c.describe(req.Header, m)
	resp, err := c.do(req)
	if err != nil {
		o := unanswered(err)
		o.written = written.Load()
		return o
	}
	defer resp.Body.Close()
	o := outcome{written: true, status: resp.StatusCode, header: resp.Header}
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		o.body, _ = io.ReadAll(io.LimitReader(resp.Body, maxErrorBody)) // a partial body is used
		return o
	}
	if id := resp.Header.Get(headerSession); m.method == mcp.Initialize && id != "" {
		c.mu.Lock()
		c.session.id = id
		c.mu.Unlock()
	}
	c.receive(ctx, m, resp, &o)
	return o
}

// unanswered is the outcome of a request without a response.
func unanswered(err error) outcome {
	if denied := (authError{}); errors.As(err, &denied) {
		return outcome{auth: denied.error}
	}
	return outcome{err: cause(err)}
}

// idempotent reports whether net/http sends a POST with these headers, which are the user's, again also after it was written.
func idempotent(h http.Header) bool {
	return h.Values("Idempotency-Key") != nil || h.Values("X-Idempotency-Key") != nil
}

// cause removes method and URL from an error of net/http, since the URL may hold a secret.
func cause(err error) error {
	if wrapped := (*url.Error)(nil); errors.As(err, &wrapped) {
		return wrapped.Err
	}
	return err
}

// receive reads a response of status 2xx.
func (c *Connection) receive(ctx context.Context, m *message, resp *http.Response, o *outcome) {
	kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	switch {
	case m.kind != jsonrpc.Request || c.old() != nil:
		if kind != "text/event-stream" { // that may stay open, and nothing is to be said on it
			discard(resp)
		}
		o.answered = true
	case strings.HasPrefix(kind, "application/json"): // or application/json-rpc
		c.receiveJSON(m, resp, o)
	case kind == "text/event-stream":
		c.receiveStream(ctx, m, resp, o)
	default:
		body, _ := io.ReadAll(io.LimitReader(resp.Body, maxErrorBody))
		o.strange = fmt.Sprintf("HTTP %d with %q in place of an answer", resp.StatusCode, kind)
		if text := excerpt(body); text != "" {
			o.strange += ": " + text
		}
	}
}

func (c *Connection) receiveJSON(m *message, resp *http.Response, o *outcome) {
	body, err := io.ReadAll(io.LimitReader(resp.Body, int64(c.opts.MaxMessage)+1))
	switch {
	case len(body) > c.opts.MaxMessage:
		o.tooLong = true
	case err != nil:
		o.err = fmt.Errorf("read the answer: %w", err)
	default:
		if o.answered = c.deliver(m, body); !o.answered {
			o.strange = "an answer to another request or none at all: " + excerpt(body)
		}
	}
}
