package e2e

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// replicas are three gateways of one configuration, behind a load balancer that gives each request to the next of them.
type replicas struct {
	*workspace
	all      []*gateway
	balancer *httptest.Server
	turns    *inTurn
}

// startReplicas starts them, and what is in front.
func (w *workspace) startReplicas(t *testing.T, config string) *replicas {
	t.Helper()
	var all []*gateway
	for range 3 {
		all = append(all, w.replica(t, config))
	}
	return w.inFrontOf(t, all, http.Header{})
}

// inFrontOf starts a load balancer that adds headers to each request.
func (w *workspace) inFrontOf(t *testing.T, all []*gateway, headers http.Header) *replicas {
	t.Helper()
	turns := &inTurn{Transport: http.Transport{DisableKeepAlives: true}, rests: map[string]time.Time{}}
	r := &replicas{workspace: w, all: all, turns: turns}
	for _, g := range all {
		turns.targets = append(turns.targets, strings.TrimSuffix(strings.TrimPrefix(g.url, "http://"), "/mcp"))
	}
	r.balancer = httptest.NewServer(&httputil.ReverseProxy{
		Rewrite:       func(r *httputil.ProxyRequest) { maps.Copy(r.Out.Header, headers) },
		ErrorHandler:  func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
		Transport:     turns,
		FlushInterval: -1,
	})
	t.Cleanup(func() {
		r.balancer.CloseClientConnections()
		r.balancer.Close()
		turns.CloseIdleConnections()
	})
	return r
}

// restOfFailed is how long a replica at which a request has failed gets no other one while there is a choice. nginx waits ten seconds, unless
// it is told otherwise.
const restOfFailed = time.Second

// inTurn gives each request to the next replica, and to the one after that if nobody listens there. A request that was sent
// is not sent again. One at which a request has failed has a rest: the system takes up to a tenth of a second to end a process that was
// killed, and until then it takes connections for it that it then breaks.
type inTurn struct {
	http.Transport
	targets []string
	next    atomic.Uint64

	mu     sync.Mutex
	rests  map[string]time.Time // since when
	failed []string             // what became of requests that got no answer, and when
}

// RoundTrip implements http.RoundTripper.
func (b *inTurn) RoundTrip(r *http.Request) (resp *http.Response, err error) {
	var body []byte
	if r.Body != nil {
		if body, err = io.ReadAll(r.Body); err != nil {
			return nil, err
		}
	}
	for _, target := range b.inOrder() {
		one := r.Clone(r.Context())
		one.URL.Scheme, one.URL.Host, one.Host = "http", target, target
		if r.Body != nil {
			one.Body = io.NopCloser(bytes.NewReader(body))
		}
		if resp, err = b.Transport.RoundTrip(one); err == nil || r.Context().Err() != nil {
			return resp, err
		}
		b.fails(target, err)
		if refused := new(net.OpError); !errors.As(err, &refused) || refused.Op != "dial" {
			return resp, err
		}
	}
	return nil, err
}

// inOrder are the replicas as a request tries them.
func (b *inTurn) inOrder() (order []string) {
	turn := int(b.next.Add(1) % uint64(len(b.targets)))
	order = slices.Concat(b.targets[turn:], b.targets[:turn])
	b.mu.Lock()
	defer b.mu.Unlock()
	rests := func(target string) int {
		if time.Since(b.rests[target]) < restOfFailed {
			return 1
		}
		return 0
	}
	slices.SortStableFunc(order, func(x, y string) int { return rests(x) - rests(y) })
	return order
}

func (b *inTurn) fails(target string, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.rests[target] = time.Now()
	b.failed = append(b.failed, fmt.Sprintf("%s %s: %v", time.Now().Format("05.000"), target, err))
}

// replica starts one, on a port of its own.
func (w *workspace) replica(t *testing.T, config string) *gateway {
	t.Helper()
	return w.listenBy(t, append(w.stdioGateway(config), "--listen", freeAddress(t), "--replica", "--core-idle", "2s"))
}

func (r *replicas) url() string { return r.balancer.URL + "/mcp" }

// stopAll stops the replicas; what was behind them ends by itself, with the servers.
func (r *replicas) stopAll(t *testing.T) {
	t.Helper()
	for _, g := range r.all {
		select {
		case <-g.ended: // it was killed
		default:
			g.stop2(t)
		}
	}
	if !eventually(func() bool { return len(r.processes("")) == 0 }) {
		t.Errorf("left over: %v", r.processes(""))
	}
}

