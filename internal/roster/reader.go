package roster

import (
	"fmt"
	"slices"

	"go.yaml.in/yaml/v4"

	"github.com/outlive-mcp/outlive/internal/problem"
)

// reader walks a document and fills in a roster.
type reader struct {
	source             *problem.Source
	home               string
	problems, warnings []problem.Problem
	mentions           []value // of channels
	merges             int
	roster             *Roster
}

// value is a node and what it is called in messages.
type value struct {
	*yaml.Node
	label string
}

func (r *reader) at(n *yaml.Node) problem.Pos {
	return r.source.Inside(problem.Pos{Line: n.Line, Column: n.Column})
}

func (r *reader) wrong(n *yaml.Node, hint, format string, args ...any) {
	r.problems = append(r.problems, problem.Problem{Pos: r.at(n), Message: fmt.Sprintf(format, args...), Hint: hint})
}

func (r *reader) odd(n *yaml.Node, hint, format string, args ...any) {
	r.warnings = append(r.warnings, problem.Problem{Pos: r.at(n), Message: fmt.Sprintf(format, args...), Hint: hint})
}

// field is a member of a mapping.
type field struct {
	name  string
	key   *yaml.Node
	value *yaml.Node // never an alias
}

// mostMerges is how often << may be followed in one reading: aliases of aliases would multiply without end.
const mostMerges = 1000

// fields are a mapping's members. What << brings stands behind what the mapping has itself, and never replaces it.
func (r *reader) fields(n *yaml.Node) []field {
	var list, merged []field
	known := map[string]bool{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, v := resolve(n.Content[i]), resolve(n.Content[i+1])
		switch {
		case key.Kind != yaml.ScalarNode:
			r.wrong(n.Content[i], "", "a key has to be a text")
		case key.Tag == "!!merge":
			merged = append(merged, r.merged(n.Content[i+1], v)...)
		case known[key.Value]:
			r.wrong(n.Content[i], "keep one of them", "%q is given twice", problem.Shortened(key.Value))
		default:
			known[key.Value] = true
			list = append(list, field{key.Value, n.Content[i], v})
		}
	}
	for _, m := range merged {
		if !known[m.name] {
			known[m.name] = true
			list = append(list, m)
		}
	}
	return list
}

func has(list []field, name string) bool {
	return slices.ContainsFunc(list, func(f field) bool { return f.name == name })
}

func (r *reader) merged(at, v *yaml.Node) []field {
	if r.merges++; r.merges > mostMerges {
		if r.merges == mostMerges+1 {
			r.wrong(at, "", "<< is nested too deeply, or used too often")
		}
		return nil
	}
	switch v.Kind {
	case yaml.MappingNode:
		return r.fields(v)
	case yaml.SequenceNode:
		var list []field
		for _, item := range v.Content {
			list = append(list, r.merged(item, resolve(item))...)
		}
		return list
	}
	r.wrong(at, "name the anchor of one: <<: *name", "<< wants a group of keys, and this is %s", is(v))
	return nil
}

// is describes a value to somebody who wrote something else than was wanted.
func is(n *yaml.Node) string {
	switch {
	case isNull(n):
		return "empty"
	case n.Kind == yaml.SequenceNode:
		return "a list"
	case n.Kind == yaml.MappingNode:
		return "a group of keys"
	case n.Tag == "!!bool":
		return n.Value
	case n.Tag == "!!int", n.Tag == "!!float":
		return "the number " + problem.Shortened(n.Value)
	}
	return fmt.Sprintf("the text %q", problem.Shortened(n.Value))
}
