package clients

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2/unstable"
)

// tomlFile collects what is found in a TOML text. A server may be a table of its own with tables below it, an inline
// table, or a few dotted keys; all are read as keys with their full path.
type tomlFile struct {
	text    []byte
	parser  unstable.Parser
	objects [][]string
	entries []*tomlEntry
	table   *tomlPart // the table that is being read
}

// tomlEntry is a server as far as it has been read.
type tomlEntry struct {
	entry
	argsKey, commandKey int    // offsets of the keys, -1: none
	prefix              string // what stands before "command" on its line, when the key is dotted
	inline              bool
	parts               []*tomlPart
}

// tomlPart is a stretch of whole lines: a table with its header, or a line that holds an inline table.
type tomlPart struct {
	at    span
	path  []string
	array bool
}

func parseTOML(text []byte, objects [][]string) (*document, error) {
	f := &tomlFile{text: text, objects: objects, table: &tomlPart{}}
	doc := &document{text: text, quote: quoteTOML, gateway: f.gatewayEntry}
	if bytes.HasPrefix(text, []byte(byteOrderMark)) {
		// Blanks have the same length, so that offsets stay those of the file.
		f.text = append([]byte("   "), text[len(byteOrderMark):]...)
	}
	f.parser.Reset(f.text)
	for f.parser.NextExpression() {
		f.read(f.parser.Expression())
	}
	if err := f.parser.Error(); err != nil {
		return nil, fmt.Errorf("parse TOML: %w", err)
	}
	for _, e := range f.entries {
		f.finish(e)
		doc.entries = append(doc.entries, e.entry)
	}
	return doc, nil
}

// read takes in one expression of the top level: a header or a key with its value.
func (f *tomlFile) read(n *unstable.Node) {
	path, first := keyPath(n)
	switch n.Kind {
	case unstable.Table, unstable.ArrayTable:
		start := f.lineStart(first)
		f.table = &tomlPart{at: span{start, f.lineEnd(first)}, path: path, array: n.Kind == unstable.ArrayTable}
		if e := f.entryOf(path); e != nil {
			e.parts = append(e.parts, f.table)
		}
	case unstable.KeyValue:
		end := f.lineEnd(int(n.Raw.Offset + n.Raw.Length))
		if f.table.path != nil {
			f.table.at.end = end
		}
		full := slices.Concat(f.table.path, path)
		if e := f.entryOf(full); e != nil && f.entryOf(f.table.path) == nil {
			e.parts = append(e.parts, &tomlPart{at: span{f.lineStart(first), end}, path: full})
			if len(path) != 1 || len(full) > f.depth(full)+1 {
				e.fixed = "it is written with dotted keys"
			}
		}
		if !f.table.array {
			f.value(full, n, false)
		}
	}
}

// value takes in one key with its value; inline says that it stands inside braces.
func (f *tomlFile) value(path []string, n *unstable.Node, inline bool) {
	v := n.Value()
	if v.Kind == unstable.InlineTable {
		for kids := v.Children(); kids.Next(); {
			below, _ := keyPath(kids.Node())
			f.value(slices.Concat(path, below), kids.Node(), true)
		}
		return
	}
	e := f.entryOf(path)
	if e == nil {
		return
	}
	rest := path[f.depth(path)+1:]
	if len(rest) == 0 {
		e.Odd = "no table"
		return
	}
	f.note(e, rest, n, inline)
}

// note keeps what one key of a server says.
func (f *tomlFile) note(e *tomlEntry, key []string, n *unstable.Node, inline bool) {
	v := n.Value()
	_, at := keyPath(n)
	switch name := strings.Join(key, "."); {
	case name == "command" && v.Kind == unstable.String:
		e.Command, e.commandKey, e.inline = string(v.Data), at, inline
		e.prefix = string(f.text[at:lastKey(n).start])
		e.command = span{int(v.Raw.Offset), int(v.Raw.Offset + v.Raw.Length)}
	case name == "command":
		e.Odd = "command is no text"
	case name == "args" && v.Kind == unstable.Array:
		e.argsKey = at
		e.remove = span{at, int(n.Raw.Offset + n.Raw.Length)}
		f.readArgs(e, n)
	case name == "args":
		e.Odd = "args is no array"
	case name == "cwd":
		e.Dir = string(v.Data)
	case name == "url":
		e.URL = string(v.Data)
	case name == "enabled" && string(v.Data) == "false":
		e.Disabled = true
	case name == "env_vars":
		e.Needs = append(e.Needs, name)
	case len(key) == 2 && key[0] == "env":
		if e.Env == nil {
			e.Env = map[string]string{}
		}
		e.Env[key[1]] = string(v.Data)
	}
}

func (f *tomlFile) readArgs(e *tomlEntry, n *unstable.Node) {
	behind := lastKey(n).end
	e.args = &list{open: behind + bytes.IndexByte(f.text[behind:], '[')}
	for els := n.Value().Children(); els.Next(); {
		el := els.Node()
		if el.Kind != unstable.String {
			e.Odd = "args holds something that is no text"
			return
		}
		at := span{int(el.Raw.Offset), int(el.Raw.Offset + el.Raw.Length)}
		e.Args = append(e.Args, string(el.Data))
		e.args.items = append(e.args.items, item{at: at, text: string(el.Data), comma: f.commaAfter(at.end)})
	}
}

