package tree

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/outlive-mcp/outlive/internal/files/fileerror"
)

// Kind is the type of a node, the same for YAML, JSON and TOML.
type Kind uint8

// The kinds.
const (
	Null Kind = iota
	Bool
	Number
	Text // also dates, which have no type of their own here
	List
	Object
)

// form is how the entries of a container are arranged.
type form uint8

const (
	leaf     form = iota // no container, or arranged in a way that is not edited
	brackets             // separated by commas
	block                // in YAML: on lines of their own
	table                // in TOML: keys and headers, possibly in several places
)

// anything is the kind of a value given as [Raw].
const anything Kind = 255

// keyForm is what a member's key is in YAML.
type keyForm uint8

const (
	ordinary keyForm = iota
	merge            // <<
	noText           // a list or a group
)

// Node is a value of a text in any format, with its key. Of a tree for reading, aliases share their members, so that a walk may
// visit a node more than once.
type Node struct {
	Key    string        // of a member
	KeyPos fileerror.Pos // of a member
	Kind   Kind
	Pos    fileerror.Pos
	// Raw is a scalar as in the file, without quotes and escapes; an alias' name. Messages quote it, and never Value.
	Raw string
	// Value is Raw, with true and false in lower case, and with references replaced by a check.
	Value string
	// Bad is a node with a reported problem: readers treat it as absent.
	Bad bool
	// Kids are the members or entries in the order of the text, of a tree for editing including duplicates.
	Kids []*Node

	key        keyForm
	alias      *Node // what it refers to
	up         *Node
	form       form
	placed     bool // the positions below are set
	property   bool // an anchor or a tag precedes the value
	from       int  // start of the entry: its key, its dash, or the value
	name       int  // start of a member's own key, which in a dotted key follows others
	sep        int  // after the colon or the equals sign
	start, end int  // the value; equal for an omitted value in YAML
	gap        int  // in brackets: start of the white space before the entry
	comma      int  // in brackets: the comma after it, or -1
	stop       int  // in a block: end of its last line
	header     *Span
	parts      []*Span // in a table: the lines that define it
}

// Span is a range of bytes of a text.
type Span struct{ Start, End int }

// Get returns the last member with this key, which is the effective one, or nil.
func (n *Node) Get(key string) *Node {
	if n == nil || n.Kind != Object {
		return nil
	}
	for _, k := range slices.Backward(n.Kids) {
		if k.Key == key {
			return k
		}
	}
	return nil
}

// At follows a path of keys; nil: it does not exist.
func (n *Node) At(path ...string) *Node {
	for _, key := range path {
		n = n.Get(key)
	}
	return n
}

// Text is the value of a member that is a text; "" for anything else.
func (n *Node) Text(key string) string {
	if v := n.Get(key); v != nil && v.Kind == Text {
		return v.Value
	}
	return ""
}

// Up is the node's container.
func (n *Node) Up() *Node { return n.up }

// Index is the node's index in its container.
func (n *Node) Index() int { return slices.Index(n.up.Kids, n) }

// Raw is the text of a node's value.
func (d *Doc) Raw(n *Node) string { return string(d.text[n.start:n.end]) }

// Spaced reports whether white space follows the opening bracket of a container, and there is no comment at its ends.
func (d *Doc) Spaced(n *Node) bool {
	if n.form != brackets || len(n.Kids) == 0 {
		return false
	}
	first, last := n.Kids[0], n.Kids[len(n.Kids)-1]
	end := last.end
	if last.comma >= 0 {
		end = last.comma + 1
	}
	lead, tail := string(d.text[n.start+1:first.from]), string(d.text[end:n.end-1])
	return lead != "" && strings.TrimSpace(lead+tail) == ""
}

// same reports whether two trees mean the same. The order of members does not matter, nor does whether an empty
// container is written.
func same(a, b *Node) bool {
	if empty(a) && empty(b) {
		return true
	}
	if a == nil || b == nil {
		return false
	}
	if a.Kind == anything || b.Kind == anything {
		return true
	}
	if a.Kind != b.Kind || (a.alias == nil) != (b.alias == nil) || len(a.Kids) != len(b.Kids) || a.Kind < List && a.Value != b.Value {
		return false
	}
	ours, theirs := a.Kids, b.Kids
	if a.Kind == Object {
		ours, theirs = byKey(ours), byKey(theirs)
	}
	return slices.EqualFunc(ours, theirs, func(x, y *Node) bool { return x.Key == y.Key && same(x, y) })
}

func empty(n *Node) bool {
	return n == nil || n.Kind != anything && n.alias == nil && len(n.Kids) == 0 && (n.Kind == Null || n.Kind >= List)
}

func byKey(kids []*Node) []*Node {
	return slices.SortedStableFunc(slices.Values(kids), func(a, b *Node) int { return strings.Compare(a.Key, b.Key) })
}

// Items are the entries of a list; nil for anything else.
func (n *Node) Items() []*Node {
	if n.Kind != List {
		return nil
	}
	return n.Kids
}

// Members are those of an object, in the order of the file; nil for anything else.
func (n *Node) Members() []*Node {
	if n.Kind != Object {
		return nil
	}
	return n.Kids
}

// Has reports whether a member is given and not null.
func (n *Node) Has(key string) bool {
	v := n.Get(key)
	return v != nil && v.Kind != Null
}

// Given reports whether one of the members has a value, valid or not.
func (n *Node) Given(keys ...string) bool { return slices.ContainsFunc(keys, n.Has) }

// Good returns the value of a member that is given and valid, or nil.
func (n *Node) Good(key string) *Node {
	if n == nil || n.Bad {
		return nil
	}
	if v := n.Get(key); v != nil && !v.Bad && v.Kind != Null {
		return v
	}
	return nil
}

// TextOf returns the value of a member, or "" if it is missing or bad.
func (n *Node) TextOf(key string) string {
	if v := n.Good(key); v != nil {
		return v.Value
	}
	return ""
}

// IsTrue reports whether a member is true.
func (n *Node) IsTrue(key string) bool { return n.TextOf(key) == "true" }

// CountOf returns the value of a number that was checked, or 0.
func (n *Node) CountOf(key string) int {
	count, _ := strconv.Atoi(n.TextOf(key))
	return max(0, count)
}

// Texts returns the valid entries of a list, or the one text that is given instead of a list.
func (n *Node) Texts() []string {
	if n == nil || n.Bad {
		return nil
	}
	if n.Kind != List {
		return []string{n.Value}
	}
	var out []string
	for _, item := range n.Items() {
		if !item.Bad {
			out = append(out, item.Value)
		}
	}
	return out
}

// Dict returns the valid entries of an object, or nil for an empty one.
func (n *Node) Dict() map[string]string {
	if n == nil || n.Bad || len(n.Members()) == 0 {
		return nil
	}
	out := map[string]string{}
	for _, k := range n.Kids {
		if !k.Bad {
			out[k.Key] = k.Value
		}
	}
	return out
}

// Is describes a node, for a message about a wrong type.
func (n *Node) Is() string {
	switch n.Kind {
	case Null:
		return "empty"
	case Bool:
		return n.Raw
	case Number:
		return "the number " + fileerror.Shortened(n.Raw)
	case Text:
		return fmt.Sprintf("the text %q", fileerror.Shortened(n.Raw))
	case List:
		return "a list"
	default:
		return "a group of keys"
	}
}
