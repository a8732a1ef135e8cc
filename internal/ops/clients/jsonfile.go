package clients

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/tailscale/hujson"

	"github.com/outlive-mcp/outlive/internal/protocol/jsonrpc"
)

// byteOrderMark begins files that Windows editors wrote.
const byteOrderMark = "\ufeff"

// jsonFile collects what is found in a JSON text. Offsets of hujson count from behind the byte order mark.
type jsonFile struct {
	text    []byte
	base    int
	objects int
	entries []entry
}

func parseJSON(text []byte, paths [][]string) (*document, error) {
	f := &jsonFile{text: text}
	if bytes.HasPrefix(text, []byte(byteOrderMark)) {
		f.base = len(byteOrderMark)
	}
	doc := &document{text: text, quote: quoteJSON, gateway: f.gatewayEntry}
	if len(bytes.TrimSpace(text[f.base:])) == 0 {
		return doc, nil // clients make empty files
	}
	// A newline is added because a comment may end the file without one.
	root, err := hujson.Parse(append(bytes.Clone(text[f.base:]), '\n'))
	if err != nil {
		return nil, fmt.Errorf("parse JSON: %w", err)
	}
	for _, path := range paths {
		f.walk(root, nil, path)
	}
	doc.entries = f.entries
	return doc, nil
}

// walk goes down rest from v, which stands at path done, and reads the servers there.
func (f *jsonFile) walk(v hujson.Value, done, rest []string) {
	obj, ok := v.Value.(*hujson.Object)
	if !ok {
		return
	}
	if len(rest) == 0 {
		f.readServers(obj, v, done)
		return
	}
	for i, m := range obj.Members {
		name := literal(m.Name)
		if (rest[0] == "*" || rest[0] == name) && lastOf(obj, name) == i {
			f.walk(m.Value, append(done[:len(done):len(done)], name), rest[1:])
		}
	}
}

// lastOf returns the index of the last member of that name, the one that counts, or -1.
func lastOf(obj *hujson.Object, name string) int {
	for i := len(obj.Members) - 1; i >= 0; i-- {
		if literal(obj.Members[i].Name) == name {
			return i
		}
	}
	return -1
}

func member(obj *hujson.Object, name string) (hujson.Value, bool) {
	i := lastOf(obj, name)
	if i < 0 {
		return hujson.Value{}, false
	}
	return obj.Members[i].Value, true
}

func (f *jsonFile) readServers(obj *hujson.Object, v hujson.Value, scope []string) {
	before := f.base + v.StartOffset + 1
	for i, m := range obj.Members {
		e := entry{Server: Server{Scope: scope, Name: literal(m.Name)}, object: f.objects}
		e.place = []span{{f.base + m.Name.StartOffset, f.base + m.Value.EndOffset}}
		e.commas = commas{listed: true, before: before, after: f.commaAfter(m.Value, i == len(obj.Members)-1)}
		before = e.commas.after + 1
		if lastOf(obj, e.Name) != i {
			e.Odd = "the name stands there again further down"
		} else if body, ok := m.Value.Value.(*hujson.Object); ok {
			f.readServer(&e, body)
		} else {
			e.Odd = "no object"
		}
		f.entries = append(f.entries, e)
	}
	f.objects++
}

// commaAfter is the offset of the comma behind a value, -1 when there is none.
func (f *jsonFile) commaAfter(v hujson.Value, last bool) int {
	if last && v.AfterExtra == nil {
		return -1
	}
	return f.base + v.EndOffset + len(v.AfterExtra)
}

func (f *jsonFile) readServer(e *entry, body *hujson.Object) {
	e.Env = f.environment(body)
	e.Dir = text(body, "cwd")
	e.URL = firstText(body, "url", "httpUrl", "serverUrl")
	e.Disabled = flag(body, "disabled", true) || flag(body, "enabled", false) || flag(body, "isActive", false)
	if text(body, "envFile") != "" {
		e.Needs = append(e.Needs, "envFile")
	}
	command, ok := member(body, "command")
	holder, key := body, "command"
	if inner, nested := command.Value.(*hujson.Object); ok && nested { // Zed before 2026 wrote {"path": …, "args": …}
		if e.Env == nil {
			e.Env = f.environment(inner)
		}
		holder, key = inner, "path"
		command, ok = member(inner, key)
	}
	switch {
	case !ok && e.URL != "":
		return
	case !ok:
		e.Odd = "neither command nor url"
		return
	case command.Value.Kind() != '"' || literal(command) == "":
		e.Odd = key + " is no text"
		return
	}
	e.Command = literal(command)
	e.command = span{f.base + command.StartOffset, f.base + command.EndOffset}
	f.readArgs(e, holder, lastOf(holder, key))
}

