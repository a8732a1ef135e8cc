package backend

import (
	"bytes"
	"log/slog"
	"slices"
	"time"

	"github.com/outlive-mcp/outlive/internal/keep/supervise"
	"github.com/outlive-mcp/outlive/internal/protocol/bridge"
	"github.com/outlive-mcp/outlive/internal/protocol/jsonrpc"
	"github.com/outlive-mcp/outlive/internal/protocol/mcp"
	"github.com/outlive-mcp/outlive/internal/protocol/session"
	"github.com/outlive-mcp/outlive/internal/record/event"
)

// eras decides whether a bridge stands between client and server, and moves the conversation when a server changes its era. It stands
// between the client and the rest of a Backend until both sides are known to speak one era, and for good if they do not: then a bridge
// translates, and the rest of the Backend sees a client of the server's era. It is the [Client] meanwhile, so that no other part
// knows of it. It is not in the way where both sides speak the same era.
//
// Whether a bridge is needed is known from earlier runs, or learned: a server refuses initialize because it is modern,
// or a probe shows a legacy server. For a modern client that does not probe, eras probes.
type eras struct {
	*core
	Client // the client itself, while eras stands before it

	line   jsonrpc.Envelope // scratch of the line being looked at
	stands standing
	bridge *bridge.Bridge   // while one translates
	held   [][]byte         // messages of the client not yet handled, in the order in which they came: the one queue before translation
	toCore []bridge.Message // messages for the rest of the backend, from a client of the server's era

	past     *session.Session // the client's, with a server of its own era, until a bridge goes on with it; nil: it does, or there was none
	eraFlips int              // how often the server has changed its era since a process of it has served
	resumed  bool             // the session was recorded by an earlier backend, which bridged it, and no process has served it here
}

// standing is what is between the client and the rest of a backend.
type standing uint8

const (
	direct    standing = iota // nothing: both speak one era, or nothing is ever translated
	undecided                 // the client's next request decides
	asking                    // the server is being asked for its era; the client's messages wait
	needless                  // no bridge is needed: nothing will be, as soon as what is held was handled
	bridged                   // a bridge translates
)

// heldMost is how many messages of the client may wait for the server's era, or for a bridge's handshake.
const heldMost = 1024

// eraQuestion is the raw id of the backend's own server/discover: below the questions', and far from the bridge's, which begin with 1.
const eraQuestion = "1499999999"

// standBetween decides by the client's first messages whether a bridge is needed.
func (e *eras) standBetween() {
	if !e.opts.NoBridge && e.stands == direct {
		e.stands, e.Client, e.client = undecided, e.client, e
	}
}

// fromClient takes a line of the client, which is not kept.
func (e *eras) fromClient(line []byte) {
	if e.waits() && !e.mayWait(line) {
		return
	}
	e.held = append(e.held, bytes.Clone(line))
	e.settle()
}

// waits reports whether the client's messages wait: the server is asked for its era, or greeted by a bridge.
func (e *eras) waits() bool {
	return e.stands == asking || e.bridge != nil && e.bridge.Greeting()
}

// settle passes on messages that arrived while another was being handled.
func (e *eras) settle() {
	for e.stands != direct {
		switch {
		case len(e.toCore) > 0:
			next := e.toCore[0]
			e.toCore = e.toCore[1:]
			e.backend.clientMessage(next)
		case len(e.held) > 0 && !e.waits():
			line := e.held[0]
			e.held = e.held[1:]
			e.dispatch(line)
		case e.stands == needless:
			e.stands, e.client = direct, e.Client
		default:
			e.life.closeInputWhenFlushed()
			return
		}
	}
}

// dispatch handles a message of the client.
func (e *eras) dispatch(line []byte) {
	_ = e.line.Scan(line) // it was scanned when it came
	switch {
	case e.bridge == nil:
		e.look(line)
	case e.givesUpEra(line):
		e.dropBridge()
		e.backend.clientMessage(bridge.Message{Line: line})
	default:
		out := e.bridge.FromClient(e.withoutOldState(line), e.now)
		if out.Again {
			e.held = append([][]byte{line}, e.held...)
		}
		e.pass(out)
	}
}

// givesUpEra reports whether a modern client gives up its era, for example after waiting too long for its probe. e.line
// was scanned from what it says.
func (e *eras) givesUpEra(line []byte) bool {
	return !e.translating(mcp.Legacy) && e.line.Kind == jsonrpc.Request &&
		mcp.Lookup(e.line.Method.Of(line)) == mcp.Initialize && e.versionIn(line) == nil
}

// dropBridge removes the bridge of a client that has given up its era, with the bridge's requests.
func (e *eras) dropBridge() {
	e.pass(e.bridge.Close("the client began a new session", e.now))
	e.bridge, e.stands, e.toCore, e.past = nil, needless, nil, nil
	for c := range e.calls.all {
		e.flow.finish(c)
	}
}

