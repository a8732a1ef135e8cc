package remote

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/outlive-mcp/outlive/internal/jsonrpc"
	"github.com/outlive-mcp/outlive/internal/mcp"
)

const (
	// maxTries is how often a message is sent in all.
	maxTries = 4
	// firstPause is the time between the first and the second try; it doubles from one to the next.
	firstPause = 250 * time.Millisecond
	// longestPause is the most that a server's wish to be asked later is waited for.
	longestPause = 10 * time.Second
	// relisten is the least time between two tries to listen.
	relisten = time.Second
)

// codeHeaderMismatch says that the headers made of a tool's arguments are not those the server expects.
const codeHeaderMismatch = "-32020"

// action is what becomes of a message.
type action uint8

const (
	finish   action = iota // there is nothing more to be done: it was answered, or needs no answer
	answer                 // an error of ours is the answer
	again                  // it is sent again
	relist                 // the tools are read, then it is sent again; if they cannot be read, answer
	fallBack               // the transport of 2024-11-05 is tried; if it is none either, answer
	end                    // the connection ends
)

// question is what was asked, as far as it decides what becomes of it.
type question struct {
	kind     jsonrpc.Kind
	method   mcp.Method
	id       []byte
	modern   bool // it is stateless
	session  bool // it was sent in a session that has an id
	try      int  // from 1
	relisted bool
}

// outcome is what sending a message came to.
type outcome struct {
	answered bool   // by the server, and the answer is handed on; or accepted, if it needs none
	heard    bool   // a stream began and said something
	written  bool   // the server may have taken it
	err      error  // no response, or it broke off
	auth     error  // there is no token for it
	ended    bool   // the stream ended properly without the answer
	tooLong  bool   // the answer was
	strange  string // what came in place of a message
	status   int    // of a response that is none of that
	header   http.Header
	body     []byte // its beginning
}

// verdict is what to do about it.
type verdict struct {
	act         action
	after       time.Duration // again: how long to wait; answer: when it may be tried
	undone      bool          // the server surely did nothing
	lostSession bool          // end: the server no longer knows it
	why         string        // in words, without the server's name
	label       string        // for machines
	rpc         []byte        // answer: the server's own error object
}

// reason is the error that a connection ends with.
func (v verdict) reason(name string) error { return fmt.Errorf("%s: %s", name, v.why) }

// judge says what becomes of a message. It is the table in the package's comment.
func judge(q question, o outcome) verdict {
	switch {
	case o.answered:
		return verdict{act: finish}
	case o.auth != nil:
		return verdict{act: answer, undone: true, why: o.auth.Error(), label: "unauthorized"}
	case o.tooLong:
		return verdict{act: answer, why: "the answer is longer than is allowed", label: "response_too_large"}
	case o.strange != "":
		return verdict{act: answer, why: o.strange, label: "protocol"}
	case o.ended && q.method == mcp.Listen && q.modern:
		return verdict{act: again, after: max(relisten, q.pause()), why: "the stream of news ended", label: "connection_lost"}
	case o.ended:
		return verdict{act: answer, why: "the server ended the stream without an answer", label: "connection_lost"}
	case o.err != nil && !o.written:
		return q.unreached(o.err)
	case o.err != nil && q.kind != jsonrpc.Request && errors.Is(o.err, context.DeadlineExceeded):
		return verdict{act: answer, why: "it was not accepted in time", label: "timeout"} // slow, not gone
	case o.err != nil:
		return q.broken("the connection broke off: " + o.err.Error())
	}
	return q.refused(o)
}

// pause is the time until the next try.
func (q question) pause() time.Duration {
	return min(firstPause<<min(q.try-1, 10), longestPause)
}

func (q question) handshake() bool { return q.method == mcp.Initialize || q.method == mcp.Discover }

// unreached is about a message that never left.
func (q question) unreached(err error) verdict {
	v := verdict{act: end, undone: true, why: "cannot be reached: " + err.Error(), label: "server_unavailable"}
	if !q.handshake() && q.try < maxTries {
		v.act, v.after = again, q.pause()
	}
	return v
}

