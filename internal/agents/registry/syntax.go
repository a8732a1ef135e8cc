package registry

import (
	"github.com/outlive-mcp/outlive/internal/files/fileerror"
	"github.com/outlive-mcp/outlive/internal/files/tree"
)

// SizeLimit is the maximum size of a registry in bytes. Registries are written by hand.
const SizeLimit = 1 << 20

// treeOf parses the document. A nil node without problems means an empty file.
func treeOf(s *fileerror.Source) (*tree.Node, []fileerror.Problem) {
	if len(s.Text) > SizeLimit {
		return nil, []fileerror.Problem{{Message: "the file is longer than 1 MiB", Hint: "a registry is written by hand"}}
	}
	root, problems := tree.Read(tree.YAML, s)
	switch {
	case root == nil || root.Kind == tree.Null:
		return nil, problems
	case root.Kind != tree.Object:
		return nil, append(problems, fileerror.Problem{Pos: root.Pos, Message: "a registry begins with its keys", Hint: "write version: 2, and agents: below"})
	}
	return root, problems
}
