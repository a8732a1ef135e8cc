package catalog

import (
	"bytes"
	"slices"
	"unique"

	"github.com/outlive-mcp/outlive/internal/protocol/jsonrpc"
	"github.com/outlive-mcp/outlive/internal/protocol/mcp"
)

// Item is one entry of a server's list, byte for byte. Items of the same list and the same bytes are equal (==) and
// share their memory: a hundred processes of one server cost one copy. Only Items makes them.
type Item struct{ entry unique.Handle[entry] }

type entry struct {
	raw string
	own string
	at  jsonrpc.Span // of the name, or of the URI, in raw
}

// Own is the name the server itself gave the entry: of a tool or prompt its name, of a resource its URI, of a template
// its uriTemplate.
func (i Item) Own() string { return i.entry.Value().own }

// Raw is the entry as the server wrote it, one JSON object.
func (i Item) Raw() string { return i.entry.Value().raw }

// Lists is what one server shows, each list in the server's order; a list it does not have is nil. Whoever has given a
// Lists to Merge does not change it any more.
type Lists [mcp.Lists][]Item

// Items reads the entries of one raw list result and the raw cursor of the next page, nil at the end. What the caller
// keeps does not refer to result. An entry without a readable name is left out, because nobody could ask for it; of a
// result that is not a list nothing comes back.
func Items(l mcp.List, result []byte) (items []Item, cursor []byte) {
	array := jsonrpc.Find(result, l.Member()).Of(result)
	for span := range jsonrpc.Elements(array) {
		raw := span.Of(array)
		at := jsonrpc.Find(raw, l.Key())
		own, ok := jsonrpc.Unquote(at.Of(raw))
		if !ok {
			continue
		}
		items = append(items, Item{unique.Make(entry{raw: string(raw), own: own, at: at})})
	}
	next := jsonrpc.Find(result, "nextCursor").Of(result)
	if len(next) == 0 || jsonrpc.IsNull(next) {
		return items, nil
	}
	return items, bytes.Clone(next)
}

func (l *Lists) equal(other *Lists) bool {
	if l == other {
		return true
	}
	for i := range l {
		if !slices.Equal(l[i], other[i]) {
			return false
		}
	}
	return true
}
