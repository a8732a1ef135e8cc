package remote

import (
	"errors"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// A stream that breaks off, or is ended on purpose, is taken up where it was (SEP-1699).
func TestStreamIsResumed(t *testing.T) {
	for name, stop := range map[string]func(http.ResponseWriter){
		"ended": func(http.ResponseWriter) {},
		"cut":   cut,
	} {
		t.Run(name, func(t *testing.T) {
			s := legacyServer(t, map[string]func(http.ResponseWriter, seen){
				"tools/call": func(w http.ResponseWriter, r seen) {
					events(w, "id: e1\nretry: 1\ndata:\n\nid: e2\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\",\"params\":{}}\n\ndata: {\"half")
					stop(w)
				},
				"GET": func(w http.ResponseWriter, r seen) {
					switch r.Header.Get("Last-Event-Id") {
					case "":
						w.WriteHeader(http.StatusMethodNotAllowed)
					case "e2":
						events(w, "id: e3\ndata:\n\n") // and ends again
					case "e3":
						if r.Header.Get("Mcp-Session-Id") != "s1" {
							t.Error("resumed outside the session")
						}
						events(w, "data: {\"jsonrpc\":\"2.0\",\"id\":2,\"result\":{}}\n\n")
						<-r.Context().Done() // a server need not end it
					}
				},
			})
			c := dial(t, Options{URL: s.URL})
			c.greet()
			c.say(`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"x"}}`)
			c.wantLine(`{"jsonrpc":"2.0","method":"notifications/message","params":{}}`)
			c.wantLine(`{"jsonrpc":"2.0","id":2,"result":{}}`)
		})
	}
}

func TestStreamThatCannotBeResumed(t *testing.T) {
	for _, tc := range []struct {
		name     string
		status   int
		lost     bool
		answered string // of a request that was answered; otherwise the connection ends
		first    string
		stop     func(http.ResponseWriter)
	}{
		{name: "refused", status: 400, first: "id: 1\nretry: 0\ndata:\n\n", stop: cut, answered: "could not be resumed: HTTP 400"},
		{name: "refused, session there", status: 404, first: "id: 1\nretry: 0\ndata:\n\n", stop: cut, answered: "could not be resumed: HTTP 404"},
		{name: "session gone", status: 404, lost: true, first: "id: 1\nretry: 0\ndata:\n\n", stop: cut},
		{name: "no event id, cut", first: ": x\n\n", stop: cut, answered: "the connection broke off: unexpected EOF"},
		{name: "no event id, ended", first: ": x\n\n", stop: func(http.ResponseWriter) {}, answered: "ended the stream without an answer"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var deleted atomic.Bool
			s := legacyServer(t, map[string]func(http.ResponseWriter, seen){
				"tools/call": func(w http.ResponseWriter, r seen) { events(w, tc.first); tc.stop(w) },
				"GET": func(w http.ResponseWriter, r seen) {
					if r.Header.Get("Last-Event-Id") == "" {
						w.WriteHeader(http.StatusMethodNotAllowed)
						return
					}
					w.WriteHeader(tc.status)
				},
				"ping": func(w http.ResponseWriter, r seen) {
					if tc.lost {
						w.WriteHeader(tc.status)
						return
					}
					result(w, r, `{}`)
				},
				"DELETE": func(http.ResponseWriter, seen) { deleted.Store(true) },
			})
			c := dial(t, Options{URL: s.URL})
			c.greet()
			c.say(`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"x"}}`)
			if tc.answered != "" {
				if line := c.hear(); !strings.Contains(line, tc.answered) || !strings.Contains(line, `"isError":true`) {
					t.Errorf("line %s", line)
				}
				return
			}
			if err := c.end(); err == nil {
				t.Error("no reason for the end")
			}
			if c.Pending() != 0 {
				t.Error("a call that had begun counts as unread")
			}
			if deleted.Load() == tc.lost {
				t.Errorf("the session was ended: %v", deleted.Load())
			}
		})
	}
}

