package streamhttp

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// One token takes at most half of the sessions that the others leave, so that each further one finds some.
func TestOneTokenLeavesSessionsForOthers(t *testing.T) {
	w := newWorld(t, &testHub{}, Options{MaxSessions: 8, Bearer: []string{"greedy", "second", "third"}})
	open := func(token string) (sessions []string) {
		for range 10 {
			a := w.do("POST", initializeLine("2025-11-25"), "Authorization: Bearer "+token)
			if a.status != 200 {
				if a.status != 503 || a.header.Get("Retry-After") == "" || !strings.Contains(a.body, "half of those of 8 that the others leave (limits.sessions); end some by DELETE") {
					t.Errorf("%s: %+v", token, a)
				}
				break
			}
			sessions = append(sessions, "Mcp-Session-Id: "+a.header.Get("Mcp-Session-Id"))
		}
		return sessions
	}
	first := open("greedy")
	if n := len(first); n != 4 {
		t.Errorf("the first has %d sessions, want 4", n)
	}
	if n := len(open("second")); n != 2 {
		t.Errorf("the second has %d sessions, want 2", n)
	}
	if n := len(open("third")); n != 1 {
		t.Errorf("the third has %d sessions, want 1", n)
	}
	w.do("DELETE", "", first[0], "Authorization: Bearer greedy")
	if a := w.do("POST", initializeLine("2025-11-25"), "Authorization: Bearer third"); a.status != 503 && a.status != 200 {
		t.Errorf("after one has ended: %+v", a)
	}
}

func TestTheOnlyTokenHasAllSessions(t *testing.T) {
	w := newWorld(t, &testHub{}, Options{MaxSessions: 3, Bearer: []string{"only"}})
	for i := range 4 {
		a := w.do("POST", initializeLine("2025-11-25"), "Authorization: Bearer only")
		if want := []int{200, 200, 200, 503}[i]; a.status != want {
			t.Errorf("session %d: %+v", i, a)
		}
	}
}

// ask sends a request of some size to a front without a network, whose client leaves as soon as the hub has it.
func ask(t *testing.T, f *Front, hub *testHub, size int, headers ...string) (status int, body string) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	line := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x","arguments":{"a":%q}}}`, strings.Repeat("a", size))
	done := make(chan struct{})
	go func() {
		defer close(done)
		w := serve(f, request(ctx, "POST", "http://localhost/mcp", line, headers...))
		status, body = w.Code, w.Body.String()
	}()
	synctest.Wait()
	cancel()
	<-done
	return status, body
}

// What clients have asked and nobody has answered is bounded, by token and in sum; it counts after they have left, too.
func TestBytesUnderWayAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hub := &testHub{answer: func(s *testSession, line []byte, reply Stream) {
			if strings.Contains(string(line), "initialize") {
				echo(s, line, reply)
			}
		}}
		f := New(hub, Options{MaxUnderWay: 8 << 10, Bearer: []string{"greedy", "modest"}})
		defer f.Close()
		greet := func(token string) string {
			w := serve(f, request(t.Context(), "POST", "http://localhost/mcp", initializeLine("2025-11-25"), "Authorization: Bearer "+token))
			if w.Code != 200 {
				t.Fatalf("%s: %d %s", token, w.Code, w.Body)
			}
			return "Mcp-Session-Id: " + w.Header().Get("Mcp-Session-Id")
		}
		greedy, modest := greet("greedy"), greet("modest")
		for i := range 6 {
			status, body := ask(t, f, hub, 1000, greedy, "Authorization: Bearer greedy")
			if full := i >= 3; full != (status == 503) {
				t.Errorf("request %d: %d %s", i, status, body)
			} else if full && !strings.Contains(body, "this token's share of the requests under way are too large together (8192 bytes for all): wait for answers") {
				t.Errorf("request %d: %s", i, body)
			}
		}
		if status, body := ask(t, f, hub, 1000, modest, "Authorization: Bearer modest"); status == 503 {
			t.Errorf("another token: %s", body)
		}
		// An answer makes room, and so does the end of the session.
		hub.session(0).reply(1).Send([]byte(`{"jsonrpc":"2.0","id":1,"result":{}}`))
		if status, body := ask(t, f, hub, 1000, greedy, "Authorization: Bearer greedy"); status == 503 {
			t.Errorf("after an answer: %s", body)
		}
		if w := serve(f, request(t.Context(), "DELETE", "http://localhost/mcp", "", greedy, "Authorization: Bearer greedy")); w.Code != http.StatusNoContent {
			t.Errorf("DELETE: %d", w.Code)
		}
		for _, s := range []string{greedy, modest} {
			serve(f, request(t.Context(), "DELETE", "http://localhost/mcp", "", s, "Authorization: Bearer modest"))
		}
		time.Sleep(time.Second)
		synctest.Wait()
		if f.underWay.total != 0 || len(f.underWay.by) != 0 || f.places.total != 0 {
			t.Errorf("left: %d bytes, %d sessions", f.underWay.total, f.places.total)
		}
	})
}

// A body whose length nobody has said is bounded while it is read.
func TestBodyOfUnknownLengthIsBounded(t *testing.T) {
	w := newWorld(t, &testHub{}, Options{MaxUnderWay: 1000})
	req := request(t.Context(), "POST", w.url+"/mcp", strings.Repeat(" ", 5000))
	req.ContentLength = -1
	resp, err := w.client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != 503 || resp.Header.Get("Retry-After") == "" {
		t.Errorf("%d", resp.StatusCode)
	}
	if a := w.do("POST", initializeLine("2025-11-25")); a.status != 200 {
		t.Errorf("afterwards: %+v", a)
	}
}
