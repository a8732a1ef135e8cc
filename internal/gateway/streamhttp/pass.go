package streamhttp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"mime"
	"net/http"
	"net/http/httptrace"
	"net/http/httputil"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/outlive-mcp/outlive/internal/protocol/jsonrpc"
)

const (
	// peerPatience is how long a request waits for a session that is had by nobody who answers. It is longer than it takes until another
	// gateway may have the session, and shorter than clients wait.
	peerPatience = 30 * time.Second
	// lookAgain is the time between two looks for it.
	lookAgain = time.Second
)

// passing is a request that another gateway answers.
type passing struct {
	front   *Front
	w       http.ResponseWriter
	r       *http.Request
	who     caller
	line    []byte // the message of a POST
	id      []byte // raw, of its request; nil: it is none
	endless bool   // its answer ends when streams are to end: it is a stream, or the request was withdrawn

	begun time.Time // when it was passed first
	tries int
	sent  atomic.Bool     // something of the message may have been sent
	err   error           // why there is no answer
	ended <-chan struct{} // closed when streams are to end; nil: it is no stream
}

// errMisdirected is why a gateway does not answer that has not what it was asked for.
var errMisdirected = errors.New("the other gateway has it no more")

// pass asks a gateway, and answers with what that says. false: it has got nothing of the request, or has done nothing about it.
func (p *passing) pass(at *Elsewhere) (answered bool) {
	if p.tries++; p.tries == 1 {
		p.begun = time.Now()
	}
	p.sent.Store(false)
	p.err = nil
	ctx, cancel := context.WithCancel(p.r.Context())
	defer cancel()
	go func() {
		select {
		case <-at.Over:
		case <-p.front.stop:
		case <-ctx.Done():
		}
		cancel()
	}()
	stay := func() { p.stay(ctx, cancel) }
	if p.endless {
		stay()
	}
	defer func() {
		if p.endless {
			p.front.endless.Add(-1)
		}
	}()
	traced := httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GetConn: func(string) { p.sent.Store(false) }, // the first connection, or what it had was broken and has got nothing
	})
	out := p.r.Clone(traced)
	out.Body, out.ContentLength, out.TransferEncoding = http.NoBody, 0, nil
	if p.line != nil {
		// net/http sends it again by itself if it has found a broken connection, and written nothing: it looks for another one then.
		out.GetBody = func() (io.ReadCloser, error) {
			return io.NopCloser(sentBody{bytes.NewReader(p.line), &p.sent}), nil
		}
		out.Body, _ = out.GetBody()
		out.ContentLength = int64(len(p.line))
	}
	control := http.NewResponseController(p.w)
	defer func() { _ = control.SetWriteDeadline(time.Time{}) }() // the connection may serve other requests
	proxy := httputil.ReverseProxy{
		Rewrite:        func(r *httputil.ProxyRequest) { p.address(r.Out, at) },
		Transport:      sentIn{p.front.opts.Peers.Transport, traced},
		BufferPool:     pieces{},
		ErrorLog:       slog.NewLogLogger(p.front.opts.Log.Handler(), slog.LevelDebug),
		ModifyResponse: func(resp *http.Response) error { return p.mend(resp, stay) },
		ErrorHandler:   func(_ http.ResponseWriter, _ *http.Request, err error) { p.err = err },
	}
	proxy.ServeHTTP(timely{p.w, control, p.front.opts.WriteTimeout}, out)
	return p.err == nil || p.fail()
}

// stay has the request end when streams are to end. Until then it counts as one of these.
func (p *passing) stay(ctx context.Context, end func()) {
	p.endless, p.ended = true, p.front.drain.done()
	p.front.endless.Add(1)
	go func(ended <-chan struct{}) {
		select {
		case <-ended:
			end()
		case <-ctx.Done():
		}
	}(p.ended)
}

// address makes the request that the other gateway gets: what was for us is taken out, and the caller is named.
func (p *passing) address(out *http.Request, at *Elsewhere) {
	out.URL.Scheme, out.URL.Host, out.URL.Path, out.URL.RawPath, out.URL.RawQuery = "http", at.At, Path, "", ""
	out.Host = at.At
	for _, own := range []string{"Authorization", "Cookie", "Origin", "Expect"} {
		out.Header.Del(own)
	}
	if p.line != nil {
		out.Header.Set("Expect", "100-continue") // a gateway that ends, or was killed, has got nothing: the message is sent when it has said that it reads
	}
	for _, replayable := range []string{"Idempotency-Key", "X-Idempotency-Key"} { // net/http sends such a POST again by itself
		out.Header.Del(replayable)
	}
	who := p.who
	who.Time = at.Time
	name, _ := json.Marshal(who) // texts and a time: no error
	out.Header.Set(headerCaller, string(name))
}

// mend has what the other gateway says end well if that is lost in the middle. stay is called when the request was withdrawn.
func (p *passing) mend(resp *http.Response, stay func()) error {
	if resp.StatusCode == http.StatusMisdirectedRequest {
		return errMisdirected
	}
	media, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	if media == eventStream {
		resp.Body = &passedStream{ReadCloser: resp.Body, p: p, stay: stay}
	}
	return nil
}

