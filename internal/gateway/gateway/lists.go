package gateway

import (
	"slices"

	"github.com/outlive-mcp/outlive/internal/gateway/catalog"
	"github.com/outlive-mcp/outlive/internal/protocol/jsonrpc"
	"github.com/outlive-mcp/outlive/internal/protocol/mcp"
)

// pagesMost limits the pages read of one list, since a server may return cursors for ever.
const pagesMost = 200

// listing owns the lists of a link's server.
type listing struct {
	link *Link

	all       *catalog.Lists // nil until each was read, or failed
	reads     [mcp.Lists]listRead
	misses    int  // readings that failed in a row
	listening bool // the server was asked for list changes
}

// listRead is the reading of one list.
type listRead struct {
	under bool           // it is under way
	again bool           // the list has changed meanwhile
	done  bool           // the list was read, or tried to be, at least once
	fails bool           // the last try failed
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

// readAll reads every list that the server has.
func (ls *listing) readAll() {
	for kind := range mcp.Lists {
		if ls.link.capability(capabilityOf(kind)) {
			ls.read(kind)
			continue
		}
		ls.reads[kind] = listRead{done: true}
	}
	ls.completed()
}

// read reads one list from its first page.
func (ls *listing) read(kind mcp.List) {
	r := &ls.reads[kind]
	if r.under {
		r.again = true
		return
	}
	*r = listRead{under: true, done: r.done, items: r.items}
	ls.page(kind, nil)
}

func (ls *listing) page(kind mcp.List, cursor []byte) {
	ls.link.ask(kind.Method(), func(id []byte) []byte { return mcp.ListLine(id, kind, cursor, ls.link.meta()) }, func(result, err []byte) {
		ls.turn(kind, result, err)
	})
}

// turn takes one page.
func (ls *listing) turn(kind mcp.List, result, err []byte) {
	r := &ls.reads[kind]
	if ls.link.phase != ready {
		return // it only finishes its calls
	}
	if err != nil {
		ls.missed(kind, string(jsonrpc.Find(err, "code").Of(err)) == notFound)
		return
	}
	items, cursor := catalog.Items(kind, result)
	r.reading = append(r.reading, items...)
	r.pages++
	if cursor != nil && r.pages < pagesMost {
		ls.page(kind, cursor)
		return
	}
	ls.misses = 0
	ls.show(kind, r.reading)
}

// missed takes the error of a page. A server without the method has an empty list. After other errors the earlier
// content stays, and the list is read again later.
func (ls *listing) missed(kind mcp.List, none bool) {
	r := &ls.reads[kind]
	switch {
	case none:
		ls.show(kind, nil)
		return
	case r.done:
		*r = listRead{done: true, items: r.items}
	default:
		var known []catalog.Item
		if lists := ls.link.server.known.of(ls.link.scope.key()); lists != nil {
			known = lists[kind]
		}
		ls.show(kind, known)
	}
	r.fails = true
	ls.misses++
	ls.link.again(ls.misses)
}

// readAgain reads the lists that failed.
func (ls *listing) readAgain() {
	for kind := range mcp.Lists {
		if ls.link.phase == ready && ls.reads[kind].fails {
			ls.read(kind)
		}
	}
}

// show sets the content of a list.
func (ls *listing) show(kind mcp.List, items []catalog.Item) {
	r := &ls.reads[kind]
	again := r.again
	was := r.done && ls.all != nil
	*r = listRead{done: true, items: items}
	if was {
		if !slices.Equal(ls.all[kind], items) {
			next := *ls.all
			next[kind] = items
			ls.all = &next
			ls.remember()
			ls.link.scope.changed()
		}
	} else {
		ls.completed()
	}
	if again {
		ls.read(kind)
	}
}

// completed checks whether all lists are known now.
func (ls *listing) completed() {
	if ls.all != nil {
		return
	}
	var all catalog.Lists
	for kind := range mcp.Lists {
		if !ls.reads[kind].done {
			return
		}
		all[kind] = ls.reads[kind].items
	}
	ls.all = &all
	ls.remember()
	ls.link.server.works(ls.link.gw.now)
	if !ls.link.server.Lazy && !ls.link.server.Sleeps {
		ls.listen()
	}
	ls.link.scope.changed()
}

// remember notes what the server shows for every scope whose clients can do the same. Those that have no process of it show
// this from now on.
func (ls *listing) remember() {
	server, key := ls.link.server, ls.link.scope.key()
	was := server.known.of(key)
	server.known.note(key, ls.all)
	same := was != nil && slices.EqualFunc(was[:], ls.all[:], slices.Equal[[]catalog.Item])
	for sc := range ls.link.gw.scopes {
		if sc != ls.link.scope && (!same || sc.presumes) && sc.lists(server) == ls.all {
			sc.changed()
		}
	}
}

// changed reads a changed list again.
func (ls *listing) changed(m mcp.Method) {
	for kind := range mcp.Lists {
		if kind.Changed() == m && ls.link.phase == ready && ls.link.capability(capabilityOf(kind)) {
			ls.read(kind)
		}
	}
}

// listen subscribes, once, to a modern server's list changes.
func (ls *listing) listen() {
	if ls.listening || ls.link.scope.era != mcp.Modern {
		return
	}
	ls.listening = true
	params := []byte(`{"notifications":{"toolsListChanged":true,"promptsListChanged":true,"resourcesListChanged":true}}`)
	params, _ = jsonrpc.Set(nil, params, ls.link.meta(), "_meta")
	ls.link.ask(mcp.Listen, func(id []byte) []byte {
		return jsonrpc.AppendRequest(nil, id, mcp.Listen.String(), params)
	}, func(_, _ []byte) {}) // a server without such notifications may refuse or end it
}
