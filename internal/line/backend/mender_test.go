package backend

import (
	"fmt"
	"testing"

	"github.com/outlive-mcp/outlive/internal/record/event"
)

// A server that returns numbers as text, or has members twice, is reported once for each, and not for every answer.
func TestMendsAreToldOnce(t *testing.T) {
	w := newWorld(Options{})
	w.b.Open(w.now)
	w.client(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25"}}`)
	w.server(`{"jsonrpc":"2.0","id":"0","result":{"protocolVersion":"2025-11-25","capabilities":{}}}`)
	w.client(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	for id := 1; id < 5; id++ {
		w.client(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"x"}`, id))
		w.server(fmt.Sprintf(`{"jsonrpc":"2.0","id":0,"result":{},"id":"%d"}`, id))
	}
	told := map[string]int{}
	for _, e := range w.events {
		if e.Type == event.TextRepaired {
			told[e.Message]++
		}
	}
	want := map[string]int{
		"The server returns the number of a request as text; such answers are passed on": 1,
		"The server's messages have a member twice; the last one is passed on":           1,
	}
	if fmt.Sprint(told) != fmt.Sprint(want) {
		t.Errorf("told %v, want %v", told, want)
	}
}
