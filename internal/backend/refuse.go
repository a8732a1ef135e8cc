package backend

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"time"

	"github.com/outlive-mcp/outlive/internal/event"
	"github.com/outlive-mcp/outlive/internal/jsonrpc"
	"github.com/outlive-mcp/outlive/internal/mcp"
	"github.com/outlive-mcp/outlive/internal/supervise"
)

// The reasons of outlive's own answers, as a client finds them in error.data.reason.
const (
	reasonRestarted   = "server_restarted"
	reasonUnavailable = "server_unavailable"
	reasonQueueFull   = "queue_full"
	reasonPoison      = "poison"
	reasonTooLarge    = "response_too_large"
	reasonInvalid     = "invalid_message"
	reasonTimeout     = "timeout"
)

// stderrShown is how many of the server's last stderr lines an error answer carries.
const stderrShown = 20

// refusal is an answer outlive gives to a request that no server has begun.
type refusal struct {
	code   int // default InternalError
	reason string
	text   string
	retry  bool
	after  time.Duration // until a retry makes sense; 0: unknown
}

// outcome is what a client's program finds in error.data, and a model's host in the _meta of a tool result.
type outcome struct {
	Reason       string `json:"reason"`
	Delivered    string `json:"delivered"` // no, unknown, yes
	Retryable    bool   `json:"retryable"`
	RetryAfterMS int64  `json:"retryAfterMs,omitempty"`
	Generation   int    `json:"generation"`
}

func (o outcome) raw() []byte {
	raw, err := json.Marshal(o)
	if err != nil {
		return []byte("{}") // cannot happen: plain fields only
	}
	return raw
}

// refuse answers c: no server will carry it out. A notification is only dropped.
func (b *Backend) refuse(c *call, r refusal) {
	if !c.isRequest() {
		b.drop(c, r.text)
		return
	}
	if c.method == mcp.Initialize && !b.session.Answered() {
		b.handshakeFailed()
	}
	if r.code == 0 {
		r.code = jsonrpc.InternalError
	}
	b.emit(event.RequestRefused, slog.LevelWarn, fmt.Sprintf("Request %s refused: %s", c.method, r.reason),
		slog.String(event.KeyMethod, c.methodName()), slog.String(event.KeyRequestID, string(c.id.raw)),
		slog.String(event.KeyReason, r.reason))
	data := outcome{Reason: r.reason, Delivered: c.delivered(), Retryable: r.retry,
		RetryAfterMS: r.after.Milliseconds(), Generation: b.process.gen}
	b.answer(c, jsonrpc.AppendError(nil, c.id.raw, r.code, r.text, data.raw()))
}

// delivered tells whether a process may have carried out a call that waits: one that was sent again was begun before.
func (c *call) delivered() string {
	if c.resent > 0 {
		return "unknown"
	}
	return "no"
}