// fail answers a request that got no answer. false: it may be asked for again.
func (p *passing) fail() (answered bool) {
	switch {
	case p.r.Context().Err() != nil: // nobody waits for it
		return true
	case closed(p.front.stop): // it is cut
		panic(http.ErrAbortHandler)
	case closed(p.ended):
		refuse(p.w, nil, refusal{status: http.StatusServiceUnavailable, text: "shutting down"})
		return true
	case errors.Is(p.err, errMisdirected), !p.sent.Load(), p.r.Method != http.MethodPost:
		p.front.opts.Log.Debug("request not passed on", "error", p.err, "remote", p.r.RemoteAddr)
		return false
	case p.id != nil:
		p.front.opts.Log.Warn("request without an answer", "error", p.err, "remote", p.r.RemoteAddr)
		writeJSON(p.w, http.StatusOK, outcomeUnknown(p.id)) // in either era
	default:
		refuse(p.w, nil, refusal{status: http.StatusBadGateway, text: "the gateway that has the session was lost before it answered"})
	}
	return true
}

// await waits for another try. false: it has waited for long enough, or nobody waits for it any more.
func (p *passing) await(at *Elsewhere) bool {
	if p.tries == 1 && errors.Is(p.err, errMisdirected) {
		return true // mostly another one has it by now, or may
	}
	if p.endless { // while it waits, too
		p.front.endless.Add(1)
		defer p.front.endless.Add(-1)
	}
	pause := time.NewTimer(lookAgain)
	defer pause.Stop()
	select {
	case <-at.Over:
	case <-pause.C:
	case <-p.ended:
		return false
	case <-p.front.stop:
		return false
	case <-p.r.Context().Done():
		return false
	}
	return time.Since(p.begun) < peerPatience
}

// outcomeUnknown is the answer to a request that may have been carried out.
func outcomeUnknown(id []byte) []byte {
	return jsonrpc.AppendError(nil, id, jsonrpc.InternalError, "outcome unknown: the gateway that had this request has ended before it was answered; the request may have been carried out", nil)
}

// passedStream is the event stream of another gateway.
type passedStream struct {
	io.ReadCloser
	p    *passing
	stay func()  // see mend
	last [2]byte // bytes of it; zero: none yet
	rest []byte  // what is said in place of what is lost
}

// Read implements io.Reader. The end of the other gateway is that of a stream that a client opens again; that of a request gets an answer,
// since nobody else has what would follow, and a client which resumed it would wait in vain.
func (s *passedStream) Read(into []byte) (int, error) {
	if s.rest != nil {
		n := copy(into, s.rest)
		if s.rest = s.rest[n:]; len(s.rest) == 0 {
			return n, io.EOF
		}
		return n, nil
	}
	n, err := s.ReadCloser.Read(into)
	if !s.p.endless && bytes.HasSuffix(into[:n], []byte(withdrawn)) {
		s.stay()
	}
	for _, b := range into[max(0, n-2):n] {
		s.last = [2]byte{s.last[1], b}
	}
	between := s.last == [2]byte{} || s.last == [2]byte{'\n', '\n'}
	switch p := s.p; {
	case err == nil, errors.Is(err, io.EOF), !between, p.r.Context().Err() != nil, closed(p.front.stop):
		return n, err
	case p.endless:
		return n, io.EOF
	case p.id != nil:
		s.rest = slices.Concat([]byte("event: message\ndata: "), outcomeUnknown(p.id), []byte("\n\n"))
		return n, nil
	}
	return n, err
}

// sentBody is a request's body. Once it is read, something of it may have been sent.
type sentBody struct {
	io.Reader
	sent *atomic.Bool
}

// Read implements io.Reader.
func (b sentBody) Read(p []byte) (int, error) {
	b.sent.Store(true)
	return b.Reader.Read(p)
}

// sentIn sends requests in a context of its own. In that of a ReverseProxy a "100 Continue" would be passed on, and clear the headers of our
// answer.
type sentIn struct {
	http.RoundTripper
	ctx context.Context
}

// RoundTrip implements http.RoundTripper.
func (s sentIn) RoundTrip(r *http.Request) (*http.Response, error) {
	return s.RoundTripper.RoundTrip(r.WithContext(s.ctx))
}

// timely has a limit for each write to the client.
type timely struct {
	http.ResponseWriter
	control *http.ResponseController
	limit   time.Duration
}

// Write implements io.Writer.
func (t timely) Write(p []byte) (int, error) {
	_ = t.control.SetWriteDeadline(time.Now().Add(t.limit))
	return t.ResponseWriter.Write(p)
}

// Unwrap is what http.ResponseController looks for.
func (t timely) Unwrap() http.ResponseWriter { return t.ResponseWriter }

// pieces are reused to pass answers on.
type pieces struct{}

var pieceBuffers = sync.Pool{New: func() any { return new([longMessage]byte) }}

// Get implements httputil.BufferPool.
func (pieces) Get() []byte { return pieceBuffers.Get().(*[longMessage]byte)[:] }

// Put implements httputil.BufferPool.
func (pieces) Put(b []byte) { pieceBuffers.Put((*[longMessage]byte)(b)) }
