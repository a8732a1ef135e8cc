package backend

import (
	"bytes"
	"fmt"
	"log/slog"
	"time"

	"github.com/outlive-mcp/outlive/internal/keep/supervise"
	"github.com/outlive-mcp/outlive/internal/protocol/jsonrpc"
	"github.com/outlive-mcp/outlive/internal/protocol/mcp"
	"github.com/outlive-mcp/outlive/internal/record/event"
	"github.com/outlive-mcp/outlive/internal/record/tap"
)

// ServerLine takes one line of process gen's stdout, without its newline; whole is false when the output ended in it.
func (b *Backend) ServerLine(now time.Time, gen int, line []byte, whole bool) {
	defer b.at(now).end()
	p := b.process
	if gen != p.gen {
		if p = b.byGen(gen); p == nil {
			return
		}
	}
	if line = jsonrpc.Trim(line); len(line) == 0 {
		return
	}
	p.heard = now
	err := b.env.Scan(line)
	switch {
	case p.noise.holding() && b.noiseLog.add(p, line, err):
	case err != nil || !b.env.Version2 && b.env.Kind != jsonrpc.Batch:
		b.mender.oddServerLine(p, line, err, whole)
	default:
		b.serverMessage(p, line)
	}
	if doubt := p.noise.doubt; doubt != nil {
		p.noise.doubt = nil
		b.mender.endBroken(p, doubt)
	}
}

// serverMessage takes one message; b.env was scanned from it.
func (b *Backend) serverMessage(p *process, line []byte) {
	if b.env.BadUTF8 || b.env.Surrogate {
		line = jsonrpc.Sanitize(nil, line)
		if b.env.Scan(line) != nil {
			return
		}
		b.emit(event.TextRepaired, slog.LevelWarn, "Invalid text of the server replaced by U+FFFD")
	}
	line = b.mender.restoreIDs(p, b.mender.withoutMethod(p, line))
	switch b.env.Kind {
	case jsonrpc.Response, jsonrpc.ErrorResponse:
		b.serverAnswer(p, line)
	case jsonrpc.Notification:
		b.serverNotification(p, line)
	case jsonrpc.Request:
		b.asks.serverRequest(p, line)
	case jsonrpc.Batch:
		// Every client must take single messages; only one version knows arrays.
		for at := range jsonrpc.Elements(line) {
			one := bytes.Clone(at.Of(line))
			switch err := b.env.Scan(one); {
			case err != nil || !b.env.Version2:
				b.mender.oddServerLine(p, one, err, false)
			case b.env.Kind != jsonrpc.Batch:
				b.serverMessage(p, one)
			}
		}
	}
}

// serverAnswer delivers an answer to the one who asked.
func (b *Backend) serverAnswer(p *process, line []byte) {
	id := b.env.ID.Of(line)
	if len(b.questions.open) > 0 {
		b.showing.replied(p, id, line)
		if answered := b.questions.take(p, id); answered != nil {
			answered(line)
			b.streams.openStreams()
			return
		}
	}
	c := b.calls.onWire(id)
	if c == nil || c.state != sent || c.gen != p.gen {
		b.lateAnswer(line, id)
		return
	}
	if p.phase == skipped && b.machine.State() == supervise.Starting { // it works without a handshake
		b.life.step(supervise.Ready{Gen: p.gen})
	}
	said, level := line, c.method == mcp.SetLevel // of c nothing is left once it is answered
	if b.env.Kind == jsonrpc.ErrorResponse || c.method != mcp.Other || b.env.ResultType.Present() {
		if line = b.inspectAnswer(c, line); line == nil {
			return
		}
	}
	b.flow.deliver(c, line, said)
	if level {
		b.flow.levelKnown(p)
	}
	if b.calls.held > 0 {
		b.streams.openStreams()
	}
}

// lateAnswer drops an answer without a request: it was cancelled, answered before, or never asked.
func (b *Backend) lateAnswer(line, id []byte) {
	b.eras.over(id)
	b.showing.passed(line, tap.Server, tap.Outlive, b.process.gen, tap.NoteDropped)
	b.emit(event.MessageDropped, slog.LevelDebug, "Answer dropped: no request waits for it",
		slog.String(event.KeyRequestID, string(id)), slog.String(event.KeyReason, "unknown request id"))
}

