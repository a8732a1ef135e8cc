package e2e

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"time"
)

// post sends one message to a gateway and returns the answer, with the session it belongs to.
func (g *gateway) post(t *testing.T, session, body string) (answer, id string) {
	t.Helper()
	r, err := http.NewRequest(http.MethodPost, g.url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	if session != "" {
		r.Header.Set("Mcp-Session-Id", session)
	}
	client := http.Client{Timeout: patience}
	response, err := client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode/100 != 2 {
		t.Fatalf("%s: status %d, %s, %v", body, response.StatusCode, text, err)
	}
	return string(text), response.Header.Get("Mcp-Session-Id")
}

// firstList opens a session, and returns what its first list shows and how long that took.
func (g *gateway) firstList(t *testing.T, capabilities string) (list, session string, took time.Duration) {
	t.Helper()
	_, session = g.post(t, "", `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":`+capabilities+`,"clientInfo":{"name":"t","version":"1"}}}`)
	g.post(t, session, `{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	begun := time.Now()
	list, _ = g.post(t, session, `{"jsonrpc":"2.0","id":2,"method":"tools/list"}`)
	return list, session, time.Since(begun)
}

// TestGatewayFirstList has a mute server, a missing program and one that crashes beside five real servers: the first list of
// each of ten sessions in a row has all tools of the real ones, and waits for nobody. The very first session may wait for
// real servers to start, and for the mute one until 25 s after its start.
func TestGatewayFirstList(t *testing.T) {
	needFull(t, "it judges how soon a list is there")
	needOutlive(t)
	const soon = 500 * time.Millisecond
	w := newWorkspace(t)
	real := append(w.realServers(t), backend{name: "go", server: servers()["go"]})
	bad := []backend{
		{name: "mute", server: server{argv: []string{"sleep", "1000"}}},
		{name: "missing", server: server{argv: []string{"no-such-program-here"}}},
		{name: "crash", server: server{argv: []string{"false"}}},
	}
	g := w.listen(t, w.gatewayFile(t, nil, append(real, bad...)...)) // with the default delays between restarts
	const capabilities = `{"roots":{"listChanged":true},"sampling":{},"elicitation":{}}`
	_, session, took := g.firstList(t, capabilities)
	t.Logf("the very first list took %s", took)
	if took > 27*time.Second {
		t.Errorf("the very first list took %s", took)
	}
	want := []string{`"everything_echo"`, `"files_read_text_file"`, `"memory_search_nodes"`, `"py_look"`, `"go_look"`}
	complete := func(list string) string {
		for _, tool := range want {
			if !strings.Contains(list, tool) {
				return tool
			}
		}
		return ""
	}
	for begun := time.Now(); ; { // on a slow machine a real server may have come late; then list_changed has told of it
		list, _ := g.post(t, session, `{"jsonrpc":"2.0","id":3,"method":"tools/list"}`)
		if complete(list) == "" {
			break
		}
		if time.Since(begun) > patience {
			t.Fatalf("%s is not there: %s", complete(list), list)
		}
		time.Sleep(100 * time.Millisecond)
	}
	for i := range 10 {
		list, _, took := g.firstList(t, capabilities)
		t.Logf("session %d: %s", i, took)
		if took > soon {
			t.Errorf("session %d waited %s for its first list", i, took)
		}
		if missing := complete(list); missing != "" {
			t.Errorf("session %d does not see %s", i, missing)
		}
	}
	answer, _ := g.post(t, session, `{"jsonrpc":"2.0","id":4,"method":"tools/call","params":{"name":"mute_do","arguments":{}}}`)
	if !strings.Contains(answer, "server mute cannot be used") {
		t.Errorf("whoever needs the mute server is told %s", answer)
	}
	g.stop(t)
}
