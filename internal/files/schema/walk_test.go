package schema

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/outlive-mcp/outlive/internal/files/fileerror"
	"github.com/outlive-mcp/outlive/internal/files/lazyregexp"
	"github.com/outlive-mcp/outlive/internal/files/tree"
)

// table has a key of every kind, and stores valid values in taken.
func table(taken *[]string) *Shape {
	take := func(n *tree.Node, label string) { *taken = append(*taken, label+" "+n.Value) }
	lower := Matching(lazyregexp.New(`^[a-z]+$`), "is not in lower case", "use small letters")
	text := &Shape{Kind: Text, Form: lower, Take: take}
	return &Shape{Kind: Object, Open: "for notes", Ordered: true, Keys: []Key{
		{Name: "last_word", Also: "lastWord", Shape: &Shape{Kind: Word, Words: []string{"yes", "no", "later"}, Take: take}},
		{Name: "text", Shape: text},
		{Name: "loose", Shape: &Shape{Kind: Text, Loose: true, Take: take}},
		{Name: "flag", Shape: &Shape{Kind: Bool, Take: take}},
		{Name: "count", Shape: &Shape{Kind: Count, Least: 1, Most: 9, Take: take}},
		{Name: "cost", Shape: &Shape{Kind: Amount, Above: true, Take: take}},
		{Name: "time", Shape: &Shape{Kind: Amount, Most: 10, Take: take}},
		{Name: "list", Shape: &Shape{Kind: List, Of: text}},
		{Name: "some", Shape: &Shape{Kind: ListOrText, Of: text}},
		{Name: "dict", Shape: &Shape{Kind: Dict, Names: lower, Of: &Shape{Kind: Text, Null: true, Take: take}, Open: "for notes"}},
		{Name: "token", Shape: &Shape{Kind: Text, Form: lower, Secret: true, Take: take}},
		{Name: "group", Shape: &Shape{Kind: Object, Alone: text, Keys: []Key{{Name: "need", Shape: text, Required: true, Doc: "a text"}}}},
		{Name: "any", Shape: &Shape{Kind: Anything}},
	}}
}