// commaAfter is the offset of the comma that follows, behind white space and comments, -1 when something else does.
func (f *tomlFile) commaAfter(at int) int {
	for at < len(f.text) {
		switch f.text[at] {
		case ' ', '\t', '\r', '\n':
			at++
		case '#':
			at = f.lineEnd(at)
		case ',':
			return at
		default:
			return -1
		}
	}
	return -1
}

// finish works out what needs the whole entry.
func (f *tomlFile) finish(e *tomlEntry) {
	for _, p := range e.parts {
		e.place = append(e.place, p.at)
		if p.array {
			e.Odd = "an array of tables"
		}
	}
	switch {
	case e.Odd != "" || e.Command == "" && e.URL != "":
		return
	case e.Command == "":
		e.Odd = "neither command nor url"
		return
	}
	// A missing args is written before the command, because a comment may follow it on its line.
	e.addAt = e.commandKey
	e.addBefore = e.prefix + "args = "
	e.addAfter = ", "
	if !e.inline {
		indent := string(f.text[f.lineStart(e.commandKey):e.commandKey])
		e.addAfter = f.newline() + indent
	}
	if e.argsKey < 0 {
		return
	}
	between := ""
	if e.commandKey > e.remove.end {
		between = strings.Trim(string(f.text[e.remove.end:e.commandKey]), " \t\r\n")
	}
	switch {
	case e.commandKey > e.remove.end && (between == "" || between == ","):
		e.remove.end = e.commandKey
	case e.inline && f.commaAfter(e.remove.end) >= 0:
		e.remove.end = f.commaAfter(e.remove.end) + 1
	case e.inline: // the last one of the braces: the comma before it goes instead
		e.remove.start = bytes.LastIndexByte(f.text[:e.remove.start], ',')
	default:
		e.remove = span{f.lineStart(e.remove.start), f.lineEnd(e.remove.end)}
	}
}

// depth is the length of the path of the object that path leads into, -1 when it leads into none.
func (f *tomlFile) depth(path []string) int {
	for _, o := range f.objects {
		if len(path) > len(o) && slices.Equal(path[:len(o)], o) {
			return len(o)
		}
	}
	return -1
}

// entryOf returns the server that path leads to or into, nil when it leads to none.
func (f *tomlFile) entryOf(path []string) *tomlEntry {
	d := f.depth(path)
	if d < 0 {
		return nil
	}
	for _, e := range f.entries {
		if e.Name == path[d] && slices.Equal(e.Scope, path[:d]) {
			return e
		}
	}
	e := &tomlEntry{argsKey: -1, commandKey: -1}
	e.Scope, e.Name = slices.Clone(path[:d]), path[d]
	f.entries = append(f.entries, e)
	return e
}

// keyPath returns the keys of a header or of a key with its value, and the offset of the first one.
func keyPath(n *unstable.Node) (path []string, at int) {
	at = -1
	for keys := n.Key(); keys.Next(); {
		k := keys.Node()
		if at < 0 {
			at = int(k.Raw.Offset)
		}
		path = append(path, string(k.Data))
	}
	return path, at
}

// lastKey is where the last part of a dotted key stands.
func lastKey(n *unstable.Node) (at span) {
	for keys := n.Key(); keys.Next(); {
		raw := keys.Node().Raw
		at = span{int(raw.Offset), int(raw.Offset + raw.Length)}
	}
	return at
}

func (f *tomlFile) lineStart(at int) int { return bytes.LastIndexByte(f.text[:at], '\n') + 1 }

// lineEnd is the offset behind the newline that ends the line of at.
func (f *tomlFile) lineEnd(at int) int {
	if i := bytes.IndexByte(f.text[at:], '\n'); i >= 0 {
		return at + i + 1
	}
	return len(f.text)
}

func (f *tomlFile) newline() string {
	if bytes.Contains(f.text, []byte("\r\n")) {
		return "\r\n"
	}
	return "\n"
}

// gatewayEntry writes an entry as a table, or as a line where its neighbour is one.
func (f *tomlFile) gatewayEntry(like entry, name string, argv []string) string {
	quoted := make([]string, len(argv)-1)
	for i, arg := range argv[1:] {
		quoted[i] = quoteTOML(arg)
	}
	command, args := "command = "+quoteTOML(argv[0]), "args = ["+strings.Join(quoted, ", ")+"]"
	was := strings.TrimLeft(like.place[0].of(f.text), " \t")
	if !strings.HasPrefix(was, "[") {
		return name + " = { " + command + ", " + args + " }" + f.newline()
	}
	header := "[" + strings.Join(append(slices.Clone(like.Scope), name), ".") + "]"
	return header + f.newline() + command + f.newline() + args + f.newline()
}

// quoteTOML writes s as a basic string.
func quoteTOML(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case r < ' ' || r == 0x7f:
			fmt.Fprintf(&b, `\u%04X`, r)
		default:
			b.WriteRune(r)
		}
	}
	b.WriteByte('"')
	return b.String()
}