// inspectAnswer looks at answers that outlive must know of. It returns the line to deliver, nil if the call was handled
// otherwise.
func (b *Backend) inspectAnswer(c *call, line []byte) []byte {
	ok := b.env.Kind == jsonrpc.Response
	switch c.method {
	case mcp.Initialize:
		return b.handshake.initializeAnswered(c, line)
	case mcp.Discover:
		return b.prober.discoverAnswered(c, line)
	case mcp.ToolsList, mcp.PromptsList, mcp.ResourcesList, mcp.TemplatesList:
		return b.lists.listAnswered(c, line)
	case mcp.SetLevel:
		if ok {
			b.session.SetLogLevel(c.param.Of(c.line))
			b.spares.mirror(c)
		}
	case mcp.Subscribe:
		if ok {
			b.session.Subscribe(c.param.Of(c.line))
			b.spares.mirror(c)
		}
	case mcp.Unsubscribe:
		if ok {
			b.session.Unsubscribe(c.param.Of(c.line))
			b.spares.mirror(c)
		}
	case mcp.TasksGet, mcp.TasksResult, mcp.TasksCancel:
		return b.tasks.inspectTask(c, line)
	case mcp.ToolsCall:
		if ok && c.task {
			b.tasks.noteTask(c, line)
		}
		if ok && len(b.opts.Replays) > 0 {
			b.replay.noteReplay(c, b.env.Result.Of(line))
		}
	case mcp.Listen:
		return b.streams.listenEnded(c, line)
	}
	return b.states.inspectState(c, line)
}

// serverNotification forwards a notification to the client, unless it would repeat or contradict an earlier one.
func (b *Backend) serverNotification(p *process, line []byte) {
	pass := b.notificationPasses(p, line)
	to, note := tap.Client, ""
	if !pass {
		to, note = tap.Outlive, tap.NoteDropped
	}
	b.showing.passed(line, tap.Server, to, p.gen, note)
	if pass {
		b.client.ForwardToClient(line)
	}
}

// notificationPasses reports whether the client gets a notification.
func (b *Backend) notificationPasses(p *process, line []byte) bool {
	m := mcp.Lookup(b.env.Method.Of(line))
	if p.role != serving && !p.mayNotify(m) {
		return false
	}
	switch m {
	case mcp.NoteProgress:
		return b.progressGoesOn(p, line)
	case mcp.NoteCancelled:
		if p.era == mcp.Modern {
			return p.role == serving && !b.streams.listenCancelled(b.env.RequestID.Of(line), line)
		}
		return !b.asks.serverCancelled(p, line)
	case mcp.NoteToolsChanged, mcp.NotePromptsChanged, mcp.NoteResourcesChanged:
		return !b.lists.serverChanged(m)
	case mcp.NoteAcknowledged:
		return !b.streams.swallowAck(line)
	}
	return true
}

// mayNotify reports whether the client may get notification m from a process that does not serve. A retired one may
// report on its requests; other notifications, and all of a spare, are not about the server that the client sees.
func (p *process) mayNotify(m mcp.Method) bool {
	switch m {
	case mcp.NoteProgress, mcp.NoteCancelled:
		return true
	case mcp.NoteToolsChanged, mcp.NotePromptsChanged, mcp.NoteResourcesChanged, mcp.NoteResourceUpdated, mcp.NoteAcknowledged:
		return false
	}
	return p.role == retired
}

// progressGoesOn lets progress through only upwards, and only for open requests. A request that was sent again, or that is a later
// round of its call, starts at zero again, which a client must not see.
func (b *Backend) progressGoesOn(p *process, line []byte) bool {
	token := b.env.ProgressToken.Of(line)
	if token == nil || jsonrpc.IsNull(token) {
		return false
	}
	c := b.calls.withToken(token)
	if c == nil {
		return b.tasks.reports(token)
	}
	if c.gen != p.gen {
		return false // another process has the request now
	}
	c.touched = b.now
	value := b.env.Progress.Of(line)
	later := c.of != nil && len(c.of.Progress) > 0 // another request of the same call of a bridge was before it
	if (c.resent > 0 || later) && len(c.progress) > 0 && !jsonrpc.Greater(value, c.progress) {
		return false
	}
	c.progress = append(c.progress[:0], value...)
	c.told = b.now
	return true
}

// ServerOversize takes the beginning and the end of a line of process gen over the limit.
func (b *Backend) ServerOversize(now time.Time, gen int, head, tail []byte, size int64) {
	defer b.at(now).end()
	p := b.byGen(gen)
	if p == nil {
		return
	}
	id, ok := jsonrpc.RecoverID(head, tail)
	b.emitOf(p, event.MessageTooLarge, slog.LevelWarn, fmt.Sprintf("Server message of %d bytes is over the limit", size),
		slog.String(event.KeyDirection, "server_to_client"), slog.String(event.KeyRequestID, string(id)))
	switch {
	case !ok:
		return
	case jsonrpc.FirstOf(head, "method") != "" && jsonrpc.FirstOf(head, "result") == "": // some write a method into their answers
		p.refuse(id, jsonrpc.InternalError, fmt.Sprintf("the request of %d bytes is over the limit of outlive (see --max-message); "+
			"the client was not asked", size))
		return
	}
	c := b.calls.onWire(id)
	if c == nil || c.state != sent || c.gen != gen {
		return
	}
	text := fmt.Sprintf("the server's answer of %d bytes is over the limit of outlive (see --max-message)", size)
	data := outcome{Reason: reasonTooLarge, Delivered: "yes", Generation: gen}
	c.done = doneError
	b.flow.answer(c, jsonrpc.AppendError(nil, c.id, jsonrpc.InternalError, text, data.raw()))
}
