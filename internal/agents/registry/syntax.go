package registry

import (
	"go.yaml.in/yaml/v4"

	"github.com/outlive-mcp/outlive/internal/files/fileerror"
	"github.com/outlive-mcp/outlive/internal/files/tree"
)

// SizeLimit is how long a registry may be, in bytes: it is written by hand.
const SizeLimit = 1 << 20

// treeOf gives the top of the document; nil without a problem is an empty file.
func treeOf(s *fileerror.Source) (*tree.Node, []fileerror.Problem) {
	if len(s.Text) > SizeLimit {
		return nil, []fileerror.Problem{{Message: "the file is longer than 1 MiB", Hint: "a registry is written by hand"}}
	}
	root, problems := tree.YAML(s)
	switch {
	case root == nil || root.Kind == tree.Null:
		return nil, problems
	case root.Kind != tree.Object:
		return nil, append(problems, fileerror.Problem{Pos: root.Pos, Message: "a registry begins with its keys", Hint: "write version: 2, and agents: below"})
	}
	return root, problems
}

// load parses a text; a nil document without an error has nothing in it.
func load(text []byte) (*yaml.Node, error) {
	var document yaml.Node
	if err := yaml.Load(text, &document); err != nil {
		if fileerror.Empty(err) {
			return nil, nil
		}
		return nil, err
	}
	if len(document.Content) == 0 || isNull(document.Content[0]) {
		return nil, nil
	}
	return &document, nil
}

func isNull(n *yaml.Node) bool { return n.Kind == yaml.ScalarNode && n.Tag == "!!null" }

// resolve follows an alias: of an alias there is none.
func resolve(n *yaml.Node) *yaml.Node {
	if n.Kind == yaml.AliasNode && n.Alias != nil {
		return n.Alias
	}
	return n
}