// delivery says so in words.
func (c *call) delivery() string {
	if c.resent > 0 {
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

// lost answers a call that the dead process p may or may not have carried out.
func (b *Backend) lost(c *call, p *process, reason string) {
	how := p.ending.why
	b.emit(event.RequestLost, slog.LevelWarn, fmt.Sprintf("Outcome of %s unknown: %s", c.what(), how),
		slog.String(event.KeyMethod, c.methodName()), slog.String(event.KeyRequestID, string(c.id.raw)),
		slog.String(event.KeyReason, reason))
	then := "was restarted"
	if cause := b.machine.Snapshot().Cause; b.over || cause == supervise.Clean || cause == supervise.Shutdown {
		then = "is not started again"
	}
	what := fmt.Sprintf("The tool server %s while %s was running and %s", how, c.what(), then)
	if p.ending.kind == connectionEnded {
		what = fmt.Sprintf("The connection to the tool server was lost while %s was running (%s)", c.what(), how)
	}
	text := what + ". The call may or may not have taken effect and was NOT repeated. Check the state before calling it again."
	if reason == reasonPoison {
		text = fmt.Sprintf("The tool server %s while %s was running, as it did before with the same call; the call "+
			"seems to be what ends it and was NOT repeated. Change the call before trying again.", how, c.what())
	}
	b.answerUnknown(c, reason, text)
}

// answerUnknown answers a call of which nobody knows whether it took effect: so that the model reads it.
func (b *Backend) answerUnknown(c *call, reason, text string) {
	data := outcome{Reason: reason, Delivered: "unknown", Generation: c.gen}
	if c.method != mcp.ToolsCall || b.opts.LostAsError {
		b.answer(c, jsonrpc.AppendError(nil, c.id.raw, jsonrpc.InternalError, text, data.raw()))
		return
	}
	meta := append([]byte(`{"`+mcp.MetaOutcome+`":`), data.raw()...)
	b.answer(c, jsonrpc.AppendResult(nil, c.id.raw, mcp.ToolText(text, true, b.session.Era, append(meta, '}'))))
}

// what names a call for people: its tool, or its method.
func (c *call) what() string {
	if name, ok := jsonrpc.Unquote(c.tool.Of(c.line)); ok && c.method == mcp.ToolsCall {
		return "'" + name + "'"
	}
	return c.methodName()
}

// unavailable is the refusal of request c, which no process could take: it says why, and what to do.
func (b *Backend) unavailable(c *call) refusal {
	r := refusal{reason: reasonUnavailable, retry: true, after: 2 * time.Second}
	snap := b.machine.Snapshot()
	if b.lastOut.why == "" {
		r.text = "server starting: it did not become ready in time; " + c.delivery() + ", it is safe to retry"
		if b.process.up && b.process.accepting {
			r.text = "server not reading: " + c.delivery() + ", it is safe to retry"
		}
		return r
	}
	if b.failedInit != nil && snap.State == supervise.Serving {
		r.text = "the handshake has failed before, and " + c.delivery() + "; the server is up now: begin with initialize again"
		return r
	}
	var t strings.Builder
	if b.lastOut.kind == connectionEnded {
		t.WriteString("server not usable: ")
	} else if snap.State == supervise.Failed {
		t.WriteString("server unavailable: it keeps failing, ")
	} else {
		t.WriteString("server restarting: ")
	}
	t.WriteString(b.describeExit())
	if b.estranged != mcp.Virgin {
		t.WriteString("; it speaks the " + b.estranged.String() + " era of the protocol only now, which this client does not, and " +
			"nothing is translated (--bridge off)")
	}
	t.WriteString("; " + c.delivery() + ", it is safe to retry")
	if !snap.NextTry.IsZero() {
		r.after = max(0, snap.NextTry.Sub(b.now))
		fmt.Fprintf(&t, "; next %s in %s", b.lastOut.attempt(), r.after.Round(100*time.Millisecond))
	} else if snap.State == supervise.Failed {
		t.WriteString("; it is not started again by itself: fix it, then call restart_server or run `outlive restart " + b.opts.Name + "`")
		r.retry, r.after = false, 0
	}
	t.WriteString(b.stderrText())
	r.text = t.String()
	return r
}

// attempt is what follows on the end of a process, or of a connection.
func (o lastExit) attempt() string {
	if o.kind == connectionEnded {
		return "try"
	}
	return "start"
}

// describeExit says how the last process ended: "exit 3", "exit 139 (segmentation fault)".
func (b *Backend) describeExit() string {
	o := b.lastOut
	if o.ended != "" {
		return o.ended
	}
	if o.signal != "" {
		return fmt.Sprintf("last exit %d (%s)", o.code, o.signal)
	}
	if o.why != "" && o.kind != processEnded {
		return o.why
	}
	return "last exit " + strconv.Itoa(o.code)
}

// stderrText is the end of the last process's stderr, as part of an error message.
func (b *Backend) stderrText() string {
	if len(b.lastOut.stderr) == 0 {
		return ""
	}
	return "\nlast stderr lines:\n" + strings.Join(b.lastOut.stderr, "\n")
}

// hopeless reports whether waiting is in vain: the breaker is open.
func (b *Backend) hopeless() bool {
	return b.machine.Snapshot().State == supervise.Failed
}
