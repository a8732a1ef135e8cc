package backend

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/outlive-mcp/outlive/internal/protocol/mcp"
	"github.com/outlive-mcp/outlive/internal/protocol/session"
)

// successor is a backend that goes on with the session of b, whose server has ended.
func successor(b *Backend) (*Backend, session.Record, error) {
	var r session.Record
	text, err := json.Marshal(b.Record())
	if err == nil {
		err = json.Unmarshal(text, &r)
	}
	opts := b.opts
	opts.Known = b.memory.known
	return New(opts, b.world, b.sink), r, err
}

// handsOver works towards another Backend in the place of this one. Nobody may notice.
func (m *model) handsOver() {
	for range m.running {
		if m.b.Busy() == "" && !m.b.Asleep() {
			m.rt.Logf("rests")
			m.b.Rest(m.now, "upgrade")
		}
		return
	}
	if m.b.Busy() == "" && m.b.Down() { // a bridge has to rest where nothing runs, too
		m.b.Rest(m.now, "upgrade")
	}
	if m.b.Busy() != "" {
		return
	}
	m.rt.Logf("handed over")
	next, record, err := successor(m.b)
	if err != nil {
		m.rt.Fatal(err)
	}
	m.b, m.wakeAt = next, time.Time{}
	m.b.Resume(m.now, record)
}

// upgrade puts another Backend in the place of w's and forgets the old one. The server obeys.
func (w *fakeWorld) upgrade(t *testing.T) {
	t.Helper()
	if why := w.b.Busy(); why != "" {
		t.Fatalf("no quiet moment: %s", why)
	}
	if !w.b.Asleep() {
		w.b.Rest(w.now, "upgrade")
		if left := w.leftover(); left != "" { // such as the end of a stream, on which nothing may be said any more
			t.Fatalf("left for the next event: %s", left)
		}
		if !w.b.Down() {
			w.exit(0)
		}
	}
	w.takeServer()
	w.takeActs()
	next, record, err := successor(w.b)
	if err != nil {
		t.Fatal(err)
	}
	w.b = next
	w.b.Resume(w.now, record)
}

// answerReplay answers the handshake that a new process is told.
func answerReplay(w *fakeWorld) {
	for _, line := range w.takeServer() {
		var q struct {
			ID     json.RawMessage
			Method string
		}
		if json.Unmarshal([]byte(line), &q) == nil && q.Method == "initialize" {
			w.server(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}}}}`, q.ID))
		}
	}
}

// readyWorld is a client and a server that have been through their handshake.
func readyWorld(opts Options) *fakeWorld {
	w := newWorld(opts)
	w.b.Open(w.now)
	w.client(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25"}}`)
	w.server(`{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}}}}`)
	w.client(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	w.takeClient()
	w.takeServer()
	return w
}

// A client may answer the request of a server that has ended after an upgrade: no later server, which may use the same id,
// gets that answer.
func TestALateAnswerAfterAnUpgrade(t *testing.T) {
	w := readyWorld(Options{})
	w.server(`{"jsonrpc":"2.0","id":7,"method":"ping"}`)
	if got := w.takeClient(); len(got) != 1 {
		t.Fatalf("the client was asked %q", got)
	}
	w.exit(1)
	answerReplay(w)
	w.takeServer()
	w.upgrade(t)
	answerReplay(w)
	w.takeServer()
	w.server(`{"jsonrpc":"2.0","id":7,"method":"ping"}`)
	w.client(`{"jsonrpc":"2.0","id":7,"result":{}}`)
	if got := w.takeServer(); len(got) > 0 {
		t.Errorf("another server got the answer: %q", got)
	}
}

// A translated client's subscription waits for the stream of list changes to be acknowledged, and the server dies before that: the subscription
// is in no record yet, so nothing takes the backend's place until it is answered.
func TestNoUpgradeWhileASubscriptionWaits(t *testing.T) {
	w := newWorld(Options{Known: Knowledge{Era: mcp.Modern, NoInitialize: true}})
	w.b.Open(w.now)
	w.client(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25"}}`)
	for _, line := range w.takeServer() {
		var q struct{ ID json.RawMessage }
		if err := json.Unmarshal([]byte(line), &q); err != nil {
			t.Fatal(err)
		}
		w.server(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{"listChanged":true},"resources":{"subscribe":true}}}}`, q.ID))
	}
	w.client(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	if got := w.takeClient(); len(got) != 1 || !strings.Contains(got[0], `"id":0,"result"`) {
		t.Fatalf("the handshake: %q", got)
	}
	w.client(`{"jsonrpc":"2.0","id":5,"method":"resources/subscribe","params":{"uri":"file:///x"}}`)
	w.exit(1)
	w.exit(1) // the second start in a row waits
	if !w.b.Down() || w.b.Busy() == "" {
		t.Errorf("down: %t, busy: %q", w.b.Down(), w.b.Busy())
	}
	w.tick(time.Minute)
	if got := w.takeClient(); len(got) != 1 || !strings.Contains(got[0], `"id":5,"error"`) {
		t.Errorf("the subscription: %q", got)
	}
}
