package main

import (
	"bufio"
	"bytes"
	"encoding/json"
)

// The parts of the line that the benchmark's client writes. A call in exactly
// this form is answered without a JSON decoder.
var (
	callHead = []byte(`{"jsonrpc":"2.0","id":`)
	callBody = []byte(`,"method":"tools/call","params":{"name":"echo","arguments":{"message":`)
	callTail = []byte(`}}}`)
)

const (
	answerHead = `{"jsonrpc":"2.0","id":`
	echoOpen   = `,"result":{"content":[{"type":"text","text":`
	echoClose  = "}]}}\n"
)

const toolList = `{"tools":[{"name":"echo","description":"Returns its message.","inputSchema":` +
	`{"type":"object","properties":{"message":{"type":"string"}},"required":["message"]},` +
	`"annotations":{"readOnlyHint":true,"idempotentHint":true}}]}`

// discovery is the answer to server/discover of a server that speaks both eras of the protocol.
const discovery = `{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{}},"ttlMs":0,"cacheScope":"private"}`

// answer writes the answer to one line, if it asks for one. With both it knows the requests of the era from 2026-07-28 too.
func answer(w *bufio.Writer, line []byte, both bool) error {
	line = bytes.TrimRight(line, "\r\n")
	id, message, ok := splitCall(line)
	if !ok {
		return answerDecoded(w, line, both)
	}
	return writeEcho(w, id, message)
}

// splitCall cuts a tools/call in the client's own form into its id and its
// message, a JSON string with its quotes; ok is false for any other line.
func splitCall(line []byte) (id, message []byte, ok bool) {
	rest, ok := bytes.CutPrefix(line, callHead)
	if !ok {
		return nil, nil, false
	}
	comma := bytes.IndexByte(rest, ',')
	if comma < 1 || comma > 32 {
		return nil, nil, false
	}
	id = rest[:comma]
	message, ok = bytes.CutPrefix(rest[comma:], callBody)
	if !ok {
		return nil, nil, false
	}
	message, ok = bytes.CutSuffix(message, callTail)
	if !ok || len(message) < 2 || message[0] != '"' || message[len(message)-1] != '"' {
		return nil, nil, false
	}
	// Any further quote or a backslash may mean more arguments: not this form.
	inner := message[1 : len(message)-1]
	if bytes.IndexByte(inner, '"') >= 0 || bytes.IndexByte(inner, '\\') >= 0 {
		return nil, nil, false
	}
	return id, message, true
}

// writeEcho writes the result of one echo call; bufio keeps the first error.
func writeEcho(w *bufio.Writer, id, message []byte) error {
	for _, part := range [...][]byte{[]byte(answerHead), id, []byte(echoOpen), message} {
		if _, err := w.Write(part); err != nil {
			return err
		}
	}
	_, err := w.WriteString(echoClose)
	return err
}

// request is what echo needs to know of a message that is not in the client's
// own form.
type request struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params struct {
		ProtocolVersion string `json:"protocolVersion"`
		Name            string `json:"name"`
		Arguments       struct {
			Message json.RawMessage `json:"message"`
		} `json:"arguments"`
	} `json:"params"`
}

// answerDecoded answers any message by way of encoding/json.
func answerDecoded(w *bufio.Writer, line []byte, both bool) error {
	var req request
	if err := json.Unmarshal(line, &req); err != nil {
		return writeBody(w, []byte("null"), `"error":{"code":-32700,"message":"not JSON"}`)
	}
	if len(req.ID) == 0 || req.Method == "" {
		return nil
	}
	switch req.Method {
	case "initialize":
		version, err := json.Marshal(req.Params.ProtocolVersion)
		if err != nil {
			return err
		}
		return writeBody(w, req.ID, `"result":{"protocolVersion":`+string(version)+
			`,"capabilities":{"tools":{}},"serverInfo":{"name":"echo","version":"1"}}`)
	case "ping":
		return writeBody(w, req.ID, `"result":{}`)
	case "tools/list":
		return writeBody(w, req.ID, `"result":`+toolList)
	case "server/discover":
		if both {
			return writeBody(w, req.ID, `"result":`+discovery)
		}
	case "tools/call":
		if req.Params.Name == "echo" && len(req.Params.Arguments.Message) > 0 && req.Params.Arguments.Message[0] == '"' {
			return writeEcho(w, req.ID, req.Params.Arguments.Message)
		}
		return writeBody(w, req.ID, `"error":{"code":-32602,"message":"the only tool is echo, with a message"}`)
	}
	return writeBody(w, req.ID, `"error":{"code":-32601,"message":"method not found"}`)
}

// writeBody writes one answer line with the given id and its other member.
func writeBody(w *bufio.Writer, id []byte, body string) error {
	for _, part := range [...]string{answerHead, string(id), ",", body, "}\n"} {
		if _, err := w.WriteString(part); err != nil {
			return err
		}
	}
	return nil
}
