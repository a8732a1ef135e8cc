package streamhttp

import (
	"net/http"
	"strconv"

	"github.com/outlive-mcp/outlive/internal/protocol/jsonrpc"
)

// refusal is the error answer to a request.
type refusal struct {
	status int // HTTP
	code   int // JSON-RPC; 0: as the status says, an internal error or an invalid request
	text   string
	data   []byte // raw JSON, or nil
}

// retryAfter is the Retry-After of a 503, in seconds.
const retryAfter = "5"

// refuse answers with an HTTP status and a JSON-RPC error. A 503 may work later. id is the raw id of the request; if it is unknown, the error
// has no id: the specification asks for that, and null ends some clients.
func refuse(w http.ResponseWriter, id []byte, why refusal) {
	switch {
	case why.code != 0:
	case why.status >= http.StatusInternalServerError:
		why.code = jsonrpc.InternalError
	default:
		why.code = jsonrpc.InvalidRequest
	}
	if why.status == http.StatusServiceUnavailable {
		w.Header().Set("Retry-After", retryAfter)
	}
	writeJSON(w, why.status, jsonrpc.AppendErrorObject(nil, id, jsonrpc.ErrorObject(nil, why.code, why.text, why.data)))
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
	refuse(w, nil, refusal{status: http.StatusMethodNotAllowed, text: "method not allowed"})
}
