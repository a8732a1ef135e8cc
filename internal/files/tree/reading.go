package tree

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/outlive-mcp/outlive/internal/files/fileerror"
)

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