// broken is about a message that left, of which nobody knows more. In a session the conversation is over: what stands above
// knows best what to do with the request. Without one, other requests, perhaps of other clients, have nothing to do with it.
func (q question) broken(why string) verdict {
	v := verdict{act: end, why: why, label: "connection_lost"}
	if !q.modern || q.handshake() {
		return v
	}
	switch {
	case q.method == mcp.Listen:
		v.act, v.after = again, max(relisten, q.pause())
	case q.method.Resendable() && q.try < maxTries:
		v.act, v.after = again, q.pause()
	default:
		v.act = answer
	}
	return v
}

// refused is about an HTTP status that is no success.
func (q question) refused(o outcome) verdict {
	body := errorIn(o.body)
	own := body.error != nil && jsonrpc.SameID(body.id, q.id)
	status := fmt.Sprintf("HTTP %d %s", o.status, http.StatusText(o.status))
	if text := excerpt(o.body); text != "" && body.error == nil {
		status += ": " + text
	}
	after, told := retryAfter(o.header)
	v := verdict{act: answer, undone: o.status < 500, why: status, label: "http_" + strconv.Itoa(o.status)}
	switch {
	case q.session && !q.modern && sessionLost(o, own):
		return verdict{act: end, undone: true, lostSession: true, why: "the server has ended the session: " + status, label: "session_lost"}
	case body.error != nil:
		v.rpc = body.error
		if string(body.code) == codeHeaderMismatch && q.method == mcp.ToolsCall && !q.relisted {
			v.act = relist
		}
	case o.status == http.StatusTooManyRequests || o.status == http.StatusServiceUnavailable && told:
		v.undone, v.label = true, "server_unavailable"
		v.after = after
		if !told {
			v.after = 2 * q.pause()
		}
		if v.after <= longestPause && q.try < maxTries {
			v.act = again
		}
	case o.status == http.StatusBadGateway || o.status == http.StatusServiceUnavailable:
		return q.broken(status)
	case q.method == mcp.Initialize && (o.status == 400 || o.status == 404 || o.status == 405):
		v.act = fallBack
	case o.status < 400:
		v.why = "a redirect that is not followed: " + status + " to " + o.header.Get("Location")
	case o.status == http.StatusUnauthorized:
		v.why, v.label = "the server wants authorization: "+status, "unauthorized"
	}
	return v
}

// sessionLost reports whether a server refuses the session rather than the request. The protocol says 404, which servers also give
// for a method they do not know; servers that keep their sessions in a table of their own often say 400 with words.
func sessionLost(o outcome, own bool) bool {
	switch o.status {
	case http.StatusNotFound:
		return !own || string(errorIn(o.body).code) != strconv.Itoa(jsonrpc.MethodNotFound)
	case http.StatusBadRequest:
		return !own && strings.Contains(strings.ToLower(string(o.body)), "session")
	}
	return false
}

// rpcError is a JSON-RPC error in the body of an HTTP error.
type rpcError struct{ id, error, code []byte }

func errorIn(body []byte) rpcError {
	var e jsonrpc.Envelope
	body = jsonrpc.Trim(body)
	if e.Scan(body) != nil || e.Kind != jsonrpc.ErrorResponse || !jsonrpc.IsObject(e.Error.Of(body)) {
		return rpcError{}
	}
	raw := oneLine(e.Error.Of(body))
	return rpcError{id: e.ID.Of(body), error: raw, code: jsonrpc.Find(raw, "code").Of(raw)}
}

// retryAfter reads how long a server wants to be left alone, if it says so in seconds, or as a date by its own clock.
func retryAfter(h http.Header) (time.Duration, bool) {
	text := h.Get("Retry-After")
	if s, err := strconv.Atoi(text); err == nil && s >= 0 {
		return time.Duration(min(s, 24*3600)) * time.Second, true
	}
	at, err := http.ParseTime(text)
	if err != nil {
		return 0, false
	}
	now, err := http.ParseTime(h.Get("Date"))
	if err != nil {
		return longestPause, true
	}
	return max(at.Sub(now), 0), true
}
