package tree

import (
	"strings"
	"testing"

	"go.yaml.in/yaml/v4"

	"github.com/outlive-mcp/outlive/internal/files/fileerror"
)

// Every word of the parser that has advice is said about some text, and points to where one has to look.
func TestExplainYAML(t *testing.T) {
	told := map[string]bool{}
	for _, tc := range []struct {
		name, text, want string
		line, column     int
	}{
		{"open list", "a: [1,\n  2\n", "this list is not closed", 1, 4},
		{"open group", "a: {b: 1\n", "this group is not closed", 1, 4},
		{"open quote", "a: \"b\n", "this text is not closed", 1, 4},
		{"colon", "a: b: c\n", "a colon that begins a value is not allowed here", 1, 5},
		{"odd character", "a: @b\n", "no text may begin with this character", 1, 4},
		{"escape", "a: \"\\q\"\n", "unknown escape", 1, 5},
		{"indentation", "a: 1\n b: 2\n", "a colon that begins a value is not allowed here", 2, 3},
		{"no key", "a:\n  b: 1\n c: 2\n", "a key is expected here", 3, 2},
		{"no colon", "a: 1\nb\n", "a colon is missing", 2, 1},
		{"no dash", "a:\n  - 1\n  b: 1\n", "an entry that begins with - is expected here", 3, 3},
		{"alias", "a: *b\n", "an alias of something that was not defined above", 1, 4},
		{"version", "%YAML 9.9\n---\na: 1\n", "this version of YAML is not known", 1, 1},
		{"tab", "a:\n\tb: 1\n", "a tab in the indentation", 2, 1},
		{"two documents", "a: 1\n---\nb: 2\n", "a second document begins here", 2, 1},
		{"control character", "a: 1\nb: \x01\n", "a control character", 2, 4},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var document yaml.Node
			err := yaml.Load([]byte(tc.text), &document)
			if err == nil || noDocument(err) {
				t.Fatalf("the parser says %v", err)
			}
			p := explainYAML(fileerror.NewSource("f", []byte(tc.text)), err)
			if p.Message != tc.want || p.Pos != (fileerror.Pos{Line: tc.line, Column: tc.column}) {
				t.Errorf("%v: %s (%v)", p.Pos, p.Message, err)
			}
			told[p.Message] = true
		})
	}
	for _, known := range advice {
		if !told[known.message] {
			t.Errorf("no text is told %q", known.message)
		}
	}
}

func TestNoDocument(t *testing.T) {
	for text, want := range map[string]bool{"": true, "# only this\n": true, "a: [": false, "a: 1": false} {
		var document yaml.Node
		if got := noDocument(yaml.Load([]byte(text), &document)); got != want {
			t.Errorf("%q: %v", strings.TrimSpace(text), got)
		}
	}
}
