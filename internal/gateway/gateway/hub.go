package gateway

import (
	"github.com/outlive-mcp/outlive/internal/gateway/streamhttp"
	"github.com/outlive-mcp/outlive/internal/protocol/mcp"
)

// Hub is the gateway's side for an HTTP front. Its methods may be called from any goroutine and run on the loop.
func (r *Runner) Hub() streamhttp.Hub { return hub{r} }

type hub struct{ runner *Runner }

// Open implements streamhttp.Hub.
func (h hub) Open(peer streamhttp.Peer) streamhttp.Session {
	select {
	case <-h.runner.ended:
		return nil
	default:
	}
	v := &httpSession{runner: h.runner, modern: peer.Era == mcp.Modern}
	h.runner.loop.Post(func() {
		v.session = h.runner.gw.Open(nil, nil)
		v.session.principal, v.session.view = peer.Subject, peer.View
	})
	return v
}

// httpSession is a client of the HTTP front. session belongs to the loop's goroutine.
type httpSession struct {
	runner  *Runner
	modern  bool
	session *Session
}

// Message implements streamhttp.Session.
func (v *httpSession) Message(line []byte, reply streamhttp.Stream) {
	var stream Stream = discard{}
	if reply != nil {
		stream = reply
	}
	v.runner.loop.Post(func() { v.session.Message(v.runner.Now(), line, stream) })
}

// Attach implements streamhttp.Session. Without a listener, messages are kept by the previous stream.
func (v *httpSession) Attach(general streamhttp.Stream) {
	if general != nil {
		v.runner.loop.Post(func() { v.session.Attach(general) })
	}
}

// Gone implements streamhttp.Session. A legacy client may come back for its answer.
func (v *httpSession) Gone(reply streamhttp.Stream) {
	if v.modern {
		v.runner.loop.Post(func() { v.session.Gone(v.runner.Now(), reply) })
	}
}

// Release implements streamhttp.Session.
func (v *httpSession) Release() { v.runner.loop.Post(func() { v.session.Release(v.runner.Now()) }) }

// Close implements streamhttp.Session.
func (v *httpSession) Close() { v.runner.loop.Post(func() { v.session.Close(v.runner.Now()) }) }
