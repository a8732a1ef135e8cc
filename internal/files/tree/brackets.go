package tree

import (
	"strings"
)

// place sets the positions of what is in brackets.
func (d *Doc) place(n *Node, g *group) {
	if g == nil || n.Kind < List {
		return
	}
	n.end = g.end
	if len(g.items) != len(n.Kids) {
		return
	}
	n.form = brackets
	for i, k := range n.Kids {
		one := g.items[i]
		k.up, k.placed, k.from, k.gap, k.comma = n, true, one.start, one.gap, one.comma
		k.name, k.start, k.end = one.start, one.start, one.end
		if n.Kind == Object {
			if k.sep, k.start = d.separator(one.start, one.end); k.sep < 0 {
				k.placed = false
				continue
			}
		}
		if one.inner != nil && one.inner.open == k.start {
			d.place(k, one.inner)
		}
	}
}

// insertInBrackets inserts values in the style of a neighbour. Into empty brackets they go without white space.
func (d *Doc) insertInBrackets(n *Node, at int, key string, values []any) {
	last, from := len(n.Kids)-1, n.start+1
	switch {
	case last < 0:
		d.cut(from, from, d.entries(key, values, style{}))
	case at < 0 || at > last:
		if last > 0 {
			from = n.Kids[last-1].end
		}
		lead, st := d.lead(from, n.Kids[last].from)
		d.cut(n.Kids[last].end, n.Kids[last].end, ","+lead+d.entries(key, values, st))
	default:
		if at > 0 {
			from = d.behindComment(n.Kids[at-1].comma + 1)
		}
		lead, st := d.lead(from, n.Kids[at].from)
		text := d.entries(key, values, st)
		if at > 0 && from > n.Kids[at-1].comma+1 && st.newline == "" { // a comment needs its line end
			from = n.Kids[at].gap
		}
		if from == n.Kids[at].from {
			d.cut(from, from, text+", ")
		} else {
			d.cut(from, from, lead+text+",")
		}
	}
}

// behindComment skips a comment up to the line end, which belongs to what precedes it.
func (d *Doc) behindComment(at int) int {
	begin := at + len(d.text[at:d.lineEnd(at)]) - len(strings.TrimLeft(string(d.text[at:d.lineEnd(at)]), " \t"))
	if begin < len(d.text) {
		if end := d.comment(begin); end > begin && d.text[end-1] == '\n' {
			return d.trimmed(at, end)
		}
	}
	return at
}

// lead is the white space before a new entry: a line break with indentation, or a space.
func (d *Doc) lead(from, to int) (string, style) {
	space := string(d.text[d.trimmed(from, to):to])
	i := strings.LastIndexByte(space, '\n')
	switch {
	case i < 0 && space == "":
		return " ", style{}
	case i < 0:
		return space, style{}
	}
	st := style{newline: "\n", indent: space[i+1:], step: d.step()}
	if i > 0 && space[i-1] == '\r' {
		st.newline = "\r\n"
	}
	return st.newline + st.indent, st
}

// step is the text's indentation: that of its first member, or two spaces.
func (d *Doc) step() string {
	if n := d.Root; n.form == brackets && len(n.Kids) > 0 {
		space := string(d.text[n.start+1 : n.Kids[0].from])
		if i := strings.LastIndexByte(space, '\n'); i >= 0 && i+1 < len(space) && strings.TrimSpace(space[i:]) == "" {
			return space[i+1:]
		}
	}
	return "  "
}

// removeFromBrackets removes entries, each with one comma and the white space before it. Comments are kept.
func (d *Doc) removeFromBrackets(n *Node, gone []bool) {
	left := len(gone) - 1 // the last remaining entry
	for left >= 0 && gone[left] {
		left--
	}
	for i := 0; i < len(gone); i++ {
		if !gone[i] {
			continue
		}
		run := i
		for run+1 < len(gone) && gone[run+1] {
			run++
		}
		d.removeRun(n.Kids[i:run+1], run < left, left < 0)
		if left >= 0 && run > left {
			d.cut(n.Kids[left].comma, n.Kids[left].comma+1, "")
		}
		i = run
	}
}

// removeRun removes adjacent entries. If an entry follows, each is removed with its own comma; otherwise the commas
// between them are removed, and one after the last is kept for the entry before.
func (d *Doc) removeRun(run []*Node, between, whole bool) {
	first, last := run[0], run[len(run)-1]
	from, to := first.gap, last.comma+1 // the white space before the first entry, or that after the last
	rest := string(d.text[to:d.lineEnd(to)])
	switch {
	case whole:
		from = first.from
	case between && from == first.from && strings.HasPrefix(rest, " "):
		to++
	case between && d.text[from-1] == '\n' && strings.HasSuffix(rest, "\n") && strings.TrimSpace(rest) == "": // after a comment
		from = d.trimmed(0, from)
	case between && d.text[from-1] == '\n':
		from, to = first.from, d.lineEnd(to)-len(strings.TrimLeft(rest, " \t"))
	}
	for _, k := range run {
		if k != first {
			from = k.gap
		}
		d.cut(from, k.end, "")
		switch {
		case k.comma < 0:
		case k != last:
			d.cut(k.comma, k.comma+1, "")
		case between || whole:
			d.cut(k.comma, to, "")
		}
	}
}
