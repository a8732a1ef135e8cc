package config

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v4"

	"github.com/outlive-mcp/outlive/internal/problem"
)

// parseYAML makes the tree of a YAML document. A nil tree without a problem is an empty file.
func parseYAML(s *problem.Source) (*node, []problem.Problem) {
	var document yaml.Node
	if err := yaml.Load(s.Text, &document); err != nil {
		if problem.Empty(err) {
			return nil, nil
		}
		return nil, []problem.Problem{problem.YAML(s, err)}
	}
	if len(document.Content) == 0 {
		return nil, nil
	}
	y := yamlTree{source: s, done: map[*yaml.Node]*node{}}
	root := y.node(document.Content[0], 0)
	return root, y.problems
}

// yamlTree turns yaml.Nodes into ours. An anchored node becomes one node however often it is used, so a file full of
// aliases stays as small as it is written.
type yamlTree struct {
	source   *problem.Source
	done     map[*yaml.Node]*node
	problems []problem.Problem
}

func (y *yamlTree) problem(at *yaml.Node, message, hint string) *node {
	p := y.source.Inside(problem.Pos{Line: at.Line, Column: at.Column})
	y.problems = append(y.problems, problem.Problem{Pos: p, Message: message, Hint: hint})
	return &node{kind: null, pos: p, bad: true}
}

func (y *yamlTree) node(from *yaml.Node, depth int) *node {
	if n, known := y.done[from]; known {
		return n
	}
	if depth > deepest {
		return y.problem(from, "nested too deeply", "")
	}
	y.done[from] = nil // begun: an alias of it in here would never end
	n := y.fresh(from, depth)
	y.done[from] = n
	return n
}

func (y *yamlTree) fresh(from *yaml.Node, depth int) *node {
	n := &node{pos: y.source.Inside(problem.Pos{Line: from.Line, Column: from.Column})}
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
		n.kind = list
		for _, c := range from.Content {
			n.items = append(n.items, y.node(c, depth+1))
		}
	case yaml.MappingNode:
		n.kind = object
		y.members(n, from, depth)
	case yaml.ScalarNode:
		n.kind, n.raw, n.value = yamlScalar(from.Tag), from.Value, from.Value
		if n.kind == boolean {
			n.value = strings.ToLower(from.Value) // True, TRUE
		}
		if !utf8.ValidString(from.Value) { // "\xff" in double quotes
			return y.problem(from, "this text is no UTF-8", `write characters as they are, or as \u…`)
		}
	}
	return n
}

func yamlScalar(tag string) nodeKind {
	switch tag {
	case "!!null":
		return null
	case "!!bool":
		return boolean
	case "!!int", "!!float":
		return number
	}
	return text
}

// members fills in a mapping. What << brings stands behind what the mapping has itself, and never replaces it.
func (y *yamlTree) members(n *node, from *yaml.Node, depth int) {
	var merged []*node
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
			switch value.kind {
			case list:
				merged = append(merged, value.items...)
			default:
				merged = append(merged, value)
			}
		default:
			at := y.source.Inside(problem.Pos{Line: from.Content[i].Line, Column: from.Content[i].Column})
			y.problems = n.add(k.Value, at, y.node(v, depth+1), y.problems)
		}
	}
	for _, m := range merged {
		if m.kind != object {
			if !m.bad {
				y.problems = append(y.problems, problem.Problem{Pos: m.pos, Message: "<< wants a group of keys, and this is " + m.is(), Hint: "name the anchor of one: <<: *name"})
			}
			continue
		}
		for _, f := range m.fields {
			if n.field(f.key) == nil {
				n.fields = append(n.fields, f)
			}
		}
	}
}

// add appends a member, or tells that it is there already: the first one stays.
func (n *node) add(key string, at problem.Pos, value *node, problems []problem.Problem) []problem.Problem {
	if first := n.field(key); first != nil {
		return append(problems, problem.Problem{Pos: at, Message: fmt.Sprintf("%q is given twice", problem.Shortened(key)), Hint: fmt.Sprintf("it is in line %d already", first.pos.Line)})
	}
	n.fields = append(n.fields, field{key, at, value})
	return problems
}
