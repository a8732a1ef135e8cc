package remote

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/outlive-mcp/outlive/internal/protocol/mcp"
	"github.com/outlive-mcp/outlive/internal/testing/await"
)

// A session as the protocol describes it, seen from the server.
func TestSessionAsTheServerSeesIt(t *testing.T) {
	var mu sync.Mutex
	var got []string
	note := func(r seen) {
		mu.Lock()
		defer mu.Unlock()
		if agent := r.Header.Get("User-Agent"); agent != "outlive" {
			t.Errorf("%s %s of %q", r.Method, r.method, agent)
		}
		what := r.Method + " " + r.method
		got = append(got, strings.TrimSpace(what)+fmt.Sprintf(" session=%q version=%q", r.Header.Get("Mcp-Session-Id"), r.Header.Get("Mcp-Protocol-Version")))
	}
	s := legacyServer(t, map[string]func(http.ResponseWriter, seen){
		"initialize": func(w http.ResponseWriter, r seen) {
			note(r)
			w.Header().Set("Mcp-Session-Id", "s1")
			events(w, "data: {\"jsonrpc\":\"2.0\",\"id\":1,\ndata: \"result\":"+greeting+"}\n\n")
		},
		"notifications/initialized": func(w http.ResponseWriter, r seen) { note(r); w.WriteHeader(http.StatusAccepted) },
		"tools/list":                func(w http.ResponseWriter, r seen) { note(r); result(w, r, `{"tools":[]}`) },
		"GET":                       func(w http.ResponseWriter, r seen) { note(r); w.WriteHeader(http.StatusMethodNotAllowed) },
		"DELETE":                    func(w http.ResponseWriter, r seen) { note(r) },
	})
	c := dial(t, Options{URL: s.URL})
	c.say(initialize)
	c.say(initialized)
	c.say(`{"jsonrpc":"2.0","id":2,"method":"tools/list"}`)
	c.wantLine(`{"jsonrpc":"2.0","id":1, "result":` + greeting + `}`)
	c.wantLine(`{"jsonrpc":"2.0","id":2,"result":{"tools":[]}}`)
	c.Close()
	if err := c.end(); err != nil {
		t.Errorf("end: %v", err)
	}
	in := ` session="s1" version="2025-11-25"`
	want := []string{`POST initialize session="" version=""`, "POST notifications/initialized" + in, "GET" + in, "POST tools/list" + in, "DELETE" + in}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if n := c.Pending(); n != 0 {
		t.Errorf("%d bytes pending after everything was answered", n)
	}
}

func TestRequestsRunSideBySide(t *testing.T) {
	release := make(chan struct{})
	s := legacyServer(t, map[string]func(http.ResponseWriter, seen){
		"tools/call": func(w http.ResponseWriter, r seen) { <-release; result(w, r, `{"content":[]}`) },
		"ping":       func(w http.ResponseWriter, r seen) { result(w, r, `{}`) },
	})
	c := dial(t, Options{URL: s.URL})
	c.greet()
	c.say(`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"slow"}}`)
	c.say(`{"jsonrpc":"2.0","id":3,"method":"ping"}`)
	c.wantLine(`{"jsonrpc":"2.0","id":3,"result":{}}`)
	c.Close() // what is in flight is still answered
	close(release)
	c.wantLine(`{"jsonrpc":"2.0","id":2,"result":{"content":[]}}`)
	if err := c.end(); err != nil {
		t.Errorf("end: %v", err)
	}
}

// What a server asks during a call comes out, and the answer goes back in.
func TestServerAsksDuringACall(t *testing.T) {
	answered := make(chan string, 1)
	s := legacyServer(t, map[string]func(http.ResponseWriter, seen){
		"tools/call": func(w http.ResponseWriter, r seen) {
			events(w, ": hello\n\nid: 1\ndata:\n\ndata: {\"jsonrpc\":\"2.0\",\"id\":\"q\",\"method\":\"elicitation/create\",\"params\":{}}\n\n")
			events(w, "data: {\"jsonrpc\":\"2.0\",\"id\":2,\"result\":"+<-answered+"}\n\n")
		},
		"": func(w http.ResponseWriter, r seen) {
			answered <- r.body
			w.WriteHeader(http.StatusAccepted)
		},
		"GET": func(w http.ResponseWriter, _ seen) { w.WriteHeader(http.StatusMethodNotAllowed) },
	})
	c := dial(t, Options{URL: s.URL})
	c.greet()
	c.say(`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"asks"}}`)
	c.wantLine(`{"jsonrpc":"2.0","id":"q","method":"elicitation/create","params":{}}`)
	c.say(`{"jsonrpc":"2.0","id":"q","result":{"action":"accept"}}`)
	c.wantLine(`{"jsonrpc":"2.0","id":2,"result":{"jsonrpc":"2.0","id":"q","result":{"action":"accept"}}}`)
}

