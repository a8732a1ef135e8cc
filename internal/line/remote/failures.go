package remote

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/outlive-mcp/outlive/internal/protocol/jsonrpc"
	"github.com/outlive-mcp/outlive/internal/protocol/mcp"
)

const (
	// maxRepeats is how often a request that may be processed twice is repeated after a failure of unknown outcome.
	maxRepeats = 2
	// firstPause is the longest pause before the second try; it doubles each time, up to longestPause.
	firstPause   = 200 * time.Millisecond
	longestPause = time.Second
	// retryFor is how long a request that the server did not take is tried, including the server's Retry-After.
	retryFor = 10 * time.Second
	// unreachableFor is how long only failed connection attempts make a connection lost.
	unreachableFor = 2 * time.Second
	// brokenFor is the same for failures of any kind.
	brokenFor = 10 * time.Second
	// relisten is the least time between two tries to listen.
	relisten = time.Second
)

// requestCodes are the codes of errors about a request, never about a session. They say: no such method, bad parameters, no such resource.
var requestCodes = []int{jsonrpc.MethodNotFound, jsonrpc.InvalidParams, mcp.CodeNoResource}

// action is how the outcome of a message is handled.
type action uint8

const (
	finish   action = iota // done: it was answered, or needs no answer
	answer                 // an error of ours is the answer
	again                  // it is sent again
	doubt                  // the server may have processed it: it is repeated if that is allowed, otherwise answer
	relist                 // the tools are read, then it is sent again; if they cannot be read, answer
	fallBack               // the transport of 2024-11-05 is tried; if there is none, answer
	end                    // the connection ends
)

// question is the context of a message, as far as it matters for its outcome.
type question struct {
	kind     jsonrpc.Kind
	method   mcp.Method
	id       []byte
	modern   bool // it is stateless
	session  bool // it was sent in a session that has an id
	old      bool // by the transport of 2024-11-05: without its stream there are no answers
	onlyOld  bool // no other transport is tried
	place    string
	relisted bool

	try     int           // from 1
	repeats int           // earlier tries that the server may have processed
	since   time.Duration // since the first try
	failing time.Duration // how long only network failures have come on this connection; 0: not now
	chance  float64       // 0 to 1
}

// outcome is the result of sending a message.
type outcome struct {
	answered bool   // the answer was forwarded; or the message was accepted, if it needs none
	heard    bool   // a stream began and said something
	written  bool   // the server may have received it
	lost     bool   // the server no longer knows the session
	err      error  // no response, or it broke off
	auth     error  // no token could be obtained
	ended    bool   // the stream ended properly without the answer
	tooLong  bool   // the answer was
	strange  string // what came instead of a message
	status   int    // of a response that is none of that
	header   http.Header
	body     []byte // its beginning
}

// decision says how to handle an outcome.
type decision struct {
	act         action
	after       time.Duration // again: how long to wait; answer: when it may be tried
	undone      bool          // the server certainly did nothing
	tries       int           // answer: how often the server may have processed it
	lostSession bool          // end: the server does not know the session
	why         string        // in words, without the server's name
	label       string        // for machines
	rpc         []byte        // answer: the server's own error object
}

// reason is the error that a connection ends with.
func (v decision) reason(name string) error { return fmt.Errorf("%s: %s", name, v.why) }

// ofNetwork reports whether the network failed, rather than the server.
func (o outcome) ofNetwork() bool {
	switch o.status {
	case http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return errorIn(o.body).error == nil
	}
	return o.err != nil && !o.answered
}

// judge decides how to handle an outcome, by the table in the package's comment.
func judge(q question, o outcome) decision {
	switch {
	case o.answered:
		return decision{act: finish}
	case o.auth != nil:
		return decision{act: answer, undone: true, why: o.auth.Error(), label: labelUnauthorized}
	case o.lost:
		return decision{act: end, lostSession: true, why: "the server has ended the session: " + o.err.Error(), label: "session_lost"}
	case o.tooLong:
		return decision{act: answer, why: "the answer is longer than is allowed", label: "response_too_large"}
	case o.strange != "" && !o.written: // again would be the same
		return decision{act: answer, undone: true, why: o.strange, label: "protocol"}
	case o.strange != "":
		return q.unclear(o.strange, "protocol")
	case o.ended && q.method == mcp.Listen && q.modern:
		return decision{act: again, after: max(relisten, q.pause()), why: "the notification stream ended", label: "connection_lost"}
	case o.ended:
		return q.unclear("the server ended the stream without an answer", "connection_lost")
	case o.err != nil && !o.written:
		return q.unreached(o.err)
	case o.err != nil && q.kind != jsonrpc.Request && errors.Is(o.err, context.DeadlineExceeded):
		return decision{act: answer, why: "it was not accepted in time", label: "timeout"} // slow, but reachable
	case o.err != nil:
		return q.broken("the connection broke off: "+o.err.Error(), "connection_lost")
	}
	return q.refused(o)
}

// pause is the time until the next try.
func (q question) pause() time.Duration {
	longest := min(firstPause<<min(q.try-1, 10), longestPause)
	return longest/2 + time.Duration(q.chance*float64(longest/2))
}

// begins reports whether nothing works without the message.
func (q question) begins() bool {
	return q.method == mcp.Initialize || q.method == mcp.Discover || q.method == mcp.NoteInitialized
}

// unreached is for a message that was never sent: it may always be sent again.
func (q question) unreached(err error) decision {
	v := decision{act: again, after: q.pause(), undone: true, why: "cannot be reached: " + err.Error(), label: labelUnavailable}
	switch {
	case q.try > 1 && q.failing >= unreachableFor:
		v.act, v.after = end, 0
	case q.since+v.after > retryFor:
		v.act = answer
	}
	return v
}

