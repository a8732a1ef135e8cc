package registry

import (
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"
)

// splice changes single lines of a text. It knows the simple forms that people write and says no to everything else; whether
// the outcome means what it should is checked by whoever uses it.
type splice struct {
	lines []string // with their ends
	end   string   // LF or CRLF
}

func newSplice(text []byte) *splice {
	s := &splice{lines: strings.SplitAfter(string(text), "\n"), end: "\n"}
	if s.lines[len(s.lines)-1] == "" {
		s.lines = s.lines[:len(s.lines)-1]
	}
	if len(s.lines) > 0 && strings.HasSuffix(s.lines[0], "\r\n") {
		s.end = "\r\n"
	}
	if n := len(s.lines); n > 0 && !strings.HasSuffix(s.lines[n-1], "\n") {
		s.lines[n-1] += s.end
	}
	return s
}

func (s *splice) text() []byte { return []byte(strings.Join(s.lines, "")) }

// put replaces the scalar at the path, or writes a key that is not there yet.
func (s *splice) put(root *yaml.Node, path []string, v *yaml.Node) bool {
	at := root
	for i, key := range path {
		k := index(at, key)
		if k < 0 {
			return s.insert(at, key, nest(path[i+1:], v))
		}
		found := at.Content[k+1]
		switch {
		case isNull(found) && (i < len(path)-1 || v.Kind == yaml.MappingNode):
			return s.fill(at, k, nest(path[i+1:], v))
		case i == len(path)-1:
			return s.replace(found, v)
		case found.Kind != yaml.MappingNode:
			return false
		}
		at = found
	}
	return false
}

// replace changes one scalar, or a list in brackets on one line, in place.
func (s *splice) replace(old, v *yaml.Node) bool {
	line, from, ok := s.place(old)
	fresh, fits := oneLine(v)
	if !ok || !fits || old.Anchor != "" || old.Style&yaml.TaggedStyle != 0 {
		return false
	}
	to := tokenEnd(line, from, old)
	if to < 0 {
		return false
	}
	s.lines[old.Line-1] = line[:from] + fresh + line[to:]
	return true
}

// tokenEnd is where a value that begins at from ends on the same line, or -1.
func tokenEnd(line string, from int, n *yaml.Node) int {
	rest := line[from:]
	switch {
	case n.Kind == yaml.SequenceNode && strings.HasPrefix(rest, "["):
		if end := strings.IndexByte(rest, ']'); end > 0 && !strings.ContainsAny(rest[1:end], `"'[{#`) {
			return from + end + 1
		}
	case n.Kind != yaml.ScalarNode || n.Value == "":
	case strings.HasPrefix(rest, `"`), strings.HasPrefix(rest, `'`):
		if end := strings.IndexByte(rest[1:], rest[0]); end >= 0 && rest[1:1+end] == n.Value {
			return from + end + 2
		}
	case strings.HasPrefix(rest, n.Value):
		return from + len(n.Value)
	}
	return -1
}

// place gives a node's line and where in it the node begins, in bytes.
func (s *splice) place(n *yaml.Node) (line string, from int, ok bool) {
	if n.Line < 1 || n.Line > len(s.lines) || n.Column < 1 {
		return "", 0, false
	}
	line = s.lines[n.Line-1]
	column := 1
	for i := range line {
		if column == n.Column {
			return line, i, true
		}
		column++
	}
	return "", 0, false
}

// insert writes a new key into a mapping: behind the first brace, or on lines of its own behind what the mapping has.
func (s *splice) insert(at *yaml.Node, key string, v *yaml.Node) bool {
	if at.Kind != yaml.MappingNode {
		return false
	}
	if at.Style&yaml.FlowStyle != 0 {
		line, from, ok := s.place(at)
		fresh, fits := oneLine(flow(mapping(key, v)))
		if !ok || !fits || line[from] != '{' {
			return false
		}
		fresh = strings.TrimSuffix(strings.TrimPrefix(fresh, "{"), "}")
		if len(at.Content) > 0 {
			fresh += ", "
		}
		s.lines[at.Line-1] = line[:from+1] + fresh + line[from+1:]
		return true
	}
	if len(at.Content) == 0 {
		return false
	}
	indent := at.Content[0].Column - 1
	after := s.lastLine(at)
	if v.Kind == yaml.ScalarNode { // behind the other short ones, not behind a long list of something else
		after = at.Content[0].Line - 1
		for i := 0; i+1 < len(at.Content); i += 2 {
			k, member := at.Content[i], at.Content[i+1]
			if member.Line == k.Line && member.Kind == yaml.ScalarNode && !strings.Contains(member.Value, "\n") {
				after = k.Line
			}
		}
	}
	return s.insertLines(after, indent, mapping(key, v))
}

