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
	client [][]byte // lines of the client not yet handled
	inner  [][]byte // lines for the rest of the backend, from a client of the server's era
	at     time.Time
}

// eraQuestion is the raw id of the backend's own server/discover: below the questions', and far from the bridge's, which begin with 1.
const eraQuestion = "1499999999"

// codeNoMethod is how a server refuses a method that it does not know.
const codeNoMethod = "-32601"

// said takes a line of the client, which is not kept.
func (s *eraAdapter) said(line []byte) {
	if s.asked && s.needsNoEra(line) {
		return
	}
	s.client = append(s.client, bytes.Clone(line))
	s.eras.settle()
}

// take handles a message of the client.
func (s *eraAdapter) take(line []byte) {
	_ = s.env.Scan(line) // it was scanned when it came
	switch {
	case s.bridge == nil:
		s.look(line)
	case s.leaves(line):
		s.leave()
		s.eras.backend.clientMessage(line)
	default:
		s.give(s.bridge.FromClient(s.withoutOldState(line), s.eras.now))
	}
}

// leaves reports whether a modern client gives up its era, for example after waiting too long for its probe.
func (s *eraAdapter) leaves(line []byte) bool {
	return s.bridge.Mode() == bridge.ModernClient && s.env.Kind == jsonrpc.Request &&
		mcp.Lookup(s.env.Method.Of(line)) == mcp.Initialize && s.version(line) == nil
}

// leave removes the bridge of a client that has given up its era, with the bridge's requests.
func (s *eraAdapter) leave() {
	s.give(s.bridge.Close("the client began a new session", s.eras.now))
	s.bridge, s.decided, s.inner, s.at = nil, true, nil, time.Time{}
	s.eras.past = nil
	for c := range s.eras.calls.all {
		s.eras.flow.finish(c)
	}
}

// give sends a bridge's output: to the client now, to the server once the present message is handled.
func (s *eraAdapter) give(out bridge.Output) {
	for _, line := range out.ToServer {
		s.inner = append(s.inner, bytes.Clone(line))
	}
	s.at = out.Deadline
	for _, line := range out.ToClient {
		s.Client.SendToClient(line)
	}
}

// ForwardToClient implements World.
func (s *eraAdapter) ForwardToClient(line []byte) { s.tell(line, s.Client.ForwardToClient) }

// SendToClient implements World.
func (s *eraAdapter) SendToClient(line []byte) { s.tell(line, s.Client.SendToClient) }

func (s *eraAdapter) tell(line []byte, as func([]byte)) {
	switch {
	case s.bridge != nil:
		s.give(s.bridge.FromServer(line, s.eras.now))
		s.eras.moved()
	case s.answered(line):
	default:
		as(line)
	}
}

// deadline is when the bridge must be called: at once while something waits to be handled.
func (s *eraAdapter) deadline() time.Time {
	if len(s.inner) > 0 || len(s.client) > 0 && !s.asked {
		return s.eras.now
	}
	return s.at
}

// over tells the bridge that the server has answered a cancelled request.
func (s *eraAdapter) over(id []byte) {
	if s.bridge != nil {
		s.give(s.bridge.Over(id, s.eras.now))
	}
}

// processesGone tells the bridge that no process is left that knows of earlier requests.
func (s *eraAdapter) processesGone() {
	if s.bridge != nil {
		s.give(s.bridge.Reborn(s.eras.now))
	}
}

func (s *eraAdapter) tick() {
	if s.bridge != nil && !s.at.IsZero() && !s.eras.now.Before(s.at) {
		s.give(s.bridge.Tick(s.eras.now))
	}
}

// needsNoEra handles what needs no known era: the cancellation of a waiting request.
func (s *eraAdapter) needsNoEra(line []byte) bool {
	if s.env.Scan(line) != nil || s.env.Kind != jsonrpc.Notification || mcp.Lookup(s.env.Method.Of(line)) != mcp.NoteCancelled {
		return false
	}
	id := s.env.RequestID.Of(line)
	i := slices.IndexFunc(s.client, func(one []byte) bool {
		return s.env.Scan(one) == nil && s.env.Kind == jsonrpc.Request && jsonrpc.SameID(s.env.ID.Of(one), id)
	})
	if i < 0 {
		return false
	}
	s.client = slices.Delete(s.client, i, i+1)
	return true
}

// version is the raw protocol version in a request's _meta, as modern requests have; s.env was scanned.
func (s *eraAdapter) version(line []byte) []byte {
	meta := s.env.Meta.Of(line)
	return jsonrpc.Find(meta, mcp.MetaProtocolVersion).Of(meta)
}

// look decides by a line of the client whether a bridge is needed; s.env was scanned from it.
func (s *eraAdapter) look(line []byte) {
	m := mcp.Lookup(s.env.Method.Of(line))
	switch {
	case s.decided || s.env.Kind != jsonrpc.Request:
	case m == mcp.Initialize:
		if bridge.Need(s.eras.opts.Bridge, mcp.Legacy, s.eras.memory.known.speaks()) == bridge.LegacyClient {
			s.eras.attach(bridge.LegacyClient, line)
			return
		}
		s.decided = true // a refusal will show it
	case m == mcp.Discover || s.version(line) == nil:
		// The prober decides, or it cannot be decided yet.
	case bridge.Need(s.eras.opts.Bridge, mcp.Modern, s.eras.memory.known.speaks()) == bridge.ModernClient:
		s.eras.attach(bridge.ModernClient, line)
		return
	case s.eras.memory.known.speaks().Modern == bridge.Yes || s.eras.process.era == mcp.Modern:
		s.decided = true
	default:
		s.ask(line)
		return
	}
	s.eras.backend.clientMessage(line)
}

// ask probes the server's era on behalf of a client that is about to use it.
func (s *eraAdapter) ask(line []byte) {
	meta := mcp.OwnMeta(s.env.Meta.Of(line))
	s.asked = true
	s.client = append([][]byte{line}, s.client...)
	s.eras.backend.clientMessage(mcp.DiscoverLine([]byte(eraQuestion), meta))
}

// answered takes the answer to the adapter's own probe. An answer, or a demand for another version, shows a modern server.
// Any other error says that it could not be asked; the client would get the same error.
func (s *eraAdapter) answered(line []byte) bool {
	if !s.asked || s.env.Scan(line) != nil || string(s.env.ID.Of(line)) != eraQuestion {
		return false
	}
	s.asked = false
	raw := s.env.Error.Of(line)
	if raw == nil || string(jsonrpc.Find(raw, "code").Of(raw)) == codeUnsupportedVersion {
		s.decided = true
		return true
	}
	s.refuseAll(raw)
	return true
}

// refuseAll answers all unhandled requests of the client with a raw error.
func (s *eraAdapter) refuseAll(err []byte) {
	waiting := s.client
	s.client = nil
	for _, line := range waiting {
		if s.env.Scan(line) == nil && s.env.Kind == jsonrpc.Request {
			out := append([]byte(`{"jsonrpc":"2.0","id":`), s.env.ID.Of(line)...)
			s.Client.SendToClient(append(append(append(out, `,"error":`...), err...), '}'))
		}
	}
}
