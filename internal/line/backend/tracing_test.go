package backend

import (
	"encoding/binary"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/outlive-mcp/outlive/internal/protocol/jsonrpc"
	"github.com/outlive-mcp/outlive/internal/protocol/tracecontext"
)

// numbered makes ids 1, 2, 3 …
func numbered() func([]byte) {
	n := uint64(0)
	return func(b []byte) {
		n++
		binary.BigEndian.PutUint64(b[len(b)-8:], n)
	}
}

const parentContext = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"

// What a server gets of requests, with and without spans. Without, no byte is changed.
func TestTraceContext(t *testing.T) {
	const fresh, continued = "00-00000000000000000000000000000001-0000000000000003-01", "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000002-01"
	for name, c := range map[string]struct{ said, got string }{
		"no params": {`{"jsonrpc":"2.0", "id":7,"method":"tools/list"}`,
			`{"jsonrpc":"2.0", "id":7,"method":"tools/list","params":{"_meta":{"traceparent":"` + fresh + `"}}}`},
		"no meta": {`{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"echo", "arguments":{"n":1.0e2}}}`,
			`{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"echo", "arguments":{"n":1.0e2},"_meta":{"traceparent":"` + fresh + `"}}}`},
		"continued": {`{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"_meta":{"traceparent":"` + parentContext + `","tracestate":"a=b","baggage":"c=d"},"name":"echo"}}`,
			`{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"_meta":{"traceparent":"` + continued + `","tracestate":"a=b","baggage":"c=d"},"name":"echo"}}`},
		"not one": {`{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"_meta":{"traceparent":5},"name":"echo"}}`,
			`{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"_meta":{"traceparent":"` + fresh + `"},"name":"echo"}}`},
		"no object":     {`{"jsonrpc":"2.0","id":7,"method":"x/y","params":[1]}`, `{"jsonrpc":"2.0","id":7,"method":"x/y","params":[1]}`},
		"ping":          {`{"jsonrpc":"2.0","id":7,"method":"ping"}`, `{"jsonrpc":"2.0","id":7,"method":"ping"}`},
		"log level":     {`{"jsonrpc":"2.0","id":7,"method":"logging/setLevel","params":{"level":"info"}}`, `{"jsonrpc":"2.0","id":7,"method":"logging/setLevel","params":{"level":"info"}}`},
		"notifications": {`{"jsonrpc":"2.0","method":"notifications/x","params":{}}`, `{"jsonrpc":"2.0","method":"notifications/x","params":{}}`},
	} {
		t.Run(name, func(t *testing.T) {
			for on, want := range map[bool]string{false: c.said, true: c.got} {
				opts := Options{NoTools: true}
				if on {
					opts.Trace = &tracecontext.Source{Random: numbered(), Share: 1}
				}
				w := greetedWorld(opts)
				w.client(c.said)
				if got := strings.Join(w.takeServer(), "\n"); got != want {
					t.Errorf("on %v: the server got\n%s, want\n%s", on, got, want)
				}
			}
		})
	}
}

// A request that is sent again has the context that it had: it is the same span.
func TestTraceContextOfARequestSentAgain(t *testing.T) {
	w := greetedWorld(Options{NoTools: true, RetryTools: []string{"echo"}, Trace: &tracecontext.Source{Random: numbered(), Share: 1}})
	w.client(`{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"echo"}}`)
	first := w.takeServer()
	w.exit(1)
	w.tick(2 * time.Second)
	hello := w.takeServer()
	if len(hello) == 0 {
		t.Fatal("no process follows")
	}
	w.server(`{"jsonrpc":"2.0","id":` + string(jsonrpc.Find([]byte(hello[0]), "id").Of([]byte(hello[0]))) + `,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}}}}`)
	if len(first) != 1 || !strings.Contains(first[0], "traceparent") || !slices.Contains(w.takeServer(), first[0]) {
		t.Errorf("first %q, and not again", first)
	}
}

// greetedWorld is a world whose client and server have greeted each other.
func greetedWorld(opts Options) *fakeWorld {
	w := newWorld(opts)
	w.b.Open(w.now)
	w.client(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25"}}`)
	w.server(`{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}}}}`)
	w.client(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	w.takeServer()
	return w
}
