package e2e

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
)

// oneCall is a client that makes one call of a tool, over HTTP and without a session, as all of 2026-07-28 do.
type oneCall struct {
	url, name string // of the gateway, and how the client calls itself
	tool      string
	args      map[string]any
}

// told is what such a client is answered.
type told struct {
	Result struct {
		ResultType    string
		IsError       bool
		Content       []struct{ Text string }
		RequestState  string
		InputRequests map[string]struct{ Params struct{ Message string } }
	}
	Error *struct{ Message string }
	err   error
	all   string
}

// send sends the call, with more members of its params.
func (c oneCall) send(ctx context.Context, more map[string]any) <-chan told {
	out := make(chan told, 1)
	params := map[string]any{"name": c.tool, "arguments": c.args, "_meta": map[string]any{
		"io.modelcontextprotocol/protocolVersion":    "2026-07-28",
		"io.modelcontextprotocol/clientInfo":         map[string]any{"name": c.name, "version": "1"},
		"io.modelcontextprotocol/clientCapabilities": map[string]any{"elicitation": map[string]any{}},
	}}
	for key, value := range more {
		params[key] = value
	}
	body, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params})
	if err != nil {
		out <- told{err: err}
		return out
	}
	go func() { out <- c.post(ctx, string(body)) }()
	return out
}

func (c oneCall) post(ctx context.Context, body string) (t told) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url, strings.NewReader(body))
	if err != nil {
		return told{err: err}
	}
	for key, value := range map[string]string{"Content-Type": "application/json", "Accept": "application/json, text/event-stream",
		"MCP-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": c.tool} {
		r.Header.Set(key, value)
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		return told{err: err}
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return told{err: err}
	}
	t.all = string(text)
	answers := 0
	for lines := bufio.NewScanner(strings.NewReader(t.all)); lines.Scan(); {
		line := strings.TrimPrefix(lines.Text(), "data: ")
		if strings.HasPrefix(line, `{`) && strings.Contains(line, `"id":1`) {
			answers++
			t.err = json.Unmarshal([]byte(line), &t)
		}
	}
	if answers != 1 {
		t.err = fmt.Errorf("%d answers in %q", answers, t.all)
	}
	return t
}

// answer is the call's next round.
func (c oneCall) answer(t *testing.T, asked told) told {
	t.Helper()
	responses := map[string]any{}
	for key := range asked.Result.InputRequests {
		responses[key] = map[string]any{"action": "accept", "content": map[string]any{"answer": "yes"}}
	}
	return get(t, c.send(t.Context(), map[string]any{"requestState": asked.Result.RequestState, "inputResponses": responses}))
}

func get(t *testing.T, from <-chan told) told {
	t.Helper()
	out := <-from
	if out.err != nil || out.Error != nil {
		t.Fatalf("a call: %v, %s", out.err, out.all)
	}
	return out
}

// question is what a client was asked, "" for nothing.
func (t told) question() (all string) {
	for _, one := range t.Result.InputRequests {
		all += one.Params.Message
	}
	return all
}

func (t told) text() (all string) {
	for _, one := range t.Result.Content {
		all += one.Text
	}
	return all
}

// TestBridgeManyClients: clients without sessions, before a legacy server that they share and that asks without saying whom.
func TestBridgeManyClients(t *testing.T) {
	needFull(t, "calls have to overlap by the clock: one of 800 ms must still run when the next has come")
	needOutlive(t)
	for _, key := range []string{"ts", "go-legacy"} {
		t.Run(key, func(t *testing.T) {
			w, srv := newWorkspace(t), castServer(key)
			g := w.listen(t, w.gatewayConfig(t, []string{"names: never"}, backend{name: "server", server: srv}))
			slow := func(name string, ms int) oneCall {
				return oneCall{g.url, name, "slow", map[string]any{"value": name, "steps": 1, "ms": ms}}
			}
			ask := func(name string) oneCall {
				return oneCall{g.url, name, "elicit", map[string]any{"question": "for " + name}}
			}
			begun := func(what string) {
				if !eventually(func() bool { return w.count(what) > 0 }) {
					t.Fatalf("the server has not come to %q: %q", what, w.traces())
				}
			}
			t.Run("held", func(t *testing.T) {
				manyHeld(t, slow("a", 1500), ask("b"), begun, func(what string) bool { return w.count(what) > 0 })
			})
			t.Run("withdrawn", func(t *testing.T) { manyWithdrawn(t, slow("c", 800), ask("d"), ask("e"), begun) })
			t.Run("killed", func(t *testing.T) {
				manyKilled(t, ask("f"), slow("g", 2000), ask("h"), begun, func() {
					for _, pid := range w.serverPIDs(srv) {
						killed(t, pid)
					}
				})
			})
			g.stop(t)
			w.noneLeft(t)
		})
	}
}

