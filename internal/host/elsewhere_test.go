package host

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/outlive-mcp/outlive/internal/backend"
	"github.com/outlive-mcp/outlive/internal/backoff"
	"github.com/outlive-mcp/outlive/internal/event"
	"github.com/outlive-mcp/outlive/internal/remote"
	"github.com/outlive-mcp/outlive/internal/supervise"
	"github.com/outlive-mcp/outlive/internal/wire"
)

// patience bounds every wait; nothing here comes near it.
const patience = 30 * time.Second

// far is an MCP server of the legacy era behind HTTP. It forgets its sessions when it is told to.
type far struct {
	age   atomic.Int32 // how often it has begun anew
	greet atomic.Int32 // handshakes it has had
	calls atomic.Int32
}

func (f *far) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	var m struct {
		ID     json.RawMessage
		Method string
	}
	_ = json.Unmarshal(body, &m)
	session := fmt.Sprint("life-", f.age.Load())
	switch {
	case r.Method != http.MethodPost:
		w.WriteHeader(http.StatusMethodNotAllowed)
		return
	case m.Method == "initialize":
		f.greet.Add(1)
		w.Header().Set("Mcp-Session-Id", session)
	case r.Header.Get("Mcp-Session-Id") != session:
		w.WriteHeader(http.StatusNotFound)
		return
	case m.ID == nil:
		w.WriteHeader(http.StatusAccepted)
		return
	}
	result := `{"tools":[{"name":"add","inputSchema":{"type":"object"}}]}`
	switch m.Method {
	case "initialize":
		result = `{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"far","version":"1"}}`
	case "tools/call":
		result = fmt.Sprintf(`{"content":[{"type":"text","text":"call %d"}]}`, f.calls.Add(1))
	}
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":%s}`, m.ID, result)
}

// near is the client of a host.
type near struct{ lines chan string }

func (n near) Forward(line []byte) { n.lines <- string(line) }
func (n near) Send(line []byte)    { n.lines <- string(line) }
func (n near) Behind() bool        { return false }

type mute struct{}

func (mute) Write(p []byte) (int, error) { return len(p), nil }
func (mute) Emit(event.Event)            {}

// A server elsewhere that forgets its session is one that has crashed: it is greeted anew, and the client notices nothing.
func TestASessionThatIsLostIsBegunAnew(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	f := &far{}
	server := httptest.NewServer(f)
	defer server.Close()
	loop, err := wire.NewLoop()
	if err != nil {
		t.Fatal(err)
	}
	client := near{make(chan string, 100)}
	dir := t.TempDir()
	h := New(loop, client, Options{
		Remote: &remote.Options{URL: server.URL},
		Backend: backend.Options{Name: "far", Command: []string{server.URL}, NoTools: true, Elsewhere: true,
			Supervise: supervise.Options{Backoff: backoff.Policy{Tiers: []backoff.Tier{{Delay: 0}}}}},
		MarkerPath: filepath.Join(dir, "marker"), StateDir: dir, Stderr: mute{}, Sink: mute{},
		Finish: func(int) { loop.Post(loop.Stop) },
	})
	loop.Deadline = func() time.Time { return h.Backend.Deadline() }
	loop.OnTick = func(now time.Time) { h.Backend.Tick(now) }
	ended := make(chan struct{})
	loop.Post(func() { h.Backend.Open(time.Now()) })
	go func() {
		loop.Run()
		h.Close()
		close(ended)
	}()
	ask := func(line, want string) {
		t.Helper()
		loop.Post(func() { h.Backend.ClientLine(time.Now(), []byte(line)) })
		select {
		case got := <-client.lines:
			if !strings.Contains(got, want) {
				t.Fatalf("asked %s, got %s", line, got)
			}
		case <-time.After(patience):
			t.Fatalf("no answer to %s", line)
		}
	}
	ask(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`, `"name":"far"`)
	loop.Post(func() {
		h.Backend.ClientLine(time.Now(), []byte(`{"jsonrpc":"2.0","method":"notifications/initialized"}`))
	})
	ask(`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"add"}}`, "call 1")
	for life := range int32(3) {
		f.age.Store(life + 1)
		ask(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"add"}}`, 10+life), fmt.Sprint("call ", life+2))
	}
	if got := f.greet.Load(); got != 4 {
		t.Errorf("%d handshakes instead of 4", got)
	}
	loop.Post(func() { h.Backend.ClientClosed(time.Now()) })
	select {
	case <-ended:
	case <-time.After(patience):
		t.Fatal("the host does not end")
	}
}
