package tree

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/outlive-mcp/outlive/internal/files/edit"
	"github.com/outlive-mcp/outlive/internal/files/fileerror"
)

// Kind is the type of a node, the same for YAML, JSON and TOML.
type Kind = edit.Kind

// The kinds.
const (
	Null   = edit.Null
	Bool   = edit.Bool
	Number = edit.Number
	Text   = edit.Text // also dates, which have no type of their own here
	List   = edit.List
	Object = edit.Object
)

// Node is a value of a file in any format. YAML aliases share nodes, so that a walk may visit a node more than once.
type Node struct {
	Kind Kind
	Pos  fileerror.Pos
	// Raw is a scalar as in the file, without quotes and escapes. Messages quote it, and never Value.
	Raw string
	// Value is Raw, with true and false in lower case, and with references replaced by the walk.
	Value string
	// Bad is a node with a reported problem: readers treat it as absent.
	Bad    bool
	Items  []*Node        // of a list
	Fields []Field        // of an object, in the order of the file
	index  map[string]int // index into Fields, once there are many
}

// Field is a member of an object.
type Field struct {
	Key   string
	Pos   fileerror.Pos // of the key
	Value *Node
}

// Get returns the value of a member, or nil.
func (n *Node) Get(key string) *Node {
	if f := n.Field(key); f != nil {
		return f.Value
	}
	return nil
}

// fewFields are searched faster than a map is built.
const fewFields = 16

// Field returns the member with this key, or nil.
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
	for i := len(n.index); i < len(n.Fields); i++ { // keys are unique: both get the same length
		n.index[n.Fields[i].Key] = i
	}
	if i, ok := n.index[key]; ok {
		return &n.Fields[i]
	}
	return nil
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
	for _, item := range n.Items {
		if !item.Bad {
			out = append(out, item.Value)
		}
	}
	return out
}

// Dict returns the valid entries of an object, or nil for an empty one.
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
