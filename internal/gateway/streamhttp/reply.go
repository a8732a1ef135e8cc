package streamhttp

import (
	"bytes"
	"log/slog"
	"net/http"
	"slices"
	"time"

	"github.com/outlive-mcp/outlive/internal/protocol/jsonrpc"
)

// reply is one HTTP response that writes a stream's messages.
type reply struct {
	front   *Front
	w       http.ResponseWriter
	r       *http.Request
	stream  *stream
	reader  wake
	id      []byte          // raw, of the request; nil for GET and arrays
	array   bool            // it answers a JSON array of messages
	session *session        // nil in the modern era
	held    *load           // of the request; nil for GET, and in the modern era
	events  bool            // as an event stream in any case
	prime   bool            // which begins with an event without data
	drain   <-chan struct{} // closed when an endless stream must end; nil for others
	ends    time.Time       // when an endless stream ends with its token; zero: never
	ended   <-chan time.Time
	// replaced is closed when an endless stream of a client without a session ends because its rights may have changed.
	replaced <-chan struct{}
	over     <-chan struct{} // closed when there is nothing to wait for
	opened   bool            // it is the answer to the initialize that has opened the session
	given    bool            // the hub has got something of the request
}

// tell logs the progress of a request, for debugging.
func (p *reply) tell(what string) {
	if log := p.front.opts.Log; log.Enabled(p.r.Context(), slog.LevelDebug) {
		log.Debug(what, "id", string(p.id), "remote", p.r.RemoteAddr)
	}
}

// run waits and writes. It returns when everything is written, the client has left or nothing more will come.
func (p *reply) run() {
	if p.drain != nil {
		p.front.endless.Add(1)
		defer p.front.endless.Add(-1)
	}
	if p.drain != nil && !p.ends.IsZero() {
		end := time.NewTimer(time.Until(p.ends))
		defer end.Stop()
		p.ended = end.C
	}
	if !p.events && p.runSingle() {
		return
	}
	p.runEvents()
}

// runSingle waits for the answers. It returns false when they must be events: something else is said before, the client has waited long
// enough, or the session ends when only some of them are there. Where all requests were withdrawn, the status is 202 as for messages
// that have no answer.
func (p *reply) runSingle() (done bool) {
	wait := p.front.opts.KeepAlive
	if p.session != nil {
		wait = p.front.opts.StreamAfter
	}
	var timer *time.Timer
	for {
		answers, only, begun := p.stream.answers()
		switch {
		case only && len(answers) > 0 && !p.ours():
			p.lose()
			return true
		case only && len(answers) == 0:
			p.w.WriteHeader(http.StatusAccepted)
			return true
		case only && p.array:
			p.single(slices.Concat([]byte("["), bytes.Join(answers, []byte(",")), []byte("]")))
			return true
		case only:
			p.single(answers[0])
			return true
		case begun:
			return false
		}
		if timer == nil { // many hubs answer at once
			timer = time.NewTimer(wait)
			defer timer.Stop()
		}
		select {
		case <-p.reader:
		case <-timer.C:
			return false
		case <-p.r.Context().Done():
			return true
		case <-p.drain:
			refuse(p.w, p.id, refusal{status: http.StatusServiceUnavailable, text: "shutting down"})
			return true
		case <-p.replaced:
			refuse(p.w, p.id, refusal{status: http.StatusServiceUnavailable, text: "the configuration has changed"})
			return true
		case <-p.ended:
			p.front.guard.challenge(p.w, "", http.StatusUnauthorized, "invalid_token", "the token has ended")
			return true
		case <-p.over:
			if p.stream.look().holds {
				return false
			}
			p.overWith()
			return true
		}
	}
}

// overWith answers a request whose session has ended here, or a modern one when the server stops.
func (p *reply) overWith() {
	switch {
	case p.given && (p.session == nil || p.session.goesOn()):
		p.lose()
	case p.session == nil:
		refuse(p.w, p.id, refusal{status: http.StatusServiceUnavailable, text: "shutting down"})
	default:
		refuseOver(p.w, p.session, p.id, "the session has ended")
	}
}

// ours reports whether what the hub says may be passed on: nobody gets an answer of a gateway that has the session no more.
func (p *reply) ours() bool { return p.session == nil || p.front.serves() }

