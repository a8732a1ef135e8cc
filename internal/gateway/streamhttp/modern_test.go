package streamhttp

import (
	"encoding/base64"
	"strings"
	"testing"

	"github.com/outlive-mcp/outlive/internal/protocol/jsonrpc"
	"github.com/outlive-mcp/outlive/internal/protocol/mcp"
)

func TestModernStatuses(t *testing.T) {
	hub := &testHub{
		params: map[string][]mcp.ParamHeader{"sql": {{Header: "Region", Path: []string{"region"}}, {Header: "Limit", Path: []string{"page", "limit"}}, {Header: "Dry", Path: []string{"dry"}}}},
		answer: func(s *testSession, line []byte, reply Stream) {
			if at := strings.Index(string(line), `"fail":`); at >= 0 {
				reply.Send(jsonrpc.AppendError(nil, []byte("7"), map[byte]int{'4': -32601, '2': -32602, '1': -32021, '0': -32603}[line[at+7]], "no", nil))
				return
			}
			echo(s, line, reply)
		},
	}
	w := newWorld(t, hub, Options{})
	list := modernLine(7, "tools/list", "")
	named := modernLine(7, "tools/call", `"name":"héllo",`)
	sql := func(arguments string) string {
		return modernLine(7, "tools/call", `"name":"sql","arguments":`+arguments+`,`)
	}
	head := modernHeaders
	encoded := "=?base64?" + base64.StdEncoding.EncodeToString([]byte("héllo")) + "?="
	meta := func(meta string) string {
		return `{"jsonrpc":"2.0","id":7,"method":"tools/list","params":{"_meta":{` + meta + `}}}`
	}
	const version, capabilities = `"` + mcp.MetaProtocolVersion + `":"2026-07-28"`, `"` + mcp.MetaClientCapabilities + `":{}`
	for _, tc := range []struct {
		name, body string
		headers    []string
		status     int
		contains   string
	}{
		{"a request", list, head("tools/list"), 200, `"id":7,"result"`},
		{"a session id is ignored", list, head("tools/list", "Mcp-Session-Id: x"), 200, `"id":7,"result"`},
		{"a notification", `{"jsonrpc":"2.0","method":"n"}`, head("n"), 202, ""},
		{"a response", `{"jsonrpc":"2.0","id":1,"result":{}}`, head("n"), 400, `{"jsonrpc":"2.0","error":{"code":-32600`},
		{"no _meta", `{"jsonrpc":"2.0","id":7,"method":"tools/list","params":{}}`, head("tools/list"), 400, `"id":7,"error":{"code":-32602`},
		{"no params", `{"jsonrpc":"2.0","id":7,"method":"tools/list"}`, head("tools/list"), 400, `"id":7,"error":{"code":-32602`},
		{"no version in _meta", meta(capabilities), head("tools/list"), 400, `"id":7,"error":{"code":-32602`},
		{"a version that is not a string", meta(`"` + mcp.MetaProtocolVersion + `":1,` + capabilities), head("tools/list"), 400, `"id":7,"error":{"code":-32602`},
		{"no capabilities", meta(version), head("tools/list"), 400, `"id":7,"error":{"code":-32602`},
		{"no clientInfo is fine", meta(version + "," + capabilities), head("tools/list"), 200, `"result"`},
		{"no version header", list, []string{"Mcp-Method: tools/list"}, 400, `"id":7,"error":{"code":-32020`},
		{"another version in the header", list, []string{"MCP-Protocol-Version: 2025-11-25", "Mcp-Method: tools/list"}, 400, `"id":7,"error":{"code":-32020`},
		{"an unknown version in the header", list, []string{"MCP-Protocol-Version: v999", "Mcp-Method: tools/list"}, 400, `"id":7,"error":{"code":-32020`},
		{"two version headers", list, head("tools/list", "MCP-Protocol-Version: 2026-07-28"), 400, `"id":7,"error":{"code":-32020`},
		{"an unknown version", strings.ReplaceAll(list, "2026-07-28", "v999"), []string{"MCP-Protocol-Version: v999"}, 400,
			`"id":7,"error":{"code":-32022,"message":"Unsupported protocol version","data":{"supported":["2026-07-28"],"requested":"v999"}}`},
		{"no method header", list, []string{"MCP-Protocol-Version: 2026-07-28"}, 400, `"id":7,"error":{"code":-32020`},
		{"another method", list, head("prompts/list"), 400, `"id":7,"error":{"code":-32020`},
		{"a method in another case", list, head("Tools/List"), 400, `"id":7,"error":{"code":-32020`},
		{"discover without anything", `{"jsonrpc":"2.0","id":7,"method":"server/discover"}`, nil, 400, `"id":7,"error":{"code":-32602`},
		{"initialize with _meta is the hub's to refuse", modernLine(7, "initialize", ""), head("initialize"), 200, `"id":7`},
		{"a name", modernLine(7, "tools/call", `"name":"t",`), head("tools/call", "Mcp-Name: t"), 200, `"id":7`},
		{"no name header", modernLine(7, "tools/call", `"name":"t",`), head("tools/call"), 400, `-32020`},
		{"another name", modernLine(7, "tools/call", `"name":"t",`), head("tools/call", "Mcp-Name: u"), 400, `-32020`},
		{"no name at all", modernLine(7, "tools/call", ""), head("tools/call", "Mcp-Name: u"), 400, `-32602`},
		{"an encoded name", named, head("tools/call", "Mcp-Name: "+encoded), 200, `"id":7`},
		{"a name that should be encoded", named, head("tools/call", "Mcp-Name: héllo"), 400, `-32020`},
		{"a name encoded wrongly", named, head("tools/call", "Mcp-Name: =?base64?!?="), 400, `-32020`},
		{"a prompt", modernLine(7, "prompts/get", `"name":"p",`), head("prompts/get", "Mcp-Name: p"), 200, `"id":7`},
		{"another prompt", modernLine(7, "prompts/get", `"name":"p",`), head("prompts/get", "Mcp-Name: q"), 400, `-32020`},
		{"a resource", modernLine(7, "resources/read", `"uri":"a:b",`), head("resources/read", "Mcp-Name: a:b"), 200, `"id":7`},
		{"another resource", modernLine(7, "resources/read", `"uri":"a:b",`), head("resources/read", "Mcp-Name: a:c"), 400, `-32020`},
		{"a task", modernLine(7, "tasks/get", `"taskId":"1",`), head("tasks/get", "Mcp-Name: 1"), 200, `"id":7`},
		{"another task", modernLine(7, "tasks/get", `"taskId":"1",`), head("tasks/get", "Mcp-Name: 2"), 400, `-32020`},
		{"mirrored arguments", sql(`{"region":"us","page":{"limit":42.0},"dry":true}`),
			head("tools/call", "Mcp-Name: sql", "Mcp-Param-Region: us", "mcp-param-limit: 42", "Mcp-Param-Dry: true"), 200, `"id":7`},
		{"arguments that are not there", sql(`{"region":null}`), head("tools/call", "Mcp-Name: sql"), 200, `"id":7`},
		{"an argument without its header", sql(`{"region":"us"}`), head("tools/call", "Mcp-Name: sql"), 400, `-32020`},
		{"a header without its argument", sql(`{}`), head("tools/call", "Mcp-Name: sql", "Mcp-Param-Region: us"), 400, `-32020`},
		{"another argument", sql(`{"region":"us"}`), head("tools/call", "Mcp-Name: sql", "Mcp-Param-Region: eu"), 400, `-32020`},
		{"an argument twice", sql(`{"region":"us"}`), head("tools/call", "Mcp-Name: sql", "Mcp-Param-Region: us", "Mcp-Param-Region: us"), 400, `-32020`},
		{"a boolean in another case", sql(`{"dry":true}`), head("tools/call", "Mcp-Name: sql", "Mcp-Param-Dry: True"), 400, `-32020`},
		{"a number that is none", sql(`{"page":{"limit":42}}`), head("tools/call", "Mcp-Name: sql", "Mcp-Param-Limit: many"), 400, `-32020`},
		{"what is not asked for is ignored", sql(`{"x":1}`), head("tools/call", "Mcp-Name: sql", "Mcp-Param-X: 2"), 200, `"id":7`},
		{"an unknown method", modernLine(7, "x", `"fail":4,`), head("x"), 404, `"id":7,"error":{"code":-32601`},
		{"invalid params", modernLine(7, "x", `"fail":2,`), head("x"), 400, `"id":7,"error":{"code":-32602`},
		{"a missing capability", modernLine(7, "x", `"fail":1,`), head("x"), 400, `"id":7,"error":{"code":-32021`},
		{"an internal error", modernLine(7, "x", `"fail":0,`), head("x"), 200, `"id":7,"error":{"code":-32603`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			a := w.do("POST", tc.body, tc.headers...)
			if a.status != tc.status || !strings.Contains(a.body, tc.contains) {
				t.Errorf("%d %s\nwant %d …%s…", a.status, a.body, tc.status, tc.contains)
			}
			if a.header.Get("Mcp-Session-Id") != "" {
				t.Error("a session id in the modern era")
			}
		})
	}
}

