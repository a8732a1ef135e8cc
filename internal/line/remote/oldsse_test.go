package remote

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// oldServer is one of 2024-11-05 at /sse, with another endpoint for messages. first is what its stream begins with; a POST to the
// stream's own URL is refused by refuse, nil: with 405.
func oldServer(t *testing.T, first string, refuse http.HandlerFunc) *httptest.Server {
	say := make(chan string, 10)
	message := func(w http.ResponseWriter, r seen) {
		switch {
		case r.URL.Path == "/messages":
			w.WriteHeader(http.StatusAccepted)
			if r.method == "initialize" {
				say <- `{"jsonrpc":"2.0","id":` + r.id + `,"result":` + greeting + `}`
			} else if r.id != "" {
				say <- `{"jsonrpc":"2.0","id":"` + r.id + `","result":{}}`
			}
		case refuse != nil:
			refuse(w, r.Request)
		default:
			w.WriteHeader(http.StatusMethodNotAllowed)
		}
	}
	return serve(t, map[string]func(http.ResponseWriter, seen){
		"initialize": message, "notifications/initialized": message, "ping": message, "server/discover": message,
		"GET": func(w http.ResponseWriter, r seen) {
			events(w, first)
			for {
				select {
				case text := <-say:
					events(w, "event: message\ndata: "+text+"\n\n")
				case <-r.Context().Done():
					return
				}
			}
		},
	})
}

const endpointEvent = "event: endpoint\ndata: /messages?session=1\n\n"

// Whatever a server says before it names its endpoint is no reason to give it up. An answer whose id is the number as a string is the
// answer here, too.
func TestOldTransportBeforeItsEndpoint(t *testing.T) {
	for name, first := range map[string]string{
		"nothing": "", "a comment": ": hello\n\n", "retry": "retry: 3000\n\n", "ping": "event: ping\ndata: 1\n\n", "id": "id: 5\n\n",
		"an unknown event": "event: open\ndata: connected\n\n", "a message": "data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/x\"}\n\n",
		"all of it": "\uFEFFretry: 1\r\n\r\n: x\r\n\r\nevent: open\r\ndata\r\n\r\nevent: ping\r\ndata: {}\r\n\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			c := dial(t, Options{URL: oldServer(t, first+endpointEvent, nil).URL + "/sse"})
			c.greet()
			c.say(`{"jsonrpc":"2.0","id":2,"method":"ping"}`)
			c.wantLine(`{"jsonrpc":"2.0","id":2,"result":{}}`)
		})
	}
}

// The older transport is tried after every refusal that may mean it, and where a token is asked for it is not.
func TestOldTransportAfterARefusal(t *testing.T) {
	for _, tc := range []struct {
		status    int
		challenge string
		tried     bool
	}{
		{400, "", true}, {402, "", true}, {403, "", true}, {404, "", true}, {405, "", true}, {406, "", true}, {410, "", true}, {415, "", true},
		{419, "", true}, {422, "", true}, {501, "", true}, {401, "", false}, {401, "Bearer", false}, {403, `Bearer error="insufficient_scope"`, false}, {505, "", false},
	} {
		t.Run(fmt.Sprint(tc.status, tc.challenge), func(t *testing.T) {
			s := oldServer(t, endpointEvent, func(w http.ResponseWriter, _ *http.Request) {
				if tc.challenge != "" {
					w.Header().Set("WWW-Authenticate", tc.challenge)
				}
				w.WriteHeader(tc.status)
			})
			c := dial(t, Options{URL: s.URL + "/sse"})
			if tc.tried {
				c.greet()
				return
			}
			c.say(initialize)
			c.wantError("1", fmt.Sprint("HTTP ", tc.status))
		})
	}
}

