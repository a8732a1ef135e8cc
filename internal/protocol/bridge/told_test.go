package bridge

import (
	"strings"
	"testing"

	"github.com/outlive-mcp/outlive/internal/protocol/mcp"
	"github.com/outlive-mcp/outlive/internal/protocol/session"
)

// What a bridge has made of a request becomes again what the client has said, and the bridge knows nothing more of it.
func TestBack(t *testing.T) {
	key := []byte(strings.Repeat("k", 32))
	legacy, _ := greetLegacy(t.Fatalf, []byte(`{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}`), discovered)
	modern := carried(New(Options{Client: mcp.Modern, Key: key}))
	const meta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{},"progressToken":"p"`
	hello := modern.FromClient([]byte(`{"jsonrpc":"2.0","id":0,"method":"server/discover","params":{`+meta+`}}}`), start)
	modern.FromServer([]byte(`{"jsonrpc":"2.0","id":`+string(member(hello.ToServer[0].Line, "id"))+`,"result":`+initialized+`}`), start)

	for name, tc := range map[string]struct {
		b    *carrier
		said string
	}{
		"of a legacy client":              {legacy, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t","_meta":{"progressToken":7,"k":1}}}`},
		"of one with an id like ours":     {legacy, `{"jsonrpc":"2.0","id":"b~9","method":"tools/list","params":{"cursor":"c"}}`},
		"of a modern client":              {modern, `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"cursor":"c",` + meta + `}}}`},
		"of one that can be asked for it": {modern, `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"t","arguments":{"a":1},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"roots":{}}}}}`},
	} {
		out := tc.b.FromClient([]byte(tc.said), start)
		if hello := out.ToServer[len(out.ToServer)-1].Line; strings.Contains(string(hello), `"initialize"`) { // it can do more than was said
			out = tc.b.FromServer([]byte(`{"jsonrpc":"2.0","id":`+string(member(hello, "id"))+`,"result":`+initialized+`}`), start)
		}
		sent := out.ToServer[len(out.ToServer)-1].Of
		back := tc.b.Back(sent)
		if string(back) != tc.said {
			t.Errorf("a request %s:\nback %s\nwas  %s", name, back, tc.said)
		}
		if twice := tc.b.Back(sent); twice != nil {
			t.Errorf("a request %s is given back twice", name)
		}
	}

	logs := `{"jsonrpc":"2.0","id":5,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{},"io.modelcontextprotocol/logLevel":"debug"}}}`
	sent := modern.FromClient([]byte(logs), start).ToServer
	if back := modern.Back(sent[len(sent)-1].Of); string(back) != logs {
		t.Errorf("what waits for its log level is given back as %q", back)
	}
	listen := `{"jsonrpc":"2.0","id":"l","method":"subscriptions/listen","params":{"notifications":{"toolsListChanged":true,"promptsListChanged":true},` + meta + `}}}`
	modern.FromClient([]byte(listen), start)
	lasting := modern.Session()
	if streams := lasting.Listens; len(streams) != 1 || string(streams[0].Line) != listen || string(streams[0].Acked) != `{"toolsListChanged":true}` {
		t.Errorf("the streams are given back as %v", streams)
	}
	if said := modern.Unsaid(); len(said) != 0 || modern.Waiting() {
		t.Errorf("what no server has got is given back as %q", said)
	}
	if out := modern.Close("over", start); len(out.ToClient) != 0 {
		t.Errorf("somebody still waited: %q", out.ToClient)
	}
}

// A request without params begins anew as it was, too, though the server was asked once more.
func TestBackWithoutParams(t *testing.T) {
	b, _ := greetLegacy(t.Fatalf, []byte(`{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}`), discovered)
	const said = `{"jsonrpc":"2.0","id":1,"method":"tools/call"}`
	b.FromClient([]byte(said), start)
	b.FromServer([]byte(`{"jsonrpc":"2.0","id":1,"result":{"resultType":"input_required","requestState":"s"}}`), start)
	again := b.Tick(start.Add(paceFirst)).ToServer
	if len(again) != 1 {
		t.Fatalf("the server was told %q", again)
	}
	if back := b.Back(again[0].Of); string(back) != said {
		t.Errorf("back %s, was %s", back, said)
	}
}

// Who waits for a subscription at the end hears why there is none.
func TestCloseSaysWhy(t *testing.T) {
	b, _ := greetLegacy(t.Fatalf, []byte(`{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}`), discovered)
	b.FromClient([]byte(`{"jsonrpc":"2.0","id":1,"method":"resources/subscribe","params":{"uri":"f:/a"}}`), start)
	const want = `{"jsonrpc":"2.0","id":1,"error":{"code":-32600,"message":"over"}}`
	if out := b.Close("over", start); len(out.ToClient) != 1 || string(out.ToClient[0]) != want {
		t.Errorf("the client was told %q, want %s", out.ToClient, want)
	}
}

// A client whose bridge has come in the middle begins anew while its server cannot be used. It is told so, and the server is asked once.
func TestBeginsAnewBeforeAServerThatCannotBeUsed(t *testing.T) {
	const params = `{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}`
	b := New(Options{Client: mcp.Legacy})
	fails := func(out Output) Output {
		t.Helper()
		if len(out.ToServer) != 1 {
			t.Fatalf("the server was told %q", out.ToServer)
		}
		return b.Answered(out.ToServer[0].Of, []byte(`{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"down"}}`), nil, start)
	}
	fails(b.Resume(&session.Session{InitParams: []byte(params), InitResult: []byte(`{}`), Version: "2025-11-25", Initialized: true}, start))
	out := fails(b.FromClient([]byte(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":`+params+`}`), start))
	const want = `{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"down"}}`
	if len(out.ToServer) > 0 || len(out.ToClient) != 1 || string(out.ToClient[0]) != want {
		t.Errorf("the server was told %q, and the client %q, want %s", out.ToServer, out.ToClient, want)
	}
}