// coreOf is the process that has the sessions and the servers.
func (w *workspace) coreOf(t *testing.T) (pid int) {
	t.Helper()
	for pid, line := range w.processes(" gateway --core ") {
		if !dead(pid) && strings.HasPrefix(line, tools.outlive) {
			return pid
		}
	}
	t.Fatalf("there is no core among %v", w.processes(""))
	return 0
}

// counter is one client with a session, whose server counts in its memory.
type counter struct {
	*session
	count  int      // the last answer
	failed int      // calls that failed since then: each may have been counted, or not
	all    []string // the failed calls
	took   []time.Duration
}

// call has the server count once. An error says that the answer is not what it must be; a failed call is none.
func (c *counter) call() error {
	begun := time.Now()
	_, ch := c.begin(step{"op": "call", "tool": "count", "args": map[string]any{}})
	var r reply
	select {
	case r = <-ch:
	case <-time.After(patience):
		return fmt.Errorf("no answer")
	}
	if r.Error != nil || r.tool().IsError {
		c.failed++
		c.all = append(c.all, r.String())
		return nil
	}
	c.took = append(c.took, time.Since(begun))
	n, err := strconv.Atoi(r.text())
	if err != nil || n <= c.count || n > c.count+c.failed+1 {
		return fmt.Errorf("the answer is %q, after %d and %d calls that failed", r.text(), c.count, c.failed)
	}
	c.count, c.failed = n, 0
	return nil
}

// counters are clients that do something at the same time.
type counters []*counter

// each waits for all of them, and ends the test if one has failed.
func (all counters) each(t *testing.T, do func(c *counter) error) {
	t.Helper()
	var done sync.WaitGroup
	for _, c := range all {
		done.Go(func() {
			if err := do(c); err != nil {
				t.Error(err)
			}
		})
	}
	done.Wait()
	if t.Failed() {
		t.FailNow()
	}
}

// openCounters opens sessions, each of which has counted once.
func (r *replicas) openCounters(t *testing.T, sessions int) counters {
	t.Helper()
	all := make(counters, sessions)
	var opening sync.WaitGroup
	limit := make(chan struct{}, 8)
	for n := range all {
		opening.Go(func() {
			limit <- struct{}{}
			defer func() { <-limit }()
			all[n] = &counter{session: r.join(t, gatewayClients()["go-legacy"], r.url())}
			if err := all[n].call(); err != nil || all[n].count != 1 {
				t.Errorf("the first call: %d, %v", all[n].count, err)
			}
		})
	}
	opening.Wait()
	if t.Failed() {
		t.FailNow()
	}
	return all
}

// TestReplicas: 200 sessions of a real SDK, each with a server that counts in the memory of its own process, behind three
// replicas. One of these is killed while all of them call: every session goes on with its count, and no client sees more than one
// failed call.
func TestReplicas(t *testing.T) {
	needFull(t, "two hundred sessions under load, with a process each")
	needOutlive(t)
	const sessions, calls = 200, 12
	w := newWorkspace(t)
	r := w.startReplicas(t, w.gatewayConfig(t, []string{"names: never"}, backend{name: "s", server: servers()["go-legacy"]}))
	all := r.openCounters(t, sessions)
	each := func(do func(c *counter) error) {
		t.Helper()
		all.each(t, do)
	}
	half := make(chan struct{})
	var begun atomic.Int64
	var killed time.Time
	go func() {
		<-half
		killed = time.Now()
		r.all[1].killed(t)
	}()
	each(func(c *counter) error {
		for range calls {
			if begun.Add(1) == sessions*calls/2 {
				close(half)
			}
			if err := c.call(); err != nil {
				return err
			}
		}
		return nil
	})
	r.all[1] = r.all[1].listenAgain(t)
	each(func(c *counter) error {
		before := c.failed
		if err := c.call(); err != nil {
			return err
		}
		if c.failed > before {
			return fmt.Errorf("a call fails although all replicas run")
		}
		return nil
	})
	failed, took := 0, []time.Duration{}
	for _, c := range all {
		if len(c.all) > 1 {
			if !t.Failed() {
				t.Logf("killed at %s; the balancer saw:\n%s", killed.Format("05.000"), strings.Join(r.turns.failed, "\n"))
			}
			t.Errorf("a client saw failed calls: %q", c.all)
		}
		failed += len(c.all)
		took = append(took, c.took...)
	}
	slices.Sort(took)
	t.Logf("%d calls, of which %d failed while a replica was down; p50 %v, p99 %v", len(took)+failed, failed, took[len(took)/2], took[len(took)*99/100])
	each(func(c *counter) error {
		_, ch := c.begin(step{"op": "close"})
		<-ch
		return nil
	})
	r.stopAll(t)
}

