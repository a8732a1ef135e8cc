package backend

import (
	"bytes"
	"log/slog"
	"time"

	"github.com/outlive-mcp/outlive/internal/keep/supervise"
	"github.com/outlive-mcp/outlive/internal/protocol/bridge"
	"github.com/outlive-mcp/outlive/internal/protocol/mcp"
	"github.com/outlive-mcp/outlive/internal/protocol/session"
	"github.com/outlive-mcp/outlive/internal/record/event"
)

// eras decides whether a bridge stands between client and server, and moves the conversation when a server changes its era.
type eras struct {
	*core

	adapter  *eraAdapter      // an adapter that may bridge the client; nil: not needed
	past     *session.Session // the client's, with a server of its own era, until a bridge goes on with it; nil: it does, or there was none
	eraFlips int              // how often the server has changed its era since a process of it has served
	resumed  bool             // the session was recorded by an earlier backend, which bridged it, and no process has served it here
}

// probeRefused is called before a probe is answered with "method not found" because the server is legacy. It reports
// whether the probe was handled otherwise, since the client would not accept that answer. A server that has not read the
// probe may be modern; the client loses nothing then, and the server will say so.
func (e *eras) probeRefused(c *call) bool {
	a := e.adapter
	if a == nil || a.bridge != nil || a.decided {
		return false
	}
	switch {
	case a.asked && string(c.id) == eraQuestion:
		e.attach(bridge.ModernClient)
	case e.opts.Pinned || bridge.MayBePinned(c.id):
		e.attach(bridge.ModernClient, bytes.Clone(c.line))
	default:
		return false
	}
	e.flow.finish(c)
	return true
}

// initializeRefused checks whether a server has refused initialize, call c, because it is modern only. The client is
// bridged to a new process then. If the bridge sent the initialize, the server was mistaken for legacy: it may have died
// of something else when it was probed.
func (e *eras) initializeRefused(c *call, line []byte) bool {
	if e.opts.Bridge == bridge.Off || e.translating(bridge.LegacyClient) {
		return false
	}
	if !modernOnly(e.env.Error.Of(line)) {
		return false
	}
	if e.translating(bridge.ModernClient) {
		return e.otherEra(e.process, mcp.Modern)
	}
	if e.memory.known.Era == mcp.Legacy || e.closing { // it was mistaken for a legacy server, or was one
		e.learnEra(mcp.Modern)
	}
	if e.closing { // no process is started any more, so the client gets the refusal, and the next run knows better
		return false
	}
	e.handshake.endFirstStart()
	hasty := e.session.Initialized
	e.session.Reset()
	e.attach(bridge.LegacyClient, e.flow.saidSoFar(hasty)...)
	if e.calls.find(c.id) == c {
		e.flow.finish(c)
	}
	e.process.mark(mustDrain) // what comes now is for the next one
	e.life.step(supervise.Restart{Cause: supervise.Replace, Reason: "it speaks the modern era only"})
	return true
}

// own reports whether a request is the bridge's own.
func (e *eras) own(id []byte) bool {
	return e.adapter != nil && e.adapter.bridge != nil && e.adapter.bridge.Own(id)
}

// beginAdapter decides by the client's first messages whether a bridge is needed.
func (e *eras) beginAdapter() {
	if e.opts.Bridge == bridge.Auto && e.adapter == nil {
		e.adapter = &eraAdapter{Client: e.client, eras: e}
		e.client = e.adapter
	}
}

// translating reports whether a bridge of this mode is in use.
func (e *eras) translating(mode bridge.Mode) bool { return e.bridging() == mode }

// unsaid reports whether messages of the client have not reached the rest of the backend yet.
func (e *eras) unsaid() bool {
	a := e.adapter
	return a != nil && (a.asked || len(a.held)+len(a.toCore) > 0 || a.bridge != nil && a.bridge.Waiting())
}

// settle passes on messages that arrived while another was being handled.
func (e *eras) settle() {
	for a := e.adapter; a != nil && a == e.adapter; {
		switch {
		case len(a.toCore) > 0:
			line := a.toCore[0]
			a.toCore = a.toCore[1:]
			e.backend.clientMessage(line)
		case len(a.held) > 0 && !a.asked:
			line := a.held[0]
			a.held = a.held[1:]
			a.dispatch(line)
		case a.decided && a.bridge == nil && !a.asked:
			e.client, e.adapter = a.Client, nil
		default:
			e.life.closeInputWhenFlushed()
			return
		}
	}
}

// attach puts a bridge in front of the rest of the backend; lines are the client's first messages to it.
func (e *eras) attach(mode bridge.Mode, lines ...[]byte) {
	e.beginAdapter()
	a := e.adapter
	a.bridge = bridge.New(bridge.Options{Mode: mode, Key: e.opts.BridgeKey, Principal: e.opts.principal()})
	a.asked, a.decided = false, true
	a.held = append(lines, a.held...)
	e.emit(event.BridgeEngaged, slog.LevelInfo, "Translating between eras of the protocol: "+mode.String(),
		slog.String(event.KeyReason, mode.String()))
	if e.asleep() {
		e.restAdapter() // a lazy server is started by what the client wants
	}
}

// restAdapter tells a bridge that the server sleeps.
func (e *eras) restAdapter() {
	if a := e.adapter; a != nil && a.bridge != nil {
		a.emit(a.bridge.Rest(e.now))
	}
}

// wakeAdapter tells a bridge that the server can be used.
func (e *eras) wakeAdapter() {
	if a := e.adapter; a != nil && a.bridge != nil {
		a.emit(a.bridge.Wake(e.now))
	}
}

// answerUnsaid answers, at the end, the requests that the rest of the backend has not got.
func (e *eras) answerUnsaid() {
	a := e.adapter
	if a == nil {
		return
	}
	const text = "the server has shut down; the request was not delivered"
	if a.bridge != nil {
		a.emit(a.bridge.Close(text, e.now))
	}
	a.refuseAll([]byte(`{"code":-32603,"message":"` + text + `"}`))
	a.toCore, a.asked, a.at = nil, false, time.Time{}
}

// processesGone tells a bridge that no process is left that knows of earlier requests.
func (e *eras) processesGone() {
	if e.adapter != nil {
		e.adapter.processesGone()
	}
}
