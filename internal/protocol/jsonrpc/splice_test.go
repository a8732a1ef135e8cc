package jsonrpc

import (
	"encoding/json"
	"errors"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

func TestFind(t *testing.T) {
	for _, tt := range []struct{ doc, key, want string }{
		{`{"a":1,"b":{"a":2}}`, "b", `{"a":2}`},
		{` { "a" : [ 1 ] , "b" : "x" } `, "a", `[ 1 ]`},
		{`{"a":1,"a":2}`, "a", "2"},
		{`{"\u0061":1}`, "a", "1"},
		{`{"":1}`, "", "1"},
		{`{"é":1}`, "é", "1"},
		{`{"a":1}`, "b", ""},
		{`{"a":{"b":1}}`, "b", ""},
		{`{}`, "a", ""},
		{`["a"]`, "a", ""},
		{`{"a":1`, "a", ""},
		{`{"a":1}}`, "a", ""},
		{`{"a":1} {}`, "a", ""},
		{`{"a":1,"b":tru}`, "a", ""},
		{``, "a", ""},
	} {
		if got := string(Find([]byte(tt.doc), tt.key).Of([]byte(tt.doc))); got != tt.want {
			t.Errorf("Find(%s, %q) = %q, want %q", tt.doc, tt.key, got, tt.want)
		}
	}
}

func TestFindPath(t *testing.T) {
	doc := []byte(` {"a":{"b":{"c":"d"}},"n":null,"l":[1]} `)
	for _, tt := range []struct {
		path []string
		want string
	}{
		{nil, `{"a":{"b":{"c":"d"}},"n":null,"l":[1]}`},
		{[]string{"a"}, `{"b":{"c":"d"}}`},
		{[]string{"a", "b", "c"}, `"d"`},
		{[]string{"a", "x", "c"}, ""},
		{[]string{"n", "x"}, ""},
		{[]string{"l", "0"}, ""},
	} {
		if got := string(FindPath(doc, tt.path...).Of(doc)); got != tt.want {
			t.Errorf("FindPath(%q) = %q, want %q", tt.path, got, tt.want)
		}
	}
}

func TestMembersAndElements(t *testing.T) {
	var got []string
	object := []byte(` { "a" : 1, "b\n":[2] ,"a":{} } `)
	for k, v := range Members(object) {
		got = append(got, string(k.Of(object)), string(v.Of(object)))
	}
	array := []byte(` [1, [2] ,"x" ,{}] `)
	for v := range Elements(array) {
		got = append(got, string(v.Of(array)))
	}
	for v := range Elements(array) {
		got = append(got, "first", string(v.Of(array)))
		break
	}
	want := []string{`"a"`, `1`, `"b\n"`, `[2]`, `"a"`, `{}`, `1`, `[2]`, `"x"`, `{}`, "first", "1"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for _, doc := range []string{``, `1`, `{"a":1`, `[1,2`, `{"a":1}x`, `[1] [2]`, `{}`, `[]`, `{"a":1,}`, `[1,]`} {
		for k := range Members([]byte(doc)) {
			t.Errorf("Members(%s) yields %v", doc, k)
		}
		for v := range Elements([]byte(doc)) {
			t.Errorf("Elements(%s) yields %v", doc, v)
		}
	}
}

func TestSet(t *testing.T) {
	for _, tt := range []struct {
		doc  string
		path []string
		want string
	}{
		{`{}`, []string{"a"}, `{"a":V}`},
		{` { } `, []string{"a"}, ` {"a":V } `},
		{`{"a": 1 , "b":2 }`, []string{"a"}, `{"a": V , "b":2 }`},
		{`{"b":2 }`, []string{"a"}, `{"b":2,"a":V }`},
		{`{"a":1,"a":2}`, []string{"a"}, `{"a":1,"a":V}`},
		{`{"\u0061":1}`, []string{"a"}, `{"\u0061":V}`},
		{`{"a":{"b":{"x":1}},"c":1}`, []string{"a", "b", "y"}, `{"a":{"b":{"x":1,"y":V}},"c":1}`},
		{`{"a":{"b":{"x":1}},"c":1}`, []string{"a", "b", "x"}, `{"a":{"b":{"x":V}},"c":1}`},
		{`{"c":1}`, []string{"a", "b", "x\n"}, `{"c":1,"a":{"b":{"x\n":V}}}`},
		{`{"a":{}}`, []string{"a", "b", "c"}, `{"a":{"b":{"c":V}}}`},
		{`{"a":1}`, nil, `V`},
	} {
		got, err := Set([]byte("> "), []byte(tt.doc), []byte("V"), tt.path...)
		if err != nil || string(got) != "> "+tt.want {
			t.Errorf("Set(%s, %q) = %s, %v, want %s", tt.doc, tt.path, got, err, tt.want)
		}
	}
	for doc, path := range map[string][]string{
		``: {"a"}, `1`: {"a"}, `[]`: {"a"}, `{"a":1}x`: {"a"}, `{"a":1`: {"a"}, `{"a":null}`: {"a", "b"}, `{"a":[1]}`: {"a", "0"}, `{"a":"x"}`: {"a", "b", "c"},
	} {
		got, err := Set([]byte("> "), []byte(doc), []byte("V"), path...)
		if !errors.Is(err, ErrNoPlace) || string(got) != "> " {
			t.Errorf("Set(%s, %q) = %q, %v", doc, path, got, err)
		}
	}
}

func TestDelete(t *testing.T) {
	for _, tt := range []struct{ doc, want string }{
		{`{"a":1}`, `{}`},
		{` { "a" : 1 } `, ` {  } `},
		{`{"a":1,"b":2}`, `{"b":2}`},
		{`{"b":2,"a":1}`, `{"b":2}`},
		{`{ "b":2 , "a":1 , "c":3 }`, `{ "b":2 , "c":3 }`},
		{`{"a":1,"a":2}`, `{}`},
		{`{"a":1, "b":2, "a":3, "\u0061":4, "c":5, "a":6}`, `{"b":2, "c":5}`},
		{`{"b":{"a":1}}`, `{"b":{"a":1}}`},
		{`{"a":1`, `{"a":1`},
		{`["a"]`, `["a"]`},
		{``, ``},
	} {
		if got := string(Delete([]byte("> "), []byte(tt.doc), "a")); got != "> "+tt.want {
			t.Errorf("Delete(%s) = %s, want %s", tt.doc, got, tt.want)
		}
	}
}

func TestAppendElements(t *testing.T) {
	one, two := []byte("1"), []byte("2")
	for _, tt := range []struct {
		doc  string
		add  [][]byte
		want string
	}{
		{`[]`, [][]byte{one}, `[1]`},
		{`[ ]`, [][]byte{one, two}, `[1,2 ]`},
		{` [{"x":[]} ] `, [][]byte{one, two}, ` [{"x":[]},1,2 ] `},
		{`[0]`, nil, `[0]`},
		{`{}`, [][]byte{one}, `{}`},
		{`[0`, [][]byte{one}, `[0`},
		{`[0]]`, [][]byte{one}, `[0]]`},
		{``, [][]byte{one}, ``},
	} {
		if got := string(AppendElements([]byte("> "), []byte(tt.doc), tt.add...)); got != "> "+tt.want {
			t.Errorf("AppendElements(%s) = %s, want %s", tt.doc, got, tt.want)
		}
	}
}

func TestReplace(t *testing.T) {
	line := []byte(`{"id":1,"method":"x"}`)
	if got := string(Replace(nil, line, Find(line, "id"), []byte(`"~1"`))); got != `{"id":"~1","method":"x"}` {
		t.Error(got)
	}
}

// decodeObject reads an object as encoding/json does; ok is false when that cannot be compared with raw bytes.
func decodeObject(doc []byte) (map[string]json.RawMessage, bool) {
	var m map[string]json.RawMessage
	err := json.Unmarshal(doc, &m)
	return m, err == nil && m != nil
}

func FuzzSplice(f *testing.F) {
	for _, doc := range []string{`{}`, ` { "a" : 1 , "b" : { "c" : [ ] } } `, `{"a":1,"a":2}`, `{"\u0061":{"x":1},"b":"\n"}`, `{"a":[1,{"b":2}]}`, `[1, 2]`, `{"a":1}}`} {
		f.Add([]byte(doc), "a", "x")
	}
	f.Fuzz(func(t *testing.T, doc []byte, key, inner string) {
		if !utf8.ValidString(key) || !utf8.ValidString(inner) {
			return
		}
		value := []byte(`{"new":[1]}`)
		before, isObject := decodeObject(doc)
		set, err := Set(nil, doc, value, key)
		if (err == nil) != isObject {
			t.Fatalf("Set(%q): %v", doc, err)
		}
		if string(AppendElements(nil, doc)) != string(doc) {
			t.Fatalf("AppendElements(%q) changed it", doc)
		}
		fuzzElements(t, doc)
		if !isObject {
			if got := string(Delete(nil, doc, key)); got != string(doc) {
				t.Fatalf("Delete(%q) = %q", doc, got)
			}
			return
		}
		if found := Find(doc, key).Of(doc); string(found) != string(before[key]) {
			t.Fatalf("Find(%q, %q) = %q, want %q", doc, key, found, before[key])
		}
		without, _ := decodeObject(doc)
		delete(without, key)
		compareObject(t, Delete(nil, doc, key), without)
		before[key] = value
		compareObject(t, set, before)
		if nested, err := Set(nil, set, []byte("7"), key, inner); err != nil || string(FindPath(nested, key, inner).Of(nested)) != "7" {
			t.Fatalf("Set(%q, %q, %q) = %q, %v", set, key, inner, nested, err)
		}
	})
}

func compareObject(t *testing.T, got []byte, want map[string]json.RawMessage) {
	t.Helper()
	m, ok := decodeObject(got)
	if !ok {
		t.Fatalf("no object any more: %q", got)
	}
	if diff := cmp.Diff(want, m); diff != "" {
		t.Fatalf("%q (-want +got):\n%s", got, diff)
	}
}

func fuzzElements(t *testing.T, doc []byte) {
	t.Helper()
	var before, after []json.RawMessage
	if json.Unmarshal(doc, &before) != nil || before == nil {
		return
	}
	var elements []json.RawMessage
	for v := range Elements(doc) {
		elements = append(elements, json.RawMessage(v.Of(doc)))
	}
	grown := AppendElements(nil, doc, []byte("1"), []byte(`"x"`))
	if err := json.Unmarshal(grown, &after); err != nil {
		t.Fatalf("AppendElements(%q) = %q: %v", doc, grown, err)
	}
	if diff := cmp.Diff(append(append([]json.RawMessage{}, before...), json.RawMessage("1"), json.RawMessage(`"x"`)), after); diff != "" {
		t.Fatalf("AppendElements(%q) = %q (-want +got):\n%s", doc, grown, diff)
	}
	if len(elements) != len(before) {
		t.Fatalf("Elements(%q) has %d, want %d", doc, len(elements), len(before))
	}
}

func TestAppendLast(t *testing.T) {
	for object, want := range map[string]string{
		`{}`:                                   `{}`,
		`{"a":1,"b":2}`:                        `{"a":1,"b":2}`,
		`{ "a": 1, "b": 2, "a": 3 }`:           `{"b": 2,"a": 3}`,
		`{"a":1,"\u0061":{"a":1,"a":2},"b":3}`: `{"\u0061":{"a":1,"a":2},"b":3}`,
	} {
		if got := string(AppendLast(nil, []byte(object))); got != want {
			t.Errorf("AppendLast(%s) = %s, want %s", object, got, want)
		}
	}
}

func TestSplice(t *testing.T) {
	line := []byte(`{"id":1, "params":{"_meta":{"progressToken":"t"},"name":"a"}}`)
	params := Find(line, "params")
	meta := Find(params.Of(line), "_meta").In(params)
	changes := []Change{
		{Find(params.Of(line), "name").In(params), []byte(`"b"`)},
		{Find(line, "id"), []byte(`"long id"`)},
		{Find(meta.Of(line), "progressToken").In(meta), []byte(`7`)},
	}
	if got, want := string(Splice([]byte("before "), line, changes...)), `before {"id":"long id", "params":{"_meta":{"progressToken":7},"name":"b"}}`; got != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
	if got := Splice(nil, line); string(got) != string(line) {
		t.Errorf("without changes: %s", got)
	}
}
