package hooks

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/tailscale/hujson"
)

// document is a parsed settings file. Offsets of hujson count from behind the byte order mark.
type document struct {
	text []byte
	base int
	root *container
}

// container is an object or an array in the text.
type container struct {
	text     []byte
	open     int // offset behind its bracket
	close    int // offset of the other one
	elements []element
	trailing int // offset behind a comma after the last element, 0 when there is none
}

// element is a member of an object, or an element of an array, which has no name.
type element struct {
	name       string
	value      hujson.Value
	start, end int
	comma      int // offset of the comma behind it, -1 when there is none
}

// parseSettings returns nil for a text of white space only.
func parseSettings(text []byte) (*document, error) {
	d := &document{text: text}
	if bytes.HasPrefix(text, []byte(byteOrderMark)) {
		d.base = len(byteOrderMark)
	}
	if blank(text) {
		return nil, nil
	}
	// A newline is added because a comment may end the file without one.
	root, err := hujson.Parse(append(bytes.Clone(text[d.base:]), '\n'))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrSettings, err)
	}
	d.root, err = d.object(root, "the whole")
	return d, err
}

// container reads an object or an array.
func (d *document) container(v hujson.Value) (*container, bool) {
	c := &container{text: d.text, open: d.base + v.StartOffset + 1, close: d.base + v.EndOffset - 1}
	add := func(name string, start int, value hujson.Value, last bool) {
		e := element{name: name, value: value, start: d.base + start, end: d.base + value.EndOffset, comma: -1}
		if !last || value.AfterExtra != nil {
			e.comma = e.end + len(value.AfterExtra)
		}
		if last && e.comma >= 0 {
			c.trailing = e.comma + 1
		}
		c.elements = append(c.elements, e)
	}
	switch body := v.Value.(type) {
	case *hujson.Object:
		for i, m := range body.Members {
			add(textOf(m.Name), m.Name.StartOffset, m.Value, i == len(body.Members)-1)
		}
	case *hujson.Array:
		for i, e := range body.Elements {
			add("", e.StartOffset, e, i == len(body.Elements)-1)
		}
	default:
		return nil, false
	}
	return c, true
}

func (d *document) object(v hujson.Value, what string) (*container, error) {
	if _, ok := v.Value.(*hujson.Object); !ok {
		return nil, fmt.Errorf("%w: %s is no object", ErrSettings, what)
	}
	c, _ := d.container(v)
	return c, nil
}

func (d *document) array(v hujson.Value, what string) (*container, error) {
	if _, ok := v.Value.(*hujson.Array); !ok {
		return nil, fmt.Errorf("%w: %s is no list", ErrSettings, what)
	}
	c, _ := d.container(v)
	return c, nil
}

// member returns the value of the last member of that name, the one that counts.
func (c *container) member(name string) (hujson.Value, bool) {
	for i := len(c.elements) - 1; i >= 0; i-- {
		if c.elements[i].name == name {
			return c.elements[i].value, true
		}
	}
	return hujson.Value{}, false
}

func textOf(v hujson.Value) string {
	l, ok := v.Value.(hujson.Literal)
	if !ok {
		return ""
	}
	return l.String()
}

// handlers are the hooks of one event.
func (d *document) handlers(list hujson.Value) []hujson.Value {
	var found []hujson.Value
	groups, err := d.array(list, "")
	if err != nil {
		return nil
	}
	for _, g := range groups.elements {
		group, ok := d.container(g.value)
		if !ok {
			continue
		}
		hooks, _ := group.member("hooks")
		if handlers, err := d.array(hooks, ""); err == nil {
			for _, h := range handlers.elements {
				found = append(found, h.value)
			}
		}
	}
	return found
}

// isOff reports whether the member at path has this value.
func (d *document) isOff(path []string, value string) bool {
	at := d.root
	for i, name := range path {
		v, ok := at.member(name)
		if !ok {
			return false
		}
		if i == len(path)-1 {
			return textOf(v) == value
		}
		if at, ok = d.container(v); !ok {
			return false
		}
	}
	return false
}