// broken is for a message without a response. One broken request says nothing about the others: the connection ends only
// when nothing has worked for a while.
func (q question) broken(why, label string) decision {
	v := decision{act: again, after: q.pause(), why: why, label: label}
	switch {
	case q.old, q.failing >= brokenFor && q.try > 1:
		v.act, v.after = end, 0
	case q.begins() && q.since < brokenFor:
	case q.begins():
		v.act, v.after = end, 0
	case q.method == mcp.Listen && q.modern:
		v.after = max(relisten, v.after)
	default:
		return q.unclear(why, label)
	}
	return v
}

// unclear is for a message that the server may or may not have processed.
func (q question) unclear(why, label string) decision {
	if q.repeats >= maxRepeats {
		return decision{act: answer, why: why, label: label}
	}
	return decision{act: doubt, after: q.pause(), why: why, label: label}
}

// Labels of answers that others act on.
const (
	labelUnauthorized = "unauthorized"
	labelUnavailable  = "server_unavailable"
)

// refused is for an HTTP error status.
func (q question) refused(o outcome) decision {
	body := errorIn(o.body)
	own := body.error != nil && (jsonrpc.SameID(body.id, q.id) || jsonrpc.SameID(jsonrpc.IntegerText(body.id), q.id))
	status := strings.TrimSpace(fmt.Sprintf("HTTP %d %s", o.status, http.StatusText(o.status))) + " from " + q.place
	if text := excerpt(o.body); text != "" && body.error == nil {
		status += ": " + text
	}
	if q.onlyOld && !q.old {
		status += "; only a GET, as for HTTP+SSE, was tried there, since that transport is configured"
	}
	after, told := retryAfter(o.header)
	v := decision{act: answer, undone: o.status < 500, why: status, label: "http_" + strconv.Itoa(o.status)}
	switch {
	case q.session && !q.modern && sessionLost(o, own):
		return decision{act: end, undone: true, lostSession: true, why: "the server has ended the session: " + status, label: "session_lost"}
	case body.error != nil:
		v.rpc = body.error
		if body.code == mcp.CodeHeaders && q.method == mcp.ToolsCall && !q.relisted {
			v.act = relist
		}
	case o.status == http.StatusTooManyRequests || o.status == http.StatusServiceUnavailable && told:
		v.undone, v.label = true, labelUnavailable
		if v.after = after; !told {
			v.after = q.pause()
		}
		if q.since+v.after <= retryFor {
			v.act = again
		}
	case o.ofNetwork():
		return q.broken(status, labelUnavailable)
	case q.method == mcp.Initialize && !q.old && !q.onlyOld && mayBeOld(o):
		v.act, v.undone = fallBack, true
	case o.status == http.StatusNotImplemented || o.status == http.StatusHTTPVersionNotSupported:
		v.undone = true
	case o.status >= 500:
		return q.unclear(status, v.label)
	case o.status < 400:
		v.why = "a redirect that is not followed: " + status + " to " + o.header.Get("Location")
	case o.status == http.StatusUnauthorized:
		v.why, v.label = "the server wants authorization: "+status, labelUnauthorized
	}
	return v
}

// mayBeOld reports whether a server that refuses initialize so may speak the transport of 2024-11-05 instead. That protocol and its
// followers say 4xx; what asks for a token says nothing of transports.
func mayBeOld(o outcome) bool {
	switch o.status {
	case http.StatusUnauthorized:
		return false
	case http.StatusForbidden:
		return o.header.Get("Www-Authenticate") == ""
	}
	return o.status >= 400 && o.status < 500 || o.status == http.StatusNotImplemented
}

// fallenBack is what becomes of a refused initialize after the transport of 2024-11-05 was tried: it is sent again there, or the answer
// names both refusals. What asks for a token is told alone.
func (v decision) fallenBack(got decision) decision {
	switch {
	case got.act == finish:
		v.act = again
	case got.label == labelUnauthorized:
		return got
	default:
		v.act, v.why = answer, v.why+"; a GET, as for HTTP+SSE, gave "+got.why
	}
	return v
}

// sessionLost reports whether a server refuses the session rather than the request. The protocol says 404, which servers
// also use for unknown methods and resources; servers that store their sessions in a table, or have one only, often answer 400 with a text.
func sessionLost(o outcome, own bool) bool {
	switch o.status {
	case http.StatusNotFound:
		return !own || !slices.Contains(requestCodes, errorIn(o.body).code)
	case http.StatusBadRequest:
		text := strings.ToLower(string(o.body))
		return !own && (strings.Contains(text, "session") || strings.Contains(text, "not initialized"))
	}
	return false
}

// rpcError is a JSON-RPC error in the body of an HTTP error.
type rpcError struct {
	id, error []byte
	code      int
}

func errorIn(body []byte) rpcError {
	var e jsonrpc.Envelope
	body = jsonrpc.Trim(body)
	if e.Scan(body) != nil || e.Kind != jsonrpc.ErrorResponse || !jsonrpc.IsObject(e.Error.Of(body)) {
		return rpcError{}
	}
	raw := e.Error.Of(body)
	jsonrpc.OneLine(raw)
	return rpcError{id: e.ID.Of(body), error: raw, code: jsonrpc.ErrorCode(raw)}
}

// unknownDate is the pause for a date in Retry-After if the response has no Date.
const unknownDate = 10 * time.Second

// retryAfter reads the Retry-After time, in seconds or as a date by the server's clock.
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
		return unknownDate, true
	}
	return max(at.Sub(now), 0), true
}