func TestWalk(t *testing.T) {
	for _, tc := range []struct {
		text  string
		taken string   // what was good
		wrong []string // of a strict walk
	}{
		{"text: abc\nlast_word: no", "last_word no, text abc", nil}, // in the order of the table
		{"lastWord: later", "last_word later", nil},
		{"last_word: no\nlastWord: later", "last_word no", []string{`"lastWord" is given twice: it is also called "last_word": keep one of them`}},
		{"last_word: latr", "", []string{`last_word is the text "latr": did you mean "later"?`}},
		{"last_word: [no]", "", []string{"last_word is a list: want yes, no or later"}},
		{"text: ABC", "", []string{`text "ABC" is not in lower case: use small letters`}},
		{"text: 5", "", []string{`text is the number 5: put it in quotes: "5"`}},
		{"text:", "", []string{"text has no value: write one, or remove the key"}},
		{"loose: 5", "loose 5", nil},
		{"loose: true", "", []string{`loose is true: put it in quotes: "true"`}},
		{"flag: TRUE", "flag true", nil},
		{"flag: \"true\"", "", []string{`flag is the text "true": want true or false`}},
		{"count: 9", "count 9", nil},
		{"count: 0", "", []string{"count is the number 0: want a whole number from 1 to 9"}},
		{"count: 10", "", []string{"count is the number 10: want a whole number from 1 to 9"}},
		{"count: \"9\"", "", []string{`count is the text "9": want a whole number from 1 to 9`}},
		{"cost: 0.5", "cost 0.5", nil},
		{"cost: 0", "", []string{"cost is the number 0: want a number above 0"}},
		{"cost: .inf", "", []string{"cost is the number .inf: want a number above 0"}},
		{"time: 0", "time 0", nil},
		{"time: -1", "", []string{"time is the number -1: want a number that is not negative"}},
		{"time: 11", "", []string{"time is the number 11: want a number that is not negative"}},
		{"list: [a, B, ]", "list[0] a", []string{`list[1] "B" is not in lower case: use small letters`}},
		{"list: [a, ~]", "list[0] a", []string{"list[1] is empty: remove it, or write a value"}},
		{"list: a b", "", []string{`list is the text "a b": want a list: ["a b"]`}},
		{"list:\nsome: a", "some a", nil},
		{"some: {a: b}", "", []string{"some is a group of keys: want a list: [one, two]"}},
		{"dict: {a: x, B: y, c: , x-d: 1}", "dict.a x, dict.c ", []string{`"B" is not in lower case: use small letters`}},
		{"dict: a", "", []string{`dict is the text "a": want names with a value each`}},
		{"group: a", "group a", nil},
		{"group: {need: a}", "group.need a", nil},
		{"group: {}", "", []string{"group has no need: add need (a text)"}},
		{"group: [a]", "", []string{"group is a list: want keys, such as need"}},
		{"any: [1, {a: ~}]\nx-note: 1", "", nil},
		{"txt: a", "", []string{`unknown key "txt": did you mean "text"?`}},
		{"group: {need: a, zzz: 1}", "group.need a", []string{`unknown key "zzz" in group: want need`}},
	} {
		var taken []string
		w := &Walk{}
		source := walk(t, w, tc.text, table(&taken))
		var wrong []string
		for _, p := range fileerror.InOrder(w.Problems) {
			first, _, _ := strings.Cut(source.Render(p), "\n")
			_, first, _ = strings.Cut(first, ": ")
			wrong = append(wrong, first)
		}
		if got := strings.Join(taken, ", "); got != tc.taken || !slices.Equal(wrong, tc.wrong) || len(w.Warnings) > 0 {
			t.Errorf("%s: took %q, want %q%s", tc.text, got, tc.taken, cmp.Diff(tc.wrong, wrong))
		}
	}
}

func walk(t *testing.T, w *Walk, text string, s *Shape) *fileerror.Source {
	t.Helper()
	source := fileerror.NewSource("f", []byte(text))
	root, problems := tree.Read(tree.YAML, source)
	if len(problems) > 0 {
		t.Fatal(source.Problems(problems))
	}
	w.Check(root, s, "")
	return source
}

// The manner decides what is a mistake.
func TestManners(t *testing.T) {
	for _, tc := range []struct {
		name               string
		walk               Walk
		text               string
		problems, warnings int
		hint               string // of the first
	}{
		{"strict", Walk{}, "txt: a\ntext:", 2, 0, `did you mean "text"?`},
		{"foreign", Walk{Manner: Foreign}, "txt: a\ntext:", 0, 1, `did you mean "text"?`},
		{"foreign, nothing like it", Walk{Manner: Foreign}, "group: {need: a, zzzzz: a}", 0, 1, ""},
		{"switched off", Walk{Off: true}, "text: 5", 0, 1, `put it in quotes: "5"`},
		{"habit", Walk{Habits: map[string]string{"price": "cost"}}, "price: 1", 1, 0, `did you mean "cost"?`},
		{"unquoted", Walk{Unquoted: true}, "loose: true\ncount: \"9\"", 0, 0, ""},
	} {
		var taken []string
		walk(t, &tc.walk, tc.text, table(&taken))
		hint := ""
		if all := append(tc.walk.Problems, tc.walk.Warnings...); len(all) > 0 {
			hint = all[0].Hint
		}
		if len(tc.walk.Problems) != tc.problems || len(tc.walk.Warnings) != tc.warnings || hint != tc.hint {
			t.Errorf("%s: %v, warnings %v", tc.name, tc.walk.Problems, tc.walk.Warnings)
		}
	}
}

