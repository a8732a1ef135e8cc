package jsonrpc

import (
	"encoding/json"
	"strconv"
	"strings"
	"unicode/utf8"
)

// The error codes of JSON-RPC 2.0. No others are used here, because clients interpret the range -32000 to -32099 in
// different ways.
const (
	ParseError     = -32700
	InvalidRequest = -32600
	MethodNotFound = -32601
	InvalidParams  = -32602
	InternalError  = -32603
)

// ErrorCode is the code of a raw error object, 0 if it has none.
func ErrorCode(err []byte) int {
	code, whole := Integer(Find(err, "code").Of(err))
	if !whole {
		return 0
	}
	return int(code)
}

// ErrorMessage is the message of a raw error object, "" if it has none.
func ErrorMessage(err []byte) string {
	text, _ := Unquote(Find(err, "message").Of(err))
	return text
}

// AppendResult appends a response without a newline. id and result are raw JSON; a nil result is {}.
func AppendResult(dst, id, result []byte) []byte {
	dst = appendHead(dst, id)
	dst = append(dst, `,"result":`...)
	if len(result) == 0 {
		result = []byte("{}")
	}
	dst = append(dst, result...)
	return append(dst, '}')
}

// AppendError appends an error response without a newline. id is raw JSON, null when nil; data is raw JSON, left out
// when nil.
func AppendError(dst, id []byte, code int, message string, data []byte) []byte {
	if len(id) == 0 {
		id = []byte("null")
	}
	dst = append(appendHead(dst, id), `,"error":`...)
	return append(ErrorObject(dst, code, message, data), '}')
}

// ErrorObject appends a raw error object. data is raw JSON, left out when nil.
func ErrorObject(dst []byte, code int, message string, data []byte) []byte {
	dst = strconv.AppendInt(append(dst, `{"code":`...), int64(code), 10)
	dst = AppendQuoted(append(dst, `,"message":`...), message)
	if len(data) > 0 {
		dst = append(append(dst, `,"data":`...), data...)
	}
	return append(dst, '}')
}

// AppendErrorObject appends an error response with a raw error object, without a newline. id is raw JSON, left out when nil.
func AppendErrorObject(dst, id, object []byte) []byte {
	dst = append(appendHead(dst, id), `,"error":`...)
	return append(append(dst, object...), '}')
}

// AppendRequest appends a request without a newline. id and params are raw JSON; nil params are left out.
func AppendRequest(dst, id []byte, method string, params []byte) []byte {
	return appendCall(appendHead(dst, id), method, params)
}

// AppendNotification appends a notification without a newline. params is raw JSON, left out when nil.
func AppendNotification(dst []byte, method string, params []byte) []byte {
	return appendCall(appendHead(dst, nil), method, params)
}

func appendHead(dst, id []byte) []byte {
	dst = append(dst, `{"jsonrpc":"2.0"`...)
	if len(id) > 0 {
		dst = append(dst, `,"id":`...)
		dst = append(dst, id...)
	}
	return dst
}

func appendCall(dst []byte, method string, params []byte) []byte {
	dst = append(dst, `,"method":`...)
	dst = AppendQuoted(dst, method)
	if len(params) > 0 {
		dst = append(dst, `,"params":`...)
		dst = append(dst, params...)
	}
	return append(dst, '}')
}

// AppendQuoted appends s as a JSON string. It escapes only what must be escaped: <, >, & and everything beyond ASCII
// are kept. Bytes that are not UTF-8 become U+FFFD.
func AppendQuoted(dst []byte, s string) []byte {
	dst = append(dst, '"')
	done := 0 // s[:done] has been appended
	for i := 0; i < len(s); {
		c := s[i]
		if c >= ' ' && c != '"' && c != '\\' && c < utf8.RuneSelf {
			i++
			continue
		}
		r, n := utf8.DecodeRuneInString(s[i:])
		if c >= utf8.RuneSelf && (r != utf8.RuneError || n > 1) {
			i += n
			continue
		}
		dst = append(dst, s[done:i]...)
		dst = appendEscaped(dst, c)
		i++
		done = i
	}
	dst = append(dst, s[done:]...)
	return append(dst, '"')
}

// appendEscaped appends a byte that must be escaped in a JSON string.
func appendEscaped(dst []byte, c byte) []byte {
	const hex = "0123456789abcdef"
	switch short := strings.IndexByte(escaped, c); {
	case c == '"' || c == '\\':
		return append(dst, '\\', c)
	case short >= 0:
		return append(dst, '\\', escapes[short])
	case c >= utf8.RuneSelf:
		return utf8.AppendRune(dst, utf8.RuneError)
	}
	return append(dst, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
}

// Indented formats v as JSON for people and models: indented, with <, > and & unescaped. If v cannot be encoded it is
// the error's text.
func Indented(v any) string {
	var out strings.Builder
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(v); err != nil {
		return err.Error()
	}
	return strings.TrimSuffix(out.String(), "\n")
}
