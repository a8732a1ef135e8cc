package tree

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/outlive-mcp/outlive/internal/files/fileerror"
)

// Format is the syntax of a text.
type Format uint8

// The formats.
const (
	JSON Format = iota // with comments and trailing commas
	TOML
	YAML
)

// byteOrderMark is at the beginning of files that Windows editors wrote.
const byteOrderMark = "\ufeff"

// ErrUnsafe is wrapped by the error about an edit whose result differs from what was intended.
var ErrUnsafe = errors.New("the edit would change something else, too")

// Doc is a text that is edited. Edits refer to the text as it was opened, and each container accepts only one of
// them; [Doc.Set] and [Doc.Delete] are applied at once.
type Doc struct {
	Root *Node // nil: only white space and comments

	scanner // its text begins after the byte order mark
	mark    string
	source  *fileerror.Source
	splices []splice
	at      int // position of the last edit
}

// Open parses a text. Syntax errors have their position, as a [*fileerror.Problems]; name is the file's name in
// messages.
func Open(format Format, name string, text []byte) (*Doc, error) {
	d := &Doc{scanner: scanner{text: text, format: format}}
	if rest, ok := bytes.CutPrefix(text, []byte(byteOrderMark)); ok {
		d.mark, d.text = byteOrderMark, rest
	}
	d.source = fileerror.NewSource(name, d.text)
	if format == JSON && len(bytes.TrimSpace(d.text)) == 0 {
		return d, nil
	}
	return d, d.failed(d.read(true))
}

func (d *Doc) read(edited bool) []fileerror.Problem {
	if d.format == YAML {
		return d.readYAML(edited)
	}
	if at := tooDeep(d.text); at >= 0 {
		return []fileerror.Problem{{Pos: d.source.At(at), Message: "nested too deeply"}}
	}
	if d.format == TOML {
		return d.readTOML()
	}
	return d.readJSON()
}

// refuse returns the error for something that cannot be edited.
func (d *Doc) refuse(at int, message, hint string) error {
	return d.failed([]fileerror.Problem{{Pos: d.source.At(at), Message: message, Hint: hint}})
}

// failed returns the error for problems, without the lines, because other programs' settings may contain secrets.
func (d *Doc) failed(problems []fileerror.Problem) error {
	for i := range problems {
		problems[i].Secret = true
	}
	return d.source.Problems(problems)
}

// byHand is the hint where no edit is safe.
const byHand = "change it by hand"

// cut replaces a part of the text.
func (d *Doc) cut(from, to int, now string) {
	d.at = from
	d.splices = append(d.splices, splice{from + len(d.mark), string(d.text[from:to]), now})
}

// Format returns the syntax of the text.
func (d *Doc) Format() Format { return d.format }

// Text returns the text with all edits; without any, it is the text that was opened. The result is parsed again: an
// error says that its meaning differs from what was intended.
func (d *Doc) Text() ([]byte, error) {
	if len(d.splices) == 0 {
		return append([]byte(d.mark), d.text...), nil
	}
	text, _, err := d.outcome()
	return text, err
}

func (d *Doc) outcome() ([]byte, *Doc, error) {
	var again *Doc
	text, err := spliced(append([]byte(d.mark), d.text...), d.splices)
	if err == nil {
		again, err = Open(d.format, d.source.Name, text)
	}
	if err == nil && !same(d.Root, again.Root) {
		err = d.refuse(d.at, "this is written in a way that cannot be edited safely", byHand)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("%w: %w", ErrUnsafe, err)
	}
	return text, again, nil
}

// commit applies the edits and continues with the result.
func (d *Doc) commit(err error) error {
	if err != nil {
		return err
	}
	_, again, err := d.outcome()
	if err == nil {
		*d = *again
	}
	return err
}

// Set sets the member at the path; missing objects on the way are created. A value is a string, a bool, a number,
// nil, a []string, a [Map], a []any, or [Raw].
func (d *Doc) Set(v any, path ...string) error { return d.commit(d.set(v, path)) }

func (d *Doc) set(v any, path []string) error {
	n, kid, rest, err := d.reach(path)
	switch {
	case err != nil:
		return err
	case kid == nil:
		return d.Insert(n, -1, path[len(path)-len(rest)-1], nest(rest, v))
	}
	return d.Replace(kid, nest(rest, v))
}

// Delete removes the member at the path, if it exists.
func (d *Doc) Delete(path ...string) error { return d.commit(d.remove(path)) }

func (d *Doc) remove(path []string) error {
	n, kid, rest, err := d.reach(path)
	if err != nil || kid == nil || len(rest) > 0 {
		return err
	}
	return d.Remove(n, func(k *Node) bool { return k.Key == kid.Key })
}