func TestModernRequestHasASessionForItself(t *testing.T) {
	w := newWorld(t, &testHub{}, Options{})
	for i := range 2 {
		w.do("POST", modernLine(i, "tools/list", ""), modernHeaders("tools/list")...)
		s := w.hub.session(i)
		s.await(t, "message")
		if e := s.await(t, ""); e != "close" {
			t.Errorf("after the message: %q, want close", e)
		}
	}
}

func TestModernClientThatLeavesCancels(t *testing.T) {
	hub := &testHub{answer: func(_ *testSession, _ []byte, reply Stream) { reply.Send([]byte(note(1))) }}
	w := newWorld(t, hub, Options{})
	e := w.open("POST", modernLine(1, "tools/list", ""), modernHeaders("tools/list")...)
	e.want(note(1))
	if e.lastID != "" {
		t.Errorf("an event id in the modern era: %q", e.lastID)
	}
	e.leave()
	s := hub.session(0)
	s.await(t, "close")
	s.reply(0).Send([]byte(result(1))) // too late; it must do nothing
}

func TestListenIsALongEventStream(t *testing.T) {
	hub := &testHub{answer: func(_ *testSession, _ []byte, reply Stream) { reply.Send([]byte(note(0))) }}
	w := newWorld(t, hub, Options{})
	e := w.open("POST", modernLine(1, "subscriptions/listen", ""), modernHeaders("subscriptions/listen")...)
	e.want(note(0))
	for i := 1; i < 5; i++ {
		hub.session(0).reply(0).Send([]byte(note(i)))
		e.want(note(i))
	}
	hub.session(0).reply(0).Send([]byte(result(1)))
	e.want(result(1), "END")
	hub.session(0).await(t, "close")
}
