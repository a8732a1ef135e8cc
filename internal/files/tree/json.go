package tree

import (
	"github.com/outlive-mcp/outlive/internal/files/edit"
	"github.com/outlive-mcp/outlive/internal/files/fileerror"
)

// JSON parses a JSON document with comments and trailing commas, as VS Code, Zed and Cursor write it.
func JSON(s *fileerror.Source) (*Node, []fileerror.Problem) { return written(edit.JSON, s) }

// TOML parses a TOML document.
func TOML(s *fileerror.Source) (*Node, []fileerror.Problem) { return written(edit.TOML, s) }

// written parses a text in a format without aliases.
func written(format edit.Format, s *fileerror.Source) (*Node, []fileerror.Problem) {
	root, problems := edit.Read(format, s)
	if root == nil {
		return nil, problems
	}
	var node func(from *edit.Node) *Node
	node = func(from *edit.Node) *Node {
		n := &Node{Kind: from.Kind, Raw: from.Value, Value: from.Value, Pos: s.At(from.Start())}
		for _, k := range from.Kids {
			if from.Kind == List {
				n.Items = append(n.Items, node(k))
				continue
			}
			at := s.At(k.KeyStart())
			problems = n.add(k.Key, at, node(k), problems)
		}
		return n
	}
	return node(root), problems
}
