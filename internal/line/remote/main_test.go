package remote

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/outlive-mcp/outlive/internal/protocol/jsonrpc"
	"github.com/outlive-mcp/outlive/internal/protocol/mcp"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience is how long a test waits for what must happen.
const patience = 2 * time.Minute

// client is who stands above a connection.
type client struct {
	*Connection
	t     *testing.T
	lines chan string
	ended chan error

	mu  sync.Mutex
	log []string
}

// dial opens a connection that is gone when the test is.
func dial(t *testing.T, opts Options) *client {
	t.Helper()
	return open(t, opts, nil)
}

// open is dial with somebody to ask what may be repeated.
func open(t *testing.T, opts Options, repeat func([]byte, mcp.Method, string, func(bool))) *client {
	t.Helper()
	c := &client{t: t, lines: make(chan string, 1000), ended: make(chan error, 1)}
	opts.Log = func(line string) {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.log = append(c.log, line)
	}
	c.Connection = Open(opts, Events{
		Line:   func(line []byte) { c.lines <- string(line) },
		Repeat: repeat,
		End:    func(err error) { c.ended <- err; close(c.lines) },
	})
	t.Cleanup(func() {
		c.Kill()
		for range c.lines {
		}
	})
	return c
}

func (c *client) say(line string) { c.Send([]byte(line)) }

// hear returns the next line.
func (c *client) hear() string {
	c.t.Helper()
	select {
	case line, ok := <-c.lines:
		if !ok {
			c.t.Fatalf("the connection ended with %v in place of a line", <-c.ended)
		}
		return line
	case <-time.After(patience):
		c.t.Fatalf("no line; log: %q", c.logged())
	}
	return ""
}

// wantLine checks the next line.
func (c *client) wantLine(want string) {
	c.t.Helper()
	if got := c.hear(); got != want {
		c.t.Fatalf("line %s\nwant %s", got, want)
	}
}

// wantError checks that the next line is an error to a request, whose text contains part.
func (c *client) wantError(id, part string) string {
	c.t.Helper()
	line := c.hear()
	var e jsonrpc.Envelope
	if err := e.Scan([]byte(line)); err != nil || e.Kind != jsonrpc.ErrorResponse || string(e.ID.Of([]byte(line))) != id {
		c.t.Fatalf("line %s, want an error to %s", line, id)
	}
	if !strings.Contains(line, part) {
		c.t.Fatalf("line %s, want %q in it", line, part)
	}
	return line
}

// end returns what the connection ended with.
func (c *client) end() error {
	c.t.Helper()
	select {
	case err := <-c.ended:
		return err
	case <-time.After(patience):
		c.t.Fatalf("no end; log: %q", c.logged())
	}
	return nil
}

func (c *client) logged() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return strings.Join(c.log, "\n")
}

// seen is a request as a server got it.
type seen struct {
	*http.Request
	body   string
	method string // of the message
	id     string // raw
}

// serve runs a server until the test is over. The handlers of one method of HTTP or of the protocol are looked up by
// "GET", "DELETE" or the message's method, then "".
func serve(t *testing.T, handlers map[string]func(w http.ResponseWriter, r seen)) *httptest.Server {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		req := seen{Request: r, body: string(body)}
		name := r.Method
		if r.Method == http.MethodPost {
			var e jsonrpc.Envelope
			if e.Scan(body) == nil {
				req.method, _ = jsonrpc.Unquote(e.Method.Of(body))
				req.id = string(e.ID.Of(body))
			}
			name = req.method
		}
		handle := handlers[name]
		if handle == nil {
			handle = handlers[""]
		}
		if handle == nil {
			w.WriteHeader(http.StatusMethodNotAllowed)
			return
		}
		handle(w, req)
	}))
	t.Cleanup(func() {
		s.CloseClientConnections()
		s.Close()
	})
	return s
}

// reply answers in JSON.
func reply(w http.ResponseWriter, body string) {
	w.Header().Set("Content-Type", "application/json")
	_, _ = io.WriteString(w, body)
}

func result(w http.ResponseWriter, r seen, result string) {
	reply(w, fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":%s}`, r.id, result))
}

// events begins a stream and says something on it.
func events(w http.ResponseWriter, text string) {
	w.Header().Set("Content-Type", "text/event-stream")
	_, _ = io.WriteString(w, text)
	_ = http.NewResponseController(w).Flush()
}

// cut ends the connection to the client without an end of the response.
func cut(w http.ResponseWriter) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err == nil {
		_ = conn.Close()
	}
}

const (
	initialize  = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`
	initialized = `{"jsonrpc":"2.0","method":"notifications/initialized"}`
	greeting    = `{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}`
	modernMeta  = `{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"t","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}`
)

// legacyServer greets and accepts, beside what handlers say.
func legacyServer(t *testing.T, handlers map[string]func(w http.ResponseWriter, r seen)) *httptest.Server {
	all := map[string]func(w http.ResponseWriter, r seen){
		"initialize": func(w http.ResponseWriter, r seen) {
			w.Header().Set("Mcp-Session-Id", "s1")
			result(w, r, greeting)
		},
		"notifications/initialized": func(w http.ResponseWriter, _ seen) { w.WriteHeader(http.StatusAccepted) },
		"DELETE":                    func(w http.ResponseWriter, _ seen) {},
	}
	for name, h := range handlers {
		all[name] = h
	}
	return serve(t, all)
}

// greet goes through the handshake.
func (c *client) greet() {
	c.t.Helper()
	c.say(initialize)
	c.wantLine(`{"jsonrpc":"2.0","id":1,"result":` + greeting + `}`)
	c.say(initialized)
}

// modernCall is a tools/call of the stateless era.
func modernCall(id, tool, arguments string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"method":"tools/call","params":{"name":%q,"arguments":%s,"_meta":%s}}`, id, tool, arguments, modernMeta)
}

func modernRequest(id, method string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"method":%q,"params":{"_meta":%s}}`, id, method, modernMeta)
}
