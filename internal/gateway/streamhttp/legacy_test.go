package streamhttp

import (
	"strings"
	"testing"

	"github.com/outlive-mcp/outlive/internal/protocol/jsonrpc"
)

// Every refusal has the status the specification asks for and an error that names the request, where there is one.
func TestLegacyStatuses(t *testing.T) {
	w := newWorld(t, &testHub{}, Options{MaxBody: 500})
	session := w.greet("2025-11-25")
	const unknown = "Mcp-Session-Id: NOSUCHSESSION"
	ping := `{"jsonrpc":"2.0","id":7,"method":"ping"}`
	for _, tc := range []struct {
		name, method, body string
		headers            []string
		status             int
		contains           string
	}{
		{"a request", "POST", ping, []string{session}, 200, `{"jsonrpc":"2.0","id":7,"result":{}}`},
		{"its id byte for byte", "POST", `{"jsonrpc":"2.0","id":"\u00e9","method":"ping"}`, []string{session}, 200, `"id":"\u00e9"`},
		{"a number's spelling", "POST", `{"jsonrpc":"2.0","id":1.0,"method":"ping"}`, []string{session}, 200, `"id":1.0,`},
		{"pretty-printed", "POST", "\ufeff{\n \"jsonrpc\":\"2.0\",\r\n \"id\":7,\n \"method\":\"ping\"\n}\n", []string{session}, 200, `"id":7`},
		{"a clock's id", "POST", `{"jsonrpc":"2.0","id":1732693375123456789,"method":"ping"}`, []string{session}, 200, `"id":1732693375123456789,`},
		{"an id beyond 64 bits", "POST", `{"jsonrpc":"2.0","id":-123456789012345678901,"method":"ping"}`, []string{session}, 200, `"id":-123456789012345678901,`},
		{"an id that is an object", "POST", `{"jsonrpc":"2.0","id":{},"method":"ping"}`, []string{session}, 400, `-32600`},
		{"a notification", "POST", `{"jsonrpc":"2.0","method":"notifications/initialized"}`, []string{session}, 202, ""},
		{"a response", "POST", `{"jsonrpc":"2.0","id":1,"result":{}}`, []string{session}, 202, ""},
		{"an error response", "POST", `{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"m"}}`, []string{session}, 202, ""},
		{"a known version", "POST", ping, []string{session, "MCP-Protocol-Version: 2025-06-18"}, 200, `"id":7`},
		{"an unknown version", "POST", ping, []string{session, "MCP-Protocol-Version: 1999-01-01"}, 400, `"id":7,"error":{"code":-32600`},
		{"no session", "POST", ping, nil, 400, `"id":7,"error":{"code":-32600`},
		{"no session, a notification", "POST", `{"jsonrpc":"2.0","method":"n"}`, nil, 400, `{"jsonrpc":"2.0","error":`},
		{"an unknown session", "POST", ping, []string{unknown}, 404, `"id":7,"error":{"code":-32600`},
		{"an unknown session, initialize", "POST", initializeLine("2025-11-25"), []string{unknown}, 404, `"id":0,"error"`},
		{"no JSON", "POST", `{"jsonrpc":`, []string{session}, 400, `{"jsonrpc":"2.0","error":{"code":-32700`},
		{"no JSON, but an id", "POST", `{"jsonrpc":"2.0","id":7,"method":"ping",}`, []string{session}, 400, `"id":7,"error":{"code":-32700`},
		{"nothing", "POST", ``, []string{session}, 400, `{"jsonrpc":"2.0","error":{"code":-32700`},
		{"no object", "POST", `7`, []string{session}, 400, `{"jsonrpc":"2.0","error":{"code":-32600`},
		{"no message", "POST", `{"jsonrpc":"2.0","id":7}`, []string{session}, 400, `"id":7,"error":{"code":-32600`},
		{"an id that is null", "POST", `{"jsonrpc":"2.0","id":null,"method":"ping"}`, []string{session}, 400, `{"jsonrpc":"2.0","error":{"code":-32600`},
		{"an id nobody can keep", "POST", `{"jsonrpc":"2.0","id":1.5,"method":"ping"}`, []string{session}, 400, `"id":1.5,"error":{"code":-32600`},
		{"another JSON-RPC", "POST", `{"id":7,"method":"ping"}`, []string{session}, 400, `"id":7,"error":{"code":-32600`},
		{"half a surrogate pair", "POST", `{"jsonrpc":"2.0","id":7,"method":"\ud800"}`, []string{session}, 400, `"id":7,"error":{"code":-32602,"message":"Validation failed`},
		{"invalid UTF-8", "POST", "{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"\xff\"}", []string{session}, 400, `"id":7,"error":{"code":-32602,"message":"Validation failed`},
		{"a batch in a version without", "POST", `[` + ping + `]`, []string{session}, 400, `{"jsonrpc":"2.0","error":{"code":-32600`},
		{"too large", "POST", `{"jsonrpc":"2.0","id":7,"method":"` + strings.Repeat("m", 500) + `"}`, []string{session}, 413, `"id":7,"error":{"code":-32600`},
		{"another content", "POST", ping, []string{session, "Content-Type: text/plain"}, 415, `"error"`},
		{"no content type", "POST", ping, []string{session, "Content-Type:"}, 415, `"error"`},
		{"content type with charset", "POST", ping, []string{session, "Content-Type: application/json; charset=utf-8"}, 200, `"id":7`},
		{"accepts JSON only", "POST", ping, []string{session, "Accept: application/json"}, 406, `"error"`},
		{"accepts events only", "POST", ping, []string{session, "Accept: text/event-stream"}, 406, `"error"`},
		{"refuses events", "POST", ping, []string{session, "Accept: application/json, text/event-stream;q=0"}, 406, `"error"`},
		{"accepts anything", "POST", ping, []string{session, "Accept: */*"}, 200, `"id":7`},
		{"says nothing of Accept", "POST", ping, []string{session, "Accept:"}, 200, `"id":7`},
		{"GET without a session", "GET", "", nil, 400, `"error"`},
		{"GET of an unknown session", "GET", "", []string{unknown}, 404, `"error"`},
		{"GET that wants no events", "GET", "", []string{session, "Accept: application/json"}, 406, `"error"`},
		{"GET with a strange event id", "GET", "", []string{session, "Last-Event-ID: x"}, 400, `"error"`},
		{"GET of a stream that is not kept", "GET", "", []string{session, "Last-Event-ID: 99-1"}, 400, `"error"`},
		{"GET of the modern era", "GET", "", []string{"MCP-Protocol-Version: 2026-07-28"}, 405, `"error"`},
		{"DELETE without a session", "DELETE", "", nil, 400, `"error"`},
		{"DELETE of an unknown session", "DELETE", "", []string{unknown}, 404, `"error"`},
		{"DELETE of the modern era", "DELETE", "", []string{"MCP-Protocol-Version: 2026-07-28"}, 405, `"error"`},
		{"DELETE of an unknown version", "DELETE", "", []string{session, "MCP-Protocol-Version: x"}, 400, `"error"`},
		{"another method", "PUT", ping, []string{session}, 405, `"error"`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			a := w.do(tc.method, tc.body, tc.headers...)
			if a.status != tc.status || !strings.Contains(a.body, tc.contains) {
				t.Errorf("%d %s\nwant %d …%s…", a.status, a.body, tc.status, tc.contains)
			}
			if strings.Contains(a.body, `"id":null`) {
				t.Errorf("an error whose id is null: %s", a.body)
			}
			if tc.status == 405 && a.header.Get("Allow") == "" {
				t.Error("405 without Allow")
			}
		})
	}
}

