package catalog

import (
	"cmp"
	"crypto/sha256"
	"slices"

	"github.com/outlive-mcp/outlive/internal/protocol/jsonrpc"
	"github.com/outlive-mcp/outlive/internal/protocol/mcp"
)

// part is what one server contributes to a View. It is immutable, and is not rebuilt when other servers change.
type part struct {
	id     uint64 // unique in a Catalog; from 1 on
	server Server
	lists  *Lists
	shown  [mcp.Lists][]*shown
}

// shown is one entry as clients see it.
type shown struct {
	item     Item
	name     string // the name by which clients request it
	digest   [sha256.Size]byte
	template *template        // of a resource template; otherwise nil
	links    []link           // a tool's links to its user interface
	edits    []jsonrpc.Change // to the item for clients, in order
}

// part returns what a server shows: the previous part if nothing has changed.
func (b *Catalog) part(server Server, lists *Lists) *part {
	own := b.serverLabels(server.Name)
	if p := own.part; p != nil && p.server.equal(server) && p.lists.Equal(lists) {
		return p
	}
	b.parts++
	p := &part{id: b.parts, server: server, lists: lists}
	for l := range mcp.Lists {
		known := map[Item]*shown{}
		if own.part != nil {
			for _, s := range own.part.shown[l] {
				known[s.item] = s
			}
		}
		items, labels := lists[l], own.labels[l]
		if labels != nil {
			items = slices.DeleteFunc(slices.Clone(items), func(i Item) bool { return !server.shows(i.Own()) || l == mcp.Tools && taskOnly(i) })
			b.name(l, server, labels, items)
			slices.SortStableFunc(items, func(one, other Item) int { return cmp.Compare(labels[one.Own()].first, labels[other.Own()].first) })
		}
		p.shown[l] = make([]*shown, len(items))
		for i, item := range items {
			name := item.Own()
			switch {
			case labels != nil:
				name = labels[name].shown
			case l == mcp.Resources:
				name = b.uri(server.Name, name)
			}
			p.shown[l][i] = b.show(l, server.Name, item, name, known[item])
		}
	}
	own.part = p
	return p
}

// show makes the shown entry. It reuses known, what was computed before for the same item, if that is not nil.
func (b *Catalog) show(l mcp.List, server string, item Item, name string, known *shown) *shown {
	switch {
	case known == nil:
		s := &shown{item: item, name: name, digest: mcp.EntryDigest([]byte(item.Raw()))}
		if l == mcp.Templates {
			s.template = parseTemplate(item.Own())
		}
		if l == mcp.Tools {
			s.links = b.links(server, item)
		}
		s.edits = edits(item, name, s.links)
		return s
	case known.name != name:
		s := *known
		s.name = name
		s.edits = edits(item, name, s.links)
		return &s
	default:
		return known
	}
}

// append appends the entry as JSON: the server's bytes with the edits applied.
func (s *shown) append(dst []byte) []byte {
	raw, at := s.item.Raw(), 0
	for _, e := range s.edits {
		dst = append(append(dst, raw[at:e.At.Start]...), e.With...)
		at = e.At.End
	}
	return append(dst, raw[at:]...)
}

// length is how many bytes append appends.
func (s *shown) length() int {
	n := len(s.item.Raw())
	for _, e := range s.edits {
		n += len(e.With) - (e.At.End - e.At.Start)
	}
	return n
}
