package catalog

import (
	"fmt"
	"strings"
	"testing"

	"github.com/outlive-mcp/outlive/internal/protocol/mcp"
)

const benchServers, benchTools = 100, 50

// benchResult is a list of tools of a usual length.
func benchResult(server int, word string) []byte {
	var array []string
	for i := range benchTools {
		array = append(array, fmt.Sprintf(`{"name":"tool_%d","description":"%s of server %d. %s","inputSchema":{"type":"object","properties":{"path":{"type":"string","description":"Where"},"recursive":{"type":"boolean"}},"required":["path"]},"annotations":{"readOnlyHint":true}}`,
			i, word, server, strings.Repeat("It does what its name says. ", 8)))
	}
	return []byte(`{"tools":[` + strings.Join(array, ",") + `]}`)
}

func benchLists(word string) ([]Server, []*Lists) {
	servers, lists := make([]Server, benchServers), make([]*Lists, benchServers)
	for i := range servers {
		servers[i] = Server{Name: fmt.Sprintf("server%d", i), Filter: Filter{Deny: []string{"secret_*"}}}
		items, _ := Items(mcp.Tools, benchResult(i, word))
		lists[i] = &Lists{mcp.Tools: items}
	}
	return servers, lists
}

func BenchmarkItems(b *testing.B) {
	result := benchResult(1, "x")
	b.SetBytes(int64(len(result)))
	b.ReportAllocs()
	for b.Loop() {
		Items(mcp.Tools, result)
	}
}

func BenchmarkMerge(b *testing.B) {
	servers, lists := benchLists("First")
	b.Run("all new", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			New(Always).Merge(servers, lists, nil)
		}
	})
	b.Run("nothing changed", func(b *testing.B) {
		book := New(Always)
		v := book.Merge(servers, lists, nil)
		_, again := benchLists("First") // another session's processes
		b.ReportAllocs()
		for b.Loop() {
			if book.Merge(servers, again, nil) != v {
				b.Fatal("another View")
			}
		}
	})
	b.Run("one server changed", func(b *testing.B) {
		_, others := benchLists("Second")
		book := New(Always)
		b.ReportAllocs()
		for i := 0; b.Loop(); i++ {
			at := i % benchServers
			lists[at], others[at] = others[at], lists[at]
			book.Merge(servers, lists, nil)
		}
	})
}

func BenchmarkView(b *testing.B) {
	servers, lists := benchLists("First")
	for i := range lists {
		lists[i][mcp.Templates] = entries(mcp.Templates, fmt.Sprintf("s%d://{owner}/{name}", i))
	}
	book := New(Always)
	v := book.Merge(servers, lists, nil)
	last, _ := Items(mcp.Tools, benchResult(benchServers-1, "Second"))
	lists[benchServers-1] = &Lists{mcp.Tools: last}
	other := book.Merge(servers, lists, nil)
	b.Run("tool", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, _, ok := v.Named(mcp.Tools, "server77_tool_33"); !ok {
				b.Fatal("not found")
			}
		}
	})
	b.Run("owner by template", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if s, _, ok := v.Owner("s77://o/n"); !ok || s != 77 {
				b.Fatal("not found")
			}
		}
	})
	b.Run("whole page", func(b *testing.B) {
		b.SetBytes(int64(len(mustPage(b, v, mcp.Tools, nil, 0))))
		b.ReportAllocs()
		for b.Loop() {
			mustPage(b, v, mcp.Tools, nil, 0)
		}
	})
	b.Run("the last server differs", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if v.Same(mcp.Tools, other) {
				b.Fatal("same")
			}
		}
	})
}
