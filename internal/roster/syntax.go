package roster

import (
	"errors"
	"strings"

	"go.yaml.in/yaml/v4"
)

// SizeLimit is how long a registry may be, in bytes: it is written by hand.
const SizeLimit = 1 << 20

// parseYAML gives the top of the document; nil without a problem is an empty file.
func parseYAML(s *source) (*yaml.Node, []Problem) {
	if len(s.text) > SizeLimit {
		return nil, []Problem{{Message: "the file is longer than 1 MiB", Hint: "a registry is written by hand"}}
	}
	document, err := load(s.text)
	switch {
	case err != nil:
		return nil, []Problem{syntaxProblem(s, err)}
	case document == nil:
		return nil, nil
	}
	root := document.Content[0]
	if root.Kind != yaml.MappingNode {
		return nil, []Problem{{Pos: s.inside(root.Line, root.Column), Message: "a registry begins with its keys", Hint: "write version: 2, and agents: below"}}
	}
	return root, nil
}

// load parses a text; a nil document without an error has nothing in it.
func load(text []byte) (*yaml.Node, error) {
	var document yaml.Node
	if err := yaml.Load(text, &document); err != nil {
		if strings.Contains(err.Error(), "no documents in stream") {
			return nil, nil
		}
		return nil, err
	}
	if len(document.Content) == 0 || isNull(document.Content[0]) {
		return nil, nil
	}
	return &document, nil
}

// syntaxProblem says in words that people can use what the parser did not like.
func syntaxProblem(s *source, err error) Problem {
	var le *yaml.LoadError
	if !errors.As(err, &le) {
		return Problem{Message: "this is no YAML", Hint: err.Error()}
	}
	message := strings.TrimPrefix(le.Message, "yaml: ")
	pos := s.inside(le.Mark.Line, le.Mark.Column)
	if strings.HasPrefix(strings.TrimLeft(s.lines[pos.Line-1], " "), "\t") {
		return Problem{Pos: pos, Message: "a tab in the indentation", Hint: "YAML wants spaces"}
	}
	for _, known := range advice {
		if strings.Contains(message, known.says) {
			if known.atContext && le.ContextMark.Line > 0 {
				pos = s.inside(le.ContextMark.Line, le.ContextMark.Column)
			}
			return Problem{Pos: pos, Message: known.message, Hint: known.hint}
		}
	}
	return Problem{Pos: pos, Message: "YAML: " + message}
}

// advice turns the parser's words into what a person can do. atContext points to where the unfinished thing began.
var advice = []struct {
	says, message, hint string
	atContext           bool
}{
	{"multiple", "a second document begins here", "keep everything in one, without ---", false},
	{"expected ',' or ']'", "this list is not closed", "a ] or a comma is missing", true},
	{"expected ',' or '}'", "this group is not closed", "a } or a comma is missing", true},
	{"unexpected end of stream", "this text is not closed", "its second quote is missing", true},
	{"mapping values are not allowed", "a colon that begins a value is not allowed here", "put the text in quotes, or check the indentation", false},
	{"cannot start any token", "no text may begin with this character", "put the text in quotes", false},
	{"did not find expected key", "a key is expected here", "check the indentation against the lines above", false},
	{"could not find expected ':'", "a colon is missing", "write it as key: value", true},
	{"unknown anchor", "an alias of something that was not defined above", "define it with & first", false},
}

func isNull(n *yaml.Node) bool { return n.Kind == yaml.ScalarNode && n.Tag == "!!null" }

// resolve follows an alias: of an alias there is none.
func resolve(n *yaml.Node) *yaml.Node {
	if n.Kind == yaml.AliasNode && n.Alias != nil {
		return n.Alias
	}
	return n
}