// TestReplicasKnowWhoseASessionIs: a session goes on at every replica for the token it was opened with, also after a replica was killed,
// and for no other: to that it does not exist.
func TestReplicasKnowWhoseASessionIs(t *testing.T) {
	t.Parallel()
	needOutlive(t)
	w := newWorkspace(t)
	r := w.startReplicas(t, w.gatewayConfig(t, []string{"names: never", `auth: {bearer: ["token-of-alice-0123456789", "token-of-bob-0123456789ab"]}`},
		backend{name: "s", server: servers()["go-legacy"]}))
	of := func(token string, at *gateway, id string) *rawSession {
		return &rawSession{client: &http.Client{Transport: bearer{&http.Transport{DisableKeepAlives: true}, []string{token}}, Timeout: patience}, url: at.url, id: id}
	}
	const alice, bob = "token-of-alice-0123456789", "token-of-bob-0123456789ab"
	first := of(alice, r.all[0], "")
	first.mustHave(t, `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}`, `"protocolVersion"`)
	count := `{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"count","arguments":{}}}`
	for n, at := range []*gateway{r.all[0], r.all[1], r.all[2], r.all[1]} {
		of(alice, at, first.id).mustHave(t, count, fmt.Sprintf(`"text":"%d"`, n+1))
		if status, text, err := of(bob, at, first.id).post(count); status != http.StatusNotFound {
			t.Errorf("another token: %d %s %v", status, text, err)
		}
	}
	r.all[0].killed(t)
	of(alice, r.all[2], first.id).mustHave(t, count, `"text":"5"`)
	if status, text, err := of(bob, r.all[1], first.id).post(count); status != http.StatusNotFound {
		t.Errorf("another token after the kill: %d %s %v", status, text, err)
	}
	// A name that a client gives itself is not believed.
	liar, err := http.NewRequest("POST", r.all[1].url, strings.NewReader(count))
	if err != nil {
		t.Fatal(err)
	}
	liar.Header = http.Header{"Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"}, "Mcp-Session-Id": {first.id},
		"Outlive-Caller": {`{"subject":"bearer:0000000000000000"}`}, "Authorization": {"Bearer " + bob}}
	resp, err := http.DefaultClient.Do(liar)
	if err != nil || resp.StatusCode != http.StatusNotFound {
		t.Errorf("a caller that names itself: %v %v", resp, err)
	}
	if err == nil {
		resp.Body.Close()
	}
	r.stopAll(t)
}

// TestReplicasStreams: a client of each SDK keeps its stream, its subscription and the servers' questions when a replica is killed, and
// its session when the core is.
func TestReplicasStreams(t *testing.T) {
	t.Parallel()
	needOutlive(t)
	for _, name := range []string{"ts1", "go-legacy"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorkspace(t)
			r := w.startReplicas(t, w.gatewayConfig(t, []string{"names: never"}, backend{name: "s", server: servers()["go-legacy"]}))
			s := w.join(t, gatewayClients()[name], r.url())
			s.toolNames(t)
			s.do(t, step{"op": "subscribe", "uri": item})
			for n := range 3 {
				r.all[n].killed(t)
				if !eventually(func() bool {
					from := s.mark()
					_, ch := s.begin(step{"op": "call", "tool": "touch", "args": map[string]any{"uri": item}})
					s.await(t, "touch", ch)
					return within(500*time.Millisecond, func() bool {
						return slices.ContainsFunc(s.seen(from), notification("notifications/resources/updated", item))
					})
				}) {
					t.Errorf("after the end of replica %d: subscribed and not told; it saw %v", n, s.seen(0))
				}
				from := s.mark()
				if text := s.call(t, "elicit", map[string]any{"question": "go on?"}).text(); text != "elicited yes" {
					t.Errorf("a question after the end of replica %d: %q", n, text)
				}
				s.awaitEvent(t, from, "the question", asked("elicitation/create"))
				r.all[n] = r.all[n].listenAgain(t)
			}
			was := w.coreOf(t)
			kill(t, was)
			if !eventually(func() bool {
				_, ch := s.begin(step{"op": "call", "tool": "echo", "args": map[string]any{"text": "still here"}})
				return s.await(t, "echo", ch).text() == "still here"
			}) {
				t.Error("the session does not go on with another core")
			}
			if is := w.coreOf(t); is == was {
				t.Error("it is the same core")
			}
			_, ch := s.begin(step{"op": "close"})
			s.await(t, "close", ch)
			r.stopAll(t)
		})
	}
}