func TestInitializeOpensASession(t *testing.T) {
	w := newWorld(t, &testHub{}, Options{})
	a, b := w.greet("2025-11-25"), w.greet("2025-11-25")
	if a == b || len(a) < len("Mcp-Session-Id: ")+26 {
		t.Errorf("session ids: %q, %q", a, b)
	}
	s := w.hub.session(0)
	s.await(t, "message {\"jsonrpc\":\"2.0\",\"id\":0")
	w.do("POST", call(1), a)
	s.await(t, "message "+call(1))
}

func TestAnswerIsOneBodyWithALength(t *testing.T) {
	w := newWorld(t, &testHub{}, Options{})
	a := w.do("POST", call(1), w.greet("2025-11-25"))
	if a.header.Get("Content-Type") != "application/json" || a.header.Get("Content-Length") == "" {
		t.Errorf("header: %v", a.header)
	}
}

func TestRefusedInitializeLeavesNoSession(t *testing.T) {
	hub := &testHub{answer: func(_ *testSession, _ []byte, reply Stream) {
		reply.Send(jsonrpc.AppendError(nil, []byte("0"), -32603, "no", nil))
	}}
	w := newWorld(t, hub, Options{})
	a := w.do("POST", initializeLine("2025-11-25"))
	if a.status != 200 || a.header.Get("Mcp-Session-Id") != "" {
		t.Errorf("answer: %+v", a)
	}
	hub.session(0).await(t, "close")
}

func TestDeleteEndsTheSession(t *testing.T) {
	hub := &testHub{answer: silent}
	w := newWorld(t, hub, Options{})
	session := w.greet("2025-11-25")
	get := w.open("GET", "", session)
	get.want("")
	waiting := make(chan answer, 1)
	go func() { waiting <- w.do("POST", call(1), session) }()
	hub.session(0).await(t, "message "+call(1))
	if a := w.do("DELETE", "", session); a.status != 204 {
		t.Errorf("DELETE: %+v", a)
	}
	get.want("END")
	if a := <-waiting; a.status != 404 || !strings.Contains(a.body, `"id":1`) {
		t.Errorf("who waited: %+v", a)
	}
	hub.session(0).await(t, "close")
	for _, method := range []string{"POST", "GET", "DELETE"} {
		if a := w.do(method, call(2), session); a.status != 404 {
			t.Errorf("%s afterwards: %+v", method, a)
		}
	}
}

