package bridge

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"strconv"
	"time"

	"github.com/outlive-mcp/outlive/internal/protocol/jsonrpc"
)

// A handle has number, round and expiry of a suspended call, sealed together with the client and the called method.
const (
	handleBody = 8 + 2 + 8
	handleSeal = 16 // bytes of the seal, of 32: as many as an AES key has
)

// sealer makes and checks the requestState of modern clients.
type sealer struct {
	key    []byte
	client string
}

// seal returns a handle as a raw JSON string.
func (s sealer) seal(number uint64, round int, expires time.Time, called []byte) []byte {
	body := make([]byte, 0, handleBody+handleSeal)
	body = binary.BigEndian.AppendUint64(body, number)
	body = binary.BigEndian.AppendUint16(body, uint16(round))
	body = binary.BigEndian.AppendUint64(body, uint64(expires.UnixMilli()))
	body = append(body, s.mac(body, called)...)
	return jsonrpc.AppendQuoted(nil, base64.RawURLEncoding.EncodeToString(body))
}

// open returns the content of a raw handle, if it was sealed for this client and this call, and has not expired.
func (s sealer) open(raw []byte, now time.Time, called []byte) (number uint64, round int, ok bool) {
	text, isText := jsonrpc.Unquote(raw)
	body, err := base64.RawURLEncoding.DecodeString(text)
	if !isText || err != nil || len(body) != handleBody+handleSeal {
		return 0, 0, false
	}
	if !hmac.Equal(body[handleBody:], s.mac(body[:handleBody], called)) {
		return 0, 0, false
	}
	if now.UnixMilli() >= int64(binary.BigEndian.Uint64(body[10:])) {
		return 0, 0, false
	}
	return binary.BigEndian.Uint64(body), int(binary.BigEndian.Uint16(body[8:])), true
}

func (s sealer) mac(body, called []byte) []byte {
	h := hmac.New(sha256.New, s.key)
	h.Write([]byte("outlive bridge 1 " + strconv.Itoa(len(s.client)) + " " + s.client))
	h.Write(body)
	h.Write(called)
	return h.Sum(nil)[:handleSeal]
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
