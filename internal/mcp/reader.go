package mcp

import (
	"bytes"
	"crypto/sha256"

	"github.com/outlive-mcp/outlive/internal/jsonrpc"
)

// readerKeeps is how many entries a [Reader] remembers. Each takes less than 100 bytes; a server with more is read as
// well, only not as fast.
const readerKeeps = 4096

// Reader reads list results. Its zero value is ready for use, by one goroutine.
//
// A list is read over and over: each time the client asks for it, before a spare may serve, after each restart; and the
// client waits meanwhile. Hardly ever does an entry say anything new, so a Reader remembers what it made of those it has
// seen, by their bytes: putting an entry into its canonical form takes a hundred times as long as looking it up.
type Reader struct {
	items map[[sha256.Size]byte]Item // by the digest of the raw entry
}

// AddPage adds the entries of one raw list result to c and returns the cursor of the next page, nil at the end.
func (r *Reader) AddPage(c Catalog, l List, result []byte) (cursor []byte) {
	array := jsonrpc.Find(result, l.Member()).Of(result)
	for at := range jsonrpc.Elements(array) {
		raw := at.Of(array)
		name, ok := jsonrpc.Unquote(jsonrpc.Find(raw, lists[l].key).Of(raw))
		if !ok {
			continue
		}
		c[name] = r.item(raw)
	}
	next := jsonrpc.Find(result, "nextCursor").Of(result)
	if len(next) == 0 || jsonrpc.IsNull(next) {
		return nil
	}
	return bytes.Clone(next)
}

func (r *Reader) item(raw []byte) Item {
	key := sha256.Sum256(raw)
	item, known := r.items[key]
	if known {
		return item
	}
	if r.items == nil || len(r.items) >= readerKeeps {
		r.items = map[[sha256.Size]byte]Item{}
	}
	item = newItem(raw)
	r.items[key] = item
	return item
}