// The server's own messages come out, in order, also across a break.
func TestServerMessages(t *testing.T) {
	var tries atomic.Int32
	s := legacyServer(t, map[string]func(http.ResponseWriter, seen){
		"GET": func(w http.ResponseWriter, r seen) {
			switch n := tries.Add(1); {
			case n == 1:
				events(w, "id: 1\nretry: 1\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"a\"}\n\n")
				cut(w)
			case n == 2 && r.Header.Get("Last-Event-Id") == "1":
				w.WriteHeader(http.StatusConflict) // it has not noticed the break
			case r.Header.Get("Last-Event-Id") == "1":
				events(w, "data: {\"jsonrpc\":\"2.0\",\"method\":\"b\"}\n\n: \n\ndata: noise\n\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"c\"}\n\n")
				<-r.Context().Done()
			}
		},
	})
	c := dial(t, Options{URL: s.URL})
	c.greet()
	for _, m := range []string{"a", "b", "c"} {
		c.wantLine(`{"jsonrpc":"2.0","method":"` + m + `"}`)
	}
	if !strings.Contains(c.logged(), "not a message") {
		t.Errorf("noise is not in the log: %q", c.logged())
	}
	c.Close()
	if err := c.end(); err != nil {
		t.Errorf("end: %v", err)
	}
}

// A stream that says the session is gone is as good as a request that does, if a request says it, too.
func TestServerMessagesOfALostSession(t *testing.T) {
	s := legacyServer(t, map[string]func(http.ResponseWriter, seen){
		"GET":  func(w http.ResponseWriter, _ seen) { w.WriteHeader(http.StatusNotFound) },
		"ping": func(w http.ResponseWriter, _ seen) { w.WriteHeader(http.StatusNotFound) },
	})
	c := dial(t, Options{URL: s.URL})
	c.greet()
	if err := c.end(); err == nil || !strings.Contains(err.Error(), "ended the session") {
		t.Errorf("end: %v", err)
	}
}

// Many servers without a stream answer 404 to its GET. Who answers requests in the session has it.
func TestNoServerMessages(t *testing.T) {
	for name, pinged := range map[string]func(http.ResponseWriter, seen){
		"pings": func(w http.ResponseWriter, r seen) { result(w, r, `{}`) },
		"knows no ping": func(w http.ResponseWriter, r seen) {
			reply(w, `{"jsonrpc":"2.0","id":`+r.id+`,"error":{"code":-32601,"message":"x"}}`)
		},
		"404 for a ping": func(w http.ResponseWriter, r seen) {
			w.WriteHeader(http.StatusNotFound)
			reply(w, `{"jsonrpc":"2.0","id":`+r.id+`,"error":{"code":-32601,"message":"x"}}`)
		},
		"never answers it": func(_ http.ResponseWriter, r seen) { <-r.Context().Done() },
	} {
		t.Run(name, func(t *testing.T) {
			asked := make(chan struct{}, 10)
			s := legacyServer(t, map[string]func(http.ResponseWriter, seen){
				"GET":        func(w http.ResponseWriter, _ seen) { w.WriteHeader(http.StatusNotFound); asked <- struct{}{} },
				"ping":       pinged,
				"tools/call": func(w http.ResponseWriter, r seen) { result(w, r, `{}`) },
			})
			c := dial(t, Options{URL: s.URL, NoteTimeout: 100 * time.Millisecond})
			c.greet()
			<-asked
			c.streams.Wait() // what follows from it has followed
			c.say(`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"x"}}`)
			c.wantLine(`{"jsonrpc":"2.0","id":2,"result":{}}`)
			c.Close()
			if err := c.end(); err != nil {
				t.Errorf("end: %v", err)
			}
		})
	}
}

