package catalog

import (
	"encoding/binary"
	"strings"
	"weak"

	"github.com/outlive-mcp/outlive/internal/protocol/mcp"
)

// Catalog holds the names that were assigned so far. An entry of a server keeps its shown name, also while it is not
// listed, and also when a server is added that would have had the name first: names that a language model has read
// stay valid. Only another Prefix or Rename, Forget, or a new Catalog releases a name.
//
// The order of tools and prompts is kept, too: within a server they are in the order in which they were first seen,
// because a list in another order invalidates a client's prompt cache.
//
// The number of remembered names of a server is limited: see maxLabels.
type Catalog struct {
	names   Names
	taken   [mcp.Lists]map[string]bool // shown names of tools and prompts
	servers map[string]*serverLabels   // by server
	uris    map[string]bool            // shown URIs of user interfaces
	seen    uint64                     // number of entries named so far
	parts   uint64                     // number of parts made so far
	views   map[string]weak.Pointer[View]
	sweep   int // number of views at which unused ones are removed
}

// maxLabels is how many names of one list of one server are remembered, unless the server lists more than half as
// many at once. Beyond that, names that are not listed are forgotten, so that the memory of a long-running gateway is
// bounded.
const maxLabels = 10_000

// serverLabels is the catalog's data about one server.
type serverLabels struct {
	labels [mcp.Lists]map[string]*label // of tools and prompts, by the server's own name; nil: entries of the list are called as there
	uris   map[string]string            // shown URIs of user interfaces, by the server's own URI
	part   *part                        // the latest one
}

// label is the name of one entry.
type label struct {
	prefix, base string // what the name was made of
	begins       bool   // base begins with the prefix, and no other entry of the server is called what follows it
	shown        string // "" until it is assigned
	first        uint64 // Catalog.seen when the entry was first seen
}

// New returns a Catalog without names.
func New(names Names) *Catalog {
	return &Catalog{
		names:   names,
		taken:   [mcp.Lists]map[string]bool{mcp.Tools: {}, mcp.Prompts: {}},
		uris:    map[string]bool{},
		servers: map[string]*serverLabels{},
		views:   map[string]weak.Pointer[View]{},
	}
}

// Forget releases the names of a server that was removed from the configuration. Views made before still have them.
func (b *Catalog) Forget(server string) {
	s := b.servers[server]
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
	delete(b.servers, server)
}

// Given reports whether a tool or prompt has this shown name, seen by whomever, or had it and may have it again.
func (b *Catalog) Given(l mcp.List, shown string) bool { return b.taken[l][shown] }

// Merge makes one View of what the servers list. servers are in the order of the configuration; lists[i] belongs to
// servers[i], and is nil as long as nothing is known of it. The View has what sel selects of it, nil: everything; names
// do not depend on that. If every server shows what it showed at the latest Merge that had it, and a View of the same
// is still in use, that View is returned again.
func (b *Catalog) Merge(servers []Server, lists []*Lists, sel *Selection) *View {
	parts := make([]*part, len(servers))
	key := make([]byte, 0, len(servers)*binary.MaxVarintLen32)
	for i, server := range servers {
		var id uint64 // 0: nothing is known, or it is not selected
		if lists[i] != nil {
			p := b.part(server, lists[i]) // even if it is not selected: names are given out in the servers' order
			if sel.Has(server.Name) {
				parts[i], id = p, p.id
			}
		}
		key = binary.AppendUvarint(key, id)
	}
	if sel != nil {
		key = append(key, sel.digest...)
	}
	if v := b.views[string(key)].Value(); v != nil {
		return v
	}
	for i := range parts {
		parts[i] = sel.of(parts[i])
	}
	v := newView(parts)
	b.remember(string(key), v)
	return v
}

// remember lets later Merges find v for as long as it is referenced elsewhere.
func (b *Catalog) remember(key string, v *View) {
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

// serverLabels returns a server's labels, which it makes if necessary.
func (b *Catalog) serverLabels(server string) *serverLabels {
	s := b.servers[server]
	if s == nil {
		s = &serverLabels{labels: [mcp.Lists]map[string]*label{mcp.Tools: {}, mcp.Prompts: {}}, uris: map[string]string{}}
		b.servers[server] = s
	}
	return s
}

// name assigns a label to every item. Labels that have to change are released first, so that two entries can swap
// names.
func (b *Catalog) name(l mcp.List, server Server, labels map[string]*label, items []Item) {
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
			it.shown = b.give(l, server.Name, items[i].Own(), it)
		}
	}
	if len(labels) > max(maxLabels, 2*len(items)) {
		b.forgetOthers(l, labels, named)
	}
}

func (b *Catalog) forgetOthers(l mcp.List, labels map[string]*label, named []*label) {
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

// give finds a free name and takes it.
func (b *Catalog) give(l mcp.List, server, own string, it *label) string {
	taken := b.taken[l]
	candidates := b.names.candidates(it.prefix, it.base, it.begins)
	for _, candidate := range candidates {
		if name := fit(l, candidate, server, own); !taken[name] {
			taken[name] = true
			return name
		}
	}
	last := candidates[len(candidates)-1]
	if l == mcp.Tools {
		last = Clean(last)
	}
	for attempt := 0; ; attempt++ {
		if name := hashed(last, server, own, attempt); !taken[name] {
			taken[name] = true
			return name
		}
	}
}
