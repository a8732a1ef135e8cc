package edit

import (
	"slices"
	"strings"
)

// Kind is what a node is, in words that YAML, JSON and TOML share.
type Kind uint8

// The kinds.
const (
	Null Kind = iota
	Bool
	Number
	Text // also dates, which nothing here is
	List
	Object
)

// form is how the entries of a container stand together.
type form uint8

const (
	leaf     form = iota // none, or in a way that is not edited
	brackets             // with commas between
	block                // of YAML: lines of their own
	table                // of TOML: keys and headers, also far from each other
)

// anything is the kind of a value that was given as [Raw].
const anything Kind = 255

// Node is a value in a text.
type Node struct {
	Key   string // of a member
	Kind  Kind
	Value string  // of a scalar, without quotes and escapes; an alias' name
	Alias bool    // it stands for something elsewhere
	Kids  []*Node // members or entries in the order of the text, also those that are given twice

	up         *Node
	form       form
	placed     bool // the places below are known
	property   bool // an anchor or a tag stands before the value
	from       int  // where the entry begins: its key, its dash, or the value
	name       int  // where a member's own key begins, behind what a dotted key has before it
	sep        int  // behind the colon or the equals sign
	start, end int  // the value; the same for one of YAML that is left out
	gap        int  // in brackets: where the white space directly before the entry begins
	comma      int  // in brackets: the comma behind it, or -1
	stop       int  // in a block: behind its last line
	header     *Span
	parts      []*Span // in a table: the lines that say it
}

// Span is a range of bytes of a text.
type Span struct{ Start, End int }

// Get finds the last member with this key, which is the one that counts, or gives nil.
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

// At follows a path of keys, or gives nil.
func (n *Node) At(path ...string) *Node {
	for _, key := range path {
		n = n.Get(key)
	}
	return n
}

// Text is the value of a member that is a text; "" for everything else.
func (n *Node) Text(key string) string {
	if v := n.Get(key); v != nil && v.Kind == Text {
		return v.Value
	}
	return ""
}

// KeyStart is the offset of a member's own key.
func (n *Node) KeyStart() int { return n.name }

// Start is the offset of the value.
func (n *Node) Start() int { return n.start }

// Up is what the node stands in.
func (n *Node) Up() *Node { return n.up }

// Index is the place of a node among those it stands with.
func (n *Node) Index() int { return slices.Index(n.up.Kids, n) }

// Raw is a node's value as it is written.
func (d *Doc) Raw(n *Node) string { return string(d.text[n.start:n.end]) }

// Parts are the parts of the text that a node's entry has: one in brackets, also more in a table of TOML. Nil: it
// has no place of its own.
func (d *Doc) Parts(n *Node) (parts []Span) {
	switch {
	case n.up != nil && n.up.form == brackets && n.placed:
		parts = []Span{{n.from, n.end}}
	default:
		for _, p := range n.parts {
			parts = append(parts, *p)
		}
	}
	for i := range parts {
		parts[i].Start, parts[i].End = parts[i].Start+len(d.mark), parts[i].End+len(d.mark)
	}
	return parts
}

// Listed reports whether a node stands in brackets, between commas.
func (n *Node) Listed() bool { return n.up != nil && n.up.form == brackets }

// Part is what stands in a part of the text.
func (d *Doc) Part(p Span) string { return string(d.text[p.Start-len(d.mark) : p.End-len(d.mark)]) }

// Whole reports whether a node stands in one piece, or in tables of its own: not in TOML's keys that name what they belong to.
func (n *Node) Whole() bool { return n.header != nil || n.placed && n.name == n.from }

// Like writes a member as it would stand in the place of a node.
func (d *Doc) Like(n *Node, key string, v any) string {
	if n.Listed() {
		_, st := d.lead(n.up.start+1, n.from)
		return d.pair(key) + d.render(v, st)
	}
	return d.pair(key) + d.render(v, style{}) + d.Newline()
}

// Lead is the white space before a node.
func (d *Doc) Lead(n *Node) string { return string(d.text[d.trimmed(n.up.start+1, n.from):n.from]) }

// Spaced reports whether white space stands behind the opening bracket of a container, and nobody's comment at its ends.
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

// same reports whether two trees say the same. The order of members says nothing, and neither does whether what is empty says so.
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
	if a.Kind != b.Kind || a.Alias != b.Alias || len(a.Kids) != len(b.Kids) || a.Kind < List && a.Value != b.Value {
		return false
	}
	ours, theirs := a.Kids, b.Kids
	if a.Kind == Object {
		ours, theirs = byKey(ours), byKey(theirs)
	}
	return slices.EqualFunc(ours, theirs, func(x, y *Node) bool { return x.Key == y.Key && same(x, y) })
}

func empty(n *Node) bool {
	return n == nil || n.Kind != anything && !n.Alias && len(n.Kids) == 0 && (n.Kind == Null || n.Kind >= List)
}

func byKey(kids []*Node) []*Node {
	return slices.SortedStableFunc(slices.Values(kids), func(a, b *Node) int { return strings.Compare(a.Key, b.Key) })
}
