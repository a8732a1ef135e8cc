package tree

import (
	"errors"
	"regexp"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/outlive-mcp/outlive/internal/files/fileerror"
)

// noDocument reports whether err is the YAML parser's error for an empty file.
func noDocument(err error) bool {
	return err != nil && strings.Contains(err.Error(), "no documents in stream")
}

// explainYAML rewords an error of the YAML parser.
func explainYAML(s *fileerror.Source, err error) fileerror.Problem {
	le, ok := errors.AsType[*yaml.LoadError](err)
	if !ok {
		return fileerror.Problem{Pos: fileerror.Pos{Line: 1, Column: 1}, Message: "this is not YAML", Hint: err.Error()}
	}
	message := strings.TrimPrefix(le.Message, "yaml: ")
	switch {
	case strings.Contains(message, "multiple"):
		return fileerror.Problem{Pos: secondDocument(s), Message: "a second document begins here", Hint: "keep everything in one, without ---"}
	case strings.Contains(message, "control characters"):
		at := strings.IndexFunc(string(s.Text), func(r rune) bool {
			return r < ' ' && r != '\t' && r != '\n' && r != '\r' || r == 0x7f
		})
		return fileerror.Problem{Pos: s.At(at), Message: "a control character", Hint: "remove it, or write it as an escape in double quotes"}
	}
	pos := s.Inside(fileerror.Pos{Line: le.Mark.Line, Column: le.Mark.Column})
	if strings.HasPrefix(strings.TrimLeft(s.Line(pos.Line), " "), "\t") {
		return fileerror.Problem{Pos: pos, Message: "a tab in the indentation", Hint: "YAML wants spaces"}
	}
	for _, known := range advice {
		if strings.Contains(message, known.says) {
			if known.atContext && le.ContextMark.Line > 0 {
				pos = s.Inside(fileerror.Pos{Line: le.ContextMark.Line, Column: le.ContextMark.Column})
			}
			return fileerror.Problem{Pos: pos, Message: known.message, Hint: known.hint}
		}
	}
	return fileerror.Problem{Pos: pos, Message: "YAML: " + message}
}

// advice maps the parser's words to what a person can do. atContext selects the position where the unfinished element
// began.
var advice = []struct {
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

func secondDocument(s *fileerror.Source) fileerror.Pos {
	starts := regexp.MustCompile(`(?m)^---(?:\s|$)`).FindAllIndex(s.Text, -1)
	if len(starts) == 0 {
		return s.At(len(s.Text))
	}
	return s.At(starts[len(starts)-1][0])
}
