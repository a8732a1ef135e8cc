package backend

import (
	"bytes"
	"log/slog"
	"time"

	"github.com/outlive-mcp/outlive/internal/protocol/jsonrpc"
	"github.com/outlive-mcp/outlive/internal/protocol/mcp"
	"github.com/outlive-mcp/outlive/internal/record/event"
	"github.com/outlive-mcp/outlive/internal/record/tap"
)

// flow takes requests to their process and back: forwarded or queued, answered exactly once, decided about when their
// process dies. Only flow changes the state of calls, except of streams and of those that injected tools hold.
type flow struct {
	*core
}

const (
	// slowServer is how many bytes may wait for a server that does not read. Further requests stay in our queue, where
	// they can be cancelled, answered or given to another process.
	slowServer = 1 << 20
	// queueBytes is how many bytes may wait in the queue.
	queueBytes = 64 << 20
	// queueTick is how often the queue is checked for expired requests.
	queueTick = 250 * time.Millisecond
)

// submit hands c to the server or queues it. line is the message as it came, in memory that Forward may take.
func (f *flow) submit(c *call, line []byte) {
	if p := f.process; p.admits(c.method) && (f.calls.waiting == 0 || p.phase == fresh) {
		f.transmit(c, line, false)
		return
	}
	f.queue(c)
}

// queue makes c wait for a process, or refuses it at once if none will come.
func (f *flow) queue(c *call) {
	switch {
	case f.stopped:
		f.finish(c)
	case f.hopeless() && c.isRequest() && c.method != mcp.Initialize:
		f.turnAway(c)
	case f.failedInit != nil && c.isRequest() && c.method != mcp.Initialize, c.isRequest() && f.tooLate(f.now.Add(f.opts.QueueFor)):
		f.turnAway(c)
	case f.calls.waiting >= f.opts.QueueMax || f.calls.bytes+len(c.line) > queueBytes:
		text := "server restarting: too many requests are waiting; " + c.delivery() + ", retry later"
		f.refuse(c, refusal{reason: reasonQueueFull, text: text, retry: true})
	default:
		f.showing.arrived(c, tap.NoteHeld)
		f.calls.enqueue(c, f.now.Add(f.opts.QueueFor))
		f.awaitQueue()
		f.life.wake()
		f.replay.beginWithout()
	}
}

// awaitQueue has the queue looked through soon.
func (f *flow) awaitQueue() {
	if f.timers[timerQueue].IsZero() {
		f.arm(timerQueue, queueTick)
	}
}

// transmit sends c to the running process. line is the message, in memory of ours if copied. A notification is finished then.
func (f *flow) transmit(c *call, line []byte, copied bool) {
	f.calls.set(c, parked)
	if f.process.said(c.method) {
		f.calls.remove(c)
		return
	}
	f.showing.sent(c)
	switch {
	case len(c.wire) > 0:
		f.process.send(jsonrpc.Replace(nil, line, jsonrpc.Find(line, "id"), c.wire))
	case copied:
		f.process.send(line)
	default:
		f.process.forward(line)
	}
	if !c.isRequest() {
		f.calls.remove(c)
		return
	}
	f.handed(c)
}

// handed notes that the running process was given request c completely.
func (f *flow) handed(c *call) {
	if p := f.process; p.phase == fresh {
		p.mark(wasAsked)
	}
	f.prober.probeSent(c)
	f.calls.hand(c, f.now, f.process.gen, f.process.sent-1)
	if c.method == mcp.SetLevel {
		f.process.levelBy = f.now.Add(settingsFor)
	}
	f.health.called()
	f.limits.countCall(c)
}

// levelKnown sends what has waited for p to confirm its log level. A server that works on several requests at once would begin the next ones
// at the old level. Servers confirm at once; one that does not must not delay its client for long.
func (f *flow) levelKnown(p *process) {
	p.levelBy = time.Time{}
	f.flushQueue()
	f.life.closeInputWhenFlushed()
}

// flushQueue sends the queue in order of arrival: first what an earlier process left, then the rest. Before its
// handshake a process gets only the handshake.
func (f *flow) flushQueue() {
	for c := range f.calls.all {
		if f.calls.waiting == 0 {
			return
		}
		if c.state == waiting && f.process.admits(c.method) {
			f.transmit(c, c.line, true)
		}
	}
}

// tooLate reports whether the next start is known to come after until.
func (f *flow) tooLate(until time.Time) bool {
	next := f.machine.Snapshot().NextTry
	return !next.IsZero() && !f.handshake.beginning() && next.Add(f.history.startup).After(until)
}

