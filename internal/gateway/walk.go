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
	under bool // it is under way
	again bool // the list has changed meanwhile
	done  bool // the list was read at least once
	pages int
	items []catalog.Item
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
	*w = walk{under: true, done: w.done}
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
	if err != nil {
		if !w.done || string(jsonrpc.Find(err, "code").Of(err)) == "-32601" {
			l.show(kind, nil)
			return
		}
		*w = walk{done: true} // what was read before stays
		return
	}
	items, cursor := catalog.Items(kind, result)
	w.items = append(w.items, items...)
	w.pages++
	if cursor != nil && w.pages < walkMost {
		l.page(kind, cursor)
		return
	}
	l.show(kind, w.items)
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
	l.scope.changed()
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