// manyHeld: a question that two calls may have asked is held until one has ended.
func manyHeld(t *testing.T, works, asks oneCall, begun func(string), ended func(string) bool) {
	one := works.send(t.Context(), nil)
	begun("slow " + works.name)
	r := get(t, asks.send(t.Context(), nil))
	if r.question() != "for "+asks.name {
		t.Fatalf("%s was asked %q: %s", asks.name, r.question(), r.all)
	}
	if !ended("slow-step " + works.name + "/1") {
		t.Error("asked before it was clear who is meant")
	}
	if r := get(t, one); r.question() != "" || !strings.HasPrefix(r.text(), "slow "+works.name) {
		t.Errorf("%s was answered %s", works.name, r.all)
	}
	if r = asks.answer(t, r); r.text() != "elicited yes" {
		t.Errorf("the answer led to %s", r.all)
	}
}

// manyWithdrawn: a client that leaves while its question is held has it refused, and nobody else sees it.
func manyWithdrawn(t *testing.T, works, leaves, later oneCall, begun func(string)) {
	one := works.send(t.Context(), nil)
	begun("slow " + works.name)
	ctx, leave := context.WithCancel(t.Context())
	two := leaves.send(ctx, nil)
	begun("elicit-asked for " + leaves.name)
	leave()
	if r := <-two; r.err == nil {
		t.Errorf("it was answered: %s", r.all)
	}
	if r := get(t, one); r.question() != "" || !strings.HasPrefix(r.text(), "slow "+works.name) {
		t.Errorf("%s was answered %s", works.name, r.all)
	}
	var r told
	if !eventually(func() bool { // for a moment what is asked may still be of the call that was withdrawn
		r = get(t, later.send(t.Context(), nil))
		return r.question() != ""
	}) || r.question() != "for "+later.name {
		t.Fatalf("%s was asked %q: %s", later.name, r.question(), r.all)
	}
	if r = later.answer(t, r); r.text() != "elicited yes" {
		t.Errorf("the answer led to %s", r.all)
	}
}

// manyKilled: the server dies while one call waits for its client, one works, and the question of a third is held. Each
// is answered once, and the tool that only reads is called again.
func manyKilled(t *testing.T, waits, works, asks oneCall, begun func(string), kill func()) {
	parked := get(t, waits.send(t.Context(), nil))
	if parked.question() != "for "+waits.name {
		t.Fatalf("%s was asked %q: %s", waits.name, parked.question(), parked.all)
	}
	one := works.send(t.Context(), nil)
	begun("slow " + works.name)
	two := asks.send(t.Context(), nil)
	begun("elicit-asked for " + asks.name)
	kill()
	if r := get(t, two); !r.Result.IsError || !strings.Contains(r.text(), "may or may not have taken effect") {
		t.Errorf("the call whose question was held: %s", r.all)
	}
	if r := waits.answer(t, parked); !strings.Contains(r.text(), "may or may not have taken effect") {
		t.Errorf("%s came back to %s", waits.name, r.all)
	}
	if r := get(t, one); r.Result.IsError && !strings.Contains(r.text(), "may or may not have taken effect") {
		t.Errorf("%s was answered %s", works.name, r.all)
	}
}
