package tree

import (
	"bytes"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"encoding/json"
	"github.com/pelletier/go-toml/v2"
	"github.com/tailscale/hujson"
	"go.yaml.in/yaml/v4"
)

var paths = []string{"a", "a.b", "b.c", "n.m", "a.c", "c", "b", "d.e"}

// decode parses a text with the usual library.
func decode(format Format, text []byte) (any, error) {
	text = bytes.TrimPrefix(text, []byte(byteOrderMark))
	var v any
	switch format {
	case JSON:
		standard, err := hujson.Standardize(append(bytes.Clone(text), '\n'))
		if err != nil {
			return nil, err
		}
		d := json.NewDecoder(bytes.NewReader(standard))
		d.UseNumber()
		return v, d.Decode(&v)
	case TOML:
		var m map[string]any
		err := toml.Unmarshal(text, &m)
		return m, err
	}
	if err := yaml.Load(text, &v); err != nil && !noDocument(err) {
		return nil, err
	}
	return v, nil
}

// seeds are texts as people write them.
var seeds = map[Format][]string{
	JSON: {
		"{}", "{\n}\n", `{"a":1}`, "{\"a\": {\"b\": [1, 2]}}", "// top\n{\n  \"a\": 1, // one\n  /* two */ \"b\": {\n    \"c\": [ // none\n    ],\n  },\n} // end",
		"\ufeff{\r\n\t\"a\": [\r\n\t\t{\"b\": null}\r\n\t]\r\n}\r\n", `{"a": {"b": {"c": "x,]}"}}, "a": 2}`, "{\"a\": [\"x\" /* , */ , \"y\",],}",
	},
	TOML: {
		"", "a = 1\n", "# top\na = { b = 1, c = [ 'x', \"y\" ] } # end\n[b]\nc = \"\"\"x\n\"\"\"\"\n\n[b.d]\ne = 1\n[[f]]\na = 1\n[[f]]\na = 2",
		"a.b = 1\na.c = [\n  1, # one\n  2,\n]\n[b]\r\n\tc = { }\r\n", "[a]\n[a.b]\nc = 1 # c", "\ufeffa = 1", "[a]\nb = {c.d = 1, c.e = 2}\n",
	},
	YAML: {
		"a: 1\n", "# top\na:\n  b: 1 # one\n  c: [x, 'y', {z: 1}]\n\n  # two\n  d:\n  - 1\n  - e: f\n    g: h\n# end", "{a: {b: 1}, c: }\n",
		"a: &x\n  b: 1\nc: *x\nd: {<<: *x}\n", "a: |\n  # no comment\n  text\n\nb: >-\n  x\n  y\nc: it's # yes\n", "a:\r\n  b: \"x\"\r\nc:\r\n", "\ufeffa: 'x''y'\nb:\n\n- c: 1\n",
		"a: x\n  y\nb: !!str 1\nc:\n", "--- # first\na: 1\n...\n", "? a\n: 1\n\"b\": 2\n",
	},
}

// apply does to a decoded value what an edit does to its text.
func apply(root any, path []string, v any, gone bool) any {
	m, _ := root.(map[string]any)
	if m == nil && gone {
		return root
	}
	if m == nil {
		m = map[string]any{}
	}
	switch {
	case len(path) > 1 && gone && m[path[0]] == nil:
	case len(path) > 1:
		m[path[0]] = apply(m[path[0]], path[1:], v, gone)
	case gone:
		delete(m, path[0])
	default:
		m[path[0]] = v
	}
	return m
}

// tidy removes empty values.
func tidy(v any) any {
	switch v := v.(type) {
	case nil:
		return nil
	case map[string]any:
		out := map[string]any{}
		for k, e := range v {
			if e = tidy(e); e != nil {
				out[k] = e
			}
		}
		if len(out) == 0 {
			return nil
		}
		return out
	case []any:
		if len(v) == 0 {
			return nil
		}
		out := slices.Clone(v)
		for i := range out {
			out[i] = tidy(out[i])
		}
		return out
	case map[any]any:
		return fmt.Sprint(v)
	case string:
		return v
	}
	return fmt.Sprint(v)
}

