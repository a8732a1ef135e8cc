package mcptest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
)

var errNoMessage = errors.New("no JSON-RPC message")

// message is one JSON-RPC message; raw members keep the bytes they came with.
type message struct {
	JSONRPC string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id"`
	Method  string          `json:"method"`
	Params  json.RawMessage `json:"params"`
	Result  json.RawMessage `json:"result"`
	Error   json.RawMessage `json:"error"`
}

func parseMessage(line []byte) (*message, error) {
	m := &message{}
	if err := json.Unmarshal(line, m); err != nil {
		return nil, fmt.Errorf("read message: %w", err)
	}
	if m.Method == "" && (m.ID == nil || (m.Result == nil && m.Error == nil)) {
		return nil, errNoMessage
	}
	return m, nil
}

func (m *message) request() bool { return m.Method != "" && m.ID != nil }
func (m *message) answer() bool  { return m.Method == "" }

// oddID reports an id at which strict servers end: neither string nor integer.
func oddID(id json.RawMessage) bool {
	if len(id) > 0 && id[0] == '"' {
		return false
	}
	return len(id) == 0 || bytes.ContainsAny(id, ".eE{[nft")
}

// encode is json.Marshal without its HTML escapes, so that raw values keep their bytes. The values are this package's
// own and can always be encoded.
func encode(v any) json.RawMessage {
	if raw, ok := v.(json.RawMessage); ok {
		return raw
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		panic(fmt.Sprintf("mcptest: encode %T: %v", v, err))
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}

func join(parts ...any) []byte {
	var b []byte
	for _, p := range parts {
		switch p := p.(type) {
		case string:
			b = append(b, p...)
		case json.RawMessage:
			b = append(b, p...)
		}
	}
	return b
}

// requestLine is a request with a raw id, or a notification when id is empty.
func requestLine(id json.RawMessage, method string, params any) []byte {
	b := []byte(`{"jsonrpc":"2.0"`)
	if len(id) > 0 {
		b = append(b, join(`,"id":`, id)...)
	}
	b = append(b, join(`,"method":`, encode(method))...)
	if params != nil {
		b = append(b, join(`,"params":`, encode(params))...)
	}
	return append(b, '}')
}

// object is a JSON object being built; keys come out sorted.
type object = map[string]any

// RPCError is a JSON-RPC error answer.
type RPCError struct {
	Code    int             `json:"code"`
	Message string          `json:"message"`
	Data    json.RawMessage `json:"data,omitempty"`
}

// Error gives code and message.
func (e *RPCError) Error() string { return fmt.Sprintf("error %d: %s", e.Code, e.Message) }

const (
	codeInvalidRequest = -32600
	codeNoMethod       = -32601
	codeInvalidParams  = -32602
	codeInternal       = -32603
	codeVersion        = -32022
)

func rpcError(code int, format string, args ...any) *RPCError {
	return &RPCError{Code: code, Message: fmt.Sprintf(format, args...)}
}

func asRPCError(err error) *RPCError {
	var e *RPCError
	if errors.As(err, &e) {
		return e
	}
	return rpcError(codeInternal, "%v", err)
}
