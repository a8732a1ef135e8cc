package e2e

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// A flaky remote server is better behind a gateway than without one. The server is the Go SDK's behind HTTP with a journal of
// what it has really done; a proxy before it breaks some of the requests. The same calls go once straight to the proxy and
// once through a gateway with default settings.

// journal is what a server has done: how often each call was carried out.
type journal struct {
	mu     sync.Mutex
	done   map[string]int
	greets int
}

func (j *journal) note(call string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.done[call]++
}

// most is how often the call was carried out that was carried out most often, of a kind.
func (j *journal) most(kind string) (n int) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for call, times := range j.done {
		if strings.HasPrefix(call, kind) {
			n = max(n, times)
		}
	}
	return n
}

func (j *journal) handshakes() int {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.greets
}

// handler is the server.
func (j *journal) handler(legacy bool) http.Handler {
	options := &mcp.ServerOptions{}
	if legacy {
		options.SupportedProtocolVersions = []string{"2025-03-26", "2025-06-18", "2025-11-25"}
	}
	s := mcp.NewServer(&mcp.Implementation{Name: "journal", Version: "1.0.0"}, options)
	for name, a := range map[string]*mcp.ToolAnnotations{"read": readOnlyTool, "write": nil} {
		mcp.AddTool(s, &mcp.Tool{Name: name, Annotations: a}, func(_ context.Context, _ *mcp.CallToolRequest, in struct {
			Value string `json:"value"`
		}) (*mcp.CallToolResult, any, error) {
			j.note(name + " " + in.Value)
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "done " + name + " " + in.Value}}}, nil, nil
		})
	}
	s.AddReceivingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
			if method == "initialize" {
				j.mu.Lock()
				j.greets++
				j.mu.Unlock()
			}
			return next(ctx, method, req)
		}
	})
	return mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s }, nil)
}

var readOnlyTool = &mcp.ToolAnnotations{ReadOnlyHint: true}

// breaker is a proxy that breaks some requests. Its choice is the same in every run with the same requests.
type breaker struct {
	to    http.Handler
	share float64 // of the requests that are broken
	kind  fault

	mu     sync.Mutex
	random *rand.Rand
	gone   chan struct{} // closed at the end: swallowed requests are let go
	hole   bool          // what comes now is swallowed
	held   int           // requests that were
}

type fault func(f *breaker, w http.ResponseWriter, r *http.Request, n int)

// reset ends the connection with a reset: every second time before the server has got the request, otherwise after.
func reset(f *breaker, w http.ResponseWriter, r *http.Request, n int) {
	if n%2 == 0 && r.Method == http.MethodPost {
		f.to.ServeHTTP(httptest.NewRecorder(), r)
	}
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return
	}
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	_ = conn.Close()
}

// busy is a 503 of something before the server.
func busy(_ *breaker, w http.ResponseWriter, _ *http.Request, _ int) {
	http.Error(w, "no healthy upstream", http.StatusServiceUnavailable)
}

// later is a 503 that says when to come again.
func later(_ *breaker, w http.ResponseWriter, _ *http.Request, _ int) {
	w.Header().Set("Retry-After", "1")
	http.Error(w, "try later", http.StatusServiceUnavailable)
}

// mixed is everything that proxies and servers answer in their need.
func mixed(f *breaker, w http.ResponseWriter, r *http.Request, n int) {
	switch n % 6 {
	case 0:
		w.WriteHeader(http.StatusBadGateway)
	case 1:
		http.Error(w, "oops", http.StatusInternalServerError)
	case 2:
		w.WriteHeader(http.StatusTooManyRequests)
	case 3:
		w.Header().Set("Content-Type", "text/html")
		_, _ = io.WriteString(w, "<p>Please log in to the hotel's network")
	case 4:
		w.WriteHeader(http.StatusGatewayTimeout)
	default:
		reset(f, w, r, n)
	}
}

