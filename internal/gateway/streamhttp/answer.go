package streamhttp

import (
	"net/http"

	"github.com/outlive-mcp/outlive/internal/protocol/jsonrpc"
	"github.com/outlive-mcp/outlive/internal/protocol/mcp"
)

// kindOf is the kind of a hub's line, as far as it matters: Response, ErrorResponse, or another. The deciding member is
// nearly always before anything long, so the first few are examined, and the whole line is scanned only if it begins
// differently.
func kindOf(line []byte) jsonrpc.Kind {
	at := space(line, 0)
	if at >= len(line) || line[at] != '{' {
		return jsonrpc.Invalid
	}
	for at++; ; at++ {
		key, end, ok := simpleString(line, space(line, at))
		if !ok {
			return scannedKind(line)
		}
		at = space(line, end)
		if at >= len(line) || line[at] != ':' {
			return scannedKind(line)
		}
		switch string(key) {
		case "result":
			return jsonrpc.Response
		case "error":
			return jsonrpc.ErrorResponse
		case "method":
			return jsonrpc.Notification
		}
		if at, ok = simpleValue(line, space(line, at+1)); !ok {
			return scannedKind(line)
		}
		if at = space(line, at); at >= len(line) || line[at] != ',' {
			return scannedKind(line)
		}
	}
}

func scannedKind(line []byte) jsonrpc.Kind {
	var e jsonrpc.Envelope
	if e.Scan(line) != nil {
		return jsonrpc.Invalid
	}
	return e.Kind
}

// isAnswer reports whether a line of the hub is a response.
func isAnswer(line []byte) bool {
	kind := kindOf(line)
	return kind == jsonrpc.Response || kind == jsonrpc.ErrorResponse
}

// space returns the first position from at on without white space.
func space(line []byte, at int) int {
	for at < len(line) && (line[at] == ' ' || line[at] == '\t' || line[at] == '\r' || line[at] == '\n') {
		at++
	}
	return at
}

// simpleString reads a string without escapes: its text, and its end.
func simpleString(line []byte, at int) (text []byte, end int, ok bool) {
	if at >= len(line) || line[at] != '"' {
		return nil, 0, false
	}
	for i := at + 1; i < len(line); i++ {
		switch line[i] {
		case '"':
			return line[at+1 : i], i + 1, true
		case '\\':
			return nil, 0, false
		}
	}
	return nil, 0, false
}

// simpleValue steps over a string without escapes, a number or a literal.
func simpleValue(line []byte, at int) (end int, ok bool) {
	if at < len(line) && line[at] == '"' {
		_, end, ok = simpleString(line, at)
		return end, ok
	}
	for end = at; end < len(line); end++ {
		switch c := line[end]; {
		case c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c == '-' || c == '+' || c == '.' || c == 'E':
		default:
			return end, end > at
		}
	}
	return 0, false
}

// statusOf is the HTTP status of an answer (2026-07-28, Streamable HTTP; SEP-2575). In the legacy era it is always 200.
func statusOf(era mcp.Era, line []byte) int {
	if era != mcp.Modern || kindOf(line) != jsonrpc.ErrorResponse {
		return http.StatusOK
	}
	failure := jsonrpc.Find(line, "error").Of(line)
	code := jsonrpc.Find(failure, "code").Of(failure)
	switch {
	case jsonrpc.SameID(code, []byte("-32601")):
		return http.StatusNotFound
	case jsonrpc.SameID(code, []byte("-32602")), jsonrpc.SameID(code, []byte("-32020")),
		jsonrpc.SameID(code, []byte("-32021")), jsonrpc.SameID(code, []byte("-32022")):
		return http.StatusBadRequest
	}
	return http.StatusOK
}

// negotiated is the protocol version that the answer to initialize names, "" when it is an error.
func negotiated(line []byte) string {
	version, _ := jsonrpc.Unquote(jsonrpc.FindPath(line, "result", "protocolVersion").Of(line))
	return version
}
