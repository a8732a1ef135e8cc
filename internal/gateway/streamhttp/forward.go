package streamhttp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"sync"
	"time"

	"github.com/outlive-mcp/outlive/internal/protocol/jsonrpc"
	"github.com/outlive-mcp/outlive/internal/protocol/mcp"
)

// A front can be two: one that admits clients (Options.Forward), and one that has the Hub and takes the first one's word for
// whose a request is (Options.Admitted).

// headerCaller names the caller of a forwarded request.
const headerCaller = "Outlive-Caller"

// forwardedHost is the host of forwarded requests, which nobody looks at.
const forwardedHost = "http://core"

// ErrNotSent is wrapped by the error of Options.Forward for a request of which nothing was sent.
var ErrNotSent = errors.New("nothing was sent")

// forwarded is one request that is answered elsewhere.
type forwarded struct {
	front   *Front
	w       http.ResponseWriter
	r       *http.Request
	line    []byte // the message of a POST
	id      []byte // raw, of its request; nil: it is none
	era     mcp.Era
	endless bool // it ends when streams are to end

	stream bool    // the answer is an event stream
	last   [2]byte // bytes of it; zero: none yet
}

// forward passes a request of an admitted client on, and the answer back.
func (f *Front) forward(w http.ResponseWriter, r *http.Request, who caller) {
	p := forwarded{front: f, w: w, r: r, endless: r.Method == http.MethodGet}
	switch r.Method {
	case http.MethodPost:
		held := f.newLoad(who.Subject)
		defer held.end()
		line, e, ok := f.readMessage(w, r, held)
		if !ok {
			return
		}
		p.line, p.era = line, eraOf(r, line, &e)
		if e.Kind == jsonrpc.Request {
			p.id = e.ID.Of(line)
			p.endless = mcp.Lookup(e.Method.Of(line)) == mcp.Listen
		}
	case http.MethodGet, http.MethodDelete:
	default:
		notAllowed(w, "GET, POST, DELETE")
		return
	}
	name, err := json.Marshal(who)
	if err != nil { // not reached: there is nothing in it that could fail
		p.fail(err)
		return
	}
	header := r.Header.Clone()
	for _, own := range []string{"Authorization", "Connection", "Cookie", "Origin"} { // they were for us
		header.Del(own)
	}
	for _, replayable := range []string{"Idempotency-Key", "X-Idempotency-Key"} { // net/http sends such a POST again by itself
		header.Del(replayable)
	}
	header.Set(headerCaller, string(name))
	p.pass(f.opts.Path, header)
}

// forwardExtra passes a request for one of Options.ForwardExtra on.
func (f *Front) forwardExtra(w http.ResponseWriter, r *http.Request) {
	p := forwarded{front: f, w: w, r: r}
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		notAllowed(w, "GET, HEAD")
		return
	}
	p.pass(r.URL.Path, http.Header{"Accept": r.Header["Accept"]})
}

// pass sends the request and writes its answer.
func (p *forwarded) pass(path string, header http.Header) {
	ctx, cancel := context.WithCancel(p.r.Context())
	defer cancel()
	var drained <-chan struct{}
	if p.endless {
		p.front.endless.Add(1)
		defer p.front.endless.Add(-1)
		drained = p.front.drain.done()
	}
	go func() {
		select {
		case <-drained:
		case <-p.front.stop:
		case <-ctx.Done():
		}
		cancel()
	}()
	var body io.Reader
	if p.line != nil {
		body = bytes.NewReader(p.line)
	}
	out, err := http.NewRequestWithContext(ctx, p.r.Method, forwardedHost+path, body)
	if err != nil {
		p.fail(err)
		return
	}
	out.Header = header
	resp, err := p.ask(ctx, out)
	if err != nil {
		p.fail(err)
		return
	}
	defer resp.Body.Close()
	whole, lost := p.answer(resp)
	if !whole && !(lost && p.endLost()) && !closed(drained) {
		panic(http.ErrAbortHandler) // the client must not take what it got for the whole answer
	}
}

// askAgain is how often a stream that waits for the gateway's servers is asked for again.
const askAgain = time.Second