// readArgs reads the member args of holder, whose member at index command is the command.
func (f *jsonFile) readArgs(e *entry, holder *hujson.Object, command int) {
	at := lastOf(holder, "args")
	if at < 0 {
		e.addAt = e.command.end
		lead := " "
		if space := trailingSpace(string(holder.Members[command].Name.BeforeExtra)); strings.Contains(space, "\n") {
			lead = space
		}
		e.addBefore = "," + lead + `"args": `
		return
	}
	v := holder.Members[at].Value
	array, ok := v.Value.(*hujson.Array)
	if !ok {
		e.Odd = "args is no array"
		return
	}
	e.args = &list{open: f.base + v.StartOffset}
	for i, el := range array.Elements {
		if el.Value.Kind() != '"' {
			e.Odd = "args holds something that is no text"
			return
		}
		e.Args = append(e.Args, literal(el))
		e.args.items = append(e.args.items, item{at: span{f.base + el.StartOffset, f.base + el.EndOffset}, text: literal(el),
			comma: f.commaAfter(el, i == len(array.Elements)-1)})
	}
	switch {
	case at > 0:
		e.remove = span{f.commaAfter(holder.Members[at-1].Value, false), f.base + v.EndOffset}
	case len(holder.Members) > 1:
		e.remove = span{f.base + holder.Members[0].Name.StartOffset, f.base + holder.Members[1].Name.StartOffset}
	}
}

func (f *jsonFile) environment(body *hujson.Object) map[string]string {
	v, _ := member(body, "env")
	obj, ok := v.Value.(*hujson.Object)
	if !ok {
		return nil
	}
	env := map[string]string{}
	for _, m := range obj.Members {
		if m.Value.Value.Kind() != 'n' { // null takes a variable away in VS Code
			env[literal(m.Name)] = literal(m.Value)
		}
	}
	return env
}

// gatewayEntry writes an entry in the style of its neighbour: on one line, or on several with its indentation.
func (f *jsonFile) gatewayEntry(like entry, name string, argv []string) string {
	indent := trailingSpace(string(f.text[like.commas.before:like.place[0].start]))
	if i := strings.LastIndexByte(indent, '\n'); i >= 0 {
		indent = indent[i+1:]
		if i > 0 && f.text[like.commas.before+i-1] == '\r' {
			indent = "\r\n" + indent
		} else {
			indent = "\n" + indent
		}
	} else {
		indent = ""
	}
	quoted := make([]string, len(argv)-1)
	for i, arg := range argv[1:] {
		quoted[i] = quoteJSON(arg)
	}
	command, args := `"command": `+quoteJSON(argv[0]), `"args": [`+strings.Join(quoted, ", ")+"]"
	if indent == "" {
		return quoteJSON(name) + ": {" + command + ", " + args + "}"
	}
	step := "  "
	if strings.Contains(indent, "\t") {
		step = "\t"
	}
	return quoteJSON(name) + ": {" + indent + step + command + "," + indent + step + args + indent + "}"
}

func quoteJSON(s string) string { return string(jsonrpc.AppendQuoted(nil, s)) }

func literal(v hujson.Value) string {
	l, ok := v.Value.(hujson.Literal)
	if !ok {
		return ""
	}
	return l.String()
}

// text returns the member as text, "" when it is none.
func text(body *hujson.Object, name string) string {
	v, ok := member(body, name)
	if !ok || v.Value.Kind() != '"' {
		return ""
	}
	return literal(v)
}

func firstText(body *hujson.Object, names ...string) string {
	for _, name := range names {
		if s := text(body, name); s != "" {
			return s
		}
	}
	return ""
}

// flag reports whether the member is there and has this value.
func flag(body *hujson.Object, name string, value bool) bool {
	v, ok := member(body, name)
	return ok && string(hujson.Bool(value)) == literal(v)
}
