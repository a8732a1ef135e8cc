package roster

import (
	"go.yaml.in/yaml/v4"

	"github.com/outlive-mcp/outlive/internal/problem"
)

// SizeLimit is how long a registry may be, in bytes: it is written by hand.
const SizeLimit = 1 << 20

// parseYAML gives the top of the document; nil without a problem is an empty file.
func parseYAML(s *problem.Source) (*yaml.Node, []problem.Problem) {
	if len(s.Text) > SizeLimit {
		return nil, []problem.Problem{{Message: "the file is longer than 1 MiB", Hint: "a registry is written by hand"}}
	}
	document, err := load(s.Text)
	switch {
	case err != nil:
		return nil, []problem.Problem{problem.YAML(s, err)}
	case document == nil:
		return nil, nil
	}
	root := document.Content[0]
	if root.Kind != yaml.MappingNode {
		return nil, []problem.Problem{{Pos: s.Inside(problem.Pos{Line: root.Line, Column: root.Column}), Message: "a registry begins with its keys", Hint: "write version: 2, and agents: below"}}
	}
	return root, nil
}

// load parses a text; a nil document without an error has nothing in it.
func load(text []byte) (*yaml.Node, error) {
	var document yaml.Node
	if err := yaml.Load(text, &document); err != nil {
		if problem.Empty(err) {
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