// A server that is not there never took anything: all of it may be sent again.
func TestRefusedConnectionIsUnread(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	url := "http://" + l.Addr().String()
	l.Close()
	c := dial(t, Options{URL: url, Name: "far"})
	c.say(initialize)
	c.say(initialized)
	err = c.end()
	if err == nil || !strings.HasPrefix(err.Error(), "far: cannot be reached: ") {
		t.Errorf("end: %v", err)
	}
	if want := len(initialize) + 1 + len(initialized) + 1; c.Pending() != want {
		t.Errorf("%d bytes pending, want %d", c.Pending(), want)
	}
	if !strings.Contains(c.logged(), "cannot be reached") {
		t.Errorf("the log does not say why: %q", c.logged())
	}
}

func TestBadURL(t *testing.T) {
	for _, url := range []string{"", "ftp://x/", "http://", "http://x y/", "/mcp"} {
		c := dial(t, Options{URL: url})
		c.say(initialize)
		if err := c.end(); err == nil {
			t.Errorf("%q: no error", url)
		}
	}
}

// A lost session takes its request with it unread, and does not count what was answered before.
func TestLostSession(t *testing.T) {
	for name, refuse := range map[string]func(http.ResponseWriter, seen){
		"404": func(w http.ResponseWriter, _ seen) { http.Error(w, "session not found", 404) },
		"404 with an error": func(w http.ResponseWriter, r seen) {
			w.WriteHeader(404)
			reply(w, `{"jsonrpc":"2.0","id":null,"error":{"code":-32001,"message":"Session not found"}}`)
		},
		"404 that echoes it": func(w http.ResponseWriter, r seen) {
			w.WriteHeader(404)
			reply(w, `{"jsonrpc":"2.0","id":3,"error":{"code":-32001,"message":"Session not found"}}`)
		},
		"400 with an error": func(w http.ResponseWriter, r seen) {
			w.WriteHeader(400)
			reply(w, `{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"Bad Request: No valid session ID provided"}}`)
		},
		"400 of a server with one session": func(w http.ResponseWriter, r seen) {
			w.WriteHeader(400)
			reply(w, `{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"Bad Request: Server not initialized"}}`)
		},
		"400 with plain text": func(w http.ResponseWriter, r seen) { http.Error(w, "Bad Request: No valid session ID provided", 400) },
	} {
		t.Run(name, func(t *testing.T) {
			deleted := false
			s := legacyServer(t, map[string]func(http.ResponseWriter, seen){
				"tools/list": func(w http.ResponseWriter, r seen) { result(w, r, `{"tools":[]}`) },
				"tools/call": refuse,
				"DELETE":     func(http.ResponseWriter, seen) { deleted = true },
			})
			c := dial(t, Options{URL: s.URL})
			c.greet()
			c.say(`{"jsonrpc":"2.0","id":2,"method":"tools/list"}`)
			c.hear()
			call := `{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"x"}}`
			c.say(call)
			if err := c.end(); err == nil || !strings.Contains(err.Error(), "ended the session") {
				t.Errorf("end: %v", err)
			}
			if c.Pending() != len(call)+1 {
				t.Errorf("%d bytes pending, want %d", c.Pending(), len(call)+1)
			}
			if deleted {
				t.Error("a session that is gone was ended once more")
			}
		})
	}
}