// pass hands on a bridge's output: to the client now, to the server once the present message is handled. What waits for a handshake
// that has failed is refused, but for another initialize, by which the client tries again.
func (e *eras) pass(out bridge.Output) {
	for _, m := range out.ToServer {
		e.toCore = append(e.toCore, bridge.Message{Line: bytes.Clone(m.Line), Of: m.Of})
	}
	for _, line := range out.ToClient {
		e.Client.SendToClient(line)
	}
	if out.Refusal != nil {
		e.refuseHeld(out.Refusal, false)
	}
}

// tellBridge tells the bridge of what concerns it alone, if there is one.
func (e *eras) tellBridge(what func(*bridge.Bridge, time.Time) bridge.Output) {
	if e.bridge != nil {
		e.pass(what(e.bridge, e.now))
	}
}

// answered gives the bridge the answer to c.
func (e *eras) answered(c *call, line []byte) {
	e.tellBridge(func(b *bridge.Bridge, now time.Time) bridge.Output { return b.Answered(c.of, line, c.progress, now) })
	e.moved()
}

// over tells the bridge that no process works on a request that was cancelled, given its raw id.
func (e *eras) over(id []byte) {
	e.tellBridge(func(b *bridge.Bridge, now time.Time) bridge.Output { return b.Over(id, now) })
}

// ForwardToClient implements [Client].
func (e *eras) ForwardToClient(line []byte) { e.fromServer(line, e.Client.ForwardToClient) }

// SendToClient implements [Client].
func (e *eras) SendToClient(line []byte) { e.fromServer(line, e.Client.SendToClient) }

// fromServer takes a line for the client, which gets it as it is by send if nothing is translated.
func (e *eras) fromServer(line []byte, send func([]byte)) {
	switch {
	case e.bridge != nil:
		e.pass(e.bridge.FromServer(line, e.now))
	case !e.eraShown(line):
		send(line)
	}
}

// deadline is when the bridge must be called; zero: not at all.
func (e *eras) deadline() time.Time {
	if e.bridge == nil || e.stopped {
		return time.Time{}
	}
	return e.bridge.Deadline()
}

func (e *eras) tick() {
	if at := e.deadline(); !at.IsZero() && !e.now.Before(at) {
		e.tellBridge((*bridge.Bridge).Tick)
	}
}

// mayWait reports whether a line of the client can wait behind what is held. Nobody begins what is taken back by a cancellation.
func (e *eras) mayWait(line []byte) bool {
	_ = e.line.Scan(line) // it was scanned when it came
	switch {
	case e.givesUpEra(line):
		data := outcome{Reason: newSession.reason, Delivered: "no", Generation: e.process.gen}.raw()
		e.refuseHeld([]byte(`{"code":-32600,"message":"`+newSession.text+`","data":`+string(data)+`}`), false)
		if e.bridge != nil {
			e.dropBridge()
		}
		return true
	case len(e.held) >= heldMost && e.line.Kind == jsonrpc.Request:
		e.Client.SendToClient(jsonrpc.AppendError(nil, e.line.ID.Of(line), jsonrpc.InternalError,
			"the server is still starting, and too many requests are waiting", nil))
	case e.line.Kind == jsonrpc.Notification && mcp.Lookup(e.line.Method.Of(line)) == mcp.NoteCancelled:
		about := e.line.RequestID.Of(line)
		i := slices.IndexFunc(e.held, func(one []byte) bool {
			return e.line.Scan(one) == nil && e.line.Kind == jsonrpc.Request && jsonrpc.SameID(e.line.ID.Of(one), about)
		})
		if i >= 0 {
			e.held = slices.Delete(e.held, i, i+1)
			return false
		}
	}
	return len(e.held) < heldMost
}

// versionIn is the raw protocol version in a request's _meta, as modern requests have; e.line was scanned from it.
func (e *eras) versionIn(line []byte) []byte {
	meta := e.line.Meta.Of(line)
	return jsonrpc.Find(meta, mcp.MetaProtocolVersion).Of(meta)
}

// look decides by a line of the client whether a bridge is needed; e.line was scanned from it.
func (e *eras) look(line []byte) {
	m := mcp.Lookup(e.line.Method.Of(line))
	switch {
	case e.stands == needless || e.line.Kind != jsonrpc.Request:
	case m == mcp.Initialize:
		if e.memory.known.only() == mcp.Modern {
			e.attach(mcp.Legacy, line)
			return
		}
		e.stands = needless // a refusal will show it
	case m == mcp.Discover || e.versionIn(line) == nil:
		// The prober decides, or it cannot be decided yet.
	case e.memory.known.only() == mcp.Legacy:
		e.attach(mcp.Modern, line)
		return
	case e.memory.known.Era == mcp.Modern || e.process.era == mcp.Modern:
		e.stands = needless
	default:
		e.ask(line)
		return
	}
	e.backend.clientMessage(bridge.Message{Line: line})
}

