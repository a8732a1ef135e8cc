package tree

import (
	"fmt"
	"slices"
	"unicode/utf8"

	"github.com/outlive-mcp/outlive/internal/files/fileerror"
)

// Read parses a text for its meaning. A nil tree without a problem means an empty file. A byte order mark at its beginning is
// a mistake.
func Read(format Format, s *fileerror.Source) (*Node, []fileerror.Problem) {
	d := &Doc{scanner: scanner{s.Text, format}, source: s}
	problems := d.read(false)
	if format == TOML && len(problems) == 0 {
		problems = d.strictTOML()
	}
	if len(problems) > 0 || d.Root == nil {
		return nil, problems
	}
	m := meaning{doc: d, open: map[*Node]bool{}}
	return m.of(d.Root, 0), m.problems
}

// meaning makes the tree of what a text means of the tree of the text itself.
type meaning struct {
	doc      *Doc
	open     map[*Node]bool // the containers around the present node
	merged   int            // number of members added by <<
	problems []fileerror.Problem
}

// mostMerged is how many members << may add in a file in total: groups that merge groups would multiply.
const mostMerged = 1 << 18

func (m *meaning) problem(at fileerror.Pos, message, hint string) {
	m.problems = append(m.problems, fileerror.Problem{Pos: at, Message: message, Hint: hint})
}

// refused reports a problem with a node, which then has no value.
func (m *meaning) refused(n *Node, message, hint string) *Node {
	m.problem(n.Pos, message, hint)
	n.Kind, n.Raw, n.Value, n.Bad, n.Kids = Null, "", "", true, nil
	return n
}

// of resolves a node in its place. An alias becomes a node of its own that shares the members of what it refers to, so that a
// file full of aliases does not grow.
func (m *meaning) of(n *Node, depth int) *Node {
	if m.doc.format != YAML {
		n.Pos, n.KeyPos = m.doc.source.At(n.start), m.doc.source.At(n.name)
	}
	switch {
	case depth > Deepest:
		return m.refused(n, "nested too deeply", "")
	case n.alias != nil && m.open[n.alias]:
		return m.refused(n, "this contains itself", "an alias may not stand inside what it is an alias of")
	case n.alias != nil:
		one := *n.alias // resolved: it stands before its aliases
		one.Key, one.KeyPos, one.key = n.Key, n.KeyPos, n.key
		return &one
	case n.Kind < List && !utf8.ValidString(n.Raw): // as "\xff" in double quotes
		return m.refused(n, "this text is not UTF-8", `write characters as they are, or as \u…`)
	case n.Kind < List:
		return n
	}
	m.open[n] = true
	for i, k := range n.Kids {
		n.Kids[i] = m.of(k, depth+1)
	}
	delete(m.open, n)
	if n.Kind == Object {
		m.members(n)
	}
	return n
}

// members takes an object's unusual keys out. What << adds comes after the object's own members, and never replaces them.
func (m *meaning) members(n *Node) {
	var merged []*Node
	known := map[string]*Node{}
	n.Kids = slices.DeleteFunc(n.Kids, func(k *Node) bool {
		first := known[k.Key]
		switch {
		case k.key == noText:
			m.problem(k.KeyPos, "a key has to be a text", "")
		case k.key == merge && k.Kind == List:
			merged = append(merged, k.Kids...)
		case k.key == merge:
			merged = append(merged, k)
		case first != nil:
			m.problem(k.KeyPos, fmt.Sprintf("%q is given twice", fileerror.Shortened(k.Key)), fmt.Sprintf("it is already in line %d", first.KeyPos.Line))
		default:
			known[k.Key] = k
			return false
		}
		return true
	})
	for _, from := range merged {
		if from.Kind != Object {
			if !from.Bad {
				m.problem(from.Pos, "<< wants a group of keys, and this is "+from.Is(), "name the anchor of one: <<: *name")
			}
			continue
		}
		if m.merged > mostMerged {
			return
		} else if m.merged += len(from.Kids); m.merged > mostMerged {
			m.problem(n.Pos, "<< is used too often", "")
			return
		}
		for _, k := range from.Kids {
			if known[k.Key] == nil {
				known[k.Key] = k
				n.Kids = append(n.Kids, k)
			}
		}
	}
}
