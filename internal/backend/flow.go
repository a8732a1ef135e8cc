package backend

import (
	"log/slog"
	"time"

	"github.com/outlive-mcp/outlive/internal/event"
	"github.com/outlive-mcp/outlive/internal/jsonrpc"
	"github.com/outlive-mcp/outlive/internal/mcp"
)

const (
	// slowServer is how many bytes may wait for a server that does not read before new requests stay in our queue,
	// where they can still be cancelled, answered or given to another process.
	slowServer = 1 << 20
	// queueTick is how often the queue is looked through for requests that have waited too long.
	queueTick = 250 * time.Millisecond
)

// submit hands c to the server or queues it. line is the message as it came, in memory that Forward may take.
func (b *Backend) submit(c *call, line []byte) {
	if p := b.process; p.admits(c.method) && (b.calls.waiting == 0 || p.handshake == unasked) {
		b.transmit(c, line)
		return
	}
	b.queue(c)
}

// queue lets c wait for a process that takes it, or refuses it at once when there is no hope.
func (b *Backend) queue(c *call) {
	switch {
	case b.stopped:
		b.finish(c)
	case b.hopeless() && c.isRequest() && c.method != mcp.Initialize:
		b.refuse(c, b.unavailable(c))
	case b.failedInit != nil && c.isRequest() && c.method != mcp.Initialize, c.isRequest() && b.tooLate(b.now.Add(b.opts.QueueFor)):
		b.refuse(c, b.unavailable(c))
	case b.calls.waiting >= b.opts.QueueMax || b.calls.bytes+len(c.line) > b.opts.QueueSize:
		b.refuse(c, refusal{reason: reasonQueueFull, text: "server restarting: too many requests are waiting; " + c.delivery() + ", retry later", retry: true})
	default:
		b.calls.enqueue(c, b.now.Add(b.opts.QueueFor))
		b.awaitQueue()
		b.wake()
		b.beginWithout()
	}
}

// awaitQueue has the queue looked through soon.
func (b *Backend) awaitQueue() {
	if b.timers[timerQueue].IsZero() {
		b.arm(timerQueue, queueTick)
	}
}

// transmit hands c to the running process. A notification is finished with that.
func (b *Backend) transmit(c *call, line []byte) {
	if b.said(c.method) {
		b.calls.remove(c)
		return
	}
	if len(c.wire) > 0 {
		b.process.send(jsonrpc.Replace(nil, line, c.idSpan(line), c.wire))
	} else {
		b.process.forward(line)
	}
	if !c.isRequest() {
		b.calls.remove(c)
		return
	}
	b.handed(c)
}

// handed notes that the running process was given all of request c.
func (b *Backend) handed(c *call) {
	if p := b.process; p.handshake == unasked {
		p.handshake = asked
	}
	b.probeSent(c)
	b.calls.hand(c, b.now, b.process.gen, b.process.sent-1)
	if b.health != nil {
		b.health.Called(b.now)
	}
	b.countCall(c)
}

func (c *call) idSpan(line []byte) jsonrpc.Span { return jsonrpc.Find(line, "id") }

// flushQueue hands the queue to the process in order of arrival: first what an earlier process left, then the rest. Before its
// handshake it gets that alone.
func (b *Backend) flushQueue() {
	for c := range b.calls.all {
		if b.calls.waiting == 0 {
			return
		}
		if c.state == waiting && b.process.admits(c.method) {
			b.transmitCopy(c)
		}
	}
}

// transmitCopy hands on a call whose line is only in our own memory.
func (b *Backend) transmitCopy(c *call) {
	b.calls.park(c)
	if b.said(c.method) {
		b.calls.remove(c)
		return
	}
	line := c.line
	if len(c.wire) > 0 {
		line = jsonrpc.Replace(nil, line, c.idSpan(line), c.wire)
	}
	b.process.send(line)
	if !c.isRequest() {
		b.calls.remove(c)
		return
	}
	b.handed(c)
}

// Drained tells that process gen has taken everything that was waiting for it in its pipe.
func (b *Backend) Drained(now time.Time, gen int) {
	b.now = now
	if gen == b.process.gen {
		b.flushQueue()
	}
}

// tooLate reports whether no process can serve before a time: the next start is known to come too late for that.
func (b *Backend) tooLate(until time.Time) bool {
	next := b.machine.Snapshot().NextTry
	return !next.IsZero() && !b.first.active && next.Add(b.startup).After(until)
}

// refuseLate refuses what waits and cannot be served in time.
func (b *Backend) refuseLate() {
	for c := range b.calls.all {
		if c.state == waiting && c.isRequest() && c.method != mcp.Initialize && b.tooLate(c.until) {
			b.refuse(c, b.unavailable(c))
		}
	}
}

// expireQueue answers what has waited too long.
func (b *Backend) expireQueue() {
	for c := range b.calls.all {
		if c.state != waiting && !b.unopened(c) || c.until.After(b.now) {
			continue
		}
		if c.isRequest() {
			b.refuse(c, b.unavailable(c))
		} else {
			b.drop(c, "nobody to send it to in time")
		}
	}
	if b.calls.waiting+b.calls.held > 0 {
		b.arm(timerQueue, queueTick)
	}
}

// unopened reports whether c is a stream that the client waits for. One that it believes to be open may take its time.
func (b *Backend) unopened(c *call) bool {
	if c.state != held {
		return false
	}
	l := b.session.ListenByID(c.id.raw)
	return l == nil || l.Acked == nil
}

// finish forgets c without an answer: it has one, or must not get one.
func (b *Backend) finish(c *call) {
	b.calls.remove(c)
	b.checkDrained()
}

// drop forgets a message nobody can get, and says so.
func (b *Backend) drop(c *call, why string) {
	b.emit(event.MessageDropped, slog.LevelWarn, "Message dropped: "+why,
		slog.String(event.KeyMethod, c.method.String()), slog.String(event.KeyReason, why))
	b.finish(c)
}

// answer gives c its one answer, a whole message with c's id, and forgets it.
func (b *Backend) answer(c *call, line []byte) {
	if c.batch != nil {
		b.collect(c, line)
	} else {
		b.world.SendToClient(line)
	}
	if c.method == mcp.Listen {
		b.session.CloseListen(c.id.raw) // also one that is refused: nobody hears what is told on it
	}
	b.finish(c)
}
