package piv

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/outlive-mcp/outlive/internal/files/fileerror"
	"github.com/outlive-mcp/outlive/internal/files/tree"
)

// parse returns the mapping of a document; nil for an empty one.
func parse(text []byte) (*tree.Node, error) {
	if len(text) > SizeLimit {
		return nil, fmt.Errorf("%w: it has %d bytes, more than %d", ErrBroken, len(text), SizeLimit)
	}
	s := fileerror.NewSource("it", text)
	root, problems := tree.Read(tree.YAML, s)
	switch err := s.Problems(problems); {
	case err != nil:
		return nil, fmt.Errorf("%w: %w", ErrBroken, err)
	case root == nil || root.Kind == tree.Null:
		return nil, nil
	case root.Kind != tree.Object:
		return nil, fmt.Errorf("%w: line %d: it must be a mapping", ErrBroken, root.Pos.Line)
	}
	return root, nil
}

// number is a member that is a whole number; absent for null and for nothing.
func number(n *tree.Node, key string, absent int) (int, error) {
	v := n.Good(key)
	if v == nil {
		return absent, nil
	}
	i, err := strconv.Atoi(v.Value)
	if err != nil {
		return absent, fmt.Errorf("line %d: %s must be a whole number", v.Pos.Line, key)
	}
	return i, nil
}

func yes(n *tree.Node, key string) bool { return strings.EqualFold(n.TextOf(key), "true") }

// items are the mappings of a member that is a list.
func items(n *tree.Node, key string) (list []*tree.Node) {
	if v := n.Good(key); v != nil {
		for _, c := range v.Items() {
			if c.Kind == tree.Object {
				list = append(list, c)
			}
		}
	}
	return list
}
