package gateway

import (
	"slices"

	"github.com/outlive-mcp/outlive/internal/catalog"
	"github.com/outlive-mcp/outlive/internal/jsonrpc"
	"github.com/outlive-mcp/outlive/internal/mcp"
)

// walkMost is how many pages of one list are read: a server may make up cursors for ever.
const walkMost = 200

// walk is one reading of a list.
type walk struct {
	under bool           // it is under way
	again bool           // the list has changed meanwhile
	done  bool           // the list was read, or tried to be, at least once
	fails bool           // the last try came to nothing
	items []catalog.Item // as last read to the end

	pages   int            // of the reading under way
	reading []catalog.Item // what they had
}

// capabilityOf names the capability a list belongs to.
func capabilityOf(l mcp.List) string {
	switch l {
	case mcp.Tools:
		return "tools"
	case mcp.Prompts:
		return "prompts"
	default:
		return "resources"
	}
}

// walkAll reads every list that the server has.
func (l *Link) walkAll() {
	for kind := range mcp.Lists {
		if l.capability(capabilityOf(kind)) {
			l.walk(kind)
			continue
		}
		l.walks[kind] = walk{done: true}
	}
	l.walked()
}

// walk reads one list from its first page.
func (l *Link) walk(kind mcp.List) {
	w := &l.walks[kind]
	if w.under {
		w.again = true
		return
	}
	*w = walk{under: true, done: w.done, items: w.items}
	l.page(kind, nil)
}

func (l *Link) page(kind mcp.List, cursor []byte) {
	l.ask(kind.Method(), func(id []byte) []byte { return mcp.ListLine(id, kind, cursor, l.meta()) }, func(result, err []byte) {
		l.turn(kind, result, err)
	})
}

// turn takes one page.
func (l *Link) turn(kind mcp.List, result, err []byte) {
	w := &l.walks[kind]
	if l.phase != ready {
		return // it is only to finish its calls
	}
	if err != nil {
		l.missed(kind, string(jsonrpc.Find(err, "code").Of(err)) == notFound)
		return
	}
	items, cursor := catalog.Items(kind, result)
	w.reading = append(w.reading, items...)
	w.pages++
	if cursor != nil && w.pages < walkMost {
		l.page(kind, cursor)
		return
	}
	l.misses = 0
	l.show(kind, w.reading)
}

// missed takes the error of a page. A server without the list has an empty one; of any other what was read before stays,
// by this process or one before it, and it is read again later.
func (l *Link) missed(kind mcp.List, none bool) {
	w := &l.walks[kind]
	switch {
	case none:
		l.show(kind, nil)
		return
	case w.done:
		*w = walk{done: true, items: w.items}
	default:
		var known []catalog.Item
		if lists := l.server.known.of(l.scope.key()); lists != nil {
			known = lists[kind]
		}
		l.show(kind, known)
	}
	w.fails = true
	l.misses++
	l.again(l.misses)
}

// walkAgain reads the lists that could not be read.
func (l *Link) walkAgain() {
	for kind := range mcp.Lists {
		if l.phase == ready && l.walks[kind].fails {
			l.walk(kind)
		}
	}
}

// show makes items what the server has of a list.
func (l *Link) show(kind mcp.List, items []catalog.Item) {
	w := &l.walks[kind]
	again := w.again
	was := w.done && l.lists != nil
	*w = walk{done: true, items: items}
	if was {
		if !slices.Equal(l.lists[kind], items) {
			next := *l.lists
			next[kind] = items
			l.lists = &next
			l.server.known.note(l.scope.key(), l.lists)
			l.scope.changed()
		}
	} else {
		l.walked()
	}
	if again {
		l.walk(kind)
	}
}

// walked looks whether all lists are known now.
func (l *Link) walked() {
	if l.lists != nil {
		return
	}
	var all catalog.Lists
	for kind := range mcp.Lists {
		if !l.walks[kind].done {
			return
		}
		all[kind] = l.walks[kind].items
	}
	l.lists = &all
	l.server.known.note(l.scope.key(), l.lists)
	l.server.works()
	if l.scope.era == mcp.Modern && !l.server.Lazy && !l.server.Sleeps && !l.listening {
		l.listening = true
		l.listenForChanges()
	}
	l.scope.changed()
	l.gw.endTrial(l.server)
}

// listChanged reads again what the server says has changed.
func (l *Link) listChanged(m mcp.Method) {
	for kind := range mcp.Lists {
		if kind.Changed() == m && l.phase == ready && l.capability(capabilityOf(kind)) {
			l.walk(kind)
		}
	}
}

// listenForChanges asks a modern server to tell of changes of its lists.
func (l *Link) listenForChanges() {
	params := []byte(`{"notifications":{"toolsListChanged":true,"promptsListChanged":true,"resourcesListChanged":true}}`)
	params, _ = jsonrpc.Set(nil, params, l.meta(), "_meta")
	l.ask(mcp.Listen, func(id []byte) []byte {
		return jsonrpc.AppendRequest(nil, id, mcp.Listen.String(), params)
	}, func(_, _ []byte) {}) // a server without anything to listen for may refuse or end it
}
