package tree

import (
	"errors"
	"strings"

	"github.com/pelletier/go-toml/v2"
	"github.com/pelletier/go-toml/v2/unstable"

	"github.com/outlive-mcp/outlive/internal/files/fileerror"
)

// TOML makes the tree of a TOML document. The decoder is asked first, because it knows what may not be defined
// twice; the positions come from the parser below it.
func TOML(s *fileerror.Source) (*Node, []fileerror.Problem) {
	if at := tooDeep(s.Text); at >= 0 {
		return nil, []fileerror.Problem{{Pos: s.At(at), Message: "nested too deeply"}}
	}
	var decoded map[string]any
	if err := toml.Unmarshal(s.Text, &decoded); err != nil {
		return nil, []fileerror.Problem{tomlProblem(s, err)}
	}
	t := tomlTree{source: s, root: &Node{Kind: Object, Pos: fileerror.Pos{Line: 1, Column: 1}}}
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
func tomlProblem(s *fileerror.Source, err error) fileerror.Problem {
	message := strings.TrimPrefix(err.Error(), "toml: ")
	var de *toml.DecodeError
	if !errors.As(err, &de) {
		return fileerror.Problem{Pos: fileerror.Pos{Line: 1, Column: 1}, Message: "this is not TOML", Hint: message}
	}
	line, column := de.Position()
	if strings.Contains(message, "expected keyword") {
		return fileerror.Problem{Pos: s.AtBytes(line, column), Message: "this is not a value", Hint: "texts stand in double quotes"}
	}
	return fileerror.Problem{Pos: s.AtBytes(line, column), Message: "TOML: " + message}
}

// tomlTree puts tables together that TOML lets stand apart.
type tomlTree struct {
	source *fileerror.Source
	parser unstable.Parser
	root   *Node
}

// table finds or makes the object that a [header] names. In arrays of tables that is the last one.
func (t *tomlTree) table(header *unstable.Node) *Node {
	n := t.root
	keys := header.Key()
	for keys.Next() {
		k := keys.Node()
		pos := t.source.At(int(k.Raw.Offset))
		if header.Kind == unstable.ArrayTable && keys.IsLast() {
			n = n.child(string(k.Data), pos, List)
			n.Items = append(n.Items, &Node{Kind: Object, Pos: pos})
		} else {
			n = n.child(string(k.Data), pos, Object)
		}
		if n.Kind == List && len(n.Items) > 0 {
			n = n.Items[len(n.Items)-1]
		}
	}
	return n
}

// child finds a member or makes an empty one.
func (n *Node) child(key string, pos fileerror.Pos, kind Kind) *Node {
	if v := n.Get(key); v != nil {
		return v
	}
	v := &Node{Kind: kind, Pos: pos}
	n.Fields = append(n.Fields, Field{key, pos, v})
	return v
}

// pair adds key = value, where a.b.c = value makes the objects on the way.
func (t *tomlTree) pair(n *Node, e *unstable.Node) {
	keys := e.Key()
	for keys.Next() {
		k := keys.Node()
		pos := t.source.At(int(k.Raw.Offset))
		if !keys.IsLast() {
			n = n.child(string(k.Data), pos, Object)
			continue
		}
		after := int(k.Raw.Offset + k.Raw.Length)
		if rest := t.source.Text[after:]; len(rest) > 0 {
			after += len(rest) - len(strings.TrimLeft(string(rest), " \t="))
		}
		n.Fields = append(n.Fields, Field{string(k.Data), pos, t.value(e.Value(), t.source.At(after))})
	}
}

// value gives the node of a value; pos is for those whose place the parser does not keep.
func (t *tomlTree) value(v *unstable.Node, pos fileerror.Pos) *Node {
	if v.Raw.Length > 0 {
		pos = t.source.At(int(v.Raw.Offset))
	}
	switch v.Kind {
	case unstable.Array:
		n := &Node{Kind: List, Pos: pos}
		for it := v.Children(); it.Next(); {
			n.Items = append(n.Items, t.value(it.Node(), pos))
		}
		return n
	case unstable.InlineTable:
		n := &Node{Kind: Object, Pos: pos}
		for it := v.Children(); it.Next(); {
			t.pair(n, it.Node())
		}
		return n
	case unstable.Bool:
		return scalar(Bool, string(v.Data), pos)
	case unstable.Integer, unstable.Float:
		return scalar(Number, string(v.Data), pos)
	}
	return scalar(Text, string(v.Data), pos)
}
