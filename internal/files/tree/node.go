package tree

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/outlive-mcp/outlive/internal/files/fileerror"
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

// Node is a value of a file, whatever it was written in. YAML aliases share nodes, so that a node may be met more than once.
type Node struct {
	Kind Kind
	Pos  fileerror.Pos
	// Raw is a scalar as the file has it, without quotes and escapes. Messages quote it, and nothing else.
	Raw string
	// Value is Raw, with true and false in lower case, and with every reference filled in by the walker.
	Value string
	// Bad is a node with a reported problem: readers treat it as absent.
	Bad    bool
	Items  []*Node        // of a list
	Fields []Field        // of an object, in the order of the file
	index  map[string]int // of Fields, once there are many
}

// Field is a member of an object.
type Field struct {
	Key   string
	Pos   fileerror.Pos // of the key
	Value *Node
}

func scalar(kind Kind, raw string, pos fileerror.Pos) *Node {
	return &Node{Kind: kind, Raw: raw, Value: raw, Pos: pos}
}

// Get finds a member, or gives nil.
func (n *Node) Get(key string) *Node {
	if f := n.Field(key); f != nil {
		return f.Value
	}
	return nil
}

// fewFields are looked through faster than a map is made.
const fewFields = 16

// Field finds a member with its key, or gives nil.
func (n *Node) Field(key string) *Field {
	if n == nil {
		return nil
	}
	if len(n.Fields) <= fewFields {
		for i := range n.Fields {
			if n.Fields[i].Key == key {
				return &n.Fields[i]
			}
		}
		return nil
	}
	if n.index == nil {
		n.index = map[string]int{}
	}
	for i := len(n.index); i < len(n.Fields); i++ { // keys are unique, so that both have the same length
		n.index[n.Fields[i].Key] = i
	}
	if i, ok := n.index[key]; ok {
		return &n.Fields[i]
	}
	return nil
}

// Has reports whether a member was given that is not null.
func (n *Node) Has(key string) bool {
	v := n.Get(key)
	return v != nil && v.Kind != Null
}

// Given reports whether one of the members has a value, right or wrong.
func (n *Node) Given(keys ...string) bool { return slices.ContainsFunc(keys, n.Has) }

// Good gives a member that was given and is right, or nil.
func (n *Node) Good(key string) *Node {
	if n == nil || n.Bad {
		return nil
	}
	if v := n.Get(key); v != nil && !v.Bad && v.Kind != Null {
		return v
	}
	return nil
}

// TextOf gives the value of a member, or "" for one that is missing or bad.
func (n *Node) TextOf(key string) string {
	if v := n.Good(key); v != nil {
		return v.Value
	}
	return ""
}

// IsTrue reports a member that is true.
func (n *Node) IsTrue(key string) bool { return n.TextOf(key) == "true" }

// CountOf gives a member that is a number and was checked, or 0.
func (n *Node) CountOf(key string) int {
	count, _ := strconv.Atoi(n.TextOf(key))
	return max(0, count)
}

// Texts gives the good entries of a list, or the one text that stands for a list.
func (n *Node) Texts() []string {
	if n == nil || n.Bad {
		return nil
	}
	if n.Kind != List {
		return []string{n.Value}
	}
	var out []string
	for _, item := range n.Items {
		if !item.Bad {
			out = append(out, item.Value)
		}
	}
	return out
}

// Dict gives the good entries of an object, or nil for an empty one.
func (n *Node) Dict() map[string]string {
	if n == nil || n.Bad || len(n.Fields) == 0 {
		return nil
	}
	out := map[string]string{}
	for _, f := range n.Fields {
		if !f.Value.Bad {
			out[f.Key] = f.Value.Value
		}
	}
	return out
}

// Is describes a node to somebody who wrote something else than was wanted.
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
