package config

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v4"
)

// parseYAML makes the tree of a YAML document. A nil tree without a problem is an empty file.
func parseYAML(s *source) (*node, []Problem) {
	var document yaml.Node
	if err := yaml.Load(s.text, &document); err != nil {
		p := yamlProblem(s, err)
		if p == nil {
			return nil, nil
		}
		return nil, []Problem{*p}
	}
	if len(document.Content) == 0 {
		return nil, nil
	}
	y := yamlTree{source: s, done: map[*yaml.Node]*node{}}
	root := y.node(document.Content[0], 0)
	return root, y.problems
}

// yamlProblem says in our words what the parser did not like, or nil for an empty file.
func yamlProblem(s *source, err error) *Problem {
	var le *yaml.LoadError
	if !errors.As(err, &le) {
		return &Problem{Pos{1, 1}, "this is no YAML", err.Error()}
	}
	message := strings.TrimPrefix(le.Message, "yaml: ")
	switch {
	case strings.Contains(message, "no documents in stream"):
		return nil
	case strings.Contains(message, "multiple"):
		return &Problem{secondDocument(s), "a second document begins here", "keep everything in one, without ---"}
	case strings.Contains(message, "control characters"):
		at := strings.IndexFunc(string(s.text), func(r rune) bool {
			return r < ' ' && r != '\t' && r != '\n' && r != '\r' || r == 0x7f
		})
		return &Problem{s.at(at), "a control character", "remove it, or write it as an escape in double quotes"}
	}
	pos := s.inside(Pos{le.Mark.Line, le.Mark.Column})
	if strings.HasPrefix(strings.TrimLeft(s.line(pos.Line), " "), "\t") {
		return &Problem{pos, "a tab in the indentation", "YAML wants spaces"}
	}
	for _, known := range yamlAdvice {
		if strings.Contains(message, known.says) {
			if known.atContext && le.ContextMark.Line > 0 {
				pos = s.inside(Pos{le.ContextMark.Line, le.ContextMark.Column})
			}
			return &Problem{pos, known.message, known.hint}
		}
	}
	return &Problem{pos, "YAML: " + message, ""}
}

// yamlAdvice turns a parser's words into what a person can do. atContext points to where the unfinished thing began.
var yamlAdvice = []struct {
	says, message, hint string
	atContext           bool
}{
	{"expected ',' or ']'", "this list is not closed", "a ] or a comma is missing", true},
	{"expected ',' or '}'", "this group is not closed", "a } or a comma is missing", true},
	{"unexpected end of stream", "this text is not closed", "its second quote is missing", true},
	{"mapping values are not allowed", "a colon that begins a value is not allowed here", "put the text in quotes, or check the indentation", false},
	{"cannot start any token", "no text may begin with this character", "put the text in quotes", false},
	{"unknown escape character", "unknown escape", `write \\ for a backslash, or use single quotes`, false},
	{"did not find expected key", "a key is expected here", "check the indentation against the lines above", false},
	{"could not find expected ':'", "a colon is missing", "write it as key: value", true},
	{"did not find expected '-'", "an entry that begins with - is expected here", "check the indentation against the lines above", false},
	{"unknown anchor", "an alias of something that was not defined above", "define it with & first", false},
	{"incompatible YAML document", "this version of YAML is not known", "remove the line", false},
}

var documentStart = regexp.MustCompile(`(?m)^---(?:\s|$)`)

func secondDocument(s *source) Pos {
	starts := documentStart.FindAllIndex(s.text, -1)
	if len(starts) == 0 {
		return s.at(len(s.text))
	}
	return s.at(starts[len(starts)-1][0])
}

// yamlTree turns yaml.Nodes into ours. An anchored node becomes one node however often it is used, so a file full of
// aliases stays as small as it is written.
type yamlTree struct {
	source   *source
	done     map[*yaml.Node]*node
	problems []Problem
}

func (y *yamlTree) problem(at *yaml.Node, message, hint string) *node {
	p := y.source.inside(Pos{at.Line, at.Column})
	y.problems = append(y.problems, Problem{p, message, hint})
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
	n := &node{pos: y.source.inside(Pos{from.Line, from.Column})}
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
			at := y.source.inside(Pos{from.Content[i].Line, from.Content[i].Column})
			y.problems = n.add(k.Value, at, y.node(v, depth+1), y.problems)
		}
	}
	for _, m := range merged {
		if m.kind != object {
			if !m.bad {
				y.problems = append(y.problems, Problem{m.pos, "<< wants a group of keys, and this is " + m.is(), "name the anchor of one: <<: *name"})
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
func (n *node) add(key string, at Pos, value *node, problems []Problem) []Problem {
	if first := n.field(key); first != nil {
		return append(problems, Problem{at, fmt.Sprintf("%q is given twice", shortened(key)), fmt.Sprintf("it is in line %d already", first.pos.Line)})
	}
	n.fields = append(n.fields, field{key, at, value})
	return problems
}
