package backend

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/outlive-mcp/outlive/internal/keep/supervise"
	"github.com/outlive-mcp/outlive/internal/protocol/bridge"
	"github.com/outlive-mcp/outlive/internal/protocol/jsonrpc"
	"github.com/outlive-mcp/outlive/internal/protocol/mcp"
	"github.com/outlive-mcp/outlive/internal/record/event"
	"github.com/outlive-mcp/outlive/internal/record/tap"
)

// ClientLine takes one line of the client, without its newline. The bytes may be forwarded but are not kept.
func (b *Backend) ClientLine(now time.Time, line []byte) {
	defer b.at(now).end()
	if line = jsonrpc.Trim(line); len(line) == 0 {
		return
	}
	err := b.env.Scan(line)
	if err == nil && b.env.Kind == jsonrpc.Batch {
		b.clientArray(line)
		return
	}
	b.clientLine(line, err)
}

// clientLine takes a line that is no array; env was scanned from it, with err.
func (b *Backend) clientLine(line []byte, err error) {
	switch {
	case err != nil || !b.env.Version2:
		b.rejectClient(line, err)
		return
	case b.env.BadUTF8 || b.env.Surrogate:
		if line = b.validated(line); line == nil {
			return
		}
	}
	if len(b.arrays.open) > 0 {
		b.arrays.cancelled(line)
		if id := b.env.ID.Of(line); b.env.Kind == jsonrpc.Request && b.arrays.now == nil && b.arrays.awaits(id) {
			b.answerClient(b.duplicate(line, id))
			return
		}
	}
	if b.eras.stands != direct {
		b.eras.fromClient(line)
		return
	}
	b.message(line, nil)
}

// clientMessage takes a message of the client, or of a bridge in its place.
func (b *Backend) clientMessage(m bridge.Message) {
	if b.env.Scan(m.Line) == nil {
		b.message(m.Line, m.Of)
	}
}

// message takes a message, from which env was scanned. A request of a bridge is for a call.
func (b *Backend) message(line []byte, of *bridge.Call) {
	env := &b.env
	if fixed := b.mender.numberOfClient(line); fixed != nil && env.Scan(fixed) == nil {
		line = fixed
	}
	switch env.Kind {
	case jsonrpc.Request:
		b.clientRequest(line, of)
	case jsonrpc.Notification:
		b.clientNotification(line)
	default:
		if b.asks.clientAnswer(line) {
			b.life.checkDrained()
		}
	}
}

// ClientOversize takes the beginning and the end of a line over the limit.
func (b *Backend) ClientOversize(now time.Time, head, tail []byte, size int64) {
	defer b.at(now).end()
	id, ok := jsonrpc.RecoverID(head, tail)
	b.emit(event.MessageTooLarge, slog.LevelWarn, fmt.Sprintf("Client message of %d bytes is over the limit", size),
		slog.String(event.KeyDirection, "client_to_server"), slog.String(event.KeyRequestID, string(id)))
	switch {
	case !ok:
	case jsonrpc.FirstOf(head, "result", "error") != "":
		// Who has asked gets an error in its place, and does not wait for ever.
		line := jsonrpc.AppendError(nil, id, jsonrpc.InternalError,
			fmt.Sprintf("the client's answer of %d bytes is over the limit of outlive (see --max-message)", size), nil)
		b.clientLine(line, b.env.Scan(line))
	default:
		b.answerClient(jsonrpc.AppendError(nil, id, jsonrpc.InvalidRequest,
			fmt.Sprintf("message of %d bytes is over the limit of outlive (see --max-message); it was not sent on", size),
			outcome{Reason: reasonInvalid, Delivered: "no"}.raw()))
	}
}

// answerClient answers a line that goes no further: no bridge has seen it.
func (b *Backend) answerClient(line []byte) {
	b.showing.passed(line, tap.Outlive, tap.Client, b.process.gen, "")
	b.arrays.refuse(line)
}