// ask probes the server's era on behalf of a client that is about to use it.
func (e *eras) ask(line []byte) {
	meta := mcp.OwnMeta(e.line.Meta.Of(line))
	e.stands = asking
	e.held = append([][]byte{line}, e.held...)
	e.backend.clientMessage(bridge.Message{Line: mcp.DiscoverLine([]byte(eraQuestion), meta)})
}

// eraShown takes the answer to the backend's own probe. An answer, or a demand for another version, shows a modern server.
// Any other error says that it could not be asked; the client would get the same error.
func (e *eras) eraShown(line []byte) bool {
	if e.stands != asking || e.line.Scan(line) != nil || string(e.line.ID.Of(line)) != eraQuestion {
		return false
	}
	raw := e.line.Error.Of(line)
	if raw == nil || jsonrpc.ErrorCode(raw) == mcp.CodeVersion {
		e.stands = needless
		return true
	}
	e.stands = undecided
	e.refuseHeld(raw, true)
	return true
}

// refuseHeld answers the requests that are held with a raw error: all, or those before an initialize.
func (e *eras) refuseHeld(err []byte, all bool) {
	for len(e.held) > 0 {
		line := e.held[0]
		request := e.line.Scan(line) == nil && e.line.Kind == jsonrpc.Request
		if !all && request && mcp.Lookup(e.line.Method.Of(line)) == mcp.Initialize {
			return
		}
		e.held = e.held[1:]
		if request {
			e.Client.SendToClient(jsonrpc.AppendErrorObject(nil, e.line.ID.Of(line), err))
		}
	}
}

// probeRefused is called before a probe is answered with "method not found" because the server is legacy. It reports
// whether the probe was handled otherwise, since the client would not accept that answer. A server that has not read the
// probe may be modern; the client loses nothing then, and the server will say so.
func (e *eras) probeRefused(c *call) bool {
	switch {
	case e.stands == asking && string(c.id) == eraQuestion:
		e.attach(mcp.Modern)
	case (e.stands == undecided || e.stands == asking) && (e.opts.Pinned || bridge.MayBePinned(c.id)):
		e.attach(mcp.Modern, bytes.Clone(c.line))
	default:
		return false
	}
	e.flow.finish(c)
	return true
}

// initializeRefused checks whether a server has refused initialize because it is modern only. The client is
// bridged to a new process then. If the bridge sent the initialize, the server was mistaken for legacy: it may have died
// of something else when it was probed.
func (e *eras) initializeRefused(line []byte) bool {
	if e.opts.NoBridge || e.translating(mcp.Legacy) || !modernOnly(e.env.Error.Of(line)) {
		return false
	}
	if e.translating(mcp.Modern) {
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
	e.attach(mcp.Legacy, e.flow.saidSoFar(hasty)...)
	e.process.mark(mustDrain) // what comes now is for the next one
	e.life.step(supervise.Restart{Cause: supervise.Replace, Reason: "it speaks the modern era only"})
	return true
}

// own reports whether c is a bridge's own: a stream that serves no subscription of its legacy client.
func (e *eras) own(c *call) bool {
	told := c.acked
	if told == nil {
		told = c.filter()
	}
	for range jsonrpc.Elements(jsonrpc.Find(told, "resourceSubscriptions").Of(told)) {
		return false
	}
	return c.method == mcp.Listen && e.translating(mcp.Legacy)
}

// translating reports whether a bridge for a client of this era is in use.
func (e *eras) translating(client mcp.Era) bool {
	return e.bridge != nil && e.bridge.Client() == client
}

// unsaid reports whether messages of the client have not reached the rest of the backend yet.
func (e *eras) unsaid() bool {
	return e.stands == asking || len(e.held)+len(e.toCore) > 0 || e.bridge != nil && e.bridge.Waiting()
}

// attach puts a bridge for a client of this era in front of the rest of the backend; lines are the client's first messages to it.
func (e *eras) attach(client mcp.Era, lines ...[]byte) {
	e.standBetween()
	e.bridge = bridge.New(bridge.Options{Client: client, Key: e.opts.BridgeKey, Principal: e.opts.principal()})
	e.stands = bridged
	e.held = append(lines, e.held...)
	e.emit(event.BridgeEngaged, slog.LevelInfo, "Translating between eras of the protocol: "+bridge.Name(client),
		slog.String(event.KeyReason, bridge.Name(client)))
	if e.Asleep() {
		e.tellBridge((*bridge.Bridge).Rest) // a lazy server is started by what the client wants
	}
}

// answerUnsaid answers, at the end, the requests that the rest of the backend has not got.
func (e *eras) answerUnsaid() {
	const text = "the server has shut down; the request was not delivered"
	e.tellBridge(func(b *bridge.Bridge, now time.Time) bridge.Output { return b.Close(text, now) })
	e.refuseHeld([]byte(`{"code":-32603,"message":"`+text+`"}`), true)
	e.toCore = nil
	if e.stands == asking {
		e.stands = undecided
	}
}
