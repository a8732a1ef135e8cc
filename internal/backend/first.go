package backend

import (
	"fmt"
	"time"

	"github.com/outlive-mcp/outlive/internal/jsonrpc"
	"github.com/outlive-mcp/outlive/internal/mcp"
	"github.com/outlive-mcp/outlive/internal/supervise"
)

// firstStart watches over the time from the client's initialize to its answer. Until then a client has little
// patience, and the only thing it shows its user is the error it gets.
type firstStart struct {
	active bool
	since  time.Time
	tries  int // processes that died or could not be started meanwhile
}

func (b *Backend) beginFirstStart() {
	b.first = firstStart{active: true, since: b.now}
	b.arm(timerFirst, b.opts.FirstPatience)
}

func (b *Backend) endFirstStart() {
	b.first = firstStart{}
	b.disarm(timerFirst)
}

// firstTryFailed counts a process that ended before it answered initialize.
func (b *Backend) firstTryFailed() {
	if !b.first.active {
		return
	}
	b.first.tries++
	if b.first.tries >= b.opts.FirstTries || b.now.Sub(b.first.since) >= b.opts.FirstPatience || b.hopeless() {
		b.giveUpFirst()
	}
}

// giveUpFirst answers initialize with the reason of the failure. outlive stays: once the cause is mended, a restart
// and another initialize work.
func (b *Backend) giveUpFirst() {
	if !b.first.active || b.first.tries == 0 {
		return // nothing has failed: a slow start is the client's to judge
	}
	for c := range b.calls.all {
		if c.method != mcp.Initialize || c.state != waiting {
			continue
		}
		tries := b.first.tries
		b.handshakeFailed()
		text := fmt.Sprintf("the server %s (%s; %d starts tried)%s", firstVerb(b.lastOut), b.describeExit(), tries, b.stderrText())
		data := outcome{Reason: reasonUnavailable, Delivered: "no", Retryable: true, Generation: b.process.gen}
		b.answer(c, jsonrpc.AppendError(nil, c.id.raw, jsonrpc.InternalError, text, data.raw()))
		b.refuseWaiting()
		return
	}
}

// handshakeFailed notes that the client is told that its initialize has failed. Only an answer shows that a server is up, so
// the next process is asked what this one was, for nobody; the client's requests are refused until it sends another.
func (b *Backend) handshakeFailed() {
	b.endFirstStart()
	b.failedInit, b.session.InitParams = b.session.InitParams, nil
}

// askForNobody asks a process for its handshake, because the client's own has failed and only an answer shows that it is up.
// A client that begins anew gets another process.
func (b *Backend) askForNobody(p *process) {
	p.era, p.handshake = mcp.Legacy, asked
	b.expect(p)
	b.ask(p, func(id []byte) []byte { return mcp.InitializeLine(id, b.failedInit, "") }, func(line []byte) {
		if b.env.Kind != jsonrpc.Response {
			b.handshakeRefused(p, messageIn(b.env.Error.Of(line)))
			return
		}
		p.handshake, p.startup = settled, b.now.Sub(p.started)
		b.tellReady(p)
		b.step(supervise.Ready{Gen: p.gen})
		b.completed()
	})
}

func firstVerb(o lastExit) string {
	if o.kind == connectionEnded {
		return "cannot be used"
	}
	if o.kind == neverStarted {
		return "cannot be started"
	}
	return "failed to start"
}