// rejectClient answers a line that is not a message. Without an id it is not answered: an answer with a null id ends
// some clients.
func (b *Backend) rejectClient(line []byte, err error) {
	code, text := jsonrpc.InvalidRequest, "invalid request: no JSON-RPC 2.0 message"
	switch {
	case errors.Is(err, jsonrpc.ErrSyntax):
		code, text = jsonrpc.ParseError, "parse error: the line is "+jsonrpc.Problem(line)
	case err != nil:
		text = "invalid request: " + err.Error()
	case !b.env.Version2:
		text = `invalid request: "jsonrpc":"2.0" is missing`
	}
	id, ok := jsonrpc.RecoverID(line, line)
	b.blocked(line, id, text)
	if ok && !jsonrpc.IsNull(id) {
		b.answerClient(jsonrpc.AppendError(nil, id, code, text, outcome{Reason: reasonInvalid, Delivered: "no"}.raw()))
	}
}

// excerpt is the beginning of a line, made printable for logs.
func excerpt(line []byte) string {
	const most = 1 << 10
	return string(bytes.ToValidUTF8(line[:min(len(line), most)], []byte("\uFFFD")))
}

// validated applies the UTF-8 validation of TP-5. It returns the line to forward, or nil if it was answered.
func (b *Backend) validated(line []byte) []byte {
	why := "Validation failed: surrogates not allowed"
	if b.env.BadUTF8 {
		why = "Validation failed: invalid UTF-8"
	} else if b.opts.Surrogates == PassSurrogates {
		return line
	} else if b.opts.Surrogates == ReplaceSurrogates {
		line = jsonrpc.Sanitize(nil, line)
		if b.env.Scan(line) == nil {
			return line
		}
	}
	id := b.env.ID.Of(line)
	b.blocked(line, id, why)
	if b.env.Kind == jsonrpc.Request {
		// An id that is itself ill-formed is returned with replacement characters.
		b.answerClient(jsonrpc.AppendError(nil, jsonrpc.Sanitize(nil, id), jsonrpc.InvalidParams, why,
			outcome{Reason: reasonInvalid, Delivered: "no"}.raw()))
	}
	return nil
}

// duplicate reports a request whose raw id is that of another one in flight, and returns its answer.
func (b *Backend) duplicate(line, id []byte) []byte {
	b.blocked(line, id, "duplicate request id")
	return jsonrpc.AppendError(nil, id, jsonrpc.InvalidRequest,
		"invalid request: a request with this id is still in flight", outcome{Reason: reasonInvalid, Delivered: "no"}.raw())
}

// clientRequest takes a request, which is answered here, forwarded or queued, and answered exactly once.
func (b *Backend) clientRequest(line []byte, of *bridge.Call) {
	env := &b.env
	id := env.ID.Of(line)
	if old := b.calls.find(id); old != nil {
		if b.arrays.now != nil || !b.handshake.repeated(old, line) {
			b.tell(b.duplicate(line, id))
		}
		return
	}
	line, spans := b.traced(line)
	id = env.ID.Of(line)
	m := mcp.Lookup(env.Method.Of(line))
	b.limits.use(m)
	meta := env.Meta.Of(line)
	if b.session.Era != mcp.Legacy && meta != nil {
		b.handshake.noteEra(m, meta)
	}
	c := b.calls.add(env, line, m, b.client.Keep)
	c.came, c.spans, c.of = b.now, spans, of
	if of != nil {
		c.progress = append(c.progress, of.Progress...)
	}
	if jsonrpc.OddID(id) || ours(id) {
		c.wire = append(c.wire[:0], b.questions.newID()...)
	}
	if meta != nil {
		if token := jsonrpc.Find(meta, "progressToken").Of(meta); token != nil {
			b.calls.setToken(c, token)
			b.long.begun(c)
		}
	}
	b.route(c, line)
}

