package streamhttp

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func contextWithCancel(t *testing.T) (context.Context, context.CancelFunc) {
	return context.WithCancel(t.Context())
}

// serve hands one request to a front without a network, and returns the response.
func serve(f *Front, r *http.Request) *httptest.ResponseRecorder {
	r.RemoteAddr = "127.0.0.1:1"
	w := httptest.NewRecorder()
	f.ServeHTTP(w, r)
	return w
}

// greetDirect opens a session without a network and returns the header that names it.
func greetDirect(t *testing.T, f *Front) string {
	t.Helper()
	w := serve(f, request(t.Context(), "POST", "http://localhost/mcp", initializeLine("2025-11-25")))
	if w.Code != 200 {
		t.Fatalf("initialize: %d %s", w.Code, w.Body)
	}
	return "Mcp-Session-Id: " + w.Header().Get("Mcp-Session-Id")
}

// alive reports whether a session is still there; asking counts as use.
func alive(t *testing.T, f *Front, session string) bool {
	t.Helper()
	return serve(f, request(t.Context(), "POST", "http://localhost/mcp", `{"jsonrpc":"2.0","method":"n"}`, session)).Code == 202
}

func TestIdleSessionsExpire(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hub := &testHub{}
		f := New(hub, Options{SessionIdle: time.Hour})
		defer f.Close()
		session := greetDirect(t, f)
		for range 5 {
			time.Sleep(50 * time.Minute)
			if !alive(t, f, session) {
				t.Fatal("a session in use has expired")
			}
		}
		time.Sleep(61 * time.Minute)
		synctest.Wait()
		if alive(t, f, session) {
			t.Error("a session nobody used for more than its time is still there")
		}
		hub.session(0).await(t, "close")
	})
}

func TestOpenStreamKeepsASession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := New(&testHub{}, Options{SessionIdle: time.Hour, KeepAlive: time.Minute})
		defer f.Close()
		session := greetDirect(t, f)
		ctx, cancel := contextWithCancel(t)
		done := make(chan string)
		go func() {
			done <- serve(f, request(ctx, "GET", "http://localhost/mcp", "", session)).Body.String()
		}()
		time.Sleep(10*time.Hour + time.Second)
		cancel()
		if n := strings.Count(<-done, "\n: \n"); n != 600 {
			t.Errorf("%d keep-alive comments in ten hours, want one a minute", n)
		}
		time.Sleep(30 * time.Minute)
		if !alive(t, f, session) {
			t.Error("a session whose stream was open has expired")
		}
		time.Sleep(2 * time.Hour)
		if alive(t, f, session) {
			t.Error("it stays for ever")
		}
	})
}

// A call that runs keeps its session although its client is away, but not for ever: a server may never answer.
func TestRunningCallKeepsASession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hub := &testHub{answer: silent}
		f := New(hub, Options{SessionIdle: time.Hour})
		defer f.Close()
		for i, answered := range []bool{true, false} {
			session := greetDirect(t, f)
			s := hub.session(i)
			ctx, cancel := contextWithCancel(t)
			done := make(chan struct{})
			go func() {
				defer close(done)
				serve(f, request(ctx, "POST", "http://localhost/mcp", call(1), session))
			}()
			s.await(t, "message "+call(1))
			time.Sleep(time.Minute)
			cancel()
			<-done
			time.Sleep(5 * time.Hour)
			synctest.Wait()
			if f.find(strings.TrimPrefix(session, "Mcp-Session-Id: "), "", "") == nil {
				t.Fatal("the session has expired while its call runs")
			}
			f.left(f.table.all()[0])
			if answered {
				s.reply(1).Send([]byte(result(1)))
				time.Sleep(2*time.Hour + time.Minute)
			} else {
				time.Sleep(9 * time.Hour)
			}
			synctest.Wait()
			if len(f.table.all()) != 0 {
				t.Errorf("answered %v: the session is still there", answered)
			}
			s.await(t, "close")
		}
	})
}

func TestNoMoreSessionsThanAllowed(t *testing.T) {
	hub := &testHub{}
	w := newWorld(t, hub, Options{MaxSessions: 2})
	first := w.greet("2025-11-25")
	w.greet("2025-11-25")
	a := w.do("POST", initializeLine("2025-11-25"))
	if a.status != 503 || a.header.Get("Retry-After") == "" || !strings.Contains(a.body, `"id":0,"error":{"code":-32603`) || hub.opened() != 2 {
		t.Errorf("the third: %+v", a)
	}
	w.do("DELETE", "", first)
	w.greet("2025-11-25")
}

