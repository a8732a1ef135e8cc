package mcp

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"maps"

	"github.com/outlive-mcp/outlive/internal/protocol/jsonrpc"
)

// List is one of the four lists a server shows its client.
type List uint8

// The lists, in the order they are compared after a restart.
const (
	Tools List = iota
	Prompts
	Resources
	Templates
	Lists // how many there are
)

var lists = [Lists]struct {
	name, member, key, capability string
	method, changed               Method
}{
	Tools:     {"tools", "tools", "name", "tools", ToolsList, NoteToolsChanged},
	Prompts:   {"prompts", "prompts", "name", "prompts", PromptsList, NotePromptsChanged},
	Resources: {"resources", "resources", "uri", "resources", ResourcesList, NoteResourcesChanged},
	Templates: {"resource templates", "resourceTemplates", "uriTemplate", "resources", TemplatesList, NoteResourcesChanged},
}

// String names the list for people.
func (l List) String() string { return lists[l].name }

// Member is the name of the array in a list result.
func (l List) Member() string { return lists[l].member }

// Key is the member of an entry by which it is asked for.
func (l List) Key() string { return lists[l].key }

// Capability is the member of a server's capabilities that the list belongs to.
func (l List) Capability() string { return lists[l].capability }

// filter is the member of a filter of subscriptions/listen that asks for changes of the list.
func (l List) filter() string { return lists[l].capability + "ListChanged" }

// In reports whether a raw filter of subscriptions/listen asks for changes of the list.
func (l List) In(filter []byte) bool {
	return string(jsonrpc.Find(filter, l.filter()).Of(filter)) == "true"
}

// Method is the request that reads the list.
func (l List) Method() Method { return lists[l].method }

// Changed is the notification that says it is another one now.
func (l List) Changed() Method { return lists[l].changed }

// Announced are the lists with a notification of their own. Templates are announced with the resources.
var Announced = []List{Tools, Prompts, Resources}

// ListOf returns which list a request reads.
func ListOf(m Method) (List, bool) {
	for l := range Lists {
		if lists[l].method == m {
			return l, true
		}
	}
	return 0, false
}

// Item is what is remembered of one entry of a list.
type Item struct {
	Digest [sha256.Size]byte // of the entry without _meta, member order ignored
	// ReadOnly and Idempotent are a tool's annotations with the protocol's defaults applied; Idempotent is set for
	// read-only tools too.
	ReadOnly, Idempotent bool
}

// Catalog is a list as it stands: entries by name (by URI for resources).
type Catalog map[string]Item

// Equal reports whether both show a client the same entries, in whatever order.
func (c Catalog) Equal(other Catalog) bool {
	return maps.EqualFunc(c, other, func(a, b Item) bool { return a.Digest == b.Digest })
}

// EntryDigest is the Digest of one raw entry of a list.
func EntryDigest(raw []byte) [sha256.Size]byte { return newItem(raw).Digest }

// canonicalDepth is how deep an entry may be nested to be put into its canonical form, which costs more than proportionally
// with the depth. One that is deeper is compared as it is written.
const canonicalDepth = 100

func newItem(raw []byte) Item {
	var item Item
	var v map[string]any
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	if !jsonrpc.Within(raw, canonicalDepth) || dec.Decode(&v) != nil {
		hints := jsonrpc.Find(raw, "annotations").Of(raw)
		item.Digest = sha256.Sum256(raw)
		item.setHints(isTrue(hints, "readOnlyHint"), isTrue(hints, "idempotentHint"))
		return item
	}
	delete(v, "_meta")
	canonical, err := json.Marshal(v) // sorts the members
	if err != nil {
		canonical = raw
	}
	item.Digest = sha256.Sum256(canonical)
	hints, _ := v["annotations"].(map[string]any)
	item.setHints(hints["readOnlyHint"] == true, hints["idempotentHint"] == true)
	return item
}

func (i *Item) setHints(readOnly, idempotent bool) {
	i.ReadOnly, i.Idempotent = readOnly, readOnly || idempotent
}

// isTrue reports whether a raw object's member is true.
func isTrue(object []byte, member string) bool {
	return string(jsonrpc.Find(object, member).Of(object)) == "true"
}

// Covers reports whether a raw filter of subscriptions/listen that was acknowledged grants everything that an earlier one has.
func Covers(acked, earlier []byte) bool {
	for key, value := range jsonrpc.Members(earlier) {
		name, _ := jsonrpc.Unquote(key.Of(earlier))
		had := value.Of(earlier)
		has := jsonrpc.Find(acked, name).Of(acked)
		switch {
		case jsonrpc.IsArray(had):
			if !coversAll(has, had) {
				return false
			}
		case string(had) == "true" && string(has) != "true":
			return false
		}
	}
	return true
}

func coversAll(has, had []byte) bool {
	granted := map[string]bool{}
	for at := range jsonrpc.Elements(has) {
		uri, _ := jsonrpc.Unquote(at.Of(has))
		granted[uri] = true
	}
	for at := range jsonrpc.Elements(had) {
		if uri, _ := jsonrpc.Unquote(at.Of(had)); !granted[uri] {
			return false
		}
	}
	return true
}
