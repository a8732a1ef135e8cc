package gateway

import "github.com/outlive-mcp/outlive/internal/gateway/streamhttp"

// Open implements streamhttp.Hub. Any goroutine.
func (r *Runner) Open(peer streamhttp.Peer) streamhttp.Session { return r.open(peer, nil, nil) }

// Resume implements streamhttp.Hub. Any goroutine.
func (r *Runner) Resume(peer streamhttp.Peer, text []byte, general streamhttp.Stream) (streamhttp.Session, bool) {
	from, ok := readRecord(text)
	if !ok {
		return nil, false
	}
	return r.open(peer, general, &from), true
}

// open makes a session, which goes on from the record if there is one; nil: the runner has ended. general takes what belongs to no
// request, nil: nothing does yet.
func (r *Runner) open(peer streamhttp.Peer, general Stream, from *record) streamhttp.Session {
	select {
	case <-r.ended:
		return nil
	default:
	}
	v := &httpSession{runner: r}
	r.loop.Post(func() {
		v.session = r.gw.Open(general, nil)
		v.session.principal, v.session.view, v.session.keep = peer.Subject, peer.View, peer.Keep
		if from == nil {
			return
		}
		if loss := from.loss(); loss != nil {
			general.Send(loss)
		}
		resume(v.session, r.Now(), *from)
	})
	return v
}

// httpSession is a client of the HTTP front. session belongs to the loop's goroutine.
type httpSession struct {
	runner  *Runner
	session *Session
}

// Message implements streamhttp.Session.
func (v *httpSession) Message(line []byte, reply streamhttp.Stream) {
	var stream Stream = discard{}
	if reply != nil {
		stream = reply
	}
	v.runner.loop.Post(func() {
		v.runner.quiet.spoken(v.runner.Now())
		v.session.Message(v.runner.Now(), line, stream)
	})
}

// Attach implements streamhttp.Session.
func (v *httpSession) Attach(general streamhttp.Stream) {
	v.runner.loop.Post(func() { v.session.Attach(general) })
}

// Release implements streamhttp.Session.
func (v *httpSession) Release() { v.runner.loop.Post(func() { v.session.Release(v.runner.Now()) }) }

// Close implements streamhttp.Session.
func (v *httpSession) Close() { v.runner.loop.Post(func() { v.session.Close(v.runner.Now()) }) }