// It is also tried where a POST begins the older transport's stream, as with Quarkus.
func TestOldTransportBegunByAPost(t *testing.T) {
	s := oldServer(t, endpointEvent, func(w http.ResponseWriter, r *http.Request) {
		events(w, endpointEvent)
		<-r.Context().Done()
	})
	c := dial(t, Options{URL: s.URL + "/sse"})
	c.say(modernRequest("9", "server/discover"))
	c.wantError("9", "HTTP 405")
	c.greet()
	c.say(`{"jsonrpc":"2.0","id":2,"method":"ping"}`)
	c.wantLine(`{"jsonrpc":"2.0","id":2,"result":{}}`)
}

// Who is refused by both hears what each said.
func TestErrorNamesWhatGETGave(t *testing.T) {
	for name, tc := range map[string]struct {
		get  func(http.ResponseWriter, seen)
		want string
	}{
		"404":  {func(w http.ResponseWriter, _ seen) { http.Error(w, "nothing here", 404) }, "HTTP 404 Not Found from SELF: nothing here"},
		"502":  {func(w http.ResponseWriter, _ seen) { w.WriteHeader(502) }, "HTTP 502 Bad Gateway"},
		"HTML": {func(w http.ResponseWriter, _ seen) { _, _ = w.Write([]byte("<p>hello")) }, `HTTP 200 with \"text/html; charset=utf-8\" in place of an event stream: <p>hello`},
		"another origin": {func(w http.ResponseWriter, _ seen) {
			events(w, ": x\n\nevent: endpoint\ndata: https://elsewhere.example/m?key=1\n\n")
		},
			"an event stream whose endpoint is of another origin, https://elsewhere.example, where nothing is sent"},
		"no endpoint": {func(w http.ResponseWriter, _ seen) { events(w, "event: ping\ndata: 1\n\n") }, "an event stream that ended without naming an endpoint"},
		"no URL":      {func(w http.ResponseWriter, _ seen) { events(w, "event: endpoint\ndata: http://[\n\n") }, "an event stream whose endpoint cannot be read: http://["},
		"cut":         {func(w http.ResponseWriter, _ seen) { cut(w) }, "cannot be reached: "},
	} {
		t.Run(name, func(t *testing.T) {
			s := serve(t, map[string]func(http.ResponseWriter, seen){
				"initialize": func(w http.ResponseWriter, r seen) { w.WriteHeader(http.StatusMethodNotAllowed) }, "GET": tc.get,
			})
			c := dial(t, Options{URL: s.URL})
			c.say(initialize)
			line := c.wantError("1", strings.ReplaceAll(tc.want, "SELF", s.URL))
			if !strings.Contains(line, "HTTP 405 Method Not Allowed from "+s.URL+"; a GET, as for HTTP+SSE, gave ") || strings.Contains(line, "key=1") {
				t.Errorf("line %s", line)
			}
			c.say(strings.Replace(initialize, `"id":1`, `"id":2`, 1)) // the connection goes on
			c.wantError("2", "HTTP 405")
		})
	}
}

// Pings do not keep who waits for the endpoint for ever.
func TestOldTransportNamesNoEndpoint(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := dial(t, Options{URL: "http://far.example/sse", Transport: roundTripper(func(r *http.Request) (*http.Response, error) {
			if r.Method == http.MethodPost {
				return &http.Response{StatusCode: http.StatusNotFound, Body: http.NoBody}, nil
			}
			from, to := io.Pipe()
			go func() {
				for r.Context().Err() == nil {
					_, _ = io.WriteString(to, "event: ping\ndata: 1\n\n")
					time.Sleep(time.Second)
				}
				_ = to.CloseWithError(r.Context().Err())
			}()
			return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"text/event-stream"}}, Body: from}, nil
		})})
		began := time.Now()
		c.say(initialize)
		c.wantError("1", "gave no event stream that names an endpoint within 10s")
		if took := time.Since(began); took < endpointWait || took > endpointWait+2*time.Second {
			t.Errorf("after %s", took)
		}
	})
}