// cutBody lets the server answer, and half of the answer through.
func cutBody(f *breaker, w http.ResponseWriter, r *http.Request, _ int) {
	answer := httptest.NewRecorder()
	if r.Method != http.MethodPost {
		f.to.ServeHTTP(w, r)
		return
	}
	f.to.ServeHTTP(answer, r)
	for key, values := range answer.Header() {
		w.Header()[key] = values
	}
	body := answer.Body.Bytes()
	w.Header().Set("Content-Length", fmt.Sprint(len(body)))
	w.WriteHeader(answer.Code)
	_, _ = w.Write(body[:len(body)/2])
	panic(http.ErrAbortHandler)
}

func (f *breaker) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	n, broken, hole := f.random.IntN(1000), f.random.Float64() < f.share, f.hole
	if hole && r.Method == http.MethodPost {
		f.held++
	}
	f.mu.Unlock()
	switch {
	case hole:
		select {
		case <-f.gone:
		case <-r.Context().Done():
		}
		panic(http.ErrAbortHandler)
	case broken:
		f.kind(f, w, r, n)
	default:
		f.to.ServeHTTP(w, r)
	}
}

func (f *breaker) set(change func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change()
}

// startFaults starts the server and the proxy before it, and returns the proxy's URL.
func startFaults(t *testing.T, legacy bool, share float64, kind fault) (*journal, *breaker, string) {
	t.Helper()
	j := &journal{done: map[string]int{}}
	server := httptest.NewServer(j.handler(legacy))
	target, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	way := &http.Transport{MaxIdleConnsPerHost: 32}
	proxy := httputil.NewSingleHostReverseProxy(target)
	proxy.Transport, proxy.FlushInterval = way, -1
	proxy.ErrorLog = nil
	f := &breaker{to: proxy, share: share, kind: kind, random: rand.New(rand.NewPCG(1, 2)), gone: make(chan struct{})}
	front := httptest.NewServer(f)
	t.Cleanup(func() {
		close(f.gone)
		front.CloseClientConnections()
		front.Close()
		way.CloseIdleConnections()
		server.CloseClientConnections()
		server.Close()
	})
	return j, f, front.URL + "/mcp"
}

// tally is what a run of calls came to.
type tally struct {
	errors   []string
	longest  time.Duration
	unbroken int // calls that succeeded
}

// flakyUser calls in turn what writes and what reads. One that has lost its connection connects again.
type flakyUser struct {
	t      *testing.T
	target string
	prefix string   // of the tools' names
	by     []string // a command line in place of the target; then it never connects again
	cs     *mcp.ClientSession
}

func (u *flakyUser) connect(ctx context.Context) error {
	foreign(u.t, "Go SDK client")
	c := mcp.NewClient(&mcp.Implementation{Name: "flaky", Version: "1.0.0"}, nil)
	var way mcp.Transport = &mcp.StreamableClientTransport{Endpoint: u.target}
	if u.by != nil {
		way = &mcp.CommandTransport{Command: exec.Command(u.by[0], u.by[1:]...)}
	}
	cs, err := c.Connect(ctx, way, &mcp.ClientSessionOptions{ProtocolVersion: "2025-11-25"})
	if err == nil && u.by != nil {
		_, err = cs.ListTools(ctx, nil) // as every client does: from then on outlive knows what only reads
	}
	if err == nil {
		u.cs = cs
	}
	return err
}

// call returns the text of a tool's answer, or an error if it is not what the tool says.
func (u *flakyUser) call(ctx context.Context, tool, value string) error {
	if u.cs == nil {
		if err := u.connect(ctx); err != nil {
			return fmt.Errorf("connect: %w", err)
		}
	}
	r, err := u.cs.CallTool(ctx, &mcp.CallToolParams{Name: u.prefix + tool, Arguments: map[string]any{"value": value}})
	if err != nil {
		if u.prefix == "" && u.by == nil { // straight: its session is lost
			_ = u.cs.Close()
			u.cs = nil
		}
		return err
	}
	said := ""
	if len(r.Content) == 1 {
		if text, ok := r.Content[0].(*mcp.TextContent); ok {
			said = text.Text
		}
	}
	if r.IsError || said != "done "+tool+" "+value {
		return fmt.Errorf("%s", said)
	}
	return nil
}

