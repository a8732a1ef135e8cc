package tree

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v4"

	"github.com/outlive-mcp/outlive/internal/files/edit"
	"github.com/outlive-mcp/outlive/internal/files/fileerror"
)

// YAML parses a YAML document. A nil tree without a problem means an empty file.
func YAML(s *fileerror.Source) (*Node, []fileerror.Problem) {
	var document yaml.Node
	if err := yaml.Load(s.Text, &document); err != nil {
		if fileerror.Empty(err) {
			return nil, nil
		}
		return nil, []fileerror.Problem{fileerror.YAML(s, err)}
	}
	if len(document.Content) == 0 {
		return nil, nil
	}
	y := yamlTree{source: s, done: map[*yaml.Node]*Node{}}
	root := y.node(document.Content[0], 0)
	return root, y.problems
}

// yamlTree converts yaml.Nodes. An anchored node becomes one node, however often it is used, so that a file full of
// aliases does not grow.
type yamlTree struct {
	source   *fileerror.Source
	done     map[*yaml.Node]*Node
	merged   int // number of members added by <<
	problems []fileerror.Problem
}

// mostMerged is how many members << may add in a file in total: groups that merge groups would multiply.
const mostMerged = 1 << 18

func (y *yamlTree) problem(at *yaml.Node, message, hint string) *Node {
	p := y.source.Inside(fileerror.Pos{Line: at.Line, Column: at.Column})
	y.problems = append(y.problems, fileerror.Problem{Pos: p, Message: message, Hint: hint})
	return &Node{Kind: Null, Pos: p, Bad: true}
}

func (y *yamlTree) node(from *yaml.Node, depth int) *Node {
	if n, known := y.done[from]; known {
		return n
	}
	if depth > edit.Deepest {
		return y.problem(from, "nested too deeply", "")
	}
	y.done[from] = nil // an alias to it within itself would be endless
	n := y.fresh(from, depth)
	y.done[from] = n
	return n
}

func (y *yamlTree) fresh(from *yaml.Node, depth int) *Node {
	n := &Node{Pos: y.source.Inside(fileerror.Pos{Line: from.Line, Column: from.Column})}
	switch from.Kind {
	case yaml.AliasNode:
		if from.Alias == nil {
			return y.problem(from, "an alias of nothing", "")
		}
		if n, begun := y.done[from.Alias]; begun && n == nil {
			return y.problem(from, "this contains itself", "an alias may not stand inside what it is an alias of")
		}
		return y.node(from.Alias, depth+1)
	case yaml.SequenceNode:
		n.Kind = List
		for _, c := range from.Content {
			n.Items = append(n.Items, y.node(c, depth+1))
		}
	case yaml.MappingNode:
		n.Kind = Object
		y.members(n, from, depth)
	case yaml.ScalarNode:
		n.Kind, n.Raw, n.Value = edit.KindOfTag(from.Tag), from.Value, from.Value
		if n.Kind == Bool {
			n.Value = strings.ToLower(from.Value) // True, TRUE
		}
		if !utf8.ValidString(from.Value) { // as "\xff" in double quotes
			return y.problem(from, "this text is not UTF-8", `write characters as they are, or as \u…`)
		}
	}
	return n
}

// members converts a mapping. What << adds comes after the mapping's own members, and never replaces them.
func (y *yamlTree) members(n *Node, from *yaml.Node, depth int) {
	var merged []*Node
	for i := 0; i+1 < len(from.Content); i += 2 {
		k, v := from.Content[i], from.Content[i+1]
		if k.Kind == yaml.AliasNode && k.Alias != nil {
			k = k.Alias
		}
		switch {
		case k.Kind != yaml.ScalarNode:
			y.problem(k, "a key has to be a text", "")
		case k.Tag == "!!merge":
			value := y.node(v, depth+1)
			switch value.Kind {
			case List:
				merged = append(merged, value.Items...)
			default:
				merged = append(merged, value)
			}
		default:
			at := y.source.Inside(fileerror.Pos{Line: from.Content[i].Line, Column: from.Content[i].Column})
			y.problems = n.add(k.Value, at, y.node(v, depth+1), y.problems)
		}
	}
	for _, m := range merged {
		if m.Kind != Object {
			if !m.Bad {
				y.problems = append(y.problems, fileerror.Problem{Pos: m.Pos, Message: "<< wants a group of keys, and this is " + m.Is(), Hint: "name the anchor of one: <<: *name"})
			}
			continue
		}
		if before := y.merged; before > mostMerged {
			return
		} else if y.merged += len(m.Fields); y.merged > mostMerged {
			y.problem(from, "<< is used too often", "")
			return
		}
		for _, f := range m.Fields {
			if n.Field(f.Key) == nil {
				n.Fields = append(n.Fields, f)
			}
		}
	}
}

// add appends a member, or reports a duplicate key: the first one is kept.
func (n *Node) add(key string, at fileerror.Pos, value *Node, problems []fileerror.Problem) []fileerror.Problem {
	if first := n.Field(key); first != nil {
		return append(problems, fileerror.Problem{Pos: at, Message: fmt.Sprintf("%q is given twice", fileerror.Shortened(key)), Hint: fmt.Sprintf("it is already in line %d", first.Pos.Line)})
	}
	n.Fields = append(n.Fields, Field{key, at, value})
	return problems
}