// ask sends the request. The stream of a session is asked for until it is there, and begins meanwhile: a client may end its session
// for a status that says that nobody is there, as the Go SDK's does.
func (p *forwarded) ask(ctx context.Context, out *http.Request) (*http.Response, error) {
	control := http.NewResponseController(p.w)
	for {
		resp, err := p.front.opts.Forward(out)
		if err == nil || p.r.Method != http.MethodGet || !p.endless || ctx.Err() != nil {
			return resp, err
		}
		if !p.stream {
			p.front.opts.Log.Warn("a stream waits for the gateway's servers", "error", err, "remote", p.r.RemoteAddr)
			p.stream = true
			p.w.Header().Set("Content-Type", eventStream)
			p.w.WriteHeader(http.StatusOK)
		}
		if p.write(control, []byte(": the gateway's servers cannot be reached now\n\n")) != nil {
			return nil, err
		}
		select {
		case <-time.After(askAgain):
		case <-ctx.Done():
			return nil, err
		}
	}
}

func closed(ch <-chan struct{}) bool {
	select {
	case <-ch:
		return true
	default:
		return false
	}
}

// fail answers a request that got no answer.
func (p *forwarded) fail(err error) {
	switch {
	case p.r.Context().Err() != nil: // nobody waits for it
	case closed(p.front.stop), p.stream: // it is cut
		panic(http.ErrAbortHandler)
	case errors.Is(err, ErrNotSent) || p.endless || p.r.Method != http.MethodPost:
		p.front.opts.Log.Warn("request not forwarded", "error", err, "remote", p.r.RemoteAddr)
		refuse(p.w, http.StatusServiceUnavailable, p.id, refusal{code: codeInternal, text: "the gateway's servers cannot be reached now", retry: true})
	case p.id != nil:
		p.front.opts.Log.Warn("request without an answer", "error", err, "remote", p.r.RemoteAddr)
		line := p.unknown()
		writeJSON(p.w, statusOf(p.era, line), line)
	default:
		refuse(p.w, http.StatusBadGateway, nil, refusal{code: codeInternal, text: "the process that has the gateway's servers was lost before it answered"})
	}
}

// unknown is the answer to a request that may have been carried out.
func (p *forwarded) unknown() []byte {
	return jsonrpc.AppendError(nil, p.id, codeInternal,
		"outcome unknown: the process that has the gateway's servers was lost before it answered; the request may have been carried out", nil)
}

// endLost ends the event stream of a request whose answer cannot come any more: nobody else has what would follow, so that a client
// which resumed it would wait in vain. It reports whether that was possible.
func (p *forwarded) endLost() bool {
	if p.id == nil || p.endless || !p.between() || p.r.Context().Err() != nil || closed(p.front.stop) {
		return false
	}
	p.front.opts.Log.Warn("request without an answer", "remote", p.r.RemoteAddr)
	out := eventWriter{w: p.w, control: http.NewResponseController(p.w), timeout: p.front.opts.WriteTimeout}
	defer out.end()
	return out.write([][]byte{p.unknown()}, 0) == nil
}

// between reports that an event stream was passed on, and nothing of an event that has not come whole.
func (p *forwarded) between() bool {
	return p.stream && (p.last == [2]byte{} || p.last == [2]byte{'\n', '\n'})
}

// pieces are reused to pass answers on.
var pieces = sync.Pool{New: func() any { return new([longMessage]byte) }}

// answer writes an answer as it comes. lost: the other front did not send all of it.
func (p *forwarded) answer(resp *http.Response) (whole, lost bool) {
	media, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	stream := media == eventStream
	if p.stream && !stream { // what it says is heard when the client asks again
		return true, false
	}
	if !p.stream {
		h := p.w.Header()
		for name, values := range resp.Header {
			if name != "Connection" && name != "Date" {
				h[name] = values
			}
		}
		p.w.WriteHeader(resp.StatusCode)
		p.stream = stream
	}
	control := http.NewResponseController(p.w)
	defer func() { _ = control.SetWriteDeadline(time.Time{}) }() // the connection may serve other requests
	if p.stream && p.write(control, nil) != nil {
		return false, false
	}
	piece := pieces.Get().(*[longMessage]byte)
	defer pieces.Put(piece)
	for {
		n, err := resp.Body.Read(piece[:])
		if n > 0 && p.write(control, piece[:n]) != nil {
			return false, false
		}
		switch {
		case errors.Is(err, io.EOF):
			return true, false
		case err != nil:
			return false, true
		}
	}
}

// write passes a piece of the answer on; of a stream at once.
func (p *forwarded) write(control *http.ResponseController, piece []byte) error {
	_ = control.SetWriteDeadline(time.Now().Add(p.front.opts.WriteTimeout))
	if _, err := p.w.Write(piece); err != nil {
		return err
	}
	for _, b := range piece[max(0, len(piece)-2):] {
		p.last = [2]byte{p.last[1], b}
	}
	if !p.stream {
		return nil
	}
	return control.Flush()
}
