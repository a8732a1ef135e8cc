package backend

import (
	"log/slog"
	"strings"
	"testing"
)

// A stream that ends because outlive was told to end is not trouble, and nothing is logged about it; its client is answered.
func TestStreamsEndQuietlyWithOutlive(t *testing.T) {
	w := newWorld(Options{})
	w.b.Open(w.now)
	const meta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}`
	answer := func(result string) {
		t.Helper()
		for _, line := range w.takeServer() {
			if _, after, found := strings.Cut(line, `"id":`); found && !strings.Contains(line, "subscriptions/listen") {
				id, _, _ := strings.Cut(after, ",")
				w.server(`{"jsonrpc":"2.0","id":` + id + `,"result":` + result + `}`)
			}
		}
	}
	const offer = `{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{}}}`
	w.client(`{"jsonrpc":"2.0","id":1,"method":"server/discover","params":{` + meta + `}}`)
	answer(offer)
	w.client(`{"jsonrpc":"2.0","id":2,"method":"tools/list","params":{` + meta + `}}`)
	answer(`{"resultType":"complete","tools":[]}`)
	w.client(`{"jsonrpc":"2.0","id":3,"method":"subscriptions/listen","params":{"notifications":{"toolsListChanged":true},` + meta + `}}`)
	answer(offer)
	w.server(`{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":3},"notifications":{"toolsListChanged":true}}}`)
	w.takeClient()
	w.events = nil
	w.b.Interrupted(w.now)
	w.exit(143)
	if got := strings.Join(w.takeClient(), "\n"); !strings.Contains(got, `"id":3,"error"`) {
		t.Errorf("the client was told %q", got)
	}
	for _, e := range w.events {
		if e.Level >= slog.LevelWarn {
			t.Errorf("%v: %s", e.Level, e.Message)
		}
	}
}
