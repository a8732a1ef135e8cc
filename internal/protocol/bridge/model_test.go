package bridge

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/outlive-mcp/outlive/internal/protocol/jsonrpc"
	"github.com/outlive-mcp/outlive/internal/protocol/mcp"
)

// world is a client and a server that do whatever they may, with a bridge between them.
type world struct {
	t       *rapid.T
	b       *carrier
	mode    mcp.Era
	now     time.Time
	next    int
	waits   map[string]bool   // requests of the client without an answer
	parked  map[string]string // tool by state: what the client may go on with
	serves  map[string]string // requests the server has not answered: method by raw id
	asks    map[string]bool   // questions the server waits for
	clients []string          // questions the client has not answered
	meta    string
}

func newWorld(t *rapid.T, mode mcp.Era) *world {
	w := &world{t: t, mode: mode, now: start, waits: map[string]bool{}, parked: map[string]string{},
		serves: map[string]string{}, asks: map[string]bool{}}
	w.b = carried(New(Options{Client: mode, Key: make([]byte, 32)}))
	const capabilities = `{"roots":{},"elicitation":{},"sampling":{}}`
	if mode == mcp.Modern {
		w.meta = `,"_meta":{"` + mcp.MetaProtocolVersion + `":"2026-07-28","` + mcp.MetaClientCapabilities + `":` + capabilities + `}`
		return w
	}
	w.waits["0"] = true
	w.client(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","clientInfo":{"name":"c","version":"1"},"capabilities":` + capabilities + `}}`)
	w.client(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	return w
}

func (w *world) client(line string) { w.take(w.b.FromClient([]byte(line), w.now)) }
func (w *world) server(line string) { w.take(w.b.FromServer([]byte(line), w.now)) }

// take looks at what the bridge says: no request is answered twice, no id is used twice at once, and each line is of the
// era of whom it goes to.
func (w *world) take(out Output) {
	var env jsonrpc.Envelope
	for _, line := range out.ToClient {
		if err := env.Scan(line); err != nil {
			w.t.Fatalf("to the client: %q", line)
		}
		id := string(env.ID.Of(line))
		switch env.Kind {
		case jsonrpc.Request:
			if w.mode == mcp.Modern {
				w.t.Fatalf("a modern client was sent a request: %s", line)
			}
			w.clients = append(w.clients, id)
		case jsonrpc.Response, jsonrpc.ErrorResponse:
			if !w.waits[id] {
				w.t.Fatalf("the client was answered what it does not ask: %s", line)
			}
			delete(w.waits, id)
			asked := jsonrpc.EqualString(env.ResultType.Of(line), "input_required")
			if asked && w.mode == mcp.Legacy {
				w.t.Fatalf("a legacy client was answered %s", line)
			}
			if state := member(line, "result", "requestState"); asked {
				w.parked[string(state)] = "t"
			}
		}
	}
	for _, line := range lines(out.ToServer) {
		if err := env.Scan(line); err != nil {
			w.t.Fatalf("to the server: %q", line)
		}
		id, method := string(env.ID.Of(line)), string(env.Method.Of(line))
		modern := member(line, "params", "_meta", mcp.MetaProtocolVersion) != nil
		switch env.Kind {
		case jsonrpc.Request:
			if _, twice := w.serves[id]; twice {
				w.t.Fatalf("the server has two requests %s", line)
			}
			if modern != (w.mode == mcp.Legacy) {
				w.t.Fatalf("a request of the wrong era: %s", line)
			}
			w.serves[id] = method
		case jsonrpc.Response, jsonrpc.ErrorResponse:
			if !w.asks[id] {
				w.t.Fatalf("the server was answered what it does not ask: %s", line)
			}
			delete(w.asks, id)
		case jsonrpc.Notification:
			if mcp.Lookup(env.Method.Of(line)) == mcp.NoteCancelled {
				delete(w.serves, string(env.RequestID.Of(line)))
			}
		}
	}
}

func (w *world) id() string {
	w.next++
	return fmt.Sprint(w.next % 7) // ids are used again, as clients may
}

// any is one of the keys.
func (w *world) any(m map[string]string) (string, bool) {
	all := map[string]any{}
	for k := range m {
		all[k] = nil
	}
	if len(all) == 0 {
		return "", false
	}
	return rapid.SampledFrom(sorted(all)).Draw(w.t, "one"), true
}

// answer has the server answer one of its requests; final: for good.
func (w *world) answer(id string, final bool) {
	method := w.serves[id]
	delete(w.serves, id)
	result := `{"content":[],"tools":[]}`
	switch {
	case method == `"initialize"`:
		result = initialized
	case method == `"server/discover"`:
		result = discovered
	case method == `"subscriptions/listen"`:
		w.serves[id] = method
		w.server(`{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"_meta":{"` +
			mcp.MetaSubscriptionID + `":` + id + `},"notifications":{}}}`)
		return
	case w.mode == mcp.Legacy && method == `"tools/call"` && !final && rapid.Bool().Draw(w.t, "more input"):
		result = `{"resultType":"input_required","requestState":"s","inputRequests":{"a":{"method":"roots/list"},"b":{"method":"roots/list"}}}`
	}
	w.server(`{"jsonrpc":"2.0","id":` + id + `,"result":` + result + `}`)
}

func (w *world) actions() map[string]func(*rapid.T) {
	request := func(line string, id string) {
		if !w.waits[id] {
			w.waits[id] = true
			w.client(line)
		}
	}
	return map[string]func(*rapid.T){
		"call": func(*rapid.T) {
			id := w.id()
			request(`{"jsonrpc":"2.0","id":`+id+`,"method":"tools/call","params":{"name":"t"`+w.meta+`}}`, id)
		},
		"list": func(*rapid.T) {
			id := w.id()
			request(`{"jsonrpc":"2.0","id":`+id+`,"method":"tools/list","params":{"cursor":"c"`+w.meta+`}}`, id)
		},
		"go on": func(t *rapid.T) {
			state, ok := w.any(w.parked)
			if id := w.id(); ok && !w.waits[id] {
				if rapid.Bool().Draw(t, "once") {
					delete(w.parked, state)
				}
				request(`{"jsonrpc":"2.0","id":`+id+`,"method":"tools/call","params":{"name":"t","requestState":`+state+
					`,"inputResponses":{"ask1":{"roots":[]},"ask2":{"roots":[]}}`+w.meta+`}}`, id)
			}
		},
		"cancel": func(*rapid.T) {
			if id := w.id(); w.waits[id] && id != "0" {
				delete(w.waits, id)
				w.client(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":` + id + `}}`)
			}
		},
		"serve": func(*rapid.T) {
			if id, ok := w.any(w.serves); ok {
				w.answer(id, false)
			}
		},
		"ask": func(t *rapid.T) {
			id := fmt.Sprintf(`"q%d"`, w.next)
			if w.mode == mcp.Legacy || w.asks[id] {
				return
			}
			w.next++
			w.asks[id] = true
			method := rapid.SampledFrom([]string{"roots/list", "elicitation/create", "ping"}).Draw(t, "method")
			w.server(`{"jsonrpc":"2.0","id":` + id + `,"method":"` + method + `","params":{"message":"m","requestedSchema":{"type":"object","properties":{}}}}`)
		},
		"answer": func(t *rapid.T) {
			if len(w.clients) == 0 {
				return
			}
			id := w.clients[0]
			w.clients = w.clients[1:]
			w.client(`{"jsonrpc":"2.0","id":` + id + rapid.SampledFrom([]string{`,"result":{"roots":[]}}`, `,"error":{"code":-1,"message":"no"}}`}).Draw(t, "answer"))
		},
		"time": func(t *rapid.T) {
			w.now = w.now.Add(rapid.SampledFrom([]time.Duration{time.Second, 31 * time.Second, 11 * time.Minute}).Draw(t, "passes"))
			w.take(w.b.Tick(w.now))
		},
	}
}

// end lets everybody finish what was begun: then no request of the client may be left without its answer.
func (w *world) end() {
	for range 200 {
		if id, ok := w.any(w.serves); ok && w.serves[id] != `"subscriptions/listen"` {
			w.answer(id, true)
		}
		for _, id := range w.clients {
			w.client(`{"jsonrpc":"2.0","id":` + id + `,"result":{"roots":[]}}`)
		}
		w.clients = nil
		if len(w.waits) == 0 {
			return
		}
	}
	for range 40 {
		w.now = w.now.Add(11 * time.Minute)
		w.take(w.b.Tick(w.now))
		for id, method := range w.serves {
			if method != `"subscriptions/listen"` {
				w.answer(id, true)
				break
			}
		}
	}
	if len(w.waits) > 0 {
		w.t.Fatalf("left without an answer: %v (the server has %v)", w.waits, w.serves)
	}
}

func TestEachRequestIsAnsweredOnce(t *testing.T) {
	for _, mode := range []mcp.Era{mcp.Legacy, mcp.Modern} {
		t.Run(Name(mode), func(t *testing.T) {
			rapid.Check(t, func(rt *rapid.T) {
				w := newWorld(rt, mode)
				rt.Repeat(w.actions())
				w.end()
			})
		})
	}
}