// The time of a login is the user's.
func TestOldTransportWaitsForALogin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		say := make(chan string, 1)
		const endpoint = "http://far.example/sse"
		oauth := NewOAuth(OAuthOptions{Endpoint: endpoint})
		c := dial(t, Options{URL: endpoint, OldSSE: true, OAuth: oauth, Transport: roundTripper(func(r *http.Request) (*http.Response, error) {
			if r.Method == http.MethodPost {
				if strings.Contains(r.URL.Path, "messages") {
					say <- "data: " + `{"jsonrpc":"2.0","id":1,"result":{}}` + "\n\n"
				}
				return &http.Response{StatusCode: http.StatusAccepted, Body: http.NoBody}, nil
			}
			from, to := io.Pipe()
			go func() {
				_, _ = io.WriteString(to, endpointEvent)
				_, _ = io.WriteString(to, <-say)
				<-r.Context().Done()
				_ = to.CloseWithError(r.Context().Err())
			}()
			return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"text/event-stream"}}, Body: from}, nil
		})})
		if err := oauth.lock(t.Context()); err != nil {
			t.Fatal(err)
		}
		c.say(initialize)
		time.Sleep(defaultPatience)
		oauth.unlock()
		c.wantLine(pong)
	})
}

// Some servers accept a POST only when its call is done. A call takes as long as it takes there, too, also where a proxy does not wait
// for the POST as long as that.
func TestOldTransportAcceptsWhatIsDone(t *testing.T) {
	for name, accept := range map[string]func(ctx context.Context, answer func()) (status int, err error){
		"when it has answered": func(_ context.Context, answer func()) (int, error) { answer(); return http.StatusOK, nil },
		"never":                func(ctx context.Context, answer func()) (int, error) { answer(); <-ctx.Done(); return 0, ctx.Err() },
		"not before the proxy gives up": func(_ context.Context, answer func()) (int, error) {
			time.AfterFunc(10*time.Second, answer)
			return http.StatusGatewayTimeout, nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				say := make(chan string, 10)
				c := dial(t, Options{URL: "http://far.example/sse", OldSSE: true, Transport: roundTripper(func(r *http.Request) (*http.Response, error) {
					if r.Method == http.MethodPost {
						body, _ := io.ReadAll(r.Body)
						if strings.Contains(string(body), "initialize\"") {
							say <- `{"jsonrpc":"2.0","id":1,"result":` + greeting + `}`
						} else if strings.Contains(string(body), "tools/call") {
							select {
							case <-time.After(3 * DefaultNoteTimeout):
							case <-r.Context().Done():
								return nil, r.Context().Err()
							}
							status, err := accept(r.Context(), func() { say <- `{"jsonrpc":"2.0","id":2,"result":{}}` })
							if err != nil {
								return nil, err
							}
							return &http.Response{StatusCode: status, Body: http.NoBody}, nil
						}
						return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody}, nil
					}
					from, to := io.Pipe()
					go func() {
						_, _ = io.WriteString(to, endpointEvent)
						for {
							select {
							case text := <-say:
								_, _ = io.WriteString(to, "data: "+text+"\n\n")
							case <-r.Context().Done():
								_ = to.CloseWithError(r.Context().Err())
								return
							}
						}
					}()
					return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"text/event-stream"}}, Body: from}, nil
				})})
				c.greet()
				c.say(`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"slow"}}`)
				c.wantLine(`{"jsonrpc":"2.0","id":2,"result":{}}`)
				c.Close()
				if err := c.end(); err != nil || c.Pending() != 0 {
					t.Errorf("end: %v, %d pending", err, c.Pending())
				}
			})
		})
	}
}

// A server whose stream wants a token wants a login, whatever it says to a POST.
func TestOldTransportWantsALogin(t *testing.T) {
	s := serve(t, map[string]func(http.ResponseWriter, seen){
		"initialize": func(w http.ResponseWriter, r seen) { w.WriteHeader(http.StatusMethodNotAllowed) },
		"GET":        func(w http.ResponseWriter, r seen) { w.WriteHeader(http.StatusUnauthorized) },
	})
	c := dial(t, Options{URL: s.URL})
	c.say(initialize)
	c.wantError("1", "the server wants authorization: HTTP 401")
	if why := c.Trouble(); !strings.Contains(why, "wants authorization") {
		t.Errorf("trouble: %q", why)
	}
}

