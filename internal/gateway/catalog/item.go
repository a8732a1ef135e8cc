package catalog

import (
	"bytes"
	"slices"
	"unique"

	"github.com/outlive-mcp/outlive/internal/protocol/jsonrpc"
	"github.com/outlive-mcp/outlive/internal/protocol/mcp"
)

// Item is one entry of a server's list, byte for byte. Items of the same list with the same bytes are equal (==) and
// share their memory: a hundred processes of one server need one copy. Only the function Items makes them.
type Item struct{ entry unique.Handle[entry] }

type entry struct {
	raw string
	own string
	at  jsonrpc.Span // of the name, or of the URI, in raw
}

// Own is the server's own name for the entry: the name of a tool or prompt, the URI of a resource, the uriTemplate of
// a template.
func (i Item) Own() string { return i.entry.Value().own }

// Raw is the entry as the server wrote it, one JSON object.
func (i Item) Raw() string { return i.entry.Value().raw }

// Lists is what one server lists, each list in the server's order; a list it does not have is nil. A Lists must not
// be changed after it was passed to Merge.
type Lists [mcp.Lists][]Item

// Items reads the entries of one raw list result, and the raw cursor of the next page, which is nil at the end. The
// returned values do not refer to result. Entries without a readable name are left out, because they cannot be
// requested. If result is not a list, nothing is returned.
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
	return items, bytes.Clone(mcp.NextCursor(result))
}

// Equal reports whether both are the same entries in the same order.
func (l *Lists) Equal(other *Lists) bool {
	return l == other || slices.EqualFunc(l[:], other[:], slices.Equal[[]Item])
}
