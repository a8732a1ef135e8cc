package gateway

import (
	"cmp"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/outlive-mcp/outlive/internal/gateway/catalog"
	"github.com/outlive-mcp/outlive/internal/protocol/jsonrpc"
	"github.com/outlive-mcp/outlive/internal/protocol/mcp"
	"github.com/outlive-mcp/outlive/internal/record/event"
)

const (
	// pagesMost limits the pages read of one list, since a server may return cursors for ever.
	pagesMost = 200
	// undeclaredFor is how long a list is waited for that a server does not declare. Some have it all the same; others never
	// answer for it.
	undeclaredFor = 2 * time.Second
	// lookFor is how long a client that asks again waits for what its servers have now, lookEvery how often they are asked at most.
	lookFor   = 2 * time.Second
	lookEvery = time.Second
)

// listing owns the lists of a link's server.
type listing struct {
	link *Link

	all       *catalog.Lists // nil until one was read or failed; those that were not are as remembered
	reads     [mcp.Lists]listRead
	answered  bool      // it has answered a request for one
	complete  bool      // each was read, or failed, or is not waited for
	lateAt    time.Time // when those that are not declared are not waited for any more; zero: none is
	misses    int       // readings that failed in a row
	listening bool      // the server was asked for list changes
}

// listRead is the reading of one list.
type listRead struct {
	under bool      // it is under way
	began time.Time // when that was
	again bool      // the list has changed meanwhile
	done  bool      // the list was read, or tried to be, at least once
	at    time.Time // when it was read to the end
	fails bool      // the last try failed
	lack  string    // why it, or a part of it, is not shown; "": it is

	cursors map[string]bool // of the reading under way: its pages so far
	reading []catalog.Item  // what they had
}

// readAll asks for the lists at once.
func (ls *listing) readAll() {
	ls.lateAt = ls.link.gw.now.Add(undeclaredFor)
	ls.link.gw.at(ls.lateAt)
	for kind := range mcp.Lists {
		if ls.asks(kind) {
			ls.read(kind)
		} else {
			ls.reads[kind] = listRead{done: true}
		}
	}
}

// asks reports whether the server is asked for a list. Whether it has tools is decided by asking, whatever it declares; of one that declares
// nothing, whether it has anything. Others are not asked for what they have not: some end at a request that they do not know.
func (ls *listing) asks(kind mcp.List) bool {
	for one := range mcp.Lists {
		if ls.link.capability(one.Capability()) {
			return kind == mcp.Tools || ls.link.capability(kind.Capability())
		}
	}
	return true
}

// tick goes on without the lists that a server has not declared, and not shown.
func (ls *listing) tick() {
	if !ls.link.gw.isDue(&ls.lateAt) {
		return
	}
	for kind := range mcp.Lists {
		if !ls.reads[kind].done && !ls.link.capability(kind.Capability()) {
			ls.goOnWithout(kind)
		}
	}
}

// goOnWithout takes a list as remembered, or what was read of it so far, until it is shown.
func (ls *listing) goOnWithout(kind mcp.List) {
	r, items := &ls.reads[kind], ls.remembered(kind)
	if items == nil {
		items = slices.Clip(r.reading)
	}
	r.done = true
	ls.put(kind, items)
}

// remembered is a list as the server has shown it to such a client before; nil: never.
func (ls *listing) remembered(kind mcp.List) []catalog.Item {
	if lists := ls.link.scope.knownLists(ls.link.server); lists != nil {
		return lists[kind]
	}
	return nil
}

// missing are the lists that the server has not answered for.
func (ls *listing) missing() (kinds []mcp.List) {
	for kind := range mcp.Lists {
		if !ls.reads[kind].done {
			kinds = append(kinds, kind)
		}
	}
	return kinds
}

// waitedEnough goes on without the lists, or their later pages, that the server has not answered for.
func (ls *listing) waitedEnough() {
	why := "not answered within " + ls.link.gw.opts.ListWait.String()
	for _, kind := range ls.missing() {
		ls.link.server.late[kind] = true
		if len(ls.reads[kind].cursors) > 0 {
			ls.lacks(kind, "a later page is "+why)
		} else {
			ls.lacks(kind, why)
		}
		ls.goOnWithout(kind)
	}
}

// lacks records why a list, or a part of it, is not shown, until it is read again.
func (ls *listing) lacks(kind mcp.List, why string) {
	why = kind.Method().String() + ": " + why
	if ls.reads[kind].lack == why {
		return
	}
	ls.reads[kind].lack = why
	ls.link.gw.emit(event.ListMissing, slog.LevelWarn, ls.link.Name(), "is used without a list: "+why, slog.String(event.KeyReason, why))
}

// lacking is what clients do not see of the server, for its status.
func (ls *listing) lacking() string {
	var all []string
	for _, r := range ls.reads {
		if r.lack != "" {
			all = append(all, r.lack)
		}
	}
	return strings.Join(all, "; ")
}