// One request that breaks off says nothing about the session. One that may be done twice is done again, at most twice
// more; the outcome of another one is not known, and the next one goes through.
func TestOneRequestBreaksOff(t *testing.T) {
	for name, fault := range map[string]struct {
		handle func(http.ResponseWriter)
		want   string
	}{
		"reset": {cut, "the connection broke off: EOF"},
		"cut body": {func(w http.ResponseWriter) {
			w.Header().Set("Content-Type", "application/json")
			w.Header().Set("Content-Length", "99")
			_, _ = w.Write([]byte(`{"json`))
			cut(w)
		}, "read the answer: unexpected EOF"},
		"502": {func(w http.ResponseWriter) { w.WriteHeader(502) }, "HTTP 502 Bad Gateway from http://127.0.0.1:"},
		"503": {func(w http.ResponseWriter) { w.WriteHeader(503) }, "HTTP 503 Service Unavailable from http://127.0.0.1:"},
		"500": {func(w http.ResponseWriter) { http.Error(w, "oops", 500) }, "/…: oops"},
		"HTML": {func(w http.ResponseWriter) {
			w.Header().Set("Content-Type", "text/html")
			_, _ = w.Write([]byte("<p>"))
		}, "text/html"},
	} {
		t.Run(name, func(t *testing.T) {
			var calls, asked atomic.Int32
			s := legacyServer(t, map[string]func(http.ResponseWriter, seen){
				"tools/call": func(w http.ResponseWriter, r seen) {
					if calls.Add(1); strings.Contains(r.body, "fails") {
						fault.handle(w)
						return
					}
					result(w, r, `{}`)
				},
				"GET": func(w http.ResponseWriter, _ seen) { w.WriteHeader(http.StatusMethodNotAllowed) },
			})
			c := open(t, Options{URL: s.URL + "/mcp"}, func(id []byte, m mcp.Method, why string, reply func(bool)) {
				asked.Add(1)
				if m != mcp.ToolsCall || !strings.Contains(why, fault.want) {
					t.Errorf("asked about %v: %s", m, why)
				}
				go reply(string(id) == "3")
			})
			c.greet()
			c.say(`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"fails"}}`)
			if line := c.hear(); !strings.Contains(line, "may or may not have taken effect and was NOT repeated") || !strings.Contains(line, `"delivered":"unknown","retryable":false`) {
				t.Errorf("a write: %s", line)
			}
			if calls.Load() != 1 || asked.Load() != 1 {
				t.Errorf("a write was sent %d times, asked %d times", calls.Load(), asked.Load())
			}
			c.say(`{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"fails"}}`)
			if line := c.hear(); !strings.Contains(line, "called 3 times") || !strings.Contains(line, `"delivered":"unknown","retryable":true`) {
				t.Errorf("a read: %s", line)
			}
			if calls.Load() != 4 || asked.Load() != 3 {
				t.Errorf("a read was sent %d times, asked %d times", calls.Load()-1, asked.Load()-1)
			}
			if name == "503" && !strings.Contains(c.Trouble(), "HTTP 503") {
				t.Errorf("trouble: %q", c.Trouble())
			}
			c.say(`{"jsonrpc":"2.0","id":4,"method":"tools/call","params":{"name":"x"}}`)
			c.wantLine(`{"jsonrpc":"2.0","id":4,"result":{}}`)
			// It is noted after the answer.
			await.Value(t, "no trouble after an answer", func() (string, bool) { trouble := c.Trouble(); return trouble, trouble == "" })
		})
	}
}

// Only when nothing has come from a server for a while, whatever was asked, the connection is lost. Which request was
// in flight then does not matter: those that never left count as unread.
func TestNothingComesForAWhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var down atomic.Bool
		c := dial(t, Options{URL: "http://far.example/mcp", Name: "far", Transport: roundTripper(func(r *http.Request) (*http.Response, error) {
			if down.Load() {
				return nil, errors.New("no route to host")
			}
			return answerTo(r)
		})})
		c.greet()
		c.say(`{"jsonrpc":"2.0","id":2,"method":"ping"}`)
		c.wantLine(`{"jsonrpc":"2.0","id":2,"result":{}}`)
		down.Store(true)
		began := time.Now()
		time.AfterFunc(unreachableFor/2, func() { down.Store(false) })
		c.say(`{"jsonrpc":"2.0","id":3,"method":"ping"}`)
		c.wantLine(`{"jsonrpc":"2.0","id":3,"result":{}}`)
		if took := time.Since(began); took > unreachableFor/2+longestPause {
			t.Errorf("%s for an outage of %s", took, unreachableFor/2)
		}
		down.Store(true)
		began = time.Now()
		call := `{"jsonrpc":"2.0","id":4,"method":"tools/call","params":{"name":"x"}}`
		c.say(call)
		if err := c.end(); err == nil || !strings.Contains(err.Error(), "no route to host") {
			t.Errorf("end: %v", err)
		}
		if took := time.Since(began); took < unreachableFor || took > unreachableFor+longestPause {
			t.Errorf("lost after %s", took)
		}
		if c.Pending() != len(call)+1 {
			t.Errorf("%d bytes pending, want %d", c.Pending(), len(call)+1)
		}
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// answerTo is a server without a network.
func answerTo(r *http.Request) (*http.Response, error) {
	w := httptest.NewRecorder()
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	m := newMessage(r.Context(), body)
	switch {
	case r.Method != http.MethodPost:
		w.WriteHeader(http.StatusMethodNotAllowed)
	case m.id == nil:
		w.WriteHeader(http.StatusAccepted)
	case m.method == mcp.Initialize:
		reply(w, `{"jsonrpc":"2.0","id":`+string(m.id)+`,"result":`+greeting+`}`)
	default:
		reply(w, `{"jsonrpc":"2.0","id":`+string(m.id)+`,"result":{}}`)
	}
	return w.Result(), nil
}

