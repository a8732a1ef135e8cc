package e2e

import (
	"bufio"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"
)

// helloLine opens a session of the legacy era.
const helloLine = `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}`

// slowLine is a call of a tool that takes a while.
func slowLine(id int, value string, ms int) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"slow","arguments":{"value":%q,"steps":1,"ms":%d}}}`, id, value, ms)
}

// eventLines are the lines of an event stream that a session has open.
type eventLines struct {
	*bufio.Scanner
	status int
	close  func() error
	lastID string
}

// events sends a request and reads the header of its answer.
func (s *rawSession) events(t *testing.T, method, line string, headers ...string) *eventLines {
	t.Helper()
	r, err := http.NewRequest(method, s.url, strings.NewReader(line))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	if method == http.MethodGet {
		r.Header.Set("Accept", "text/event-stream")
	}
	r.Header.Set("Mcp-Session-Id", s.id)
	for n := 0; n < len(headers); n += 2 {
		r.Header.Set(headers[n], headers[n+1])
	}
	resp, err := s.client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = resp.Body.Close() })
	return &eventLines{Scanner: bufio.NewScanner(resp.Body), status: resp.StatusCode, close: resp.Body.Close}
}

// until reads until a line has a text.
func (e *eventLines) until(t *testing.T, text string) {
	t.Helper()
	var seen []string
	for e.Scan() {
		seen = append(seen, e.Text())
		if id, ok := strings.CutPrefix(e.Text(), "id: "); ok {
			e.lastID = id
		}
		if strings.Contains(e.Text(), text) {
			return
		}
	}
	t.Fatalf("no %q in %q: %v", text, seen, e.Err())
}

// plain is a client of one replica, with a connection for each request.
func plain(at *gateway, id string) *rawSession {
	return &rawSession{client: &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: 2 * patience}, url: at.url, id: id}
}

// TestReplicasAnswerElsewhere: a replica is killed while a call runs, whose client has an event id. It gets the answer at another replica.
func TestReplicasAnswerElsewhere(t *testing.T) {
	t.Parallel()
	needOutlive(t)
	w := newWorkspace(t)
	r := w.startReplicas(t, w.gatewayConfig(t, []string{"names: never"}, backend{name: "s", server: servers()["go-legacy"]}))
	first := plain(r.all[0], "")
	first.mustHave(t, helloLine, `"protocolVersion"`)
	e := first.events(t, "POST", slowLine(5, "once", 3000)) // it has its stream after a second
	e.until(t, "id: ")
	r.all[0].killed(t)
	if e.Scan() && strings.Contains(e.Text(), `"result"`) {
		t.Fatalf("the answer came before: %s", e.Text())
	}
	back := plain(r.all[1], first.id).events(t, "GET", "", "Last-Event-ID", e.lastID)
	back.until(t, "slow once")
	if n := w.count("slow once"); n != 1 {
		t.Errorf("the tool was called %d times", n)
	}
	r.stopAll(t)
}

// TestReplicasWhenTheCoreIsKilled: a call that was on its way is answered with an error that says so, whether its stream had begun or
// not; the session goes on.
func TestReplicasWhenTheCoreIsKilled(t *testing.T) {
	t.Parallel()
	needOutlive(t)
	w := newWorkspace(t)
	r := w.startReplicas(t, w.gatewayConfig(t, []string{"names: never"}, backend{name: "s", server: servers()["go-legacy"]}))
	first := plain(r.all[0], "")
	first.mustHave(t, helloLine, `"protocolVersion"`)
	e := first.events(t, "POST", slowLine(5, "streamed", 60_000))
	e.until(t, "id: ")
	answered := make(chan string, 1)
	go func() {
		status, text, err := plain(r.all[1], first.id).post(slowLine(6, "quiet", 60_000))
		answered <- fmt.Sprint(status, " ", text, " ", err)
	}()
	w.awaitTrace(t, "slow quiet", 1)
	kill(t, w.coreOf(t))
	e.until(t, `"id":5,"error":`)
	if !strings.Contains(e.Text(), "outcome unknown") {
		t.Errorf("in the stream: %s", e.Text())
	}
	if text := <-answered; !strings.Contains(text, `"id":6,"error":`) || !strings.Contains(text, "outcome unknown") {
		t.Errorf("without a stream: %s", text)
	}
	if !eventually(func() bool { // the core may still be dying, and be sent a call
		_, text, err := plain(r.all[2], first.id).post(`{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"echo","arguments":{"text":"still here"}}}`)
		return err == nil && strings.Contains(text, `"text":"still here"`)
	}) {
		t.Error("the session does not go on")
	}
	r.stopAll(t)
}

// TestReplicasModern: clients of 2026-07-28, which have no sessions, call at all replicas, of which each is killed in turn, and then the core.
func TestReplicasModern(t *testing.T) {
	t.Parallel()
	needOutlive(t)
	for _, name := range []string{"go", "ts2-modern", "py-modern"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorkspace(t)
			r := w.startReplicas(t, w.gatewayConfig(t, []string{"names: never"}, backend{name: "s", server: servers()["go"]}))
			s := w.join(t, gatewayClients()[name], r.url())
			if !s.modern() {
				t.Fatal("the client is not of the modern era")
			}
			s.toolNames(t)
			call := func(text string) string {
				_, ch := s.begin(step{"op": "call", "tool": "echo", "args": map[string]any{"text": text}})
				return s.await(t, text, ch).text()
			}
			for n := range 6 {
				if text := fmt.Sprint("call ", n); call(text) != text {
					t.Errorf("call %d has another answer", n)
				}
			}
			pid := s.call(t, "pid", map[string]any{}).text()
			for n := range 3 {
				r.all[n].killed(t)
				text := fmt.Sprint("after the end of replica ", n)
				if !eventually(func() bool { return call(text) == text }) {
					t.Errorf("no answer %s", text)
				}
				if is := s.call(t, "pid", map[string]any{}).text(); is != pid {
					t.Errorf("%s: another process of the server", text)
				}
				r.all[n] = r.all[n].listenAgain(t)
			}
			kill(t, w.coreOf(t))
			if !eventually(func() bool { return call("another core") == "another core" }) {
				t.Error("the client does not go on with another core")
			}
			_, ch := s.begin(step{"op": "close"})
			s.await(t, "close", ch)
			r.stopAll(t)
		})
	}
}

// TestReplicasUpgradeOfTheCore: the core becomes the program on disk while clients call by all replicas: sessions stay, no call is refused,
// and the replicas are there afterwards.
func TestReplicasUpgradeOfTheCore(t *testing.T) {
	needFull(t, "upgrades under load")
	needOutlive(t)
	w := newWorkspace(t)
	r := w.startReplicas(t, w.gatewayConfig(t, []string{"names: never"}, backend{name: "s", server: servers()["go-legacy"], keys: []string{"shared: true"}}))
	first := plain(r.all[0], "")
	first.mustHave(t, helloLine, `"protocolVersion"`)
	stop, done := make(chan struct{}), make(chan int, 3)
	for n, at := range r.all {
		go func() {
			s := plain(at, first.id)
			for calls := 0; ; calls++ {
				select {
				case <-stop:
					done <- calls
					return
				default:
				}
				text := fmt.Sprintf("replica %d call %d", n, calls)
				s.mustHave(t, fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"echo","arguments":{"text":%q}}}`, n+1, text), text)
				time.Sleep(time.Millisecond)
			}
		}()
	}
	was := w.coreOf(t)
	for range 3 {
		r.all[0].upgrade(t)
	}
	close(stop)
	for range r.all {
		if calls := <-done; calls == 0 {
			t.Error("a client did not call at all")
		}
	}
	if is := w.coreOf(t); is != was {
		t.Errorf("another process: %d, not %d", is, was)
	}
	if !eventually(func() bool { return strings.Count(w.status(), "(PID ") == 3 }) {
		t.Errorf("not all replicas are back: %s", w.status())
	}
	r.stopAll(t)
}