// around is the text before and behind the root, without the byte order mark.
func (d *document) around() string {
	return string(d.text[d.base:d.root.open-1]) + string(d.text[d.root.close+1:])
}

// madeByUs reports whether a container that has nothing but our elements was made to hold them: white space stands behind
// its bracket, see [node.render], and nobody's comment in it.
func (c *container) madeByUs() bool {
	first, last := c.elements[0], c.elements[len(c.elements)-1]
	lead, end := c.text[c.open:first.start], c.text[max(last.end, c.trailing):c.close]
	return len(lead) > 0 && len(bytes.TrimSpace(lead)) == 0 && len(bytes.TrimSpace(end)) == 0
}

// removal collects what is to go.
type removal struct{ spans []span }

type span struct{ start, end int }

// from takes the elements that go out of a container, and reports whether nothing is left and we had made it: then it is
// the caller's to take out the whole.
func (r *removal) from(c *container, goes func(element) bool) (whole bool) {
	gone := make([]bool, len(c.elements))
	before := len(r.spans)
	left := 0
	for i, e := range c.elements {
		if gone[i] = goes(e); !gone[i] {
			left++
		}
	}
	switch {
	case left == len(c.elements):
		return false
	case left == 0:
		first, last := c.elements[0], c.elements[len(c.elements)-1]
		r.spans = append(r.spans[:before], span{first.start, max(last.end, c.trailing)})
		return c.madeByUs()
	}
	for i, e := range c.elements {
		switch {
		case !gone[i]:
		case i > 0 && r.survivorBefore(gone, i):
			r.spans = append(r.spans, span{c.elements[i-1].comma, e.end})
		case !gone[i+1]: // one is left, and all before are gone
			r.spans = append(r.spans, span{c.elements[0].start, c.elements[i+1].start})
		}
	}
	return false
}

// survivorBefore reports whether one before i stays.
func (r *removal) survivorBefore(gone []bool, i int) bool {
	for _, g := range gone[:i] {
		if !g {
			return true
		}
	}
	return false
}

// without returns the text without the spans. Those inside another one count once.
func (d *document) without(spans []span) []byte {
	if len(spans) == 0 {
		return d.text
	}
	drop := make([]bool, len(d.text))
	for _, s := range spans {
		for i := s.start; i < s.end; i++ {
			drop[i] = true
		}
	}
	out := make([]byte, 0, len(d.text))
	for i, b := range d.text {
		if !drop[i] {
			out = append(out, b)
		}
	}
	return out
}

// insert puts a new element behind the last one of a container, in the style of its neighbour. Into an empty container it
// goes without white space in front.
func (d *document) insert(c *container, n node) []byte {
	at, lead := c.open, ""
	if len(c.elements) > 0 {
		last := c.elements[len(c.elements)-1]
		from := c.open
		if len(c.elements) > 1 {
			from = c.elements[len(c.elements)-2].end
		}
		at = last.end
		lead = trailingSpace(string(d.text[from:last.start]))
	}
	st := style{step: d.step()}
	if i := strings.LastIndexByte(lead, '\n'); i >= 0 {
		st.indent, st.newline = lead[i+1:], "\n"
		if i > 0 && lead[i-1] == '\r' {
			st.newline = "\r\n"
		}
		lead = st.newline + st.indent // one line down, also where blank lines stand between
	}
	var added []byte
	if len(c.elements) > 0 {
		added = append(added, ","...)
	}
	added = append(append(added, lead...), n.render(st)...)
	return append(append(bytes.Clone(d.text[:at]), added...), d.text[at:]...)
}

// step is what the file indents by: two blanks unless its first member shows something else.
func (d *document) step() string {
	if len(d.root.elements) > 0 {
		space := trailingSpace(string(d.text[d.root.open:d.root.elements[0].start]))
		if i := strings.LastIndexByte(space, '\n'); i >= 0 && i+1 < len(space) {
			return space[i+1:]
		}
	}
	return "  "
}

func trailingSpace(text string) string {
	return text[len(strings.TrimRight(text, " \t\r\n")):]
}