// A server whose stream is always cut before its header, as by a proxy, is not gone. It answers requests.
func TestServerMessagesThatAreCut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := dial(t, Options{URL: "http://far.example/mcp", Transport: roundTripper(func(r *http.Request) (*http.Response, error) {
			if r.Method == http.MethodGet {
				return nil, errors.New("cut")
			}
			return answerTo(r)
		})})
		c.greet()
		time.Sleep(10 * time.Minute)
		c.say(`{"jsonrpc":"2.0","id":2,"method":"ping"}`)
		c.wantLine(`{"jsonrpc":"2.0","id":2,"result":{}}`)
	})
}

// A notification that is answered by a stream which stays open keeps nobody waiting.
func TestNotificationAnsweredByAStream(t *testing.T) {
	s := legacyServer(t, map[string]func(http.ResponseWriter, seen){
		"notifications/initialized": func(w http.ResponseWriter, r seen) {
			events(w, ": open\n\n")
			<-r.Context().Done()
		},
		"ping": func(w http.ResponseWriter, r seen) { result(w, r, `{}`) },
	})
	c := dial(t, Options{URL: s.URL, NoteTimeout: time.Hour})
	c.greet()
	c.say(`{"jsonrpc":"2.0","id":2,"method":"ping"}`)
	c.wantLine(`{"jsonrpc":"2.0","id":2,"result":{}}`)
}

// A server of 2024-11-05 has another endpoint for what it is told, and answers on one stream.
func TestOldTransport(t *testing.T) {
	say := make(chan string, 10)
	gone := make(chan struct{})
	s := serve(t, map[string]func(http.ResponseWriter, seen){
		"initialize": func(w http.ResponseWriter, r seen) {
			if r.URL.Path == "/sse" {
				w.WriteHeader(http.StatusMethodNotAllowed)
				return
			}
			say <- `{"jsonrpc":"2.0","id":1,"result":` + greeting + `}`
			w.WriteHeader(http.StatusAccepted)
		},
		"notifications/initialized": func(w http.ResponseWriter, _ seen) { w.WriteHeader(http.StatusAccepted) },
		"ping": func(w http.ResponseWriter, r seen) {
			w.WriteHeader(http.StatusAccepted)
			say <- `{"jsonrpc":"2.0","method":"notifications/x"}`
			say <- `{"jsonrpc":"2.0","id":` + r.id + `,"result":{}}`
		},
		"tools/call": func(w http.ResponseWriter, _ seen) { w.WriteHeader(http.StatusAccepted); close(gone) },
		"GET": func(w http.ResponseWriter, r seen) {
			events(w, "event: endpoint\ndata: /messages?session=1\n\n")
			for {
				select {
				case text := <-say:
					events(w, "event: message\ndata: "+text+"\n\n")
				case <-gone:
					cut(w)
					return
				case <-r.Context().Done():
					return
				}
			}
		},
	})
	c := dial(t, Options{URL: s.URL + "/sse"})
	c.greet()
	c.say(`{"jsonrpc":"2.0","id":2,"method":"ping"}`)
	c.wantLine(`{"jsonrpc":"2.0","method":"notifications/x"}`)
	c.wantLine(`{"jsonrpc":"2.0","id":2,"result":{}}`)
	c.say(`{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"x"}}`)
	if err := c.end(); err == nil || !strings.Contains(err.Error(), "broke off") {
		t.Errorf("end: %v", err)
	}
	if c.Pending() != 0 {
		t.Error("a call that was accepted counts as unread")
	}
}

func TestOldTransportIsClosed(t *testing.T) {
	s := serve(t, map[string]func(http.ResponseWriter, seen){
		"initialize": func(w http.ResponseWriter, r seen) { w.WriteHeader(http.StatusNotFound) },
		"GET": func(w http.ResponseWriter, r seen) {
			events(w, "event: endpoint\ndata: http://elsewhere.example/messages\n\n")
			<-r.Context().Done()
		},
	})
	c := dial(t, Options{URL: s.URL})
	c.say(initialize)
	c.wantError("1", "HTTP 404") // an endpoint at another origin is none
	c.Close()
	if err := c.end(); err != nil {
		t.Errorf("end: %v", err)
	}
}
