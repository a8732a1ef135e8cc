package mcp

import (
	"bytes"
	"maps"

	"github.com/outlive-mcp/outlive/internal/protocol/jsonrpc"
)

// What a [Reader] remembers at most: so many pages of each list, none of them longer than so many bytes. What is beyond
// that is read as well, only not as fast.
const (
	pagesKept   = 8
	longestKept = 128 << 10
)

// Reader reads list results. Its zero value is ready for use, by one goroutine.
//
// A list is read over and over: each time the client asks for it, before a spare may serve, after each restart; and the
// client waits meanwhile. Hardly ever does a page say anything new, so a Reader remembers the last ones and what they
// say: to put all entries into their canonical form takes a hundred times as long as to see that nothing has changed.
type Reader struct {
	pages [Lists][]page // the newest last
}

// page is one result and what it says.
type page struct {
	raw     []byte
	entries Catalog
	cursor  []byte // of the next page; nil: there is none
}

// AddPage adds the entries of one raw list result to c and returns the cursor of the next page, nil at the end.
func (r *Reader) AddPage(c Catalog, l List, result []byte) (cursor []byte) {
	p := r.page(l, result)
	maps.Copy(c, p.entries)
	return bytes.Clone(p.cursor)
}

func (r *Reader) page(l List, result []byte) page {
	kept := r.pages[l]
	for _, p := range kept {
		if bytes.Equal(p.raw, result) {
			return p
		}
	}
	p := readPage(l, result)
	if len(result) <= longestKept {
		p.raw = bytes.Clone(result)
		r.pages[l] = append(kept[max(0, len(kept)+1-pagesKept):], p)
	}
	return p
}

// readPage reads one raw list result.
func readPage(l List, result []byte) page {
	p := page{entries: Catalog{}}
	array := jsonrpc.Find(result, l.Member()).Of(result)
	for at := range jsonrpc.Elements(array) {
		raw := at.Of(array)
		if name, ok := jsonrpc.Unquote(jsonrpc.Find(raw, lists[l].key).Of(raw)); ok {
			p.entries[name] = newItem(raw)
		}
	}
	p.cursor = bytes.Clone(NextCursor(result))
	return p
}

// NextCursor is the raw cursor of the page behind a raw list result; nil at the end. Only a string that is not empty is
// one: some servers end their lists with "", null or a number. Whoever follows cursors also ends at one seen before.
func NextCursor(result []byte) []byte {
	next := jsonrpc.Find(result, "nextCursor").Of(result)
	if !jsonrpc.IsString(next) || jsonrpc.EqualString(next, "") {
		return nil
	}
	return next
}