// route decides who answers a request.
func (b *Backend) route(c *call, line []byte) {
	switch c.method {
	case mcp.Initialize:
		b.handshake.clientInitialize(c, line)
	case mcp.Discover:
		b.prober.clientDiscover(c, line)
	case mcp.Ping:
		if !b.process.accepting() || b.process.hearing.waits() {
			b.flow.answer(c, jsonrpc.AppendResult(nil, c.id, []byte("{}")))
			return
		}
		b.flow.submit(c, line)
	case mcp.ToolsCall:
		if !b.tools.callTool(c) {
			b.flow.submit(c, line)
		}
	case mcp.ToolsList:
		if !b.lists.listFromMemory(c) && !b.tools.listToolsAlone(c) {
			b.flow.submit(c, line)
		}
	case mcp.PromptsList, mcp.ResourcesList, mcp.TemplatesList:
		if !b.lists.listFromMemory(c) {
			b.flow.submit(c, line)
		}
	case mcp.Listen:
		b.streams.wantStream(c, line)
	default:
		b.flow.submit(c, line)
	}
}

// clientNotification takes a notification.
func (b *Backend) clientNotification(line []byte) {
	switch m := mcp.Lookup(b.env.Method.Of(line)); m {
	case mcp.NoteCancelled:
		b.clientCancelled(line)
	case mcp.NoteProgress:
		b.asks.clientProgress(line)
	case mcp.NoteInitialized:
		if b.session.Initialized && b.session.Answered() {
			return
		}
		b.session.Initialized = true
		if b.session.Answered() && !b.process.serves() {
			return // the replay says it
		}
		b.notify(m, line)
		b.spares.tellReplayable()
	default:
		b.notify(m, line)
		if m == mcp.Other {
			b.spares.tellSpares(line)
		}
	}
}

// notify forwards a notification, after what is queued.
func (b *Backend) notify(m mcp.Method, line []byte) {
	if b.calls.waiting == 0 && b.process.open() {
		if !b.process.said(m) {
			b.forwardOf(b.process, line)
		}
		return
	}
	if b.stopped || b.Asleep() || b.failedInit != nil {
		return
	}
	if b.session.Era == mcp.EraUnknown && b.calls.waiting == 0 {
		b.emit(event.MessageDropped, slog.LevelDebug, "Notification dropped: nothing was asked yet",
			slog.String(event.KeyMethod, m.String()), slog.String(event.KeyReason, "before the handshake"))
		return
	}
	b.flow.queue(b.calls.add(&b.env, line, m, b.client.Keep))
}

func (p *process) said(m mcp.Method) bool {
	if m != mcp.NoteInitialized {
		return false
	}
	was := p.initialized
	p.initialized = true
	return was
}

// clientCancelled ends a request that the client has cancelled: it gets no answer.
func (b *Backend) clientCancelled(line []byte) {
	id := b.env.RequestID.Of(line)
	c := b.calls.find(id)
	if c == nil {
		if b.process.accepting() {
			b.forwardOf(b.process, line)
		}
		return
	}
	if c.method == mcp.Initialize {
		return // must not be cancelled, but one client does; the server goes on starting
	}
	b.showing.cancelled(c, line)
	b.prober.probeCancelled(c)
	begun := c.state == sent
	if p := b.byGen(c.gen); c.state == sent && p != nil && p.greets() {
		// Its handshake: the server goes on starting, and the answer is outlive's own.
		b.questions.expect(p, c.onWire(), func(line []byte) {
			b.replay.noteDiscover(p, line)
			b.replay.cameUp(p)
		})
	} else if c.state == sent && p != nil {
		if len(c.wire) > 0 {
			p.send(mcp.CancelledLine(c.onWire(), "cancelled")) // shown as the client has said it
		} else {
			p.forward(line)
		}
	}
	b.tally.ended(c, doneCancelled, b.now)
	b.flow.finish(c)
	if !begun {
		b.eras.over(id)
	}
}

// forwardOf passes a notification of the client on to p.
func (b *Backend) forwardOf(p *process, line []byte) {
	b.showing.passed(line, tap.Client, tap.Server, p.gen, "")
	p.forward(line)
}

// ClientClosed reports that the client has closed its end. What is queued is still forwarded; then the server's stdin is
// closed and its remaining output forwarded.
func (b *Backend) ClientClosed(now time.Time) {
	defer b.at(now).end()
	if b.closing || b.stopped {
		return
	}
	b.closing = true
	b.emit(event.ClientClosed, slog.LevelInfo, "Client closed the connection")
	b.life.step(supervise.Stop{Profile: supervise.ClientEOF})
}
