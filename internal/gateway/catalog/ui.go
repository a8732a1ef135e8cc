package catalog

import (
	"slices"
	"strings"

	"github.com/outlive-mcp/outlive/internal/protocol/jsonrpc"
)

// uiScheme is the URI scheme of resources that are a tool's user interface (MCP Apps).
const uiScheme = "ui://"

// uiPaths are where a tool's _meta names its user interface: the path of MCP Apps, and the older one.
var uiPaths = [...][]string{{"_meta", "ui", "resourceUri"}, {"_meta", "ui/resourceUri"}}

// link is a place in a tool that refers to a resource, its user interface.
type link struct {
	at    jsonrpc.Span // in the entry
	uri   string
	shown string // the URI that clients see for it
}

// links returns the user interfaces that a tool refers to.
func (b *Catalog) links(server string, item Item) (links []link) {
	raw := []byte(item.Raw())
	for _, path := range uiPaths {
		at := jsonrpc.FindPath(raw, path...)
		if uri, ok := jsonrpc.Unquote(at.Of(raw)); ok && strings.HasPrefix(uri, uiScheme) {
			links = append(links, link{at, uri, b.uri(server, uri)})
		}
	}
	return links
}

// uri returns the URI by which clients request a server's user interface: the server's own URI, or, if another server
// has that already, one with the server's name in it. It stays the same, like a name. Other URIs are shown as they
// are.
func (b *Catalog) uri(server, own string) string {
	s := b.serverLabels(server)
	shown, known := s.uris[own]
	if known || !strings.HasPrefix(own, uiScheme) || len(s.uris) >= maxLabels {
		if !known {
			shown = own
		}
		return shown
	}
	shown = own
	for attempt := -1; b.uris[shown]; attempt++ {
		host := Clean(server)
		if attempt >= 0 {
			host = hashed(host, server, own, attempt)
		}
		shown = uiScheme + host + ".outlive/" + strings.TrimPrefix(own, uiScheme)
	}
	b.uris[shown] = true
	s.uris[own] = shown
	return shown
}

// edits returns the changes to an item for clients, in order: its name or URI, and the URIs of user interfaces.
func edits(item Item, name string, links []link) []jsonrpc.Change {
	e := item.entry.Value()
	var all []jsonrpc.Change
	if name != e.own {
		all = append(all, jsonrpc.Change{At: e.at, With: jsonrpc.AppendQuoted(nil, name)})
	}
	for _, l := range links {
		if l.shown != l.uri {
			all = append(all, jsonrpc.Change{At: l.at, With: jsonrpc.AppendQuoted(nil, l.shown)})
		}
	}
	slices.SortFunc(all, func(a, b jsonrpc.Change) int { return a.At.Start - b.At.Start })
	return all
}

// taskOnly reports whether a tool can be called only as a task. The gateway has no tasks, so that every call would
// fail: such a tool is not shown.
func taskOnly(item Item) bool {
	raw := []byte(item.Raw())
	return jsonrpc.EqualString(jsonrpc.FindPath(raw, "execution", "taskSupport").Of(raw), "required")
}