// What only an earlier release took is read, or left out, with a warning that says what to write; a secret is not shown.
func TestOlderValues(t *testing.T) {
	var taken []string
	take := func(n *tree.Node, label string) { taken = append(taken, label+" "+n.Value) }
	form := Matching(lazyregexp.New(`^[a-z]+$`), "is not in lower case", "use small letters")
	form.Old = func(text string) (message, hint string) {
		if text == "old" {
			return "is outdated", "write new"
		}
		return "", ""
	}
	text := &Shape{Kind: Text, Form: form, Take: take}
	table := &Shape{Kind: Object, Keys: []Key{
		{Name: "text", Shape: text},
		{Name: "token", Shape: &Shape{Kind: Text, Form: form, Secret: true, Take: take}},
		{Name: "dict", Shape: &Shape{Kind: Dict, Names: form, Of: text}},
		{Name: "list", Shape: &Shape{Kind: ListOrText, Of: text, Filled: "name one", Take: take}},
		{Name: "none", Shape: &Shape{Kind: List, Of: text, Filled: "name one", Take: take}},
	}}
	w := &Walk{}
	source := walk(t, w, "text: old\ntoken: old\ndict: {old: new, new: old}\nlist: []\nnone: ~\n", table)
	var warned []string
	for _, p := range fileerror.InOrder(w.Warnings) {
		warned = append(warned, source.Render(p))
	}
	want := []string{
		"f:1:7: text \"old\" is outdated: write new\n    text: old\n          ^", "f:2:8: token is outdated: write new",
		"f:3:8: \"old\" is outdated: write new\n    dict: {old: new, new: old}\n           ^",
		"f:3:23: dict.new \"old\" is outdated: write new\n    dict: {old: new, new: old}\n                          ^",
		"f:4:7: list is empty, and counts as not given: name one\n    list: []\n          ^",
		"f:5:7: none is empty, and counts as not given: name one\n    none: ~\n          ^",
	}
	if diff := cmp.Diff(want, warned); diff != "" || len(w.Problems) > 0 {
		t.Errorf("%v %s", w.Problems, diff)
	}
	if got := strings.Join(taken, ", "); got != "text old, token old, dict.new old" {
		t.Errorf("took %s", got)
	}
	w = &Walk{}
	if walk(t, w, "text: OLD\ndict: {OLD: new}", table); len(w.Problems) != 2 {
		t.Errorf("mistakes are still mistakes: %v", w.Problems)
	}
	w = &Walk{Off: true}
	if walk(t, w, "token: OLD", table); len(w.Problems) > 0 || len(w.Warnings) != 1 || !w.Warnings[0].Secret {
		t.Errorf("a secret in a part without effect: %v, warnings %v", w.Problems, w.Warnings)
	}
}

// Filled-in values are checked, and never shown; secret ones are not shown at all.
func TestReferencesAndSecrets(t *testing.T) {
	var taken []string
	w := &Walk{Fill: func(n *tree.Node) bool {
		n.Value = map[string]string{"${count}": "9", "${flag}": "true", "${text}": "S3CRET"}[n.Raw]
		return n.Raw != "${unknown}"
	}}
	source := walk(t, w, "text: ${text}\ncount: ${count}\nflag: ${flag}\ncost: ${unknown}", table(&taken))
	want := "f:1:7: text \"${text}\" is not in lower case: use small letters\n    text: ${text}\n          ^"
	if diff := cmp.Diff(want, source.Problems(w.Problems).Error()); diff != "" {
		t.Error(diff)
	}
	if got := fmt.Sprint(taken); !strings.Contains(got, "flag true") || !strings.Contains(got, "count 9") {
		t.Errorf("took %s", got)
	}
	w = &Walk{}
	source = walk(t, w, "token: S3CRET", table(&taken))
	if got := source.Problems(w.Problems).Error(); got != "f:1:8: token is not in lower case: use small letters" {
		t.Errorf("got %s", got)
	}
}
