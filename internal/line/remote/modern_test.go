package remote

import (
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Every header that the protocol wants of a stateless request, and none of a session.
func TestModernHeaders(t *testing.T) {
	tools := `{"resultType":"complete","tools":[{"name":"sql","inputSchema":{"type":"object","properties":{` +
		`"region":{"type":"string","x-mcp-header":"Region"},"n":{"type":"integer","x-mcp-header":"N"},` +
		`"deep":{"type":"object","properties":{"on":{"type":"boolean","x-mcp-header":"On"}}}}}},` +
		`{"name":"bad","inputSchema":{"type":"object","properties":{"f":{"type":"number","x-mcp-header":"F"}}}}]}`
	got := make(chan http.Header, 10)
	s := serve(t, map[string]func(http.ResponseWriter, seen){
		"tools/list":     func(w http.ResponseWriter, r seen) { got <- r.Header; result(w, r, tools) },
		"tools/call":     func(w http.ResponseWriter, r seen) { got <- r.Header; result(w, r, `{"resultType":"complete"}`) },
		"resources/read": func(w http.ResponseWriter, r seen) { got <- r.Header; result(w, r, `{"resultType":"complete"}`) },
	})
	c := dial(t, Options{URL: s.URL})
	c.say(modernRequest("1", "tools/list"))
	if line := c.hear(); strings.Contains(line, `"bad"`) || !strings.Contains(line, `"sql"`) {
		t.Errorf("the tool that breaks the rules is still there, or the other is not: %s", line)
	}
	if !strings.Contains(c.logged(), "tool left out: bad") {
		t.Errorf("log: %q", c.logged())
	}
	c.say(modernCall("2", "sql", `{"region":"wärts","n":42.0,"deep":{"on":true}}`))
	c.hear()
	c.say(modernCall("3", "sql", `{"region":" us ","n":null}`))
	c.hear()
	c.say(fmt.Sprintf(`{"jsonrpc":"2.0","id":4,"method":"resources/read","params":{"uri":"file:///\u00e9","_meta":%s}}`, modernMeta))
	c.hear()
	want := []map[string]string{
		{"Mcp-Method": "tools/list"},
		{"Mcp-Method": "tools/call", "Mcp-Name": "sql", "Mcp-Param-Region": "=?base64?d8OkcnRz?=", "Mcp-Param-N": "42", "Mcp-Param-On": "true"},
		{"Mcp-Method": "tools/call", "Mcp-Name": "sql", "Mcp-Param-Region": "=?base64?IHVzIA==?="},
		{"Mcp-Method": "resources/read", "Mcp-Name": "=?base64?ZmlsZTovLy/DqQ==?="},
	}
	for i, w := range want {
		w["Mcp-Protocol-Version"] = "2026-07-28"
		h, sent := <-got, map[string]string{}
		for key := range h {
			if strings.HasPrefix(key, "Mcp-") {
				sent[key] = h.Get(key)
			}
		}
		if diff := cmp.Diff(w, sent); diff != "" {
			t.Errorf("request %d: %s", i, diff)
		}
	}
}

// A tool that has changed is read again when the server refuses the headers made for it before.
func TestHeaderMismatchReadsTheTools(t *testing.T) {
	var lists atomic.Int32
	s := serve(t, map[string]func(http.ResponseWriter, seen){
		"tools/list": func(w http.ResponseWriter, r seen) {
			lists.Add(1)
			if !strings.Contains(r.body, `"cursor"`) {
				result(w, r, `{"tools":[],"nextCursor":"2"}`)
				return
			}
			result(w, r, `{"tools":[{"name":"sql","inputSchema":{"properties":{"region":{"type":"string","x-mcp-header":"Region"}}}}]}`)
		},
		"tools/call": func(w http.ResponseWriter, r seen) {
			if r.Header.Get("Mcp-Param-Region") != "us" {
				w.WriteHeader(http.StatusBadRequest)
				reply(w, `{"jsonrpc":"2.0","id":`+r.id+`,"error":{"code":-32020,"message":"Header mismatch"}}`)
				return
			}
			result(w, r, `{}`)
		},
	})
	c := dial(t, Options{URL: s.URL})
	c.say(modernCall("1", "sql", `{"region":"us"}`))
	c.wantLine(`{"jsonrpc":"2.0","id":1,"result":{}}`)
	c.say(modernCall("2", "sql", `{"region":"eu"}`)) // refused for good: the list is read once for it
	c.wantError("2", "-32020")
	if lists.Load() != 4 {
		t.Errorf("%d pages read, want 2 for each call", lists.Load())
	}
}

// A stateless server that falls over for one request has nothing to do with the others.
func TestModernBreaks(t *testing.T) {
	var lists atomic.Int32
	release := make(chan struct{})
	s := serve(t, map[string]func(http.ResponseWriter, seen){
		"tools/list": func(w http.ResponseWriter, r seen) {
			if lists.Add(1) == 1 {
				cut(w)
				return
			}
			result(w, r, `{"tools":[]}`)
		},
		"tools/call":     func(w http.ResponseWriter, _ seen) { cut(w) },
		"resources/read": func(w http.ResponseWriter, r seen) { <-release; result(w, r, `{}`) },
	})
	c := dial(t, Options{URL: s.URL})
	c.say(modernRequest("0", "resources/read"))
	c.say(modernCall("1", "pay", `{}`))
	if line := c.hear(); !strings.Contains(line, `"isError":true`) || !strings.Contains(line, `"resultType":"complete"`) ||
		!strings.Contains(line, "may or may not have taken effect") || !strings.Contains(line, `"delivered":"unknown"`) {
		t.Errorf("line %s", line)
	}
	c.say(modernRequest("2", "tools/list"))
	c.wantLine(`{"jsonrpc":"2.0","id":2,"result":{"tools":[]}}`)
	close(release)
	c.wantLine(`{"jsonrpc":"2.0","id":0,"result":{}}`)
}

// News go on after a break, and what may have changed meanwhile is said to have changed.
func TestListenGoesOn(t *testing.T) {
	var streams atomic.Int32
	s := serve(t, map[string]func(http.ResponseWriter, seen){
		"subscriptions/listen": func(w http.ResponseWriter, r seen) {
			events(w, "data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/subscriptions/acknowledged\",\"params\":{}}\n\n")
			if streams.Add(1) > 1 {
				<-r.Context().Done()
			}
		},
	})
	c := dial(t, Options{URL: s.URL})
	c.say(`{"jsonrpc":"2.0","id":7,"method":"subscriptions/listen","params":{"notifications":{"toolsListChanged":true,"resourceSubscriptions":["a:b"]},"_meta":` + modernMeta + `}}`)
	ack := `{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{}}`
	c.wantLine(ack)
	c.wantLine(ack)
	c.wantLine(`{"jsonrpc":"2.0","method":"notifications/tools/list_changed","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":7}}}`)
	c.wantLine(`{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"a:b","_meta":{"io.modelcontextprotocol/subscriptionId":7}}}`)
	c.Close() // nobody waits for news any more
	if err := c.end(); err != nil {
		t.Errorf("end: %v", err)
	}
}

// A stateless server takes no answers: one that is sent all the same goes nowhere.
func TestModernAnswersAreNotSent(t *testing.T) {
	s := serve(t, map[string]func(http.ResponseWriter, seen){
		"ping": func(w http.ResponseWriter, r seen) { result(w, r, `{}`) },
		"":     func(_ http.ResponseWriter, r seen) { t.Errorf("the server got %s", r.body) },
	})
	c := dial(t, Options{URL: s.URL})
	c.say(modernRequest("1", "ping"))
	c.hear()
	c.say(`{"jsonrpc":"2.0","id":"q","result":{}}`)
	c.say(`[{"jsonrpc":"2.0","id":"q","result":{}}]`)
	c.say(`no message`)
	c.Close()
	if err := c.end(); err != nil {
		t.Errorf("end: %v", err)
	}
	if n := strings.Count(c.logged(), "not sent"); n != 3 {
		t.Errorf("%d of 3 are in the log: %q", n, c.logged())
	}
}

// A server that asks for patience gets it, if it is short.
func TestRetryAfter(t *testing.T) {
	var calls atomic.Int32
	s := serve(t, map[string]func(http.ResponseWriter, seen){
		"tools/call": func(w http.ResponseWriter, r seen) {
			if calls.Add(1) == 1 {
				w.Header().Set("Retry-After", "0")
				w.WriteHeader(http.StatusServiceUnavailable)
				return
			}
			result(w, r, `{}`)
		},
		"ping": func(w http.ResponseWriter, _ seen) {
			w.Header().Set("Retry-After", "3600")
			w.WriteHeader(http.StatusTooManyRequests)
		},
	})
	c := dial(t, Options{URL: s.URL})
	c.say(modernCall("1", "x", `{}`))
	c.wantLine(`{"jsonrpc":"2.0","id":1,"result":{}}`)
	c.say(modernRequest("2", "ping"))
	if line := c.wantError("2", "HTTP 429"); !strings.Contains(line, `"delivered":"no"`) || !strings.Contains(line, `"retryAfterMs":3600000`) {
		t.Errorf("line %s", line)
	}
}
