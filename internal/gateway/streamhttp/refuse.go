package streamhttp

import (
	"net/http"
	"strconv"

	"github.com/outlive-mcp/outlive/internal/protocol/jsonrpc"
)

// The error codes of JSON-RPC, by shorter names.
const (
	codeParse          = jsonrpc.ParseError
	codeInvalidRequest = jsonrpc.InvalidRequest
	codeInvalidParams  = jsonrpc.InvalidParams
	codeInternal       = jsonrpc.InternalError
)

// refusal is the error answer to a request.
type refusal struct {
	status int // HTTP
	code   int // JSON-RPC
	text   string
	data   []byte // raw JSON, or nil
	retry  bool   // it may work later
}

// retryAfter is the Retry-After of a 503, in seconds.
const retryAfter = "5"

// refuse answers with an HTTP status and a JSON-RPC error. id is the raw id of the request; if it is unknown, the error
// has no id: the specification asks for that, and null ends some clients.
func refuse(w http.ResponseWriter, status int, id []byte, why refusal) {
	var body []byte
	if id != nil {
		body = jsonrpc.AppendError(nil, id, why.code, why.text, why.data)
	} else {
		body = append(body, `{"jsonrpc":"2.0","error":{"code":`...)
		body = strconv.AppendInt(body, int64(why.code), 10)
		body = append(body, `,"message":`...)
		body = jsonrpc.AppendQuoted(body, why.text)
		body = append(body, "}}"...)
	}
	if why.retry {
		w.Header().Set("Retry-After", retryAfter)
	}
	writeJSON(w, status, body)
}

// writeJSON writes a whole body in one piece.
func writeJSON(w http.ResponseWriter, status int, body []byte) {
	h := w.Header()
	h["Content-Type"] = contentJSON
	h["Content-Length"] = []string{strconv.Itoa(len(body))}
	w.WriteHeader(status)
	// After an error the client is gone.
	_, _ = w.Write(body)
}

// contentJSON is shared by all answers to save allocations.
var contentJSON = []string{"application/json"}

func notAllowed(w http.ResponseWriter, allow string) {
	w.Header().Set("Allow", allow)
	refuse(w, http.StatusMethodNotAllowed, nil, refusal{code: codeInvalidRequest, text: "method not allowed"})
}