// What is in flight when the connection fails may still be answered, within the grace.
func TestGrace(t *testing.T) {
	failed, begun := make(chan struct{}), make(chan struct{})
	s := legacyServer(t, map[string]func(http.ResponseWriter, seen){
		"tools/call": func(w http.ResponseWriter, r seen) { close(begun); <-failed; result(w, r, `{}`) },
		"ping":       func(w http.ResponseWriter, _ seen) { w.WriteHeader(http.StatusNotFound); close(failed) },
	})
	c := dial(t, Options{URL: s.URL, Grace: patience})
	c.greet()
	c.say(`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"x"}}`)
	<-begun
	c.say(`{"jsonrpc":"2.0","id":3,"method":"ping"}`)
	c.wantLine(`{"jsonrpc":"2.0","id":2,"result":{}}`)
	if err := c.end(); err == nil {
		t.Error("no reason for the end")
	}
}

func TestGraceIsLimited(t *testing.T) {
	begun := make(chan struct{})
	s := legacyServer(t, map[string]func(http.ResponseWriter, seen){
		"tools/call": func(_ http.ResponseWriter, r seen) { close(begun); <-r.Context().Done() },
		"ping":       func(w http.ResponseWriter, _ seen) { w.WriteHeader(http.StatusNotFound) },
	})
	c := dial(t, Options{URL: s.URL, Grace: time.Millisecond})
	c.greet()
	c.say(`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"x"}}`)
	<-begun
	ping := `{"jsonrpc":"2.0","id":3,"method":"ping"}`
	c.say(ping)
	if err := c.end(); err == nil || !strings.Contains(err.Error(), "session") {
		t.Errorf("end: %v", err)
	}
	if c.Pending() != len(ping)+1 {
		t.Errorf("%d bytes pending, want those of the ping alone", c.Pending())
	}
}

// A server that never answers holds up nothing but its own request.
func TestKillEndsASilentServer(t *testing.T) {
	deleted := make(chan struct{})
	s := legacyServer(t, map[string]func(http.ResponseWriter, seen){
		"tools/call": func(_ http.ResponseWriter, r seen) { <-r.Context().Done() },
		"DELETE":     func(http.ResponseWriter, seen) { close(deleted) },
	})
	c := dial(t, Options{URL: s.URL})
	c.greet()
	c.say(`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"x"}}`)
	c.Kill()
	if err := c.end(); !errors.Is(err, ErrKilled) {
		t.Errorf("end: %v", err)
	}
	<-deleted
	c.say(`{"jsonrpc":"2.0","id":3,"method":"ping"}`) // nobody is there; it must not block or panic
}

