package catalog

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"

	"github.com/outlive-mcp/outlive/internal/protocol/jsonrpc"
	"github.com/outlive-mcp/outlive/internal/protocol/mcp"
)

// ErrCursor is Page's error for a cursor that it did not make, or made for a list that has changed since: the client
// has to begin again.
var ErrCursor = errors.New("not a cursor of this list as it is now")

// PageBytes is the maximum size of the entries of a page in bytes, unless a single entry is longer: clients built
// with the TypeScript SDK close the connection at a line of 10 MiB.
const PageBytes = 8 << 20

// pageFrame is an upper bound for the bytes of a page around its entries.
const pageFrame = 256

// cursorDigest is how many bytes of the list's digest a cursor contains: enough to notice a change.
const cursorDigest = 8

// cursor identifies where the next page begins.
type cursor struct {
	List   string `json:"l"`
	Offset int    `json:"o"`
	Digest string `json:"d"`
}

// Page returns a whole list result, {"tools":[…],"nextCursor":"…"}, that begins at the raw cursor (nil or null: at
// the beginning) and has at most size entries (0 or less: as many as fit into PageBytes). A cursor is valid for any
// View that shows the same entries in the same order, and with any size; otherwise the error is ErrCursor.
func (v *View) Page(l mcp.List, raw []byte, size int) ([]byte, error) {
	start, err := v.offset(l, raw)
	if err != nil {
		return nil, err
	}
	end, length := v.end(l, start, size)
	page := make([]byte, 0, length+pageFrame)
	page = append(page, `{"`...)
	page = append(page, l.Member()...)
	page = append(page, `":[`...)
	for i, s := range v.shown[l][start:end] {
		if i > 0 {
			page = append(page, ',')
		}
		page = s.append(page)
	}
	page = append(page, ']')
	if end < len(v.shown[l]) {
		page = append(page, `,"nextCursor":`...)
		page = jsonrpc.AppendQuoted(page, v.cursor(l, end))
	}
	return append(page, '}'), nil
}

// end returns where the page that begins at start ends, and how many bytes its entries have with their commas.
func (v *View) end(l mcp.List, start, size int) (end, length int) {
	for end = start; end < len(v.shown[l]) && (size <= 0 || end-start < size); end++ {
		longer := length + v.shown[l][end].length() + len(",")
		if longer > PageBytes && end > start {
			break
		}
		length = longer
	}
	return end, length
}

func (v *View) cursor(l mcp.List, offset int) string {
	text, _ := json.Marshal(cursor{List: l.Member(), Offset: offset, Digest: v.short(l)}) // texts and a number: no error
	return base64.RawURLEncoding.EncodeToString(text)
}

// offset returns where the page of a raw cursor begins.
func (v *View) offset(l mcp.List, raw []byte) (int, error) {
	if len(raw) == 0 || jsonrpc.IsNull(raw) {
		return 0, nil
	}
	quoted, ok := jsonrpc.Unquote(raw)
	text, err := base64.RawURLEncoding.DecodeString(quoted)
	var c cursor
	if !ok || err != nil || json.Unmarshal(text, &c) != nil || c.List != l.Member() || c.Digest != v.short(l) ||
		c.Offset < 1 || c.Offset >= len(v.shown[l]) {
		return 0, ErrCursor
	}
	return c.Offset, nil
}

func (v *View) short(l mcp.List) string { return hex.EncodeToString(v.digests[l][:cursorDigest]) }
