package catalog

import (
	"cmp"
	"crypto/sha256"
	"slices"

	"github.com/outlive-mcp/outlive/internal/mcp"
)

// part is what one server contributes to a View. It never changes, so whatever else comes and goes, it is made once.
type part struct {
	id     uint64 // no two parts of a Book have the same; from 1 on
	server Server
	lists  *Lists
	shown  [mcp.Lists][]*shown
}

// shown is one entry as clients see it.
type shown struct {
	item     Item
	name     string // what clients ask for it by
	wanted   string // the name it would have had without a collision, otherwise ""
	digest   [sha256.Size]byte
	template *template // of a resource template
}

// named reports whether the entries of a list get a name from the Book.
func named(l mcp.List) bool { return l == mcp.Tools || l == mcp.Prompts }

// part returns what a server shows: the latest part again if nothing is different.
func (b *Book) part(server Server, lists *Lists) *part {
	shelf := b.shelf(server.Name)
	if p := shelf.part; p != nil && p.server.equal(server) && p.lists.equal(lists) {
		return p
	}
	b.parts++
	p := &part{id: b.parts, server: server, lists: lists}
	for l := range mcp.Lists {
		known := map[Item]*shown{}
		if shelf.part != nil {
			for _, s := range shelf.part.shown[l] {
				known[s.item] = s
			}
		}
		items := lists[l]
		if !named(l) {
			p.shown[l] = make([]*shown, len(items))
			for i, item := range items {
				p.shown[l][i] = show(l, item, item.Own(), "", known[item])
			}
			continue
		}
		items = slices.DeleteFunc(slices.Clone(items), func(i Item) bool { return !server.shows(i.Own()) })
		p.add(l, items, b.name(l, server, shelf.labels[l], items), known)
	}
	shelf.part = p
	return p
}

// add shows tools or prompts under the names given to them, in the order in which they were first seen.
func (p *part) add(l mcp.List, items []Item, labels []*label, known map[Item]*shown) {
	order := make([]int, len(items))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(i, j int) int { return cmp.Compare(labels[i].first, labels[j].first) })
	p.shown[l] = make([]*shown, len(items))
	for place, i := range order {
		p.shown[l][place] = show(l, items[i], labels[i].shown, labels[i].wanted, known[items[i]])
	}
}

// show makes the entry, out of what was found out about the same item before if that is known.
func show(l mcp.List, item Item, name, wanted string, known *shown) *shown {
	switch {
	case known == nil:
		s := &shown{item: item, name: name, wanted: wanted, digest: mcp.EntryDigest([]byte(item.Raw()))}
		if l == mcp.Templates {
			s.template = parseTemplate(item.Own())
		}
		return s
	case known.name != name || known.wanted != wanted:
		s := *known
		s.name, s.wanted = name, wanted
		return &s
	default:
		return known
	}
}

// append appends the entry as JSON: the server's bytes, with the shown name in place of its own.
func (s *shown) append(dst []byte, l mcp.List) []byte {
	e := s.item.entry.Value()
	if !named(l) {
		return append(dst, e.raw...)
	}
	dst = append(dst, e.raw[:e.at.Start]...)
	dst = append(dst, '"')
	dst = append(dst, s.name...) // nothing in it needs escaping
	dst = append(dst, '"')
	return append(dst, e.raw[e.at.End:]...)
}

// length is how many bytes append appends.
func (s *shown) length(l mcp.List) int {
	e := s.item.entry.Value()
	if !named(l) {
		return len(e.raw)
	}
	return len(e.raw) - (e.at.End - e.at.Start) + len(s.name) + len(`""`)
}