// A cancelled request lets go of its response in both eras; a session hears of it besides.
func TestCancelled(t *testing.T) {
	for _, modern := range []bool{false, true} {
		t.Run(fmt.Sprintf("modern=%v", modern), func(t *testing.T) {
			let, told := make(chan struct{}), make(chan struct{}, 1)
			s := legacyServer(t, map[string]func(http.ResponseWriter, seen){
				"tools/call": func(w http.ResponseWriter, r seen) {
					events(w, "data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":{\"progressToken\":1,\"progress\":1}}\n\n")
					<-r.Context().Done()
					close(let)
				},
				"notifications/cancelled": func(w http.ResponseWriter, _ seen) { told <- struct{}{}; w.WriteHeader(202) },
			})
			c := dial(t, Options{URL: s.URL})
			call := modernCall(`"a"`, "x", "{}")
			if !modern {
				c.greet()
				call = `{"jsonrpc":"2.0","id":"a","method":"tools/call","params":{"name":"x"}}`
			}
			c.say(call)
			c.hear()
			c.say(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"\u0061"}}`)
			<-let
			c.Close()
			if err := c.end(); err != nil {
				t.Errorf("end: %v", err)
			}
			if got := len(told) > 0; got == modern {
				t.Errorf("the server was told: %v", got)
			}
			if line, ok := <-c.lines; ok {
				t.Errorf("a cancelled request was answered: %s", line)
			}
		})
	}
}

func TestHoldKeepsLinesBack(t *testing.T) {
	answered := make(chan struct{})
	s := legacyServer(t, map[string]func(http.ResponseWriter, seen){
		"ping": func(w http.ResponseWriter, r seen) { result(w, r, `{}`); close(answered) },
	})
	c := dial(t, Options{URL: s.URL})
	c.greet()
	c.Hold(true)
	c.say(`{"jsonrpc":"2.0","id":2,"method":"ping"}`)
	<-answered
	c.Close()
	select {
	case line := <-c.lines:
		t.Errorf("a line came while it was held: %s", line)
	case <-c.ended:
		t.Error("the end came before the line")
	case <-time.After(50 * time.Millisecond): // a wrong line would be here by now; a right one is not missed below
	}
	c.Hold(false)
	c.wantLine(`{"jsonrpc":"2.0","id":2,"result":{}}`)
	if err := c.end(); err != nil {
		t.Errorf("end: %v", err)
	}
}

// Secrets stay at the origin they are for; a slash that was forgotten is no other origin.
func TestRedirects(t *testing.T) {
	foreign := serve(t, map[string]func(http.ResponseWriter, seen){
		"": func(w http.ResponseWriter, r seen) {
			t.Errorf("another origin got %s with %q", r.method, r.Header.Get("X-Api-Key"))
		},
	})
	var keys []string
	s := legacyServer(t, map[string]func(http.ResponseWriter, seen){
		"ping": func(w http.ResponseWriter, r seen) {
			if r.URL.Path == "/mcp" {
				http.Redirect(w, r.Request, "/mcp/", http.StatusTemporaryRedirect)
				return
			}
			keys = append(keys, r.Header.Get("X-Api-Key")+r.Header.Get("Authorization"))
			result(w, r, `{}`)
		},
		"tools/list": func(w http.ResponseWriter, r seen) {
			http.Redirect(w, r.Request, foreign.URL+"/mcp", http.StatusTemporaryRedirect)
		},
		"tools/call": func(w http.ResponseWriter, r seen) { http.Redirect(w, r.Request, "/mcp/", http.StatusFound) },
	})
	c := dial(t, Options{URL: s.URL + "/mcp", Headers: map[string]string{"x-api-key": "k"}, Bearer: "b"})
	c.say(`{"jsonrpc":"2.0","id":2,"method":"ping"}`)
	c.wantLine(`{"jsonrpc":"2.0","id":2,"result":{}}`)
	c.say(`{"jsonrpc":"2.0","id":3,"method":"tools/list"}`)
	c.wantError("3", " to "+foreign.URL)
	c.say(`{"jsonrpc":"2.0","id":4,"method":"tools/call","params":{"name":"x"}}`)
	c.wantError("4", "HTTP 302")
	if !slices.Equal(keys, []string{"kBearer b"}) {
		t.Errorf("the server got the secrets %q", keys)
	}
}

// Where a redirect may lead: to the same origin, as browsers compare it, and to https at the same host.
func TestWhereARedirectMayLead(t *testing.T) {
	for _, tc := range []struct {
		from, to string
		follows  bool
	}{
		{"https://a.example/mcp", "https://a.example/mcp/", true},
		{"https://a.example/mcp", "https://A.example:443/mcp/", true},
		{"http://a.example:80/mcp", "http://a.example/mcp/", true},
		{"http://a.example/mcp", "https://a.example/mcp", true},
		{"http://a.example/mcp", "https://www.a.example/mcp", false},
		{"http://a.example:8080/mcp", "https://a.example/mcp", false},
		{"http://a.example/mcp", "https://a.example:8443/mcp", false},
		{"https://a.example/mcp", "http://a.example/mcp", false},
		{"https://a.example/mcp", "https://a.example:8443/mcp", false},
	} {
		from, to := httptest.NewRequest(http.MethodPost, tc.from, nil), httptest.NewRequest(http.MethodPost, tc.to, nil)
		if follows := sameOriginOnly(to, []*http.Request{from}) == nil; follows != tc.follows {
			t.Errorf("from %s to %s: followed %v", tc.from, tc.to, follows)
		}
	}
}

// An answer that says that it is JSON-RPC is read like one that says JSON.
func TestAnswerThatSaysJSONRPC(t *testing.T) {
	s := legacyServer(t, map[string]func(http.ResponseWriter, seen){"ping": func(w http.ResponseWriter, r seen) {
		w.Header().Set("Content-Type", "application/json-rpc; charset=utf-8")
		_, _ = io.WriteString(w, `{"jsonrpc":"2.0","id":`+r.id+`,"result":{}}`)
	}})
	c := dial(t, Options{URL: s.URL})
	c.greet()
	c.say(`{"jsonrpc":"2.0","id":2,"method":"ping"}`)
	c.wantLine(`{"jsonrpc":"2.0","id":2,"result":{}}`)
}

// An answer longer than allowed is refused without being kept.
func TestTooLong(t *testing.T) {
	huge := strings.Repeat("x", 1<<20)
	s := legacyServer(t, map[string]func(http.ResponseWriter, seen){
		"tools/list": func(w http.ResponseWriter, r seen) { result(w, r, `"`+huge+`"`) },
		"prompts/list": func(w http.ResponseWriter, r seen) {
			events(w, "data: {\"jsonrpc\":\"2.0\",\"id\":3,\"result\":\""+huge+"\"}\n\n")
		},
		"ping": func(w http.ResponseWriter, r seen) { result(w, r, `{}`) },
	})
	c := dial(t, Options{URL: s.URL, MaxMessage: 1 << 16})
	c.say(`{"jsonrpc":"2.0","id":2,"method":"tools/list"}`)
	c.wantError("2", "response_too_large")
	c.say(`{"jsonrpc":"2.0","id":3,"method":"prompts/list"}`)
	c.wantError("3", "response_too_large")
	c.say(`{"jsonrpc":"2.0","id":4,"method":"ping"}`)
	c.wantLine(`{"jsonrpc":"2.0","id":4,"result":{}}`)
}

// Whatever a legacy server says to a probe is an error for its id.
func TestProbe(t *testing.T) {
	for name, tc := range map[string]struct {
		answer func(http.ResponseWriter, seen)
		want   string
	}{
		"plain 400": {func(w http.ResponseWriter, _ seen) { http.Error(w, "Missing session", 400) }, ": Missing session"},
		"404":       {func(w http.ResponseWriter, _ seen) { w.WriteHeader(404) }, "HTTP 404"},
		"405":       {func(w http.ResponseWriter, _ seen) { w.WriteHeader(405) }, "HTTP 405"},
		"error of no id": {func(w http.ResponseWriter, _ seen) {
			w.WriteHeader(400)
			reply(w, `{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"Server not initialized"}}`)
		}, "Server not initialized"},
		"error without": {func(w http.ResponseWriter, _ seen) {
			w.WriteHeader(400)
			reply(w, `{"jsonrpc":"2.0","error":{"code":-32022,"message":"Unsupported"}}`)
		}, `-32022`},
		"error in 200": {func(w http.ResponseWriter, _ seen) {
			reply(w, `{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"no"}}`)
		}, `"code":-32600`},
		"a page in place": {func(w http.ResponseWriter, _ seen) {
			w.Header().Set("Content-Type", "text/html")
			_, _ = w.Write([]byte("<p>hello"))
		}, `HTTP 200 with \"text/html\" in place of an answer: <p>hello`},
	} {
		t.Run(name, func(t *testing.T) {
			s := serve(t, map[string]func(http.ResponseWriter, seen){"server/discover": tc.answer})
			c := dial(t, Options{URL: s.URL})
			c.say(modernRequest(`"d"`, "server/discover"))
			c.wantError(`"d"`, tc.want)
		})
	}
}