func TestMessagesBeforeTheAnswerMakeAnEventStream(t *testing.T) {
	for _, tc := range []struct {
		version string
		primed  bool
	}{{"2025-03-26", false}, {"2025-06-18", false}, {"2025-11-25", true}} {
		t.Run(tc.version, func(t *testing.T) {
			w := newWorld(t, &testHub{answer: func(s *testSession, line []byte, reply Stream) {
				if strings.Contains(string(line), "initialize") {
					echo(s, line, reply)
					return
				}
				reply.Send([]byte(note(1)))
				reply.Send([]byte("{\"jsonrpc\":\"2.0\",\n\"id\":1,\r\"result\":{}}"))
				reply.Send([]byte(note(2))) // after its end
			}}, Options{})
			e := w.open("POST", call(1), w.greet(tc.version))
			if tc.primed {
				e.want("")
			}
			e.want(note(1), `{"jsonrpc":"2.0", "id":1, "result":{}}`, "END")
			if e.resp.StatusCode != 200 || e.resp.Header.Get("Content-Type") != "text/event-stream" || e.resp.Header.Get("X-Accel-Buffering") != "no" {
				t.Errorf("header: %v", e.resp.Header)
			}
		})
	}
}

// arrayOfTwo is an array with two requests, and answersOfTwo what echo answers to them.
var (
	arrayOfTwo   = `[` + call(1) + `, {"jsonrpc":"2.0","method":"n"}, ` + call(`"b"`) + `]`
	answersOfTwo = []string{`{"jsonrpc":"2.0","id":1,"result":{"name":"t"}}`, `{"jsonrpc":"2.0","id":"b","result":{"name":"t"}}`}
)

// An array is answered as on stdio, with one array.
func TestBatch(t *testing.T) {
	w := newWorld(t, &testHub{}, Options{})
	session := w.greet("2025-03-26")
	a := w.do("POST", arrayOfTwo, session)
	if want := `[` + strings.Join(answersOfTwo, ",") + `]`; a.status != 200 || a.header.Get("Content-Type") != "application/json" || a.body != want {
		t.Errorf("%d %s %s\nwant %s", a.status, a.header.Get("Content-Type"), a.body, want)
	}
	for _, tc := range []struct {
		body     string
		status   int
		contains string
	}{
		{`[{"jsonrpc":"2.0","method":"n"}]`, 202, ""},
		{`[]`, 400, "-32600"},
		{`[` + call(1) + `,7]`, 400, "-32600"},
		{`[[` + call(1) + `]]`, 400, "-32600"},
		{`[` + initializeLine("2025-03-26") + `]`, 400, `"id":0,"error":{"code":-32600`},
	} {
		if a := w.do("POST", tc.body, session); a.status != tc.status || !strings.Contains(a.body, tc.contains) {
			t.Errorf("%s: %+v", tc.body, a)
		}
	}
}

// Where the server says something before, each answer is an event: clients read one message from an event.
func TestBatchDuringWhichSomethingIsSaid(t *testing.T) {
	w := newWorld(t, &testHub{answer: func(s *testSession, line []byte, reply Stream) {
		if strings.Contains(string(line), `"id":1,`) {
			reply.Send([]byte(note(1)))
		}
		echo(s, line, reply)
	}}, Options{})
	e := w.open("POST", arrayOfTwo, w.greet("2025-03-26"))
	e.want(note(1), answersOfTwo[0], answersOfTwo[1], "END")
}

// A second answer to a request is heard by nobody.
func TestSecondAnswer(t *testing.T) {
	w := newWorld(t, &testHub{answer: func(s *testSession, line []byte, reply Stream) {
		echo(s, line, reply)
		echo(s, line, reply)
	}}, Options{})
	if a := w.do("POST", call(1), w.greet("2025-11-25")); a.status != 200 || a.body != answersOfTwo[0] {
		t.Errorf("%d %s\nwant %s", a.status, a.body, answersOfTwo[0])
	}
}

func TestTheGetStream(t *testing.T) {
	hub := &testHub{}
	w := newWorld(t, hub, Options{})
	session := w.greet("2025-11-25")
	s := hub.session(0)
	first := w.open("GET", "", session)
	first.want("")
	s.await(t, "attach")
	s.listener().Send([]byte(note(1)))
	first.want(note(1))

	second := w.open("GET", "", session) // the newer one takes over: the older may be a dead connection
	second.want("")
	first.want("END")
	s.await(t, "attach")
	s.listener().Send([]byte(note(2)))
	second.want(note(2))

	general := s.listener()
	second.leave()
	away(t, general)
	general.Send([]byte(note(3)))
	third := w.open("GET", "", session)
	third.want("", note(3))
}