// FuzzEdit: the result of an edit has the meaning of the text with that one change, and everything outside of the splices
// is unchanged. What is not edited is refused.
func FuzzEdit(f *testing.F) {
	for format, texts := range seeds {
		for _, text := range texts {
			for _, path := range paths {
				for op := range uint8(8) {
					f.Add(uint8(format), text, path, op, "new, #:'\"")
				}
			}
		}
	}
	for format, least := range map[Format]int{JSON: 200, TOML: 200, YAML: 200} { // else the rest looks at nothing
		done := 0
		for _, text := range seeds[format] {
			for _, path := range paths {
				for op := range uint8(8) {
					if checkEdit(f, format, text, strings.Split(path, "."), op, "w") {
						done++
					}
				}
			}
		}
		if done < least {
			f.Errorf("format %v: only %d edits", format, done)
		}
	}
	f.Fuzz(func(t *testing.T, f uint8, text, dotted string, op uint8, word string) {
		format := Format(f % 3)
		path := strings.Split(strings.ToValidUTF8(dotted, ""), ".")
		if word = strings.ToValidUTF8(word, ""); len(path) > 4 || slices.Contains(path, "") || strings.ContainsRune(word, 0xfeff) {
			return
		}
		checkEdit(t, format, text, path, op, word)
	})
}

func checkEdit(t testing.TB, format Format, text string, path []string, op uint8, word string) (edited bool) {
	was, err := decode(format, []byte(text))
	if err != nil {
		return false
	}
	for at, key := was, 0; key < len(path); key++ { // keys that are no texts are none that an edit is asked for
		m, isMap := at.(map[string]any)
		if _, other := at.(map[any]any); other {
			return false
		} else if isMap {
			at = m[path[key]]
		}
	}
	d, err := Open(format, "f", []byte(text))
	if err != nil || d.Root == nil {
		return false
	}
	values := []struct{ given, read any }{
		{word, word}, {true, true}, {[]string{word, "x"}, []any{word, "x"}},
		{Map{{"k", word}, {"l", []any{Map{{"m", 1}}}}}, map[string]any{"k": word, "l": []any{map[string]any{"m": 1}}}},
	}
	v := values[int(op/2)%len(values)]
	gone := op%2 == 1
	place := whereIs(d, path)
	if gone {
		err = d.remove(path)
	} else {
		err = d.set(v.given, path)
	}
	if err != nil {
		return false
	}
	after, again, err := d.outcome()
	if err != nil {
		return false
	}
	for _, s := range d.splices {
		if !place.allows(s.was, gone) {
			t.Fatalf("%v: it takes %q away\nbefore: %q\nafter: %q", path, s.was, text, after)
		}
	}
	if want, is := nodesOf(d.Root), nodesOf(again.Root); want != is {
		t.Fatalf("the tree says %s, and the text %s", want, is)
	}
	now, err := decode(format, after)
	if err != nil {
		t.Fatalf("%v\nbefore: %q\nafter: %q", err, text, after)
	}
	if want := apply(was, path, v.read, gone); !reflect.DeepEqual(tidy(want), tidy(now)) {
		t.Fatalf("%v %v: want %v, got %v\nbefore: %q\nafter: %q", path, v.given, tidy(want), tidy(now), text, after)
	}
	return true
}

// spot is what an edit may touch.
type spot struct {
	there        bool
	value, entry string // of the member that is edited
	lines        bool   // it has lines of its own
}

func whereIs(d *Doc, path []string) spot {
	_, k, rest, err := d.reach(path)
	if err != nil || k == nil || len(rest) > 0 && k.Kind != Null {
		return spot{}
	}
	if k.up == nil || !k.placed && k.parts == nil {
		return spot{there: true}
	}
	s := spot{there: true, lines: k.up.form != brackets, value: string(d.text[k.start:max(k.start, k.end)])}
	switch {
	case !s.lines:
		for _, twin := range k.up.Kids { // the same key, given twice
			if twin.Key == k.Key && twin.placed {
				s.entry += string(d.text[twin.from:twin.end])
			}
		}
	case k.up.form == block:
		s.entry = string(d.text[k.from:k.stop])
		s.value = strings.TrimSpace(string(d.text[k.sep:max(k.sep, k.stop)]))
	default:
		for _, p := range k.parts {
			s.entry += string(d.text[p.Start:p.End])
		}
	}
	return s
}

