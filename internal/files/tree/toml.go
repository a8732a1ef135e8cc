package tree

import (
	"errors"
	"strings"

	"github.com/pelletier/go-toml/v2"
	"github.com/pelletier/go-toml/v2/unstable"

	"github.com/outlive-mcp/outlive/internal/files/fileerror"
)

// readTOML parses a document, and joins tables that TOML allows in several places.
func (d *Doc) readTOML() []fileerror.Problem {
	d.Root = &Node{Kind: Object, form: table}
	at, lines := d.Root, (*Span)(nil) // the present table
	var parser unstable.Parser
	parser.Reset(d.text)
	for parser.NextExpression() {
		e := parser.Expression()
		first, _ := keyEnds(e)
		here := &Span{d.lineStart(first), d.lineEnd(first)}
		if e.Kind != unstable.KeyValue {
			at, lines = d.Root.way(e, here), here
			at.header = here
			continue
		}
		here.End = d.lineEnd(int(e.Raw.Offset + e.Raw.Length))
		d.pairOf(at, e, here)
		if lines != nil {
			lines.End = here.End
		}
	}
	err := parser.Error()
	if err == nil {
		return nil
	}
	if problems := d.strictTOML(); len(problems) > 0 { // the decoder's error has a position
		return problems
	}
	return []fileerror.Problem{tomlProblem(d.source, err)}
}

// strictTOML runs the decoder, which checks for duplicate definitions.
func (d *Doc) strictTOML() []fileerror.Problem {
	var decoded map[string]any
	if err := toml.Unmarshal(d.text, &decoded); err != nil {
		return []fileerror.Problem{tomlProblem(d.source, err)}
	}
	return nil
}

// tomlProblem takes the position from the decoder. Its columns are bytes.
func tomlProblem(s *fileerror.Source, err error) fileerror.Problem {
	message := strings.TrimPrefix(err.Error(), "toml: ")
	de, ok := errors.AsType[*toml.DecodeError](err)
	if !ok {
		return fileerror.Problem{Pos: fileerror.Pos{Line: 1, Column: 1}, Message: "this is not TOML", Hint: message}
	}
	line, column := de.Position()
	if strings.Contains(message, "expected keyword") {
		return fileerror.Problem{Pos: s.AtBytes(line, column), Message: "this is not a value", Hint: "texts stand in double quotes"}
	}
	return fileerror.Problem{Pos: s.AtBytes(line, column), Message: "TOML: " + message}
}

// keyEnds returns where the first and the last part of a key begin.
func keyEnds(e *unstable.Node) (first, last int) {
	first = -1
	for keys := e.Key(); keys.Next(); {
		if last = int(keys.Node().Raw.Offset); first < 0 {
			first = last
		}
	}
	return first, last
}

// way finds or makes the table that a header names, and records on the way that the header defines these tables. Of
// an array of tables it is the last one.
func (n *Node) way(e *unstable.Node, here *Span) *Node {
	for keys := e.Key(); keys.Next(); {
		n = n.child(keys.Node())
		n.parts = append(n.parts, here)
		if e.Kind == unstable.ArrayTable && keys.IsLast() {
			n.Kind, n.form = List, leaf
			n.Kids = append(n.Kids, &Node{Kind: Object, form: table, up: n, start: n.name})
		}
		if n.Kind == List && len(n.Kids) > 0 {
			n = n.Kids[len(n.Kids)-1]
			n.parts = append(n.parts, here)
		}
	}
	return n
}

// child finds a member or makes an empty table.
func (n *Node) child(key *unstable.Node) *Node {
	if v := n.Get(string(key.Data)); v != nil {
		return v
	}
	at := int(key.Raw.Offset)
	v := &Node{Key: string(key.Data), Kind: Object, form: table, up: n, name: at, start: at}
	n.Kids = append(n.Kids, v)
	return v
}

// pairOf adds key = value, where a.b.c = value makes the tables on the way. line is nil for a pair within braces.
func (d *Doc) pairOf(n *Node, e *unstable.Node, line *Span) {
	first, last := keyEnds(e)
	for keys := e.Key(); keys.Next(); {
		n = n.child(keys.Node())
		if line != nil {
			n.parts = append(n.parts, line)
		}
	}
	value := d.tomlNode(e.Value())
	n.Kind, n.Raw, n.Value, n.Kids, n.form = value.Kind, value.Raw, value.Value, value.Kids, leaf
	n.from, n.name, n.end = first, last, int(e.Raw.Offset+e.Raw.Length)
	n.sep, n.start = d.separator(last, n.end)
	if n.placed = line != nil && n.sep >= 0; n.placed && n.Kind >= List {
		d.place(n, d.group(n.start))
	}
}

func (d *Doc) tomlNode(v *unstable.Node) *Node {
	n := &Node{Kind: Text, Raw: string(v.Data), Value: string(v.Data)}
	switch v.Kind {
	case unstable.Array:
		n.Kind, n.Raw, n.Value = List, "", ""
		for it := v.Children(); it.Next(); {
			n.Kids = append(n.Kids, d.tomlNode(it.Node()))
		}
	case unstable.InlineTable:
		n.Kind, n.Raw, n.Value = Object, "", ""
		for it := v.Children(); it.Next(); {
			d.pairOf(n, it.Node(), nil)
		}
	case unstable.Bool:
		n.Kind = Bool
	case unstable.Integer, unstable.Float:
		n.Kind = Number
	}
	return n
}
