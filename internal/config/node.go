package config

import (
	"fmt"

	"github.com/outlive-mcp/outlive/internal/problem"
)

// nodeKind is what a node is, in words that YAML, JSON and TOML share.
type nodeKind uint8

const (
	null nodeKind = iota
	boolean
	number
	text // also dates, which nothing here is
	list
	object
)

// node is a value of a file, whatever it was written in. YAML aliases share nodes, so that a node may be met more than once.
type node struct {
	kind nodeKind
	pos  problem.Pos
	// raw is a scalar as the file has it, without quotes and escapes. Messages quote it, and nothing else.
	raw string
	// value is raw with every ${…} filled in, once the walk was there.
	value  string
	filled bool
	// bad is a node about which a problem was told: whoever reads it takes it as not given.
	bad    bool
	items  []*node        // of a list
	fields []field        // of an object, in the order of the file
	index  map[string]int // of fields, once there are many
}

// field is a member of an object.
type field struct {
	key   string
	pos   problem.Pos // of the key
	value *node
}

func scalar(kind nodeKind, raw string, pos problem.Pos) *node {
	return &node{kind: kind, raw: raw, value: raw, pos: pos}
}

// get finds a member, or gives nil.
func (n *node) get(key string) *node {
	if f := n.field(key); f != nil {
		return f.value
	}
	return nil
}

// fewFields are looked through faster than a map is made.
const fewFields = 16

func (n *node) field(key string) *field {
	if n == nil {
		return nil
	}
	if len(n.fields) <= fewFields {
		for i := range n.fields {
			if n.fields[i].key == key {
				return &n.fields[i]
			}
		}
		return nil
	}
	if n.index == nil {
		n.index = map[string]int{}
	}
	for i := len(n.index); i < len(n.fields); i++ { // keys are unique, so that both have the same length
		n.index[n.fields[i].key] = i
	}
	if i, ok := n.index[key]; ok {
		return &n.fields[i]
	}
	return nil
}

// has reports whether a member was given that is not null.
func (n *node) has(key string) bool {
	v := n.get(key)
	return v != nil && v.kind != null
}

// is describes a node to somebody who wrote something else than was wanted.
func (n *node) is() string {
	switch n.kind {
	case null:
		return "empty"
	case boolean:
		return n.raw
	case number:
		return "the number " + n.raw
	case text:
		return fmt.Sprintf("the text %q", problem.Shortened(n.raw))
	case list:
		return "a list"
	default:
		return "a group of keys"
	}
}

// deepest is how deep a file may be nested: ours need six levels, and parsers that call themselves need a bound.
const deepest = 100

// tooDeep gives the offset at which JSON or TOML is nested deeper than that, or -1. Strings are skipped, comments are
// not: brackets in them that nobody closes have to be a hundred to matter.
func tooDeep(data []byte) int {
	depth, quoted := 0, false
	for i := 0; i < len(data); i++ {
		switch c := data[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case c == '\n':
			quoted = false
		case quoted:
		case c == '[' || c == '{':
			if depth++; depth > deepest {
				return i
			}
		case c == ']' || c == '}':
			depth = max(0, depth-1)
		}
	}
	return -1
}
