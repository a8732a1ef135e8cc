package tree

import (
	"slices"
	"strings"
)

// insertLines adds a new entry to a block: a short one after the other short ones, any other after the last.
func (d *Doc) insertLines(n *Node, key string, values []any) {
	first, at := n.Kids[0], n.Kids[len(n.Kids)-1].stop
	if kind := nodeOf(values[0]).Kind; n.Kind == Object && (kind < List || kind == anything) && d.alone(first) {
		at = d.lineStart(first.from)
		for _, k := range n.Kids {
			if k.placed && k.Kind < List && !strings.Contains(k.Value, "\n") && d.lineEnd(k.from) == k.stop {
				at = k.stop
			}
		}
	}
	indent := strings.Repeat(" ", d.column(first.from))
	for _, v := range values {
		if key != "" {
			d.insertAt(at, d.lines(Map{{key, v}}, indent))
		} else {
			d.insertAt(at, indent+"- "+d.render(v, style{})+d.Newline())
		}
	}
}

// insertAt inserts lines after a line, which may be the last one without a line break.
func (d *Doc) insertAt(at int, lines string) {
	if at > 0 && d.text[at-1] != '\n' {
		lines = d.Newline() + lines
	}
	d.cut(at, at, lines)
}

// column is the distance of an offset from the beginning of its line.
func (d *Doc) column(at int) int { return len([]rune(string(d.text[d.lineStart(at):at]))) }

// alone reports whether an entry is the first on its line.
func (d *Doc) alone(n *Node) bool {
	return strings.Trim(string(d.text[d.lineStart(n.from):n.from]), " \t") == ""
}

// removeLines removes the lines of an entry. In a block the comment directly above it is removed, too.
func (d *Doc) removeLines(n, k *Node) error {
	if n.form == table {
		for _, p := range k.parts {
			d.cut(p.Start, p.End, "")
		}
		return nil
	}
	if n.form != block || !d.alone(k) {
		return d.refuse(k.from, "this is written in a way that cannot be taken out", byHand)
	}
	from, to := d.above(k, n.Kids[0] == k), k.stop
	before := string(d.text[d.lineStart(max(from-1, 0)):from])
	after := string(d.text[to:d.lineEnd(to)])
	if from > 0 && to < len(d.text) && strings.TrimSpace(before) == "" && strings.TrimSpace(after) == "" {
		to += len(after) // of two adjacent blank lines one is removed
	}
	d.cut(from, to, "")
	return nil
}

// above returns where the comment directly above an entry begins. For the first entry of a block a blank line must
// precede the comment, which could otherwise be about the whole block.
func (d *Doc) above(k *Node, first bool) int {
	from := d.lineStart(k.from)
	at := from
	for at > 0 {
		line := string(d.text[d.lineStart(at-1):at])
		if indentOf(line) != d.column(k.from) || !strings.HasPrefix(strings.TrimSpace(line), "#") {
			break
		}
		at -= len(line)
	}
	if first && (at == 0 || strings.TrimSpace(string(d.text[d.lineStart(at-1):at])) != "") {
		return from
	}
	return at
}

func indentOf(line string) int { return len(line) - len(strings.TrimLeft(line, " ")) }

// insertLine inserts a new key into a table: before another one, or after the last one with a line of its own.
func (d *Doc) insertLine(n *Node, at int, key string, values []any) bool {
	text := d.pair(key) + d.render(values[0], style{})
	if at >= 0 && at < len(n.Kids) && n.Kids[at].placed {
		next := n.Kids[at]
		d.cut(next.from, next.from, string(d.text[next.from:next.name])+text+d.Newline()+string(d.text[d.lineStart(next.from):next.from]))
		return true
	}
	for _, k := range slices.Backward(n.Kids) {
		if k.placed {
			d.insertAt(d.lineEnd(k.end), string(d.text[d.lineStart(k.from):k.name])+text+d.Newline())
			return true
		}
	}
	behind := 0 // in the top-level table
	if n.header != nil {
		behind = d.lineEnd(n.header.Start)
	}
	d.insertAt(behind, text+d.Newline())
	return n.header != nil || n.up == nil
}
