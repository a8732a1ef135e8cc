package backend

import (
	"bytes"
	"slices"
	"time"

	"github.com/outlive-mcp/outlive/internal/protocol/bridge"
	"github.com/outlive-mcp/outlive/internal/protocol/jsonrpc"
	"github.com/outlive-mcp/outlive/internal/protocol/mcp"
)

// eraAdapter stands between the client and the rest of a Backend until both sides are known to speak one era, and for good if
// they do not: then a bridge translates, and the rest of the Backend sees a client of the server's era. It implements
// the backend's World, so that no other part knows of it. There is none where both sides speak the same era.
//
// Whether a bridge is needed is known from earlier runs, or learned: a server refuses initialize because it is modern,
// or a probe shows a legacy server. For a modern client that does not probe, the adapter probes.
type eraAdapter struct {
	Client
	eras    *eras
	env     jsonrpc.Envelope // scratch of the line being looked at
	bridge  *bridge.Bridge   // nil: not needed so far
	decided bool             // without a bridge it is not needed: the adapter goes

	asked  bool     // the server is being asked for its era
	held   [][]byte // messages of the client not yet handled
	toCore [][]byte // messages for the rest of the backend, from a client of the server's era
	at     time.Time
}

// eraQuestion is the raw id of the backend's own server/discover: below the questions', and far from the bridge's, which begin with 1.
const eraQuestion = "1499999999"

// codeNoMethod is how a server refuses a method that it does not know.
const codeNoMethod = "-32601"

// fromClient takes a line of the client, which is not kept.
func (a *eraAdapter) fromClient(line []byte) {
	if a.asked && a.needsNoEra(line) {
		return
	}
	a.held = append(a.held, bytes.Clone(line))
	a.eras.settle()
}

// dispatch handles a message of the client.
func (a *eraAdapter) dispatch(line []byte) {
	_ = a.env.Scan(line) // it was scanned when it came
	switch {
	case a.bridge == nil:
		a.look(line)
	case a.leaves(line):
		a.leave()
		a.eras.backend.clientMessage(line)
	default:
		a.emit(a.bridge.FromClient(a.withoutOldState(line), a.eras.now))
	}
}

// leaves reports whether a modern client gives up its era, for example after waiting too long for its probe.
func (a *eraAdapter) leaves(line []byte) bool {
	return a.bridge.Mode() == bridge.ModernClient && a.env.Kind == jsonrpc.Request &&
		mcp.Lookup(a.env.Method.Of(line)) == mcp.Initialize && a.version(line) == nil
}

// leave removes the bridge of a client that has given up its era, with the bridge's requests.
func (a *eraAdapter) leave() {
	a.emit(a.bridge.Close("the client began a new session", a.eras.now))
	a.bridge, a.decided, a.toCore, a.at = nil, true, nil, time.Time{}
	a.eras.past = nil
	for c := range a.eras.calls.all {
		a.eras.flow.finish(c)
	}
}

// emit sends a bridge's output: to the client now, to the server once the present message is handled.
func (a *eraAdapter) emit(out bridge.Output) {
	for _, line := range out.ToServer {
		a.toCore = append(a.toCore, bytes.Clone(line))
	}
	a.at = out.Deadline
	for _, line := range out.ToClient {
		a.Client.SendToClient(line)
	}
}

// ForwardToClient implements World.
func (a *eraAdapter) ForwardToClient(line []byte) { a.tell(line, a.Client.ForwardToClient) }

// SendToClient implements World.
func (a *eraAdapter) SendToClient(line []byte) { a.tell(line, a.Client.SendToClient) }

func (a *eraAdapter) tell(line []byte, as func([]byte)) {
	switch {
	case a.bridge != nil:
		a.emit(a.bridge.FromServer(line, a.eras.now))
		a.eras.moved()
	case a.answered(line):
	default:
		as(line)
	}
}

// deadline is when the bridge must be called: at once while something waits to be handled.
func (a *eraAdapter) deadline() time.Time {
	if len(a.toCore) > 0 || len(a.held) > 0 && !a.asked {
		return a.eras.now
	}
	return a.at
}

