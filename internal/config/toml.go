package config

import (
	"errors"
	"strings"

	"github.com/pelletier/go-toml/v2"
	"github.com/pelletier/go-toml/v2/unstable"

	"github.com/outlive-mcp/outlive/internal/problem"
)

// parseTOML makes the tree of a TOML document. The decoder is asked first, because it knows what may not be defined
// twice; the positions come from the parser below it.
func parseTOML(s *problem.Source) (*node, []problem.Problem) {
	if at := tooDeep(s.Text); at >= 0 {
		return nil, []problem.Problem{{Pos: s.At(at), Message: "nested too deeply"}}
	}
	var decoded map[string]any
	if err := toml.Unmarshal(s.Text, &decoded); err != nil {
		return nil, []problem.Problem{tomlProblem(s, err)}
	}
	t := tomlTree{source: s, root: &node{kind: object, pos: problem.Pos{Line: 1, Column: 1}}}
	t.parser.Reset(s.Text)
	table := t.root
	for t.parser.NextExpression() {
		e := t.parser.Expression()
		switch e.Kind {
		case unstable.Table, unstable.ArrayTable:
			table = t.table(e)
		case unstable.KeyValue:
			t.pair(table, e)
		}
	}
	return t.root, nil
}

// tomlProblem takes the position from the decoder. Its columns are bytes.
func tomlProblem(s *problem.Source, err error) problem.Problem {
	message := strings.TrimPrefix(err.Error(), "toml: ")
	var de *toml.DecodeError
	if !errors.As(err, &de) {
		return problem.Problem{Pos: problem.Pos{Line: 1, Column: 1}, Message: "this is no TOML", Hint: message}
	}
	line, column := de.Position()
	if strings.Contains(message, "expected keyword") {
		return problem.Problem{Pos: s.AtBytes(line, column), Message: "this is no value", Hint: "texts stand in double quotes"}
	}
	return problem.Problem{Pos: s.AtBytes(line, column), Message: "TOML: " + message}
}

// tomlTree puts tables together that TOML lets stand apart.
type tomlTree struct {
	source *problem.Source
	parser unstable.Parser
	root   *node
}

// table finds or makes the object that a [header] names. In arrays of tables that is the last one.
func (t *tomlTree) table(header *unstable.Node) *node {
	n := t.root
	keys := header.Key()
	for keys.Next() {
		k := keys.Node()
		pos := t.source.At(int(k.Raw.Offset))
		if header.Kind == unstable.ArrayTable && keys.IsLast() {
			n = n.child(string(k.Data), pos, list)
			n.items = append(n.items, &node{kind: object, pos: pos})
		} else {
			n = n.child(string(k.Data), pos, object)
		}
		if n.kind == list && len(n.items) > 0 {
			n = n.items[len(n.items)-1]
		}
	}
	return n
}

// child finds a member or makes an empty one.
func (n *node) child(key string, pos problem.Pos, kind nodeKind) *node {
	if v := n.get(key); v != nil {
		return v
	}
	v := &node{kind: kind, pos: pos}
	n.fields = append(n.fields, field{key, pos, v})
	return v
}

// pair adds key = value, where a.b.c = value makes the objects on the way.
func (t *tomlTree) pair(n *node, e *unstable.Node) {
	keys := e.Key()
	for keys.Next() {
		k := keys.Node()
		pos := t.source.At(int(k.Raw.Offset))
		if !keys.IsLast() {
			n = n.child(string(k.Data), pos, object)
			continue
		}
		after := int(k.Raw.Offset + k.Raw.Length)
		if rest := t.source.Text[after:]; len(rest) > 0 {
			after += len(rest) - len(strings.TrimLeft(string(rest), " \t="))
		}
		n.fields = append(n.fields, field{string(k.Data), pos, t.value(e.Value(), t.source.At(after))})
	}
}

// value gives the node of a value; pos is for those whose place the parser does not keep.
func (t *tomlTree) value(v *unstable.Node, pos problem.Pos) *node {
	if v.Raw.Length > 0 {
		pos = t.source.At(int(v.Raw.Offset))
	}
	switch v.Kind {
	case unstable.Array:
		n := &node{kind: list, pos: pos}
		for it := v.Children(); it.Next(); {
			n.items = append(n.items, t.value(it.Node(), pos))
		}
		return n
	case unstable.InlineTable:
		n := &node{kind: object, pos: pos}
		for it := v.Children(); it.Next(); {
			t.pair(n, it.Node())
		}
		return n
	case unstable.Bool:
		return scalar(boolean, string(v.Data), pos)
	case unstable.Integer, unstable.Float:
		return scalar(number, string(v.Data), pos)
	}
	return scalar(text, string(v.Data), pos)
}
