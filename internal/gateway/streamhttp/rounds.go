package streamhttp

import (
	"crypto/aes"
	"crypto/cipher"
	"encoding/base64"
	"net/http"
	"strings"

	"github.com/outlive-mcp/outlive/internal/protocol/jsonrpc"
)

// A call of a modern client whose server asks something goes on with the client's next request, which a load balancer may bring to
// another gateway. Where it began stands in its requestState, before the server's own: sealed, so that no client can have a gateway
// connect to an address of its choice.

// marked is how a requestState begins that says where its call began.
const marked = "outlive1."

// rounds seals and reads where calls began. nil: there are no other gateways.
type rounds struct {
	here string
	seal cipher.AEAD
}

func newRounds(p *Peers) *rounds {
	if p == nil {
		return nil
	}
	block, err := aes.NewCipher(p.StateKey)
	if err != nil {
		panic(err) // its length is Peers' to keep
	}
	seal, _ := cipher.NewGCMWithRandomNonce(block) // of AES: no error
	return &rounds{p.Here, seal}
}

// mark puts where we are into an answer that asks something.
func (o *rounds) mark(line []byte) []byte {
	result := jsonrpc.Find(line, "result")
	state := jsonrpc.Find(result.Of(line), "requestState")
	own, ok := jsonrpc.Unquote(state.Of(result.Of(line)))
	if kind := jsonrpc.Find(result.Of(line), "resultType"); !ok || !jsonrpc.EqualString(kind.Of(result.Of(line)), "input_required") {
		return line
	}
	where := o.seal.Seal(nil, nil, []byte(o.here), nil)
	text := marked + base64.RawURLEncoding.EncodeToString(where) + "." + own
	return jsonrpc.Replace(nil, line, state.In(result), jsonrpc.AppendQuoted(nil, text))
}

// began returns where a call with a raw requestState began, and the server's own. false: nothing is said of that.
func (o *rounds) began(state []byte) (at, own string, ok bool) {
	text, _ := jsonrpc.Unquote(state)
	text, ours := strings.CutPrefix(text, marked)
	sealed, own, _ := strings.Cut(text, ".")
	where, err := base64.RawURLEncoding.DecodeString(sealed)
	if !ours || err != nil {
		return "", "", false
	}
	plain, err := o.seal.Open(nil, nil, where, nil)
	return string(plain), own, err == nil
}

// goOn has a call go on where it began. It returns the line as that is for the server; false: another gateway has answered. If that has
// ended, the call goes on here: a server that keeps nothing in its process can do that, and any other says what it thinks of the state.
func (f *Front) goOn(w http.ResponseWriter, r *http.Request, who caller, line []byte, e *jsonrpc.Envelope) ([]byte, bool) {
	if f.rounds == nil || !e.RequestState.Present() {
		return line, true
	}
	at, own, ok := f.rounds.began(e.RequestState.Of(line))
	if !ok {
		return line, true
	}
	if at != f.rounds.here && !who.passed {
		p := &passing{front: f, w: w, r: r, who: who, line: line, id: e.ID.Of(line)}
		if p.pass(&Elsewhere{At: at}) {
			return nil, false
		}
	}
	line = jsonrpc.Replace(nil, line, e.RequestState, jsonrpc.AppendQuoted(nil, own))
	return line, e.Scan(line) == nil // a splice of two valid texts
}
