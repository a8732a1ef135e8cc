package host

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/outlive-mcp/outlive/internal/line/backend"
	"github.com/outlive-mcp/outlive/internal/line/remote"
	"github.com/outlive-mcp/outlive/internal/record/event"
)

// far is an MCP server of the legacy era behind HTTP. It forgets its sessions when it is told to.
type far struct {
	age   atomic.Int32 // how often it has begun anew
	greet atomic.Int32 // handshakes it has had
	calls atomic.Int32
	fails atomic.Int32 // calls that are carried out from now on and end in a reset
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
	result := `{"tools":[{"name":"add","inputSchema":{"type":"object"}},` +
		`{"name":"look","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}}]}`
	switch m.Method {
	case "initialize":
		result = `{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"far","version":"1"}}`
	case "tools/call":
		result = fmt.Sprintf(`{"content":[{"type":"text","text":"call %d"}]}`, f.calls.Add(1))
		if f.fails.Add(-1) >= 0 {
			if conn, _, err := http.NewResponseController(w).Hijack(); err == nil {
				_ = conn.Close()
			}
			return
		}
	}
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":%s}`, m.ID, result)
}

// A server elsewhere that forgets its session is one that has crashed: it is greeted anew, and the client notices nothing.
func TestASessionThatIsLostIsBegunAnew(t *testing.T) {
	f := &far{}
	server := httptest.NewServer(f)
	defer server.Close()
	k := keep(t, Options{
		Remote:  &remote.Options{URL: server.URL},
		Backend: backend.Options{Name: "far", Command: []string{server.URL}, NoTools: true, Elsewhere: true},
	})
	k.greet(`"name":"far"`)
	k.ask(`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"add"}}`, "call 1")
	for life := range int32(3) {
		f.age.Store(life + 1)
		k.ask(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"add"}}`, 10+life), fmt.Sprint("call ", life+2))
	}
	if got := f.greet.Load(); got != 4 {
		t.Errorf("%d handshakes instead of 4", got)
	}
	k.end()
}

// Requests that break off are not crashes of a server elsewhere: its session goes on, reads are repeated, writes are not, and
// however often a call is hit, it is not told to be the cause.
func TestRequestsThatBreakOff(t *testing.T) {
	f := &far{}
	server := httptest.NewServer(f)
	defer server.Close()
	k := keep(t, Options{
		Remote:  &remote.Options{URL: server.URL},
		Backend: backend.Options{Name: "far", Command: []string{server.URL}, NoTools: true, Elsewhere: true},
	})
	k.greet(`"name":"far"`)
	k.ask(`{"jsonrpc":"2.0","id":2,"method":"tools/list"}`, "look")
	for i := range int32(4) {
		f.fails.Store(1)
		before := f.calls.Load()
		k.ask(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"add"}}`, 10+i), "was NOT repeated. Check the state")
		k.await(event.RequestLost)
		if n := f.calls.Load() - before; n != 1 {
			t.Errorf("a write was carried out %d times", n)
		}
		f.fails.Store(2)
		k.ask(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"look"}}`, 20+i), fmt.Sprint("call ", before+4))
		k.await(event.RequestResent)
	}
	f.fails.Store(9)
	before := f.calls.Load()
	k.ask(`{"jsonrpc":"2.0","id":30,"method":"tools/call","params":{"name":"look"}}`, "called 3 times")
	if n := f.calls.Load() - before; n != 3 {
		t.Errorf("a read was carried out %d times", n)
	}
	k.do(func() {
		if s := k.Backend.Status(time.Now()); s.RestartCount != 0 || s.State != "ready" || !strings.Contains(s.Failing, "broke off") {
			t.Errorf("%+v", s)
		}
	})
	f.fails.Store(0)
	k.ask(`{"jsonrpc":"2.0","id":31,"method":"tools/call","params":{"name":"look"}}`, "call ")
	if got := f.greet.Load(); got != 1 {
		t.Errorf("%d handshakes instead of 1", got)
	}
	k.end()
}

// A server elsewhere that answers a request twice is heard once, whichever way the second answer comes.
func TestSecondAnswerOfAServerElsewhere(t *testing.T) {
	body := func(w http.ResponseWriter, kind, text string) {
		w.Header().Set("Content-Type", kind)
		_, _ = io.WriteString(w, text)
	}
	for way, say := range map[string]func(w http.ResponseWriter, answer, before string){
		"in one array": func(w http.ResponseWriter, answer, _ string) {
			body(w, "application/json", "["+answer+","+answer+"]")
		},
		"in one event": func(w http.ResponseWriter, answer, _ string) {
			body(w, "text/event-stream", "data: ["+answer+","+answer+"]\n\n")
		},
		"in two events": func(w http.ResponseWriter, answer, _ string) {
			body(w, "text/event-stream", "data: "+answer+"\n\ndata: "+answer+"\n\n")
		},
		"with the answer to the next request": func(w http.ResponseWriter, answer, before string) {
			if before == "" {
				body(w, "application/json", answer)
				return
			}
			body(w, "text/event-stream", "data: "+before+"\n\ndata: "+answer+"\n\n")
		},
	} {
		t.Run(way, func(t *testing.T) {
			f := &far{}
			var before atomic.Value
			before.Store("")
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				text, _ := io.ReadAll(r.Body)
				var m struct {
					ID     json.RawMessage
					Method string
				}
				_ = json.Unmarshal(text, &m)
				if m.Method != "tools/call" {
					r.Body = io.NopCloser(bytes.NewReader(text))
					f.ServeHTTP(w, r)
					return
				}
				answer := fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"content":[]}}`, m.ID)
				say(w, answer, before.Swap(answer).(string))
			}))
			defer server.Close()
			k := keep(t, Options{
				Remote:  &remote.Options{URL: server.URL},
				Backend: backend.Options{Name: "far", Command: []string{server.URL}, NoTools: true, Elsewhere: true},
			})
			k.greet(`"name":"far"`)
			for id := 2; id < 6; id++ { // a second answer would be taken for that to the next call
				k.ask(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"add"}}`, id), fmt.Sprintf(`"id":%d,`, id))
			}
			k.end()
		})
	}
}

// wires makes a client's connections, tells when one is closed, and can have their writes fail.
type wires struct {
	open   atomic.Int32
	closed chan struct{}
	broken atomic.Bool
}

func (w *wires) transport() *http.Transport {
	return &http.Transport{DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := (&net.Dialer{}).DialContext(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		w.open.Add(1)
		return &wire{Conn: conn, of: w}, nil
	}}
}

type wire struct {
	net.Conn
	of   *wires
	once sync.Once
}

func (w *wire) Write(b []byte) (int, error) {
	if w.of.broken.Load() {
		return 0, syscall.EPIPE
	}
	return w.Conn.Write(b)
}

func (w *wire) Close() error {
	w.once.Do(func() { w.of.closed <- struct{}{} })
	return w.Conn.Close()
}

// A server elsewhere that is gone is told in the words of a network: it has no exit status and no stderr. It makes no difference
// whether its connections are known to be closed, or the first thing that is seen of its end is that nothing can be written.
func TestAServerElsewhereThatIsGone(t *testing.T) {
	for how, vanish := range map[string]func(*httptest.Server, *wires){
		"its connections are closed": func(server *httptest.Server, w *wires) {
			server.CloseClientConnections()
			server.Close()
			for range w.open.Load() { // until then a request may be written, and it is not known whether it was read
				<-w.closed
			}
		},
		"nothing can be written": func(server *httptest.Server, w *wires) {
			_ = server.Listener.Close()
			w.broken.Store(true)
		},
	} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			server := httptest.NewServer(&far{})
			t.Cleanup(server.Close)
			w := &wires{closed: make(chan struct{}, 16)}
			transport := w.transport()
			t.Cleanup(transport.CloseIdleConnections)
			sayThatItIsGone(t, server.URL, transport, func() { vanish(server, w) })
		})
	}
}

func sayThatItIsGone(t *testing.T, url string, transport http.RoundTripper, vanish func()) {
	k := keep(t, Options{
		Remote:  &remote.Options{URL: url, Name: "far", Transport: transport},
		Backend: backend.Options{Name: "far", Command: []string{url}, NoTools: true, Elsewhere: true, QueueFor: time.Second},
	})
	k.greet(`"name":"far"`)
	k.ask(`{"jsonrpc":"2.0","id":2,"method":"tools/list"}`, "look")
	vanish()
	got := k.ask(`{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"add"}}`, "far: cannot be reached: ")
	if e := k.await(event.ServerExited); !strings.Contains(e.Message, "Connection ended: far: cannot be reached: ") {
		t.Errorf("told: %s", e.Message)
	}
	if e := k.await(event.ConnectionLost); !strings.Contains(e.Message, "Connection lost: far: cannot be reached: ") {
		t.Errorf("told: %s", e.Message)
	}
	for _, untrue := range []string{"exit", "stderr", "started"} {
		if strings.Contains(got, untrue) {
			t.Errorf("%q in: %s", untrue, got)
		}
	}
	if !strings.Contains(got, `"delivered":"no"`) {
		t.Errorf("the call was not delivered: %s", got)
	}
	k.end()
}
