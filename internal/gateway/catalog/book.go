package catalog

import (
	"encoding/binary"
	"strings"
	"weak"

	"github.com/outlive-mcp/outlive/internal/protocol/mcp"
)

// Book holds the names given so far. A shown name once given to an entry of a server stays with it, also while the entry
// is not listed, and also when a server comes later that would have had it first: what a language model has read of
// stays true. Only another Prefix or Rename, and Forget, take a name back. So does a new Book.
//
// The order of tools and prompts is kept the same way: within a server they stand in the order in which they were first
// seen, because a list that is only shuffled costs a client its prompt cache.
//
// A server that keeps inventing names is remembered up to a bound: see maxLabels.
type Book struct {
	names   Names
	taken   [mcp.Lists]map[string]bool // shown names of tools and prompts
	shelves map[string]*shelf          // by server
	uris    map[string]bool            // shown URIs of user interfaces
	seen    uint64                     // entries named so far
	parts   uint64                     // parts made so far
	views   map[string]weak.Pointer[View]
	sweep   int // at how many views those nobody uses any more are let go
}

// maxLabels is how many names of one list of one server are remembered, if it does not list more than half as many at
// once. Beyond, those it does not list are forgotten: a program that runs for months must not grow for ever.
const maxLabels = 10_000

// shelf is what the Book knows of one server.
type shelf struct {
	labels [mcp.Lists]map[string]*label // by the server's own name
	uris   map[string]string            // shown ones of user interfaces, by the server's own
	part   *part                        // the latest one
}

// label is the name one entry has.
type label struct {
	prefix, base string // what it was made of
	begins       bool   // base begins with the prefix, and nothing else of the server is called what follows it
	shown        string // "" while it is to be given
	wanted       string // what the Names promise, if shown is something else
	first        uint64 // Book.seen when the entry was first seen
}

// NewBook returns a Book in which no name is given.
func NewBook(names Names) *Book {
	return &Book{
		names:   names,
		taken:   [mcp.Lists]map[string]bool{mcp.Tools: {}, mcp.Prompts: {}},
		uris:    map[string]bool{},
		shelves: map[string]*shelf{},
		views:   map[string]weak.Pointer[View]{},
	}
}

// Forget takes back the names of a server that is not in the configuration any more. Views made before still know them.
func (b *Book) Forget(server string) {
	s := b.shelves[server]
	if s == nil {
		return
	}
	for l, labels := range s.labels {
		for _, label := range labels {
			delete(b.taken[l], label.shown)
		}
	}
	for _, shown := range s.uris {
		delete(b.uris, shown)
	}
	delete(b.shelves, server)
}

// Merge makes one of what the servers show: servers in the order of the configuration, lists[i] belonging to
// servers[i], nil as long as nothing is known of it. Where each server shows what it showed at the latest Merge, a View
// made of the same that is still in use is returned again.
func (b *Book) Merge(servers []Server, lists []*Lists) *View {
	parts := make([]*part, len(servers))
	key := make([]byte, 0, len(servers)*binary.MaxVarintLen32)
	for i, server := range servers {
		var id uint64 // of no part: nothing is known
		if lists[i] != nil {
			parts[i] = b.part(server, lists[i])
			id = parts[i].id
		}
		key = binary.AppendUvarint(key, id)
	}
	if v := b.views[string(key)].Value(); v != nil {
		return v
	}
	v := newView(parts)
	b.remember(string(key), v)
	return v
}

// remember keeps v findable for as long as somebody else keeps it alive.
func (b *Book) remember(key string, v *View) {
	if len(b.views) >= b.sweep {
		for key, view := range b.views {
			if view.Value() == nil {
				delete(b.views, key)
			}
		}
		b.sweep = 2*len(b.views) + 16
	}
	b.views[key] = weak.Make(v)
}

// shelf returns a server's shelf, a new one if need be.
func (b *Book) shelf(server string) *shelf {
	s := b.shelves[server]
	if s == nil {
		s = &shelf{labels: [mcp.Lists]map[string]*label{mcp.Tools: {}, mcp.Prompts: {}}, uris: map[string]string{}}
		b.shelves[server] = s
	}
	return s
}

// name gives every item a label. First all names go back that are not wanted any more, so that two entries can swap
// theirs.
func (b *Book) name(l mcp.List, server Server, labels map[string]*label, items []Item) []*label {
	prefix := server.prefix()
	named := make([]*label, len(items))
	bases := make(map[string]bool, len(items))
	for _, item := range items {
		bases[server.base(item.Own())] = true
	}
	for i, item := range items {
		own := item.Own()
		base := server.base(own)
		it := labels[own]
		switch {
		case it == nil:
			b.seen++
			it = &label{first: b.seen}
			labels[own] = it
		case it.shown != "" && (it.prefix != prefix || it.base != base):
			delete(b.taken[l], it.shown)
			it.shown = ""
		}
		rest, begins := strings.CutPrefix(base, prefix+"_")
		it.prefix, it.base, it.begins = prefix, base, begins && !bases[rest]
		named[i] = it
	}
	for i, it := range named {
		if it.shown == "" {
			it.shown, it.wanted = b.give(l, server.Name, items[i].Own(), it)
		}
	}
	if len(labels) > max(maxLabels, 2*len(items)) {
		b.forgetOthers(l, labels, named)
	}
	return named
}

func (b *Book) forgetOthers(l mcp.List, labels map[string]*label, named []*label) {
	listed := make(map[*label]bool, len(named))
	for _, it := range named {
		listed[it] = true
	}
	for own, it := range labels {
		if !listed[it] {
			delete(b.taken[l], it.shown)
			delete(labels, own)
		}
	}
}

// give finds a name that is free and takes it; wanted is "" if it is as good as promised.
func (b *Book) give(l mcp.List, server, own string, it *label) (shown, wanted string) {
	taken := b.taken[l]
	candidates, promised := b.names.candidates(it.prefix, it.base, it.begins)
	first := fit(candidates[0], server, own)
	for i, candidate := range candidates {
		name := fit(candidate, server, own)
		if taken[name] {
			continue
		}
		taken[name] = true
		if i >= promised {
			return name, first
		}
		return name, ""
	}
	last := clean(candidates[len(candidates)-1])
	for attempt := 0; ; attempt++ {
		if name := hashed(last, server, own, attempt); !taken[name] {
			taken[name] = true
			return name, first
		}
	}
}