// lose answers a request that may have been carried out, and whose answer will not come: it must not be sent again.
func (p *reply) lose() {
	if p.id == nil { // of several: they are cut off, since they have no status together
		panic(http.ErrAbortHandler)
	}
	p.single(outcomeUnknown(p.id))
}

// single writes the answer, or the array of answers.
func (p *reply) single(line []byte) {
	line = p.settle(line)
	status := http.StatusOK
	if p.session == nil {
		status = statusOf(line)
	}
	if len(line) >= longMessage {
		control := http.NewResponseController(p.w)
		_ = control.SetWriteDeadline(time.Now().Add(p.front.opts.WriteTimeout))
		defer func() { _ = control.SetWriteDeadline(time.Time{}) }()
	}
	writeJSON(p.w, status, line)
	p.tell("answer written")
}

// settle takes the negotiated version from the answer to initialize, and sends the session id. It returns what is to be answered: where
// others look for the session, too, there is none that could not be stored.
func (p *reply) settle(line []byte) []byte {
	if !p.opened {
		return line
	}
	version, _ := jsonrpc.Unquote(jsonrpc.FindPath(line, "result", "protocolVersion").Of(line))
	if version == "" { // it is an error
		return line
	}
	p.session.version.Store(version)
	// No client has the id of a session that is not stored, unless the store fails.
	if p.front.writer.write(p.session) != nil && p.front.sharesSessions() {
		p.session.version.Store("")
		return jsonrpc.AppendError(nil, p.id, jsonrpc.InternalError, "no session can be opened now: it could not be stored where the other gateways look for it; try again", nil)
	}
	p.w.Header().Set(headerSession, p.session.id)
	return line
}

// runEvents writes the event stream until its end.
func (p *reply) runEvents() {
	out := eventWriter{w: p.w, control: http.NewResponseController(p.w), timeout: p.front.opts.WriteTimeout}
	defer out.end()
	if p.session != nil {
		p.stream.startKeeping()
		out.stream, out.ids = p.stream.id, true
		if p.opened {
			p.w.Header().Set(headerSession, p.session.id)
		}
	}
	if out.begin(p.prime, p.stream.look().written) != nil {
		return
	}
	alive := time.NewTimer(p.front.opts.KeepAlive)
	defer alive.Stop()
	for {
		b := p.stream.take(p.reader)
		if b.taken {
			return
		}
		ours := p.ours() // asked once: what was written is not lost a moment later
		if len(b.lines) > 0 && ours {
			if last := len(b.lines) - 1; p.opened && b.ended {
				b.lines[last] = p.settle(b.lines[last])
			}
			if out.write(b.lines, b.first, b.ended) != nil {
				return
			}
			p.tell("events written")
			alive.Reset(p.front.opts.KeepAlive)
		}
		if b.idle && p.drain == nil { // the request was withdrawn: an upgrade or a stop does not wait for it
			p.front.endless.Add(1)
			defer p.front.endless.Add(-1)
			p.drain = p.front.drain.done()
			if out.alive = withdrawn; out.comment() != nil {
				return
			}
		}
		if !ours || b.ended || !p.wait(&out, alive) {
			p.endLost(&out, b, ours)
			return
		}
	}
}

// endLost ends the event stream of a request whose answer will not come, if it is one: nobody else has what would follow, so that a client
// which resumed it would wait in vain.
func (p *reply) endLost(out *eventWriter, b batch, ours bool) {
	lost := !ours || closed(p.over) && !p.stream.look().answered
	if lost && p.given && p.id != nil && p.drain == nil && (p.session == nil || p.session.goesOn()) {
		_ = out.write([][]byte{outcomeUnknown(p.id)}, b.first+uint64(len(b.lines)), true) // after an error the client is gone
	}
}

// wait returns when there may be something to write, and false when the response must end.
func (p *reply) wait(out *eventWriter, alive *time.Timer) bool {
	for {
		select {
		case <-p.reader:
			return true
		case <-alive.C:
			if out.comment() != nil {
				return false
			}
			alive.Reset(p.front.opts.KeepAlive)
		case <-p.r.Context().Done():
			return false
		case <-p.drain:
			return false
		case <-p.replaced:
			return false
		case <-p.ended:
			return false // the client comes back with another token
		case <-p.over:
			return p.stream.look().ended // remaining messages are written
		}
	}
}
