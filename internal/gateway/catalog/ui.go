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

// link is a place in an entry that refers to a resource.
type link struct {
	at  jsonrpc.Span // in the entry
	uri string
}

// linksOf returns the user interfaces that a raw tool refers to.
func linksOf(raw []byte) []link {
	var links []link
	for _, path := range uiPaths {
		at := jsonrpc.FindPath(raw, path...)
		if uri, ok := jsonrpc.Unquote(at.Of(raw)); ok && strings.HasPrefix(uri, uiScheme) {
			links = append(links, link{at, uri})
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
		host := clean(server)
		if attempt >= 0 {
			host = hashed(host, server, own, attempt)
		}
		shown = uiScheme + host + ".outlive/" + strings.TrimPrefix(own, uiScheme)
	}
	b.uris[shown] = true
	s.uris[own] = shown
	return shown
}

// edit replaces a part of an entry.
type edit struct {
	at   jsonrpc.Span
	with string // raw
}

// edits returns the changes to an item for clients, in order: its name or URI, and the URIs of user interfaces.
func edits(item Item, name string, links []shownLink) []edit {
	e := item.entry.Value()
	var all []edit
	if name != e.own {
		all = append(all, edit{e.at, string(jsonrpc.AppendQuoted(nil, name))})
	}
	for _, l := range links {
		if l.shown != l.uri {
			all = append(all, edit{l.at, string(jsonrpc.AppendQuoted(nil, l.shown))})
		}
	}
	slices.SortFunc(all, func(a, b edit) int { return a.at.Start - b.at.Start })
	return all
}

// shownLink is a link with the URI that clients see for it.
type shownLink struct {
	link
	shown string
}

// links replaces the URIs of a tool's user interfaces by those that clients see.
func (b *Catalog) links(server string, item Item) []shownLink {
	var all []shownLink
	for _, l := range linksOf([]byte(item.Raw())) {
		all = append(all, shownLink{l, b.uri(server, l.uri)})
	}
	return all
}

// taskOnly reports whether a tool can be called only as a task. The gateway has no tasks, so that every call would
// fail: such a tool is not shown.
func taskOnly(item Item) bool {
	raw := []byte(item.Raw())
	return jsonrpc.EqualString(jsonrpc.FindPath(raw, "execution", "taskSupport").Of(raw), "required")
}
