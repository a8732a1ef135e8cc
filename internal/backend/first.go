package backend

import (
	"fmt"
	"time"

	"github.com/outlive-mcp/outlive/internal/jsonrpc"
	"github.com/outlive-mcp/outlive/internal/mcp"
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
		b.endFirstStart()
		b.session.InitParams = nil
		text := fmt.Sprintf("the server %s (%s; %d starts tried)%s", firstVerb(b.lastOut), b.describeExit(), tries, b.stderrText())
		data := outcome{Reason: reasonUnavailable, Delivered: "no", Retryable: true, Generation: b.process.gen}
		b.answer(c, jsonrpc.AppendError(nil, c.id.raw, jsonrpc.InternalError, text, data.raw()))
		b.refuseWaiting()
		return
	}
}

func firstVerb(o lastExit) string {
	if o.code < 0 {
		return "cannot be started"
	}
	return "failed to start"
}