// refuseLate refuses queued requests that cannot be served in time.
func (f *flow) refuseLate() {
	for c := range f.calls.all {
		if c.state == waiting && c.isRequest() && c.method != mcp.Initialize && f.tooLate(c.until) {
			f.turnAway(c)
		}
	}
}

// expireQueue answers requests that have waited too long.
func (f *flow) expireQueue() {
	for c := range f.calls.all {
		if c.state != waiting && !f.unopened(c) || c.until.After(f.now) {
			continue
		}
		if c.isRequest() {
			f.turnAway(c)
		} else {
			f.drop(c, "no server was ready in time")
		}
	}
	if f.calls.waiting+f.calls.held > 0 {
		f.arm(timerQueue, queueTick)
	}
}

// unopened reports whether c is a stream that the client waits for. A stream that it believes to be open has no time
// limit.
func (f *flow) unopened(c *call) bool {
	return c.state == held && c.acked == nil
}

// finish forgets c without an answer: it has one, or must not get one.
func (f *flow) finish(c *call) {
	f.calls.remove(c)
	f.life.checkDrained()
}

// drop forgets a message that cannot be delivered, and logs that.
func (f *flow) drop(c *call, why string) {
	f.emit(event.MessageDropped, slog.LevelWarn, "Message dropped: "+why,
		slog.String(event.KeyMethod, c.method.String()), slog.String(event.KeyReason, why))
	f.finish(c)
}

// answer gives c its one answer, a whole message with c's id, and forgets it.
func (f *flow) answer(c *call, line []byte) {
	f.showing.answered(c, line)
	if c.of != nil {
		f.eras.answered(c, line)
	} else {
		f.client.SendToClient(line)
	}
	f.tally.ended(c, c.done, f.now)
	f.answered(c, line, c.done)
}

// busy reports whether a request of the client is in flight at p, or one of p's at the client. Streams do not count, since they never
// end by themselves, nor do questions to a client that has closed its end.
func (f *flow) busy(p *process) bool {
	for c := range f.calls.all {
		if c.state == sent && c.gen == p.gen && (c.method != mcp.Listen || p.era != mcp.Modern) {
			return true
		}
	}
	return !f.closing && f.asks.of(p.gen)
}

// busyBefore reports whether a request sent before offset end is in flight at p.
func (f *flow) busyBefore(p *process, end uint64) bool {
	for c := range f.calls.all {
		if c.state == sent && c.gen == p.gen && c.method != mcp.Listen && c.end < end {
			return true
		}
	}
	return false
}

// deliver forwards the server's answer under the client's id, or gives it to the bridge. said is the answer as the server has written it.
func (f *flow) deliver(c *call, line, said []byte) {
	raw, end := f.env.ID.Of(line), doneWell
	if f.env.Kind == jsonrpc.ErrorResponse {
		end = doneError
	} else if string(f.env.IsError.Of(line)) == "true" {
		end = doneToolError
	}
	f.showing.delivered(c, said, line, end)
	switch {
	case c.of != nil:
		f.eras.answered(c, line)
	case bytes.Equal(raw, c.id):
		f.client.ForwardToClient(line)
	default:
		f.client.SendToClient(jsonrpc.Replace(nil, line, f.env.ID, c.id))
	}
	f.tally.ended(c, end, f.now)
	f.limits.use(c.method)
	f.answered(c, line, end)
}

// answered forgets c, which was answered with line.
func (f *flow) answered(c *call, line []byte, end conclusion) {
	handshake := c.method == mcp.Initialize
	f.finish(c)
	if handshake {
		f.handshake.answerJoined(line, end)
	}
}

// saidSoFar takes back the client's messages that did not wait for the answer to initialize: a server processes nothing
// before that. initialized says that notifications/initialized is among them.
func (f *flow) saidSoFar(initialized bool) (lines [][]byte) {
	for c := range f.calls.all {
		lines = append(lines, bytes.Clone(c.line))
		if c.method == mcp.Initialize && initialized {
			lines = append(lines, mcp.InitializedLine())
		}
		f.finish(c)
	}
	return lines
}

// endAll answers all open requests at the end.
func (f *flow) endAll() {
	for c := range f.calls.all {
		if !c.isRequest() {
			f.calls.remove(c)
		} else if c.state == sent {
			f.lost(c, f.process, reasonRestarted)
		} else {
			f.refuse(c, refusal{reason: reasonUnavailable, text: "the server has shut down; " + c.delivery()})
		}
	}
}