// allows reports whether an edit may take this away: nothing when something is new, a value when it gets another, and
// with an entry its comma, white space, and in a block the comment above it.
func (s spot) allows(was string, gone bool) bool {
	bare := strings.TrimSpace(was)
	switch {
	case !s.there:
		return was == ""
	case !gone:
		return strings.Contains(s.value, bare)
	case bare == "" || bare == "," || strings.Contains(s.entry, bare):
		return true
	}
	before, found := strings.CutSuffix(bare, strings.TrimSpace(s.entry))
	for line := range strings.Lines(before) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			return false
		}
	}
	return found && s.lines
}

// nodesOf writes what a tree says, in the order in which the keys are sorted.
func nodesOf(n *Node) string {
	if empty(n) {
		return "-"
	}
	text := fmt.Sprint(n.Kind, n.alias != nil)
	if n.Kind < List {
		text += fmt.Sprintf("%q", n.Value)
	}
	kids := n.Kids
	if n.Kind == Object {
		kids = byKey(kids)
	}
	for _, k := range kids {
		text += fmt.Sprintf(" %q:(%s)", k.Key, nodesOf(k))
	}
	return text
}

// What cannot be edited safely is refused with its place.
func TestRefused(t *testing.T) {
	for _, tt := range []struct {
		format         Format
		text, path, at string
	}{
		{YAML, "a: &x {b: 1}\nc: *x\n", "c.b", "f:2:1: c is an alias"},
		{YAML, "a: 1\nb: &x 2\nc: *x\n", "b", "f:2:"},
		{YAML, "a: 1\nb: [1]\n", "b.c", "f:2:1: b has no keys"},
		{YAML, "a: 1\u2028\n", "a", "f:1:5: a line end that only YAML takes for one"},
		{TOML, "a = {b.c = 1, b.d = 2}\n", "a.b.c", "f:1:"},
		{TOML, "[[a]]\nb = 1\n", "a", "f:1:1: "},
		{JSON, "{\n  \"a\": []\n}", "a.b", "f:2:3: a has no keys"},
		{JSON, "{\"a\": }", "a", "f:1:7: "},
	} {
		d, err := Open(tt.format, "f", []byte(tt.text))
		if err == nil {
			err = d.Set("x", strings.Split(tt.path, ".")...)
		}
		if err == nil || !strings.HasPrefix(err.Error(), tt.at) {
			t.Errorf("%q: %v, want %s", tt.text, err, tt.at)
		}
	}
}

// Entries of lists come and go in all formats.
func TestLists(t *testing.T) {
	for _, tt := range []struct {
		format             Format
		before, put, after string // one more at the end; without the first
	}{
		{JSON, "{\"a\": [\n  1, // one\n  2\n]}", "{\"a\": [\n  1, // one\n  2,\n  \"x\"\n]}", "{\"a\": [ // one\n  2\n]}"},
		{TOML, "a = [\n  1, # one\n  2,\n]", "a = [\n  1, # one\n  2,\n  \"x\",\n]", "a = [ # one\n  2,\n]"},
		{YAML, "a: [1, 2] # two\n", "a: [1, 2, x] # two\n", "a: [2] # two\n"},
		{YAML, "a:\n# one\n- 1\n- 2\nb: 1", "a:\n# one\n- 1\n- 2\n- x\nb: 1", "a:\n# one\n- 2\nb: 1"},
	} {
		for want, change := range map[string]func(*Doc) error{
			tt.put: func(d *Doc) error { return d.Insert(d.Root.Get("a"), -1, "", "x") },
			tt.after: func(d *Doc) error {
				a := d.Root.Get("a")
				return d.Remove(a, func(k *Node) bool { return k.Index() == 0 })
			},
		} {
			d, err := Open(tt.format, "f", []byte(tt.before))
			if err != nil {
				t.Fatal(err)
			}
			err = change(d)
			got, wrong := d.Text()
			if err != nil || wrong != nil || string(got) != want {
				t.Errorf("%v, %v: %q became %q, want %q", err, wrong, tt.before, got, want)
			}
		}
	}
}
