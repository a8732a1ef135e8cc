package backend

import (
	"cmp"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/outlive-mcp/outlive/internal/keep/supervise"
	"github.com/outlive-mcp/outlive/internal/protocol/jsonrpc"
	"github.com/outlive-mcp/outlive/internal/protocol/mcp"
	"github.com/outlive-mcp/outlive/internal/record/event"
)

// The reasons of outlive's own answers, as a client finds them in error.data.reason.
const (
	reasonRestarted   = "server_restarted"
	reasonUnavailable = "server_unavailable"
	reasonQueueFull   = "queue_full"
	reasonPoison      = "poison"
	reasonTooLarge    = "response_too_large"
	reasonBroken      = "invalid_response"
	reasonInvalid     = "invalid_message"
	reasonTimeout     = "timeout"
)

// stderrShown is how many of the server's last stderr lines an error answer carries.
const stderrShown = 20

// refusal is outlive's answer to a request that no server has begun.
type refusal struct {
	code   int // default InternalError
	reason string
	text   string
	retry  bool
	after  time.Duration // until a retry makes sense; 0: unknown
}

// outcome is error.data of an answer, or the _meta of a tool result.
type outcome struct {
	Reason       string `json:"reason"`
	Delivered    string `json:"delivered"` // no, unknown, yes
	Retryable    bool   `json:"retryable"`
	RetryAfterMS int64  `json:"retryAfterMs,omitempty"`
	Generation   int    `json:"generation"`
}

func (o outcome) raw() []byte {
	raw, _ := json.Marshal(o) // plain fields can be marshalled
	return raw
}

// refuse answers c without a server. A notification is only dropped.
func (f *flow) refuse(c *call, r refusal) {
	if !c.isRequest() {
		f.drop(c, r.text)
		return
	}
	if c.method == mcp.Initialize && !f.session.Answered() {
		f.handshake.handshakeFailed()
	}
	level := slog.LevelWarn
	if c.method == mcp.Listen && f.closing {
		level = slog.LevelDebug // streams end with outlive
	}
	f.tellOf(c, event.RequestRefused, level, fmt.Sprintf("Request %s refused: %s", c.method, r.reason), r.reason)
	data := outcome{Reason: r.reason, Delivered: c.delivered(), Retryable: r.retry,
		RetryAfterMS: r.after.Milliseconds(), Generation: f.process.gen}
	c.done, c.reason = doneRefused, r.reason
	f.answer(c, jsonrpc.AppendError(nil, c.id, cmp.Or(r.code, jsonrpc.InternalError), r.text, data.raw()))
}

// tellOf emits an event about a call.
func (f *flow) tellOf(c *call, t event.Type, level slog.Level, message, reason string) {
	f.emit(t, level, message, slog.String(event.KeyMethod, c.methodName()), slog.String(event.KeyRequestID, string(c.id)),
		slog.String(event.KeyReason, reason))
}

// maybeBegun reports whether a process may have begun a waiting call: only one that was sent again. The backend's own question for
// the era counts as not begun, because its answer is given to the requests that wait for it.
func (c *call) maybeBegun() bool { return c.resent > 0 && string(c.id) != eraQuestion }

// delivered is the same in the words of an outcome.
func (c *call) delivered() string {
	if c.maybeBegun() {
		return "unknown"
	}
	return "no"
}

// delivery is the same for people.
func (c *call) delivery() string {
	if c.maybeBegun() {
		return "the request may be repeated, but an earlier process may have carried it out"
	}
	return "the request was not delivered"
}

// methodName is the method as the client wrote it.
func (c *call) methodName() string {
	if c.method != mcp.Other {
		return c.method.String()
	}
	name, _ := jsonrpc.Unquote(jsonrpc.Find(c.line, "method").Of(c.line))
	return name
}

// lost answers a call that the dead process p may have carried out.
func (f *flow) lost(c *call, p *process, reason string) {
	how := p.ending.why
	f.tellOf(c, event.RequestLost, slog.LevelWarn, fmt.Sprintf("Outcome of %s unknown: %s", c.what(), how), reason)
	then := "was restarted"
	if cause := f.machine.Snapshot().Cause; f.over || cause == supervise.Clean || cause == supervise.Shutdown {
		then = "is not started again"
	}
	what := fmt.Sprintf("The tool server %s while %s was running and %s", how, c.what(), then)
	if p.ending.kind == connectionEnded {
		what = fmt.Sprintf("The connection to the tool server was lost while %s was running (%s)", c.what(), how)
	}
	text := what + ". " + mcp.OutcomeUnknown
	if reason == reasonPoison {
		text = fmt.Sprintf("The tool server %s while %s was running, as it did before with the same call; the call "+
			"seems to be what ends it and was NOT repeated. Change the call before trying again.", how, c.what())
	}
	f.answerUnknown(c, reason, text)
}

