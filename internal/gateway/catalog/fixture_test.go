package catalog

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/outlive-mcp/outlive/internal/protocol/jsonrpc"
	"github.com/outlive-mcp/outlive/internal/protocol/mcp"
)

// entries makes a list of entries which have nothing but what they are asked for by, as a server would send it.
func entries(l mcp.List, names ...string) []Item {
	var array []byte
	for i, name := range names {
		if i > 0 {
			array = append(array, ',')
		}
		array = fmt.Appendf(array, `{"%s":%s}`, l.Key(), jsonrpc.AppendQuoted(nil, name))
	}
	items, _ := Items(l, fmt.Appendf(nil, `{"%s":[%s]}`, l.Member(), array))
	return items
}

func tools(names ...string) *Lists { return &Lists{mcp.Tools: entries(mcp.Tools, names...)} }

func resources(uris ...string) *Lists { return &Lists{mcp.Resources: entries(mcp.Resources, uris...)} }

func templates(uris ...string) *Lists { return &Lists{mcp.Templates: entries(mcp.Templates, uris...)} }

// fatal is what testing.T and rapid.T have in common.
type fatal interface {
	Helper()
	Fatalf(format string, args ...any)
}

// walk reads a whole list as a client does.
func walk(t fatal, v *View, l mcp.List, size int) []string {
	t.Helper()
	var all []string
	var cursor []byte
	for {
		page, err := v.Page(l, cursor, size)
		if err != nil {
			t.Fatalf("page at %s: %v", cursor, err)
		}
		if !json.Valid(page) {
			t.Fatalf("no JSON: %s", page)
		}
		array := jsonrpc.Find(page, l.Member()).Of(page)
		for at := range jsonrpc.Elements(array) {
			all = append(all, string(at.Of(array)))
		}
		if cursor = jsonrpc.Find(page, "nextCursor").Of(page); cursor == nil {
			return all
		}
	}
}

// seen are the names, or URIs, that a client finds in a list.
func seen(t fatal, v *View, l mcp.List) []string {
	t.Helper()
	var names []string
	for _, raw := range walk(t, v, l, 0) {
		name, ok := jsonrpc.Unquote(jsonrpc.Find([]byte(raw), l.Key()).Of([]byte(raw)))
		if !ok {
			t.Fatalf("no name: %s", raw)
		}
		names = append(names, name)
	}
	return names
}

// plain servers have nothing but a name.
func plain(names ...string) []Server {
	servers := make([]Server, len(names))
	for i, name := range names {
		servers[i].Name = name
	}
	return servers
}

func mustPage(t testing.TB, v *View, l mcp.List, cursor []byte, size int) []byte {
	t.Helper()
	page, err := v.Page(l, cursor, size)
	if err != nil {
		t.Fatal(err)
	}
	return page
}

// named reports whether the entries of a list get their names from the Catalog.
func named(l mcp.List) bool { return l == mcp.Tools || l == mcp.Prompts }
