package bridge

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"time"

	"github.com/outlive-mcp/outlive/internal/protocol/jsonrpc"
)

// stateSize is how many bytes of a seal are a requestState, of 32: as many as an AES key has.
const stateSize = 16

// stateOf is the requestState of a suspended call in its present round. Nobody without the key can make one.
func stateOf(c *call, key []byte) string {
	seal := hmac.New(sha256.New, key)
	_, _ = fmt.Fprintf(seal, "outlive bridge 2 %s %d %d %q %q %x",
		c.Wire, c.Rounds, c.Expires.UnixNano(), c.Party.Principal, c.Party.Info, digestOf(c.Method.String(), c.Params))
	return base64.RawURLEncoding.EncodeToString(seal.Sum(nil)[:stateSize])
}

// meant returns the suspended call that the request in s.env continues; nil if the request has no right to any: each belongs to one client,
// one call and one round. came is when the client sent it.
func (s *modernSide) meant(line []byte, came time.Time) *call {
	state, _ := jsonrpc.Unquote(s.env.RequestState.Of(line))
	name, _ := jsonrpc.Unquote(s.env.Method.Of(line))
	for _, c := range s.Calls {
		if !c.suspended() || !hmac.Equal([]byte(c.State), []byte(state)) || !came.Before(c.Expires) {
			continue
		}
		same := bytes.Equal(digestOf(c.Method.String(), c.Params), digestOf(name, s.env.Params.Of(line)))
		if same && c.Party == s.Questions.partyOf(s.env.ID.Of(line), s.env.Meta.Of(line)) {
			return c
		}
	}
	return nil
}

// digestOf identifies a request's method and params, without the members that differ between rounds. Clients may format
// the same params differently.
func digestOf(method string, params []byte) []byte {
	params = without(params, "_meta", "inputResponses", "requestState")
	var v any
	dec := json.NewDecoder(bytes.NewReader(params))
	dec.UseNumber()
	if dec.Decode(&v) == nil {
		if canonical, err := json.Marshal(v); err == nil {
			params = canonical
		}
	}
	sum := sha256.Sum256(append([]byte(method+"\n"), params...))
	return sum[:]
}
