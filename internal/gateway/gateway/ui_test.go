package gateway

import (
	"fmt"
	"strings"
	"testing"

	"github.com/outlive-mcp/outlive/internal/protocol/jsonrpc"
)

// uiOf are the URIs that the tools of a list name for their user interface, by tool.
func uiOf(t *testing.T, c *client) map[string]string {
	t.Helper()
	in := c.ask(`{"jsonrpc":"2.0","id":"l","method":"tools/list"}`)
	result := parse(t, in.lines[0]).Result
	all := map[string]string{}
	array := jsonrpc.Find(result, "tools").Of(result)
	for at := range jsonrpc.Elements(array) {
		tool := at.Of(array)
		name, _ := jsonrpc.Unquote(jsonrpc.Find(tool, "name").Of(tool))
		for _, path := range [][]string{{"_meta", "ui", "resourceUri"}, {"_meta", "ui/resourceUri"}} {
			if uri, ok := jsonrpc.Unquote(jsonrpc.FindPath(tool, path...).Of(tool)); ok {
				all[name] = uri
			}
		}
	}
	return all
}

// A user interface that only a tool's _meta names is read from the tool's server, in both spellings, and also when two
// servers call theirs the same.
func TestUserInterfacesReachTheirServer(t *testing.T) {
	for name, meta := range map[string]string{
		"ui":  `{"ui":{"visibility":["model"],"resourceUri":"ui://view/main.html"}}`,
		"old": `{"ui/resourceUri":"ui:\/\/view/main.html","x":1}`,
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, Options{})
			w.plan("a", plan{uris: []string{"x:1"}, meta: meta})
			w.plan("b", plan{uris: []string{"x:2"}, meta: meta})
			w.plan("c", plan{uris: []string{"x:3"}, meta: strings.ReplaceAll(meta, "main", "other")})
			w.serve(named("a"), named("b"), named("c"))
			c := w.legacy()
			uis := uiOf(t, c)
			if uis["a_do"] != "ui://view/main.html" || uis["c_do"] != "ui://view/other.html" {
				t.Errorf("a URI that is the only one was changed: %v", uis)
			}
			if uis["b_do"] == uis["a_do"] || !strings.HasPrefix(uis["b_do"], "ui://") {
				t.Errorf("two user interfaces cannot be told apart: %v", uis)
			}
			for i, server := range []string{"a", "b", "c"} {
				uri := uis[server+"_do"]
				own := map[bool]string{true: "ui://view/other.html", false: "ui://view/main.html"}[server == "c"]
				in := c.ask(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"resources/read","params":{"uri":%q}}`, i+1, uri))
				m, ok := w.of(server)[0].last("resources/read")
				if !ok || m.Params.URI != own {
					t.Errorf("%s: %s reached the server as %q", server, uri, m.Params.URI)
					continue
				}
				want(t, "read", in, fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"result":{"contents":[{"uri":%q,"text":"%s"},{"uri":"ui://view/part","text":""}]}}`, i+1, uri, server))
			}
			if diff := fmt.Sprint(uiOf(t, w.legacy())); diff != fmt.Sprint(uis) {
				t.Errorf("another client sees %s", diff)
			}
		})
	}
}

// Resources that are listed are told apart in the same way.
func TestEqualUserInterfacesAreBothListed(t *testing.T) {
	w := newWorld(t, Options{})
	w.plan("a", plan{uris: []string{"ui://view/main.html", "x:1"}})
	w.plan("b", plan{uris: []string{"ui://view/main.html", "x:1"}})
	w.serve(named("a"), named("b"))
	c := w.legacy()
	in := c.ask(`{"jsonrpc":"2.0","id":1,"method":"resources/list"}`)
	const renamed = "ui://b.outlive/view/main.html"
	has(t, "list", in, `[{"uri":"ui://view/main.html"},{"uri":"x:1"},{"uri":"`+renamed+`"}]`)
	has(t, "read", c.ask(`{"jsonrpc":"2.0","id":2,"method":"resources/read","params":{"uri":"`+renamed+`"}}`), `"text":"b"`)
	has(t, "subscribe", c.ask(`{"jsonrpc":"2.0","id":3,"method":"resources/subscribe","params":{"uri":"`+renamed+`"}}`), `"result":{}`)
	if m, _ := w.of("b")[0].last("resources/subscribe"); m.Params.URI != "ui://view/main.html" {
		t.Errorf("subscribed to %q", m.Params.URI)
	}
}