// fill writes the first entry below a key that has nothing yet.
func (s *splice) fill(parent *yaml.Node, k int, v *yaml.Node) bool {
	key, old := parent.Content[k], parent.Content[k+1]
	if parent.Style&yaml.FlowStyle != 0 || old.Anchor != "" || old.Value != "" || v.Kind != yaml.MappingNode {
		return false
	}
	return s.insertLines(key.Line, key.Column+1, v)
}

// insertLines writes a mapping's lines behind a line.
func (s *splice) insertLines(after, indent int, v *yaml.Node) bool {
	text, err := dump(v)
	if err != nil || after < 0 || after > len(s.lines) {
		return false
	}
	var fresh []string
	for line := range strings.Lines(string(text)) {
		fresh = append(fresh, strings.Repeat(" ", indent)+strings.TrimSuffix(line, "\n")+s.end)
	}
	s.lines = slices.Insert(s.lines, after, fresh...)
	return true
}

// lastLine is the last line of a block mapping that is no comment and not blank.
func (s *splice) lastLine(at *yaml.Node) int {
	last, indent := at.Content[len(at.Content)-2], at.Content[0].Column-1
	end := last.Line
	for n := last.Line + 1; n <= len(s.lines); n++ {
		switch text := strings.TrimSpace(s.lines[n-1]); {
		case text == "":
		case indentOf(s.lines[n-1]) <= indent && strings.HasPrefix(text, "#"):
			return end
		case indentOf(s.lines[n-1]) <= indent && !strings.HasPrefix(text, "- "):
			return end
		default:
			end = n
		}
	}
	return end
}

func indentOf(line string) int { return len(line) - len(strings.TrimLeft(line, " ")) }

// cut takes an entry of a block mapping out, with the comment directly above it.
func (s *splice) cut(root *yaml.Node, path []string) bool {
	at := root
	for i, key := range path {
		k := index(at, key)
		if k < 0 {
			return true
		}
		if i < len(path)-1 {
			at = at.Content[k+1]
			continue
		}
		if at.Style&yaml.FlowStyle != 0 {
			return false
		}
		name := at.Content[k]
		only := &yaml.Node{Content: at.Content[k : k+2]}
		to := s.lastLine(only)
		from := s.above(name.Line-1, name.Column-1, k == 0)
		if to < len(s.lines) && from > 0 && strings.TrimSpace(s.lines[from-1]) == "" && strings.TrimSpace(s.lines[to]) == "" {
			to++ // of two blank lines one goes too
		}
		s.lines = slices.Delete(s.lines, from, to)
		return true
	}
	return false
}

// above is where the comment begins that stands directly above a line; for the first entry of a mapping only with a blank
// line before, since it may be about all of them.
func (s *splice) above(line, indent int, first bool) int {
	from := line
	for from > 0 && indentOf(s.lines[from-1]) == indent && strings.HasPrefix(strings.TrimSpace(s.lines[from-1]), "#") {
		from--
	}
	if first && (from == 0 || strings.TrimSpace(s.lines[from-1]) != "") {
		return line
	}
	return from
}

// oneLine writes a scalar or a list in brackets as it stands in a line.
func oneLine(v *yaml.Node) (string, bool) {
	text, err := dump(v)
	s := strings.TrimSuffix(string(text), "\n")
	return s, err == nil && !strings.Contains(s, "\n")
}

// flow makes a mapping stand on one line.
func flow(v *yaml.Node) *yaml.Node {
	if v.Kind == yaml.MappingNode {
		v.Style |= yaml.FlowStyle
		for _, c := range v.Content {
			flow(c)
		}
	}
	return v
}