// answerUnknown answers a call of unknown outcome, as a tool result so that the model reads it.
func (f *flow) answerUnknown(c *call, reason, text string) {
	c.reason = reason
	if c.done = doneUnknown; reason == reasonTimeout {
		c.done = doneTimedOut
	}
	data := outcome{Reason: reason, Delivered: "unknown", Generation: c.gen}
	if c.method != mcp.ToolsCall || f.opts.LostAsError {
		f.answer(c, jsonrpc.AppendError(nil, c.id, jsonrpc.InternalError, text, data.raw()))
		return
	}
	meta := append([]byte(`{"`+mcp.MetaOutcome+`":`), data.raw()...)
	f.answer(c, jsonrpc.AppendResult(nil, c.id, mcp.ToolText(text, true, f.session.Era, append(meta, '}'))))
}

// what describes a call for people: its tool, or its method.
func (c *call) what() string {
	if name, ok := jsonrpc.Unquote(c.tool.Of(c.line)); ok && c.method == mcp.ToolsCall {
		return "'" + name + "'"
	}
	return c.methodName()
}

// turnAway refuses request c because no process is available.
func (f *flow) turnAway(c *call) { f.refuse(c, f.unavailable(c)) }

// unavailable is the refusal of request c when no process is available, with the reason and what to do.
func (f *flow) unavailable(c *call) refusal {
	r := refusal{reason: reasonUnavailable, retry: true, after: 2 * time.Second}
	snap := f.machine.Snapshot()
	if login := f.login(); login != "" {
		r.text = "server not usable: " + login + "; " + c.delivery() + ", it is safe to retry"
		return r
	}
	if f.failedInit != nil && snap.State == supervise.Serving {
		r.text = "the handshake has failed before, and " + c.delivery() + "; the server is up now: begin with initialize again"
		return r
	}
	if f.history.lastOut.why == "" {
		r.text = "server starting: it did not become ready in time; " + c.delivery() + ", it is safe to retry"
		if f.process.accepting() {
			r.text = "server not reading: " + c.delivery() + ", it is safe to retry"
		}
		return r
	}
	var t strings.Builder
	if f.history.lastOut.kind == connectionEnded {
		t.WriteString("server not usable: ")
	} else if snap.State == supervise.Failed {
		t.WriteString("server unavailable: it keeps failing, ")
	} else {
		t.WriteString("server restarting: ")
	}
	t.WriteString(f.history.describeExit())
	if f.history.eraMismatch != mcp.EraUnknown {
		t.WriteString("; it speaks the " + f.history.eraMismatch.String() + " era of the protocol only now, which this client does not, and " +
			"nothing is translated (--bridge off)")
	}
	t.WriteString("; " + c.delivery() + ", it is safe to retry")
	if !snap.NextTry.IsZero() {
		attempt := "start"
		if f.history.lastOut.kind == connectionEnded {
			attempt = "try"
		}
		r.after = max(0, snap.NextTry.Sub(f.now))
		fmt.Fprintf(&t, "; next %s in %s", attempt, r.after.Round(100*time.Millisecond))
	} else if snap.State == supervise.Failed {
		t.WriteString("; it is not started again by itself: fix it, then call restart_server or run `outlive restart " + f.opts.Name + "`")
		r.retry, r.after = false, 0
	}
	t.WriteString(f.history.stderrText())
	r.text = t.String()
	return r
}

// refuseWaiting answers the whole queue: the breaker is open.
func (f *flow) refuseWaiting() {
	for c := range f.calls.all {
		if c.state == waiting && c.method != mcp.Initialize || f.unopened(c) {
			f.turnAway(c)
		}
	}
}

// endOverdue answers the calls of p that took too long, and cancels them there.
func (f *flow) endOverdue(p *process, until time.Time) {
	limit := f.opts.Health.CallTimeout
	for c := range f.calls.at(p.gen) {
		if c.method == mcp.Listen || c.touched.After(until) {
			continue
		}
		p.say(mcp.CancelledLine(c.onWire(), "time limit"))
		f.emit(event.CallTimedOut, slog.LevelWarn, fmt.Sprintf("Call of %s took more than %s without progress", c.what(), limit),
			slog.String(event.KeyMethod, c.methodName()), slog.String(event.KeyRequestID, string(c.id)))
		f.answerUnknown(c, reasonTimeout, fmt.Sprintf("%s gave no answer and no sign of progress within %s (--call-timeout) and was "+
			"cancelled. "+mcp.OutcomeUnknown, c.what(), limit))
	}
}
