package bridge

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"

	"github.com/outlive-mcp/outlive/internal/protocol/jsonrpc"
)

// stateSize is how many bytes of a seal are a requestState, of 32: as many as an AES key has.
const stateSize = 16

// stateOf is the raw requestState of a suspended call in its present round. Nobody without the key can make one.
func stateOf(c *Call, key []byte) []byte {
	seal := hmac.New(sha256.New, key)
	_, _ = fmt.Fprintf(seal, "outlive bridge 2 %s %d %d %q %q %x",
		c.Wire, c.Rounds, c.Expires.UnixNano(), c.Party.Principal, c.Party.Info, c.digest())
	return jsonrpc.AppendQuoted(nil, base64.RawURLEncoding.EncodeToString(seal.Sum(nil)[:stateSize]))
}

// meant returns the suspended call that a request continues; nil if it has no right to any. A state is of one client, one call and
// one round. It is compared by its text, which a client may write with other escapes.
func (s *modernSide) meant(next *Call) *Call {
	brought, _ := jsonrpc.Unquote(next.State)
	return s.Calls.first(func(c *Call) bool {
		given, _ := jsonrpc.Unquote(c.State)
		return c.suspended() && hmac.Equal([]byte(given), []byte(brought)) && next.Came.Before(c.Expires) &&
			c.Party == next.Party && bytes.Equal(c.digest(), next.digest())
	})
}

// digest identifies a call's method and params, without the members that differ between rounds. Clients may format the
// same params differently.
func (c *Call) digest() []byte {
	params := without(member(c.Line, "params"), "_meta", "inputResponses", "requestState")
	var v any
	dec := json.NewDecoder(bytes.NewReader(params))
	dec.UseNumber()
	if dec.Decode(&v) == nil {
		if canonical, err := json.Marshal(v); err == nil {
			params = canonical
		}
	}
	sum := sha256.Sum256(append([]byte(c.Method.String()+"\n"), params...))
	return sum[:]
}
