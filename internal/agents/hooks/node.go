package hooks

import (
	"bytes"
	"encoding/json"
	"strconv"
)

// node is JSON to be written.
type node struct {
	name     string // of a member; "": none
	literal  string // "": a container
	brackets string // "{}" or "[]"
	children []node
}

// style is how the neighbours are written. Without a newline all goes on one line.
type style struct{ newline, indent, step string }

func member(name string, n node) node {
	n.name = name
	return n
}

func object(members ...node) node { return node{brackets: "{}", children: members} }
func array(elements ...node) node { return node{brackets: "[]", children: elements} }

func literal(s string) node {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false) // a person reads it
	_ = e.Encode(s)        // a string cannot fail
	return node{literal: string(bytes.TrimSpace(b.Bytes()))}
}

func number(n int64) node { return node{literal: strconv.FormatInt(n, 10)} }

// render writes the node. There is always white space behind an opening bracket: that is how it is known again that we
// made it.
func (n node) render(st style) []byte {
	var out []byte
	if n.name != "" {
		out = append(append(out, literal(n.name).literal...), ": "...)
	}
	if n.literal != "" {
		return append(out, n.literal...)
	}
	inner := st
	before, after := " ", " "
	if st.newline != "" {
		inner.indent += st.step
		before, after = st.newline+inner.indent, st.newline+st.indent
	}
	out = append(out, n.brackets[0])
	for i, child := range n.children {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(append(out, before...), child.render(inner)...)
	}
	return append(append(out, after...), n.brackets[1])
}
