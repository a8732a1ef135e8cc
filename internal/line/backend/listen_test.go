package backend

import (
	"strings"
	"testing"
	"time"

	"github.com/outlive-mcp/outlive/internal/keep/backoff"
	"github.com/outlive-mcp/outlive/internal/keep/supervise"
)

const modernMeta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}`

// A stream that has waited for a server and is refused when that keeps failing is none: what would be told on it nobody hears, and it would be
// taken for told.
func TestARefusedStreamIsNone(t *testing.T) {
	w := newWorld(Options{Supervise: supervise.Options{Backoff: backoff.Policy{
		Tiers: []backoff.Tier{{Delay: 10 * time.Millisecond}}, MaxRestarts: 1, Window: time.Minute, OpenFor: time.Minute,
	}}})
	w.b.Open(w.now)
	w.client(`{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{` + modernMeta + `}}`)
	w.server(`{"jsonrpc":"2.0","id":1499999999,"result":{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{"listChanged":true}}}}`)
	w.server(`{"jsonrpc":"2.0","id":1,"result":{"resultType":"complete","ttlMs":0,"cacheScope":"private","tools":[]}}`)
	w.exit(1)
	w.client(`{"jsonrpc":"2.0","id":2,"method":"subscriptions/listen","params":{` + modernMeta + `,"notifications":{"toolsListChanged":true}}}`)
	if w.b.calls.find([]byte("2")) == nil {
		t.Fatalf("it does not wait for the next process: %v", w.toClient)
	}
	w.takeClient()
	for range 5 {
		w.tick(time.Second)
		if !w.b.hopeless() {
			w.exit(1)
		}
	}
	if got := strings.Join(w.takeClient(), "\n"); !strings.Contains(got, `"id":2,"error"`) {
		t.Fatalf("the client was told %q", got)
	}
	if w.b.calls.find([]byte("2")) != nil {
		t.Error("it is open")
	}
}