// over tells the bridge that the server has answered a cancelled request.
func (a *eraAdapter) over(id []byte) {
	if a.bridge != nil {
		a.emit(a.bridge.Over(id, a.eras.now))
	}
}

// processesGone tells the bridge that no process is left that knows of earlier requests.
func (a *eraAdapter) processesGone() {
	if a.bridge != nil {
		a.emit(a.bridge.Reborn(a.eras.now))
	}
}

func (a *eraAdapter) tick() {
	if a.bridge != nil && !a.at.IsZero() && !a.eras.now.Before(a.at) {
		a.emit(a.bridge.Tick(a.eras.now))
	}
}

// needsNoEra handles what needs no known era: the cancellation of a waiting request.
func (a *eraAdapter) needsNoEra(line []byte) bool {
	if a.env.Scan(line) != nil || a.env.Kind != jsonrpc.Notification || mcp.Lookup(a.env.Method.Of(line)) != mcp.NoteCancelled {
		return false
	}
	id := a.env.RequestID.Of(line)
	i := slices.IndexFunc(a.held, func(one []byte) bool {
		return a.env.Scan(one) == nil && a.env.Kind == jsonrpc.Request && jsonrpc.SameID(a.env.ID.Of(one), id)
	})
	if i < 0 {
		return false
	}
	a.held = slices.Delete(a.held, i, i+1)
	return true
}

// version is the raw protocol version in a request's _meta, as modern requests have; a.env was scanned.
func (a *eraAdapter) version(line []byte) []byte {
	meta := a.env.Meta.Of(line)
	return jsonrpc.Find(meta, mcp.MetaProtocolVersion).Of(meta)
}

// look decides by a line of the client whether a bridge is needed; a.env was scanned from it.
func (a *eraAdapter) look(line []byte) {
	m := mcp.Lookup(a.env.Method.Of(line))
	switch {
	case a.decided || a.env.Kind != jsonrpc.Request:
	case m == mcp.Initialize:
		if bridge.Need(a.eras.opts.Bridge, mcp.Legacy, a.eras.memory.known.only()) == bridge.LegacyClient {
			a.eras.attach(bridge.LegacyClient, line)
			return
		}
		a.decided = true // a refusal will show it
	case m == mcp.Discover || a.version(line) == nil:
		// The prober decides, or it cannot be decided yet.
	case bridge.Need(a.eras.opts.Bridge, mcp.Modern, a.eras.memory.known.only()) == bridge.ModernClient:
		a.eras.attach(bridge.ModernClient, line)
		return
	case a.eras.memory.known.Era == mcp.Modern || a.eras.process.era == mcp.Modern:
		a.decided = true
	default:
		a.ask(line)
		return
	}
	a.eras.backend.clientMessage(line)
}

// ask probes the server's era on behalf of a client that is about to use it.
func (a *eraAdapter) ask(line []byte) {
	meta := mcp.OwnMeta(a.env.Meta.Of(line))
	a.asked = true
	a.held = append([][]byte{line}, a.held...)
	a.eras.backend.clientMessage(mcp.DiscoverLine([]byte(eraQuestion), meta))
}

// answered takes the answer to the adapter's own probe. An answer, or a demand for another version, shows a modern server.
// Any other error says that it could not be asked; the client would get the same error.
func (a *eraAdapter) answered(line []byte) bool {
	if !a.asked || a.env.Scan(line) != nil || string(a.env.ID.Of(line)) != eraQuestion {
		return false
	}
	a.asked = false
	raw := a.env.Error.Of(line)
	if raw == nil || string(jsonrpc.Find(raw, "code").Of(raw)) == codeUnsupportedVersion {
		a.decided = true
		return true
	}
	a.refuseAll(raw)
	return true
}

// refuseAll answers all unhandled requests of the client with a raw error.
func (a *eraAdapter) refuseAll(err []byte) {
	waiting := a.held
	a.held = nil
	for _, line := range waiting {
		if a.env.Scan(line) == nil && a.env.Kind == jsonrpc.Request {
			a.Client.SendToClient(jsonrpc.AppendErrorObject(nil, a.env.ID.Of(line), err))
		}
	}
}