func (u *flakyUser) run(calls int) (out tally) {
	for i := range calls {
		tool := []string{"write", "read"}[i%2]
		ctx, cancel := context.WithTimeout(u.t.Context(), patience)
		from := time.Now()
		err := u.call(ctx, tool, fmt.Sprint(i))
		cancel()
		out.longest = max(out.longest, time.Since(from))
		if err != nil {
			out.errors = append(out.errors, fmt.Sprintf("%s %d after %s: %v", tool, i, time.Since(from).Round(time.Millisecond), err))
		} else {
			out.unbroken++
		}
	}
	if u.cs != nil {
		_ = u.cs.Close()
	}
	return out
}

// behindGateway starts a gateway with default settings before a remote server, and connects a client.
func behindGateway(t *testing.T, target string) (*gateway, *flakyUser) {
	t.Helper()
	w := newWorkspace(t)
	config := w.path("outlive.yaml")
	if err := os.WriteFile(config, []byte("servers:\n  far: {url: "+quoted(target)+"}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	g := w.listen(t, config)
	return g, &flakyUser{t: t, target: g.url, prefix: "far_"}
}

// untrue are words that are wrong about a server that runs elsewhere and never ended.
var untrue = []string{"exited", "crashed", "stderr", "seems to be what ends it", "was restarted"}

func TestFlakyRemote(t *testing.T) {
	needFull(t, "faults drawn at random, and how long a call takes")
	needOutlive(t)
	t.Parallel()
	for _, tc := range []struct {
		name  string
		share float64
		kind  fault
		calls int
		most  time.Duration // that a call may take
	}{
		{"reset 5 %", 0.05, reset, 150, 2 * time.Second},
		{"reset 30 %", 0.30, reset, 60, 2 * time.Second},
		{"503 12 %", 0.12, busy, 100, 2 * time.Second},
		{"503 with Retry-After 12 %", 0.12, later, 40, 5 * time.Second}, // a second each time is the server's own wish
		{"cut body 15 %", 0.15, cutBody, 60, 2 * time.Second},
		{"mixed 25 %", 0.25, mixed, 72, 2 * time.Second},
	} {
		for _, era := range []string{"legacy", "dual"} {
			t.Run(tc.name+"/"+era, func(t *testing.T) {
				t.Parallel()
				j, _, straight := startFaults(t, era == "legacy", tc.share, tc.kind)
				direct := (&flakyUser{t: t, target: straight}).run(tc.calls)
				if n := j.most("write"); n > 1 {
					t.Fatalf("without outlive a write was carried out %d times: the test is wrong", n)
				}
				j, _, target := startFaults(t, era == "legacy", tc.share, tc.kind)
				g, user := behindGateway(t, target)
				behind := user.run(tc.calls)
				t.Logf("direct: %d errors, longest %s; gateway: %d errors, longest %s, reads at most %d times, %d handshakes\n%s",
					len(direct.errors), direct.longest, len(behind.errors), behind.longest, j.most("read"), j.greets, strings.Join(behind.errors, "\n"))
				if len(behind.errors) >= len(direct.errors) {
					t.Errorf("%d errors behind the gateway, %d without", len(behind.errors), len(direct.errors))
				}
				if n := j.most("write"); n > 1 {
					t.Errorf("a write was carried out %d times", n)
				}
				if n := j.most("read"); n > 3 {
					t.Errorf("a read was carried out %d times", n)
				}
				if behind.longest > tc.most {
					t.Errorf("a call took %s", behind.longest)
				}
				for _, e := range behind.errors {
					for _, word := range untrue {
						if strings.Contains(e, word) {
							t.Errorf("%q in: %s", word, e)
						}
					}
				}
				g.stop(t)
				log, err := os.ReadFile(filepath.Join(g.dir, "audit.log"))
				if err != nil {
					t.Fatal(err)
				}
				if n := bytes.Count(log, []byte(`"server_crashed"`)) + bytes.Count(log, []byte(`"connection_lost"`)); n > 0 {
					t.Errorf("%d ends of a server that ran all the time", n)
				}
			})
		}
	}
}

// The same with `outlive run URL`, for a client that speaks stdio only.
func TestFlakyBehindRun(t *testing.T) {
	needFull(t, "faults drawn at random")
	needOutlive(t)
	for name, kind := range map[string]fault{"reset": reset, "mixed": mixed} {
		for _, era := range []string{"legacy", "dual"} {
			t.Run(name+"/"+era, func(t *testing.T) {
				const share, calls = 0.25, 48
				_, _, straight := startFaults(t, era == "legacy", share, kind)
				direct := (&flakyUser{t: t, target: straight}).run(calls)
				j, _, target := startFaults(t, era == "legacy", share, kind)
				w := newWorkspace(t)
				env := append([]string{"env"}, w.env()...)
				behind := (&flakyUser{t: t, by: append(env, tools.outlive, "run", target, "--audit", w.path("audit.log"))}).run(calls)
				t.Logf("direct: %d errors, longest %s; behind run: %d errors, longest %s, reads at most %d times\n%s",
					len(direct.errors), direct.longest, len(behind.errors), behind.longest, j.most("read"), strings.Join(behind.errors, "\n"))
				if len(behind.errors) >= len(direct.errors) {
					t.Errorf("%d errors behind outlive, %d without", len(behind.errors), len(direct.errors))
				}
				if j.most("write") > 1 || j.most("read") > 3 {
					t.Errorf("a write was carried out %d times, a read %d times", j.most("write"), j.most("read"))
				}
				for _, e := range behind.errors {
					if !strings.HasPrefix(e, "write ") {
						t.Errorf("a call that only reads failed: %s", e)
					}
				}
			})
		}
	}
}

// What a black hole has swallowed holds up nothing else: other calls go through as soon as the way is there again, in the
// same session, and nothing is done twice.
func TestBlackHoleBeforeRemote(t *testing.T) {
	needFull(t, "it judges how long calls take beside a black hole")
	needOutlive(t)
	j, f, target := startFaults(t, true, 0, busy)
	g, user := behindGateway(t, target)
	if err := user.call(t.Context(), "read", "before"); err != nil {
		t.Fatal(err)
	}
	greets := j.handshakes() // the gateway's own trial of the server, and the session's
	f.set(func() { f.hole = true })
	ctx, cancel := context.WithCancel(t.Context())
	swallowed := make(chan error, 4)
	for i := range cap(swallowed) {
		go func() { swallowed <- user.call(ctx, []string{"write", "read"}[i%2], fmt.Sprint("swallowed ", i)) }()
	}
	f.awaitHeld(t, cap(swallowed))
	f.set(func() { f.hole = false })
	for i := range 10 {
		from := time.Now()
		if err := user.call(t.Context(), []string{"write", "read"}[i%2], fmt.Sprint(i)); err != nil {
			t.Errorf("call %d beside the swallowed ones: %v", i, err)
		}
		if took := time.Since(from); took > 2*time.Second {
			t.Errorf("call %d took %s", i, took)
		}
	}
	cancel()
	for range cap(swallowed) {
		if err := <-swallowed; err == nil {
			t.Error("a call that was swallowed has an answer")
		}
	}
	if err := user.call(t.Context(), "read", "after"); err != nil {
		t.Error(err)
	}
	if j.most("write") > 1 || j.most("read") > 1 || j.handshakes() > greets {
		t.Errorf("writes %d times, reads %d times, %d handshakes, %d before", j.most("write"), j.most("read"), j.handshakes(), greets)
	}
	_ = user.cs.Close()
	g.stop(t)
}

// awaitHeld waits until that many requests were swallowed.
func (f *breaker) awaitHeld(t *testing.T, n int) {
	t.Helper()
	if !eventually(func() bool { f.mu.Lock(); defer f.mu.Unlock(); return f.held >= n }) {
		t.Fatal("not all requests have come to the proxy")
	}
}