// Where nothing else is to be tried, nothing is posted to the stream's URL, and what may come before a handshake is no handshake.
func TestOldTransportOnly(t *testing.T) {
	s := oldServer(t, endpointEvent, func(http.ResponseWriter, *http.Request) { t.Error("a POST to the stream") })
	c := dial(t, Options{URL: s.URL + "/sse", OldSSE: true})
	c.say(modernRequest("9", "server/discover"))
	c.wantError("9", `"code":-32601`)
	c.greet()
	c.say(`{"jsonrpc":"2.0","id":2,"method":"ping"}`)
	c.wantLine(`{"jsonrpc":"2.0","id":2,"result":{}}`)
}

// Where it is not there, that is told, once.
func TestOldTransportOnlyIsNotThere(t *testing.T) {
	asked := make(chan string, 10)
	s := serve(t, map[string]func(http.ResponseWriter, seen){
		"":    func(w http.ResponseWriter, r seen) { t.Errorf("%s %s", r.Method, r.body) },
		"GET": func(w http.ResponseWriter, r seen) { asked <- r.URL.Path; http.NotFound(w, r.Request) },
	})
	c := dial(t, Options{URL: s.URL + "/mcp", OldSSE: true})
	c.say(initialize)
	c.wantError("1", "HTTP 404 Not Found")
	if len(asked) != 1 {
		t.Errorf("asked %d times", len(asked))
	}
}

// A second handshake that the older transport refuses is refused.
func TestOldTransportRefuses(t *testing.T) {
	var asked atomic.Int32
	s := oldServer(t, endpointEvent, nil)
	refusing := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if asked.Add(1) > 4 { // the two of the handshake, the stream, and the initialize that was refused before
			w.WriteHeader(http.StatusUnprocessableEntity)
			return
		}
		s.Config.Handler.ServeHTTP(w, r)
	}))
	t.Cleanup(func() { refusing.CloseClientConnections(); refusing.Close() })
	c := dial(t, Options{URL: refusing.URL + "/sse"})
	c.greet()
	c.say(strings.Replace(initialize, `"id":1`, `"id":5`, 1))
	c.wantError("5", "HTTP 422")
}

// An answer that is no message ends its request all the same: what stands above reads the line, and no other answer comes.
func TestOldTransportHandsOnABrokenAnswer(t *testing.T) {
	say := make(chan string, 10)
	s := serve(t, map[string]func(http.ResponseWriter, seen){
		"initialize":                func(_ http.ResponseWriter, r seen) { say <- `{"jsonrpc":"2.0","id":1,"result":` + greeting + `}` },
		"notifications/initialized": func(http.ResponseWriter, seen) {},
		"tools/call": func(_ http.ResponseWriter, r seen) {
			say <- `{"jsonrpc":"2.0","id":77,"result":NaN}` // nobody's
			say <- `{"jsonrpc":"2.0","id":` + r.id + `,"result":NaN}`
		},
		"GET": func(w http.ResponseWriter, r seen) {
			events(w, "event: endpoint\ndata: /messages\n\n")
			for {
				select {
				case text := <-say:
					events(w, "data: "+text+"\n\n")
				case <-r.Context().Done():
					return
				}
			}
		},
	})
	c := dial(t, Options{URL: s.URL + "/sse", OldSSE: true})
	c.greet()
	c.say(`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"x"}}`)
	c.wantLine(`{"jsonrpc":"2.0","id":2,"result":NaN}`)
	c.Close()
	if err := c.end(); err != nil || c.Pending() != 0 {
		t.Errorf("end: %v, %d pending", err, c.Pending())
	}
	if !strings.Contains(c.logged(), `"id":77`) {
		t.Errorf("log: %s", c.logged())
	}
}