// read reads one list from its first page.
func (ls *listing) read(kind mcp.List) {
	r := &ls.reads[kind]
	if r.under {
		r.again = true
		return
	}
	*r = listRead{under: true, began: ls.link.gw.now, done: r.done, at: r.at, lack: r.lack, cursors: map[string]bool{}}
	ls.page(kind, nil)
}

func (ls *listing) page(kind mcp.List, cursor []byte) {
	params := []byte("{}")
	if cursor != nil {
		params, _ = jsonrpc.Set(nil, params, cursor, "cursor") // an object
	}
	ls.link.ask(kind.Method(), params, func(result, err []byte) { ls.turn(kind, result, err) })
}

// turn takes one page.
func (ls *listing) turn(kind mcp.List, result, err []byte) {
	r := &ls.reads[kind]
	if ls.link.phase != ready {
		return // it only finishes its calls
	}
	ls.answered = true
	if err != nil && len(r.cursors) > 0 {
		ls.show(kind, r.reading)
		ls.lacks(kind, "a later page is refused: "+messageOf(err))
		return
	}
	if err != nil {
		ls.missed(kind, err)
		return
	}
	items, cursor := catalog.Items(kind, result)
	r.reading = append(r.reading, items...)
	if cursor != nil && !r.cursors[string(cursor)] && len(r.cursors) < pagesMost {
		r.cursors[string(cursor)] = true
		ls.page(kind, cursor)
		return
	}
	ls.misses = 0
	ls.show(kind, r.reading)
}

// missed takes the error of a page. A server without the method has an empty list. After other errors the earlier
// content stays, and the list is read again later.
func (ls *listing) missed(kind mcp.List, err []byte) {
	r := &ls.reads[kind]
	switch {
	case jsonrpc.ErrorCode(err) == jsonrpc.MethodNotFound:
		ls.show(kind, nil)
		return
	case !ls.link.capability(kind.Capability()):
		ls.show(kind, nil) // it has none, and says so in words of its own
		return
	case r.done:
		*r = listRead{done: true, lack: r.lack}
	default:
		ls.show(kind, ls.remembered(kind))
	}
	ls.lacks(kind, messageOf(err))
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

// show sets the content of a list that was read.
func (ls *listing) show(kind mcp.List, items []catalog.Item) {
	r := &ls.reads[kind]
	again := r.again
	*r = listRead{done: true, at: ls.link.gw.now}
	ls.link.server.late[kind] = false
	ls.put(kind, items)
	if again {
		ls.read(kind)
	}
}

// put makes a list what clients see. Each list stands for itself: one that is slow, refused or never answered keeps no other
// from being shown.
func (ls *listing) put(kind mcp.List, items []catalog.Item) {
	differs := ls.all == nil || !slices.Equal(ls.all[kind], items)
	if differs {
		var next catalog.Lists
		if known := cmp.Or(ls.all, ls.link.scope.knownLists(ls.link.server)); known != nil {
			next = *known
		}
		next[kind] = items
		ls.all = &next
	}
	switch {
	case !ls.complete && len(ls.missing()) == 0: // the server has said of every list what it will
		ls.complete = true
		ls.remember()
		ls.link.server.works(ls.link.gw.now)
		if !ls.link.server.Lazy && !ls.link.server.Sleeps {
			ls.listen()
		}
	case ls.complete && differs:
		ls.remember()
	}
	if differs {
		ls.link.scope.changed()
	} else {
		ls.link.scope.releaseAll() // it may have been waited for
	}
}

// lookAgain reads a list once more, if that was not done just now, and reports whether it is being read. One that has been asked for
// longer is not counted on.
func (ls *listing) lookAgain(kind mcp.List) bool {
	r, now := &ls.reads[kind], ls.link.gw.now
	if ls.link.phase == ready && r.done && !r.under && ls.asks(kind) && now.Sub(r.at) >= lookEvery {
		ls.read(kind)
	}
	return ls.underWay(kind)
}

func (ls *listing) underWay(kind mcp.List) bool {
	r := ls.reads[kind]
	return ls.link.phase == ready && r.done && r.under && ls.link.gw.now.Sub(r.began) < lookFor
}

// remember notes what the server shows for every scope whose clients can do the same. Those that have no process of it show
// this from now on.
func (ls *listing) remember() {
	server, key := ls.link.server, ls.link.scope.key()
	was := server.known.of(key)
	server.known.note(key, ls.all)
	same := was != nil && was.Equal(ls.all)
	for sc := range ls.link.gw.scopes {
		if sc != ls.link.scope && (!same || sc.presumes) && sc.lists(server) == ls.all {
			sc.changed()
		}
	}
}

// changed reads a changed list again.
func (ls *listing) changed(m mcp.Method) {
	for kind := range mcp.Lists {
		if kind.Changed() == m && ls.link.phase == ready && ls.asks(kind) {
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
	ls.link.ask(mcp.Listen, params, func(_, _ []byte) {}) // a server without such notifications may refuse or end it
}
