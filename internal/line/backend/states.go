package backend

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"

	"github.com/outlive-mcp/outlive/internal/protocol/jsonrpc"
)

// statesKept is how many request states are remembered.
const statesKept = 4096

// requestStates remembers which process issued which requestState. Servers seal it with a key of their process, so that
// after a restart every open multi-round-trip request would fail; without it, the server begins the request again.
type requestStates struct {
	*core

	gens map[uint64]int // by digest of the state
	row  []uint64       // digests in the order they were given out
}

// stateDigest identifies a state across upgrades of this program.
func stateDigest(state []byte) uint64 {
	sum := sha256.Sum256(state)
	return binary.BigEndian.Uint64(sum[:])
}

// gave notes that process gen issued the state with digest h.
func (s *requestStates) gave(h uint64, gen int) {
	if _, known := s.gens[h]; !known {
		s.row = append(s.row, h)
		if len(s.row) > statesKept {
			delete(s.gens, s.row[0])
			s.row = s.row[1:]
		}
	}
	if s.gens == nil {
		s.gens = map[uint64]int{}
	}
	s.gens[h] = gen
}

// native reports whether a state was issued by a process, and not by a bridge.
func (s *requestStates) native(state []byte) bool {
	_, known := s.gens[stateDigest(state)]
	return known
}

// older reports whether state was issued by a process before gen.
func (s *requestStates) older(state []byte, gen int) bool {
	from, known := s.gens[stateDigest(state)]
	return known && from < gen
}

// inspectState notes the states that a server issues, and begins a request again whose state died with its process.
func (s *requestStates) inspectState(c *call, line []byte) []byte {
	if s.env.Kind == jsonrpc.Response {
		if jsonrpc.EqualString(s.env.ResultType.Of(line), "input_required") {
			result := s.env.Result.Of(line)
			if state := jsonrpc.Find(result, "requestState").Of(result); state != nil {
				s.gave(stateDigest(state), c.gen)
			}
		}
		return line
	}
	state := c.retry.Of(c.line)
	if state == nil || jsonrpc.ErrorCode(jsonrpc.Find(line, "error").Of(line)) != jsonrpc.InvalidParams || !s.older(state, c.gen) {
		return line
	}
	s.beginAgain(c)
	return nil
}

// beginAgain sends a request again as a new one, once: without the state and its answers.
func (s *requestStates) beginAgain(c *call) {
	params := c.param.Of(c.line)
	fresh := jsonrpc.Delete(nil, jsonrpc.Delete(nil, params, "requestState"), "inputResponses")
	line := bytes.Clone(jsonrpc.Replace(nil, c.line, c.param, fresh))
	c.retry = jsonrpc.Span{}
	c.line = append(c.line[:0], line...)
	_ = s.env.Scan(c.line) // our own splice of two valid texts
	c.param, c.tool = s.env.Params, s.env.Name
	c.resent++
	s.calls.set(c, parked)
	if s.process.serves() {
		s.flow.transmit(c, c.line, true)
		return
	}
	s.flow.queue(c)
}
