package config

import (
	"fmt"
	"strings"

	"github.com/tailscale/hujson"

	"github.com/outlive-mcp/outlive/internal/pattern"
	"github.com/outlive-mcp/outlive/internal/problem"
)

// parseJSON makes the tree of a JSON document with comments and trailing commas, as VS Code, Zed and Cursor write it.
func parseJSON(s *problem.Source) (*node, []problem.Problem) {
	if at := tooDeep(s.Text); at >= 0 {
		return nil, []problem.Problem{{Pos: s.At(at), Message: "nested too deeply"}}
	}
	value, err := hujson.Parse(s.Text)
	if err != nil {
		return nil, []problem.Problem{jsonProblem(s, err)}
	}
	j := jsonTree{source: s}
	root := j.node(value)
	return root, j.problems
}

var jsonPlace = pattern.New(`^hujson: line (\d+), column (\d+): `)

// jsonProblem says in our words what the parser did not like. Its columns are bytes.
func jsonProblem(s *problem.Source, err error) problem.Problem {
	message := err.Error()
	var line, column int
	if m := jsonPlace.FindString(message); m != "" {
		fmt.Sscanf(m, "hujson: line %d, column %d", &line, &column)
		message = message[len(m):]
	}
	pos := s.AtBytes(line, column)
	for _, known := range jsonAdvice {
		if strings.Contains(message, known.says) {
			return problem.Problem{Pos: pos, Message: known.message, Hint: known.hint}
		}
	}
	return problem.Problem{Pos: pos, Message: "JSON: " + message}
}

var jsonAdvice = []struct{ says, message, hint string }{
	{"after object value", "a comma is missing before this, or a } too much stands before it", "put a comma at the end of the line above"},
	{"after array value", "a comma is missing before this, or the list is not closed", "put a comma between the entries, and a ] behind the last"},
	{"at start of object name", "a key is expected here", `keys stand in double quotes: "command"`},
	{"after object name", "a colon is missing", `write it as "key": value`},
	{"invalid literal: \"", "this text has a bad escape or a line break", `write \\ for a backslash and \n for a line break`},
	{"invalid literal", "this is no value", "keys and texts stand in double quotes"},
	{"parsing string", "this text is not closed", "its second double quote is missing"},
	{"parsing comment", "this comment is not closed", ""},
	{"unexpected EOF", "the file ends too early", "a } or ] is missing"},
	{"after top-level value", "something stands behind the end", "the braces do not match: remove what is too much"},
	{"invalid character '\\''", "single quotes", "JSON wants double quotes"},
}

type jsonTree struct {
	source   *problem.Source
	problems []problem.Problem
}

func (j *jsonTree) node(from hujson.Value) *node {
	n := &node{pos: j.source.At(from.StartOffset)}
	switch v := from.Value.(type) {
	case *hujson.Object:
		n.kind = object
		for _, m := range v.Members {
			name, _ := m.Name.Value.(hujson.Literal)
			j.problems = n.add(name.String(), j.source.At(m.Name.StartOffset), j.node(m.Value), j.problems)
		}
	case *hujson.Array:
		n.kind = list
		for _, e := range v.Elements {
			n.items = append(n.items, j.node(e))
		}
	case hujson.Literal:
		n.raw = string(v)
		switch v.Kind() {
		case '"':
			n.kind, n.raw = text, v.String()
		case 't', 'f':
			n.kind = boolean
		case '0':
			n.kind = number
		}
		n.value = n.raw
	}
	return n
}
