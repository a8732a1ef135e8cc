package main

import (
	"encoding/json"
	"fmt"
	"net/http"
)

// serveVerb is the argument with which this program is the server at a URL. It has a process of its own: the clients read with
// system calls that Go's scheduler does not see, so that a garbage collection in their process waits for the answer, and a server
// there for the collection.
const serveVerb = "serve-http"

// serveHTTP serves an MCP server with one tool, echo, at an address until it is ended.
func serveHTTP(address string) error {
	s := &http.Server{Addr: address, Handler: http.HandlerFunc(echoHTTP), ReadHeaderTimeout: patience}
	return s.ListenAndServe()
}

func echoHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost {
		w.WriteHeader(http.StatusMethodNotAllowed)
		return
	}
	var m struct {
		ID     json.RawMessage `json:"id"`
		Method string          `json:"method"`
		Params struct {
			Arguments struct {
				Message string `json:"message"`
			} `json:"arguments"`
		} `json:"params"`
	}
	if err := json.NewDecoder(r.Body).Decode(&m); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	if m.ID == nil {
		w.WriteHeader(http.StatusAccepted)
		return
	}
	result := `{}`
	switch m.Method {
	case "initialize":
		w.Header().Set("Mcp-Session-Id", "bench")
		result = `{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"bench","version":"1"}}`
	case "tools/list":
		result = `{"tools":[{"name":"echo","inputSchema":{"type":"object","properties":{"message":{"type":"string"}}},"annotations":{"readOnlyHint":true}}]}`
	case "tools/call":
		text, _ := json.Marshal(m.Params.Arguments.Message) // a string
		result = `{"content":[{"type":"text","text":` + string(text) + `}]}`
	}
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":%s}`, m.ID, result)
}
