package backend

import (
	"fmt"
	"log/slog"
	"slices"

	"github.com/outlive-mcp/outlive/internal/protocol/jsonrpc"
	"github.com/outlive-mcp/outlive/internal/protocol/mcp"
	"github.com/outlive-mcp/outlive/internal/record/event"
)

// fate is what happens to a request whose process died.
type fate uint8

const (
	undelivered fate = iota // no process has begun it: it is sent as if for the first time
	again                   // it may be done twice: it is sent again
	unknown                 // it may or may not have been done: the client is told so
	poisonous               // it was in flight at two consecutive deaths: it is not tried again
)

// repeatsAllowed is how often a repeatable tool call is repeated.
const repeatsAllowed = 2

// crashesAllowed is how many consecutive processes may die with a request before it counts as the cause.
const crashesAllowed = 2

// recoverCalls decides about every request of the dead process p, in order of arrival. planned says that outlive ended
// the process: then no request is suspected.
func (f *flow) recoverCalls(p *process, planned bool) {
	for c := range f.calls.at(p.gen) {
		if c.method == mcp.Listen {
			f.streams.holdStream(c) // streams are always open when a server dies
			continue
		}
		switch f.fateOf(c, p, planned) {
		case undelivered:
			f.resend(c, "not delivered")
		case again:
			c.resent++
			f.resend(c, "may be sent again")
		case unknown:
			f.lost(c, p, reasonRestarted)
		case poisonous:
			f.lost(c, p, reasonPoison)
		}
	}
}

func (f *flow) fateOf(c *call, p *process, planned bool) fate {
	if p.undelivered > 0 && p.sent-p.undelivered < c.end {
		return undelivered
	}
	if !planned && p.ending.kind != connectionEnded { // no request causes a network failure
		c.crashes++
	}
	if c.method == mcp.Initialize {
		return again // the first start counts its own tries
	}
	if c.crashes >= crashesAllowed {
		return poisonous
	}
	if c.method.Resendable() {
		return again
	}
	if f.toolRepeats(c, p) {
		return again
	}
	return unknown
}

// toolRepeats reports whether c is a call of a tool that may be repeated, and was not repeated too often.
func (f *flow) toolRepeats(c *call, p *process) bool {
	return c.method == mcp.ToolsCall && c.resent < repeatsAllowed && f.toolAllows(c, p)
}

// mayRepeat decides whether a request is repeated that remote connection gen may have processed.
func (f *flow) mayRepeat(gen int, id []byte, m mcp.Method, why string) bool {
	c := f.calls.onWire(id)
	if c == nil || c.state != sent || c.gen != gen {
		return m.Resendable() // asked by outlive itself, or cancelled
	}
	p := f.byGen(gen)
	if p == nil || !m.Resendable() && !f.toolRepeats(c, p) {
		f.tellOf(c, event.RequestLost, slog.LevelWarn, fmt.Sprintf("Outcome of %s unknown: %s", c.what(), why), why)
		return false
	}
	c.resent++
	f.tellOf(c, event.RequestResent, slog.LevelInfo, fmt.Sprintf("Request %s is sent again: %s", c.what(), why), why)
	return true
}

// toolAllows reports whether the tool is declared safe to call twice.
func (f *flow) toolAllows(c *call, p *process) bool {
	name, ok := jsonrpc.Unquote(c.tool.Of(c.line))
	if !ok {
		return false
	}
	if slices.Contains(f.opts.RetryTools, name) {
		return true
	}
	if f.opts.Distrust {
		return false
	}
	item := f.toolsOf(p)[name] // annotations of another version of the server do not count
	if f.asks.tainted(c) || c.task {
		return item.ReadOnly
	}
	return item.Idempotent
}

// toolsOf is the tools that p has shown. One that died too early for that has those that a server with the same handshake result has shown last,
// even to an earlier run: the first process of a run may die as soon as any other.
func (f *flow) toolsOf(p *process) mcp.Catalog {
	if shown := p.shows[mcp.Tools]; shown != nil {
		return shown
	}
	if p.remembered == nil {
		p.remembered = f.memory.listOf(&f.reader, f.session.Era, mcp.Tools, p)
	}
	return p.remembered
}

// resend puts a request back into the queue, where it is the oldest and goes first.
func (f *flow) resend(c *call, why string) {
	f.tellOf(c, event.RequestResent, slog.LevelInfo, fmt.Sprintf("Request %s waits for the new server: %s", c.what(), why), why)
	if f.hopeless() && c.method != mcp.Initialize {
		f.turnAway(c)
		return
	}
	until := f.now.Add(f.opts.QueueFor)
	if c.resent == 0 && !c.until.IsZero() && c.until.Before(until) {
		until = c.until // it has only waited so far
	}
	f.calls.enqueue(c, until)
	f.awaitQueue()
}