// reach follows a path as far as it exists: kid is the last member found in n, or nil, and rest is the rest of the
// path.
func (d *Doc) reach(path []string) (n, kid *Node, rest []string, err error) {
	if d.Root == nil {
		return nil, nil, nil, d.refuse(0, "there is nothing yet", "")
	}
	for n, rest = d.Root, path; ; n = kid {
		switch {
		case n.alias != nil:
			return nil, nil, nil, d.refuse(n.from, n.Key+" is an alias, which others use too", "write it out first")
		case n.Kind != Object:
			return nil, nil, nil, d.refuse(n.from, n.Key+" has no keys", byHand)
		}
		kid, rest = n.Get(rest[0]), rest[1:]
		if kid == nil || len(rest) == 0 || kid.Kind == Null && kid.alias == nil {
			return n, kid, rest, nil
		}
	}
}

// Replace replaces a node's value.
func (d *Doc) Replace(n *Node, v any) error {
	if err := d.Editable(n); err != nil {
		return err
	}
	from, to, lead, quote := n.start, n.end, "", byte(0)
	if from < to {
		quote = d.text[from]
	}
	if n.form == block {
		from, to = n.sep, d.trimmed(n.sep, n.stop)
	}
	if d.format == YAML && (n.start == n.end || n.form == block) {
		lead = " "
	}
	if obj, ok := v.(Map); ok && n.start == n.end && n.up.form == block { // the first entries of a key
		d.insertAt(d.lineEnd(n.sep), d.lines(obj, strings.Repeat(" ", d.column(n.from)+2)))
	} else {
		d.cut(from, to, lead+d.render(v, style{quote: quote}))
	}
	fresh := nodeOf(v)
	n.Kind, n.Raw, n.Value, n.Kids, n.alias, n.form = fresh.Kind, fresh.Raw, fresh.Value, fresh.Kids, nil, leaf
	return nil
}

// Editable refuses a node without a position, or without one of its own.
func (d *Doc) Editable(n *Node) error {
	switch {
	case n.up == nil || !n.placed || n.form == table, len(n.Kids) > 0 && n.form == leaf:
		return d.refuse(max(n.from, 0), "this is written in a way that cannot be edited", byHand)
	case n.start < n.end && d.format == YAML && strings.IndexByte("&!", d.text[n.start]) >= 0, n.property:
		return d.refuse(n.start, "this has an anchor or a tag", byHand)
	}
	return nil
}

// Insert inserts values into a container, before the entry with that index; -1 chooses a suitable place. A member has
// a key; for entries of a list key is "".
func (d *Doc) Insert(n *Node, at int, key string, values ...any) error {
	ready := !slices.ContainsFunc(n.Kids, func(k *Node) bool { return !k.placed })
	switch {
	case n.form == brackets && ready:
		d.insertInBrackets(n, at, key, values)
	case n.form == block && ready && len(n.Kids) > 0:
		d.insertLines(n, key, values)
	case n.form == table && d.insertLine(n, at, key, values):
	default:
		return d.refuse(max(n.from, 0), "nothing can be added here", byHand)
	}
	if at < 0 {
		at = len(n.Kids)
	}
	for i, v := range values {
		fresh := nodeOf(v)
		fresh.Key = key
		n.Kids = slices.Insert(slices.Clip(n.Kids), at+i, fresh)
	}
	return nil
}

// Remove removes entries from a container, and for entries on lines of their own the comment directly above.
func (d *Doc) Remove(n *Node, goes func(*Node) bool) error {
	var left []*Node
	gone := make([]bool, len(n.Kids))
	for i, k := range n.Kids {
		if gone[i] = goes(k); !gone[i] {
			left = append(left, k)
		} else if !k.placed && (n.form != table || k.parts == nil) {
			return d.refuse(max(k.from, 0), "this is written in a way that cannot be taken out", byHand)
		}
	}
	switch {
	case len(left) == len(n.Kids):
		return nil
	case n.form == brackets:
		d.removeFromBrackets(n, gone)
	default:
		for i, k := range n.Kids {
			if !gone[i] {
				continue
			}
			if err := d.removeLines(n, k); err != nil {
				return err
			}
		}
	}
	n.Kids = left
	for up := n.up; up != nil && n.form == table && n.header == nil && len(n.Kids) == 0; n, up = up, up.up { // it has no text left
		up.Kids = slices.DeleteFunc(slices.Clone(up.Kids), func(k *Node) bool { return k == n })
	}
	return nil
}

// splice replaces the text was at byte offset at by now.
type splice struct {
	at       int
	was, now string
}

// spliced is a text with splices that do not overlap, in any order.
func spliced(text []byte, splices []splice) ([]byte, error) {
	var out []byte
	at := 0
	for _, s := range slices.SortedStableFunc(slices.Values(splices), func(a, b splice) int { return a.at - b.at }) {
		if s.at < at || s.at+len(s.was) > len(text) || string(text[s.at:s.at+len(s.was)]) != s.was {
			return nil, fmt.Errorf("splice at byte %d: the text is another one", s.at)
		}
		out = append(append(out, text[at:s.at]...), s.now...)
		at = s.at + len(s.was)
	}
	return append(out, text[at:]...), nil
}