func TestHubThatWantsNoSession(t *testing.T) {
	w := newWorld(t, &testHub{full: true}, Options{MaxSessions: 1})
	for range 3 { // a refused session takes no place
		if a := w.do("POST", initializeLine("2025-11-25")); a.status != 503 || a.header.Get("Retry-After") == "" {
			t.Errorf("legacy: %+v", a)
		}
	}
	if a := w.do("POST", modernLine(1, "x", ""), modernHeaders("x")...); a.status != 503 || !strings.Contains(a.body, `"id":1,"error":{"code":-32603`) {
		t.Errorf("modern: %+v", a)
	}
}

// The limit holds for a body whose length is not said, too.
func TestBodyLimitWithoutALength(t *testing.T) {
	hub := &testHub{}
	w := newWorld(t, hub, Options{MaxBody: 5000})
	session := w.greet("2025-11-25")
	long := `{"jsonrpc":"2.0","id":7,"method":"` + strings.Repeat("m", 10000) + `"}`
	for _, chunked := range []bool{false, true} {
		r := request(t.Context(), "POST", w.url+"/mcp", long, session)
		if chunked {
			r.ContentLength = -1
			r.Body = struct{ *onlyReader }{&onlyReader{strings.NewReader(long)}}
		}
		resp, err := w.client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != 413 {
			t.Errorf("chunked %v: %d", chunked, resp.StatusCode)
		}
	}
	if a := w.do("POST", call(1), session); a.status != 200 {
		t.Errorf("afterwards: %+v", a)
	}
}

type onlyReader struct{ in *strings.Reader }

func (r *onlyReader) Read(p []byte) (int, error) { return r.in.Read(p) }
func (r *onlyReader) Close() error               { return nil }

// A hub is told of a client that is away, in time and again and again, but not of one that has a stream or a request.
func TestAwayClientsAreTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hub := &testHub{}
		f := New(hub, Options{SessionIdle: time.Hour, SessionRelease: 2 * time.Minute})
		defer f.Close()
		session := greetDirect(t, f)
		s := hub.session(0)
		s.await(t, "message")
		released := func() (n int) {
			synctest.Wait()
			for {
				select {
				case e := <-s.events:
					if e == "release" {
						n++
					}
				default:
					return n
				}
			}
		}
		for range 5 {
			time.Sleep(119 * time.Second)
			if !alive(t, f, session) || released() != 0 {
				t.Fatal("a client that is there was taken to be away")
			}
		}
		time.Sleep(121 * time.Second)
		if n := released(); n != 1 {
			t.Errorf("away: told %d times", n)
		}
		if !alive(t, f, session) {
			t.Fatal("the session has ended")
		}
		released()
		ctx, cancel := contextWithCancel(t)
		done := make(chan struct{})
		go func() {
			defer close(done)
			serve(f, request(ctx, "GET", "http://localhost/mcp", "", session, "Accept: text/event-stream"))
		}()
		time.Sleep(30 * time.Minute)
		if n := released(); n != 0 {
			t.Errorf("with a stream: told %d times", n)
		}
		cancel()
		<-done
		time.Sleep(121 * time.Second)
		if n := released(); n != 1 {
			t.Errorf("after the stream: told %d times", n)
		}
	})
}

// A line break within a string is not JSON; between the members it is mere white space.
func TestLineBreaksInABody(t *testing.T) {
	front := New(&testHub{answer: echo}, Options{})
	defer front.Close()
	good := modernLine(1, "tools/list", "")
	for body, want := range map[string]int{
		strings.Replace(good, ",", ",\r\n", 1):                http.StatusOK,
		strings.Replace(good, `"tools/list"`, "\"a\nb\"", 1):  http.StatusBadRequest,
		strings.Replace(good, `"id":1`, "\"id\":\"a\rb\"", 1): http.StatusBadRequest,
	} {
		if w := serve(front, request(t.Context(), "POST", "http://localhost/mcp", body, modernHeaders("tools/list")...)); w.Code != want {
			t.Errorf("%q: status %d, want %d: %s", body, w.Code, want, w.Body)
		}
	}
}
