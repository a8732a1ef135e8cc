package backend

import (
	"bytes"
	"slices"

	"github.com/outlive-mcp/outlive/internal/bridge"
	"github.com/outlive-mcp/outlive/internal/jsonrpc"
	"github.com/outlive-mcp/outlive/internal/mcp"
	"github.com/outlive-mcp/outlive/internal/supervise"
)

// needsNoEra deals with what need not wait until the era is known: an array, which the client's era does not have, and the
// cancellation of a request that waits.
func (s *seam) needsNoEra(line []byte) bool {
	switch err := s.env.Scan(line); {
	case err == nil && s.env.Kind == jsonrpc.Batch:
		s.b.clientMessage(line, nil)
		return true
	case err != nil || s.env.Kind != jsonrpc.Notification || mcp.Lookup(s.env.Method.Of(line)) != mcp.NoteCancelled:
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

// version is the raw protocol version that a request says in its _meta, as those of the modern era do; s.env was scanned.
func (s *seam) version(line []byte) []byte {
	meta := s.env.Meta.Of(line)
	return jsonrpc.Find(meta, mcp.MetaProtocolVersion).Of(meta)
}

// look decides by a line of the client whether a bridge is needed; s.env was scanned from it.
func (s *seam) look(line []byte) {
	b := s.b
	m := mcp.Lookup(s.env.Method.Of(line))
	switch {
	case s.decided || s.env.Kind != jsonrpc.Request:
	case m == mcp.Initialize:
		if bridge.Need(b.opts.Bridge, mcp.Legacy, b.opts.Known.speaks()) == bridge.LegacyClient {
			b.engage(bridge.LegacyClient, line)
			return
		}
		s.decided = true // a refusal will tell
	case m == mcp.Discover || s.version(line) == nil:
		// The probe shield decides, or nothing can be decided yet.
	case bridge.Need(b.opts.Bridge, mcp.Modern, b.opts.Known.speaks()) == bridge.ModernClient:
		b.engage(bridge.ModernClient, line)
		return
	case b.opts.Known.speaks().Modern == bridge.Yes || b.process.era == mcp.Modern:
		s.decided = true
	default:
		s.ask(line)
		return
	}
	b.clientMessage(line, nil)
}

// ask asks the server, on behalf of a client that is about to use it, which era it speaks.
func (s *seam) ask(line []byte) {
	meta := jsonrpc.Delete(nil, s.env.Meta.Of(line), "progressToken")
	s.asked = true
	s.client = append([][]byte{line}, s.client...)
	s.b.clientMessage(mcp.DiscoverLine([]byte(eraQuestion), meta), nil)
}

// probeRefused is asked when a probe is about to be answered with "method not found", because the server is a legacy one. It
// reports whether the probe is dealt with: the client would not take that for an answer. A server that has not even read the
// probe may be a modern one; but then the client has lost nothing by it, and the server will say so.
func (b *Backend) probeRefused(c *call) bool {
	s := b.seam
	if s == nil || s.bridge != nil || s.decided {
		return false
	}
	switch {
	case s.asked && string(c.id.raw) == eraQuestion:
		b.engage(bridge.ModernClient)
	case b.opts.Pinned || bridge.MayBePinned(c.id.raw):
		b.engage(bridge.ModernClient, bytes.Clone(c.line))
	default:
		return false
	}
	b.finish(c)
	return true
}

// answered takes the answer to the backend's own question, if a line for the client is that. A server that answers, or
// wants another version, is a modern one. Any other error says that it could not be asked: then the client can have
// nothing else from it, either.
func (s *seam) answered(line []byte) bool {
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

// refuseAll answers what the client has said and nobody was told with a raw error.
func (s *seam) refuseAll(err []byte) {
	waiting := s.client
	s.client = nil
	for len(waiting) > 0 {
		line := waiting[0]
		waiting = waiting[1:]
		if s.env.Scan(line) != nil {
			continue
		}
		switch s.env.Kind {
		case jsonrpc.Request:
			out := append([]byte(`{"jsonrpc":"2.0","id":`), s.env.ID.Of(line)...)
			s.World.SendToClient(append(append(append(out, `,"error":`...), err...), '}'))
		case jsonrpc.Batch:
			for at := range jsonrpc.Elements(line) {
				waiting = append(waiting, at.Of(line))
			}
		}
	}
}

// initializeRefused looks whether a server has refused initialize, call c, because it speaks the modern era only. Then the
// client is bridged to a process that has not seen it. If it was the bridge that asked, the server was taken for a legacy one
// by mistake: it may have died when it was probed, for some other reason.
func (b *Backend) initializeRefused(c *call, line []byte) bool {
	if b.opts.Bridge == bridge.Off || b.translating(bridge.LegacyClient) {
		return false
	}
	if !modernOnly(b.env.Error.Of(line)) {
		return false
	}
	if b.translating(bridge.ModernClient) {
		return b.otherEra(b.process, mcp.Modern)
	}
	b.endFirstStart()
	hasty := b.session.Initialized
	b.session.Reset()
	b.engage(bridge.LegacyClient, b.saidSoFar(hasty)...)
	if b.calls.find(c.id.raw) == c {
		b.finish(c)
	}
	b.process.draining = true // what comes now is for the next one
	b.step(supervise.Restart{Cause: supervise.Replace, Reason: "it speaks the modern era only"})
	return true
}

// speaks is what is known of the eras that the server takes.
func (k Knowledge) speaks() bridge.Speaks {
	s := bridge.Speaks{}
	switch {
	case k.NoInitialize:
		s.Legacy = bridge.No
	case k.Initialize != nil || k.Era == mcp.Legacy:
		s.Legacy = bridge.Yes
	}
	switch k.Era {
	case mcp.Modern:
		s.Modern = bridge.Yes
	case mcp.Legacy:
		s.Modern = bridge.No
	}
	return s
}
