package streamhttp

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"net/textproto"
	"strings"

	"github.com/outlive-mcp/outlive/internal/protocol/jsonrpc"
	"github.com/outlive-mcp/outlive/internal/protocol/mcp"
)

// mismatch is the error for headers that do not mirror the body (SEP-2243).
func mismatch(format string, args ...any) refusal {
	return refusal{status: http.StatusBadRequest, code: mcp.CodeHeaders, text: "Header mismatch: " + fmt.Sprintf(format, args...)}
}

// checkHeader compares a header that is never encoded with a raw JSON string of the body.
func checkHeader(r *http.Request, name string, raw []byte) refusal {
	fields := r.Header[name]
	if len(fields) != 1 || fields[0] == "" { // readers of several could see different values
		return mismatch("the header %s is missing or there twice", name)
	}
	if !jsonrpc.EqualString(raw, fields[0]) {
		return mismatch("the header %s says %.200q, the body %.200s", name, fields[0], raw)
	}
	return refusal{}
}

// checkEncoded compares the one field of a header, which may be encoded, with a raw value; where says of what in the body.
func checkEncoded(name, field string, raw []byte, where string) refusal {
	value, err := decodeSentinel(field)
	switch {
	case err != nil:
		return mismatch("the header %s: %v", name, err)
	case !sameValue(value, raw):
		return mismatch("the header %s says %.200q, %s %.200s", name, value, where, raw)
	}
	return refusal{}
}

// checkName compares Mcp-Name, which may be encoded, with a raw value of the body.
func checkName(r *http.Request, raw []byte, where string) refusal {
	if !jsonrpc.IsString(raw) {
		return invalidParams(where + " must be a string")
	}
	fields := r.Header[headerName]
	if len(fields) != 1 || fields[0] == "" && !jsonrpc.EqualString(raw, "") {
		return mismatch("the header %s is missing or there twice", headerName)
	}
	return checkEncoded(headerName, fields[0], raw, where+" is")
}

// checkCall compares the headers of a tools/call with its body: the tool's name, and the mirrored arguments.
func (f *Front) checkCall(r *http.Request, view string, line []byte, e *jsonrpc.Envelope) refusal {
	raw := e.Name.Of(line)
	no := checkName(r, raw, "params.name")
	if no.status != 0 {
		return no
	}
	tool, _ := jsonrpc.Unquote(raw)
	wanted := f.hub.ParamHeaders(view, tool)
	if len(wanted) == 0 {
		return no
	}
	params := e.Params.Of(line)
	arguments := jsonrpc.Find(params, "arguments").Of(params)
	for _, one := range wanted {
		if no = checkParam(r, arguments, one); no.status != 0 {
			return no
		}
	}
	return no
}

// checkParam compares one Mcp-Param header with its argument. Either both or neither must be present.
func checkParam(r *http.Request, arguments []byte, one mcp.ParamHeader) refusal {
	name := textproto.CanonicalMIMEHeaderKey(headerParam + one.Header)
	raw := jsonrpc.FindPath(arguments, one.Path...).Of(arguments)
	fields := r.Header[name]
	if raw == nil || jsonrpc.IsNull(raw) {
		if len(fields) > 0 {
			return mismatch("the header %s has no argument it stands for", name)
		}
		return refusal{}
	}
	if len(fields) != 1 {
		return mismatch("the header %s is missing or there twice", name)
	}
	return checkEncoded(name, fields[0], raw, "the body")
}

// sameValue compares the text of a header with a raw string, boolean or number; integers by their value.
func sameValue(value string, raw []byte) bool {
	switch {
	case jsonrpc.IsString(raw):
		return jsonrpc.EqualString(raw, value)
	case string(raw) == "true" || string(raw) == "false":
		return string(raw) == value
	}
	number := []byte(value)
	return jsonrpc.SafeInteger(raw) && jsonrpc.SafeInteger(number) && jsonrpc.SameID(number, raw)
}

const (
	sentinelStart = "=?base64?"
	sentinelEnd   = "?="
)

// decodeSentinel decodes a header value of the form =?base64?…?=. Any other is returned unchanged, if it has no
// character that requires encoding.
func decodeSentinel(value string) (string, error) {
	if inner, found := strings.CutPrefix(value, sentinelStart); found && len(inner) >= len(sentinelEnd) {
		if inner, found = strings.CutSuffix(inner, sentinelEnd); found {
			decoded, err := base64.StdEncoding.Strict().DecodeString(inner)
			if err != nil {
				return "", fmt.Errorf("read base64: %w", err)
			}
			return string(decoded), nil
		}
	}
	for i := range len(value) {
		if c := value[i]; c != '\t' && (c < ' ' || c > '~') {
			return "", fmt.Errorf("the value has an invalid character at byte %d", i)
		}
	}
	return value, nil
}
