package tree

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/tailscale/hujson"

	"github.com/outlive-mcp/outlive/internal/files/fileerror"
	"github.com/outlive-mcp/outlive/internal/files/lazyregexp"
)

// readJSON parses a document with comments and trailing commas, as VS Code, Zed and Cursor write it.
func (d *Doc) readJSON() []fileerror.Problem {
	value, err := hujson.Parse(append(bytes.Clone(d.text), '\n')) // a comment may end the file without a line break
	if err != nil {
		return []fileerror.Problem{jsonProblem(d.source, err)}
	}
	d.Root = jsonNode(value)
	d.Root.start, _ = d.blank(0)
	if d.Root.Kind >= List {
		d.place(d.Root, d.group(d.Root.start))
	}
	return nil
}

func jsonNode(v hujson.Value) *Node {
	n := &Node{}
	switch v := v.Value.(type) {
	case *hujson.Object:
		n.Kind = Object
		for _, m := range v.Members {
			name, _ := m.Name.Value.(hujson.Literal)
			kid := jsonNode(m.Value)
			kid.Key = name.String()
			n.Kids = append(n.Kids, kid)
		}
	case *hujson.Array:
		n.Kind = List
		for _, e := range v.Elements {
			n.Kids = append(n.Kids, jsonNode(e))
		}
	case hujson.Literal:
		n.Raw = v.String()
		n.Value = n.Raw
		switch v.Kind() {
		case '"':
			n.Kind = Text
		case 't', 'f':
			n.Kind = Bool
		case '0':
			n.Kind = Number
		}
	}
	return n
}

var jsonPlace = lazyregexp.New(`^hujson: line (\d+), column (\d+): `)

// jsonProblem converts the parser's error. Its columns are bytes.
func jsonProblem(s *fileerror.Source, err error) fileerror.Problem {
	message := err.Error()
	var line, column int
	if m := jsonPlace.FindString(message); m != "" {
		fmt.Sscanf(m, "hujson: line %d, column %d", &line, &column)
		message = message[len(m):]
	}
	pos := s.AtBytes(line, column)
	for _, known := range jsonAdvice {
		if strings.Contains(message, known.says) {
			return fileerror.Problem{Pos: pos, Message: known.message, Hint: known.hint}
		}
	}
	return fileerror.Problem{Pos: pos, Message: "JSON: " + message}
}

var jsonAdvice = []struct{ says, message, hint string }{
	{"after object value", "a comma is missing before this, or a } too much stands before it", "put a comma at the end of the line above"},
	{"after array value", "a comma is missing before this, or the list is not closed", "put a comma between the entries, and a ] behind the last"},
	{"at start of object name", "a key is expected here", `keys stand in double quotes: "command"`},
	{"after object name", "a colon is missing", `write it as "key": value`},
	{"invalid literal: \"", "this text has a bad escape or a line break", `write \\ for a backslash and \n for a line break`},
	{"invalid literal", "this is not a value", "keys and texts stand in double quotes"},
	{"parsing string", "this text is not closed", "its second double quote is missing"},
	{"parsing comment", "this comment is not closed", ""},
	{"unexpected EOF", "the file ends too early", "a } or ] is missing"},
	{"after top-level value", "something stands behind the end", "the braces do not match: remove what is too much"},
	{"invalid character '\\''", "single quotes", "JSON wants double quotes"},
}
