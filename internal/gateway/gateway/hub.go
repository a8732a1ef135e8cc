package gateway

import (
	"bytes"

	"github.com/outlive-mcp/outlive/internal/gateway/streamhttp"
	"github.com/outlive-mcp/outlive/internal/protocol/mcp"
)

// Open implements streamhttp.Hub. Any goroutine.
func (r *Runner) Open(peer streamhttp.Peer) streamhttp.Session { return r.open(peer, nil) }

// Resume implements streamhttp.Hub. Any goroutine.
func (r *Runner) Resume(peer streamhttp.Peer, text []byte) (streamhttp.Session, bool) {
	from, ok := readRecord(text)
	if !ok {
		return nil, false
	}
	return r.open(peer, &from), true
}

// open makes a session, which goes on from the record if there is one; nil: the runner has ended.
func (r *Runner) open(peer streamhttp.Peer, from *record) streamhttp.Session {
	select {
	case <-r.ended:
		return nil
	default:
	}
	v := &httpSession{runner: r, modern: peer.Era == mcp.Modern}
	r.loop.Post(func() {
		var early Stream
		if from != nil {
			v.early = &unheard{}
			early = v.early
			if loss := from.loss(); loss != nil {
				early.Send(loss)
			}
		}
		v.session = r.gw.Open(early, nil)
		v.session.principal, v.session.view, v.session.keep = peer.Subject, peer.View, peer.Keep
		if from != nil {
			resume(v.session, r.Now(), *from)
		}
	})
	return v
}

// httpSession is a client of the HTTP front. session belongs to the loop's goroutine.
type httpSession struct {
	runner  *Runner
	modern  bool
	session *Session
	early   *unheard // what was said before it has opened its stream; nil: it has, or nothing is kept
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

// Attach implements streamhttp.Session. Without a listener, messages are kept by the previous stream.
func (v *httpSession) Attach(general streamhttp.Stream) {
	if general != nil {
		v.runner.loop.Post(func() {
			v.session.Attach(general)
			if v.early != nil {
				for _, line := range v.early.lines {
					general.Send(line)
				}
				v.early = nil
			}
		})
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

// unheard keeps the messages of servers for a client that has not opened its stream again yet.
type unheard struct{ lines [][]byte }

// unheardMost is how many messages are kept for a client.
const unheardMost = 64

// Send implements Stream.
func (u *unheard) Send(line []byte) {
	if len(u.lines) < unheardMost {
		u.lines = append(u.lines, bytes.Clone(line))
	}
}
