package registry

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/outlive-mcp/outlive/internal/agents/recovery"
	"github.com/outlive-mcp/outlive/internal/files/fileerror"
	"github.com/outlive-mcp/outlive/internal/files/lazyregexp"
	"github.com/outlive-mcp/outlive/internal/files/schema"
	"github.com/outlive-mcp/outlive/internal/files/tree"
)

// The shapes of the registry's schema store the values that they read, so that the schema is also the reader.

const notes = "for anchors and notes"

// object is a mapping with known keys, each also in PIV's spelling. Unknown keys are mistakes, except
// those that begin with x-, which [Edit] keeps.
func object(keys ...schema.Key) *schema.Shape {
	for i := range keys {
		if other := camel(keys[i].Name); other != keys[i].Name {
			keys[i].Also = other
		}
	}
	return &schema.Shape{Kind: schema.Object, Keys: keys, Open: notes}
}

// camel is PIV's spelling of a key: ackTimeout for ack_timeout.
func camel(name string) string {
	words := strings.Split(name, "_")
	for i := 1; i < len(words); i++ {
		if words[i] != "" {
			words[i] = strings.ToUpper(words[i][:1]) + words[i][1:]
		}
	}
	return strings.Join(words, "")
}

// shorthand is a group that may be given as its most important value alone.
func shorthand(alone, whole *schema.Shape) *schema.Shape {
	whole.Alone = alone
	whole.Amend = func(s *jsonschema.Schema) { s.AnyOf[1].Type, s.AnyOf[1].Types = "", []string{"object", "null"} }
	return whole
}

// dict is a mapping whose keys are names. take is called for each valid entry.
func dict(names *schema.Form, of *schema.Shape, take func(f *tree.Node, label string)) *schema.Shape {
	return &schema.Shape{Kind: schema.Dict, Open: notes, Names: names, Of: of,
		Take: func(n *tree.Node, label string) {
			for _, f := range n.Members() {
				if !f.Bad && !strings.HasPrefix(f.Key, "x-") {
					take(f, label+"."+fileerror.Shortened(f.Key))
				}
			}
		},
		Amend: func(s *jsonschema.Schema) { s.PropertyNames.Type = "string" }}
}

// text may be written without quotes, even if it looks like a port, a time of day, or yes.
func text(to *string, form *schema.Form) *schema.Shape {
	return &schema.Shape{Kind: schema.Text, Form: form, Take: func(n *tree.Node, _ string) { *to = n.Raw }}
}

// anyText is a text that may be written without quotes in the JSON Schema, too.
func anyText(more ...string) *schema.Shape {
	return &schema.Shape{Kind: schema.Text, Amend: func(s *jsonschema.Schema) {
		s.Type, s.Types = "", append([]string{"string", "number", "boolean"}, more...)
	}}
}

// list is a list of scalars; a single one may be given without brackets.
func list(to *[]string, of *schema.Shape) *schema.Shape {
	return &schema.Shape{Kind: schema.ListOrText, Of: of, Take: func(n *tree.Node, _ string) { *to = texts(n) }}
}

// items returns a list's items, or the one value that is given instead of a list.
func items(n *tree.Node) []*tree.Node {
	if n.Kind == tree.List {
		return n.Items()
	}
	return []*tree.Node{n}
}

// texts returns a list's texts. For an empty list it is not nil, because the list was given.
func texts(n *tree.Node) []string {
	list := []string{}
	for _, item := range items(n) {
		list = append(list, item.Raw)
	}
	return list
}

// command is a list of arguments. A shell command line is reported as a mistake instead of being split.
func (r *reader) command(to *[]string) *schema.Shape {
	return &schema.Shape{Kind: schema.List, Of: anyText(), Instead: func(line string) string {
		return fmt.Sprintf("want the program and its arguments: [%s]", strings.Join(strings.Fields(fileerror.Shortened(line)), ", "))
	}, Take: func(n *tree.Node, label string) {
		if *to = texts(n); len(*to) > 0 && (*to)[0] == "" {
			r.Problem(n.Items()[0].Pos, label+" names no program", "")
		}
	}}
}

func oneOf[T ~string](words []T) *schema.Shape {
	s := &schema.Shape{Kind: schema.Word}
	for _, w := range words {
		s.Words = append(s.Words, string(w))
	}
	return s
}

func word[T ~string](to *T, words []T) *schema.Shape {
	s := oneOf(words)
	s.Take = func(n *tree.Node, _ string) { *to = T(n.Raw) }
	return s
}

var durationForm = &schema.Form{Pattern: lazyregexp.New(`^([0-9]+(\.[0-9]+)?(ns|us|µs|ms|s|m|h))+$`), Judge: func(s string) (message, hint string) {
	d, err := time.ParseDuration(s)
	switch {
	case err == nil && d <= 0:
		return "is not longer than 0", "leave the key out for the default"
	case err == nil:
		return "", ""
	case s != "" && strings.Trim(s, "0123456789") == "":
		return "has no unit", "write " + fileerror.Shortened(s) + "s or " + fileerror.Shortened(s) + "m"
	}
	return "is not a duration", "write it like 30s, 2m or 1h30m"
}}

func duration(to *time.Duration) *schema.Shape {
	return &schema.Shape{Kind: schema.Text, Form: durationForm, Take: func(n *tree.Node, _ string) { *to, _ = time.ParseDuration(n.Raw) }}
}

// durationUpTo is a duration with a limit, which stands for longer ones.
func durationUpTo(to *time.Duration, most time.Duration) *schema.Shape {
	s, form := duration(to), *durationForm
	form.Old = func(text string) (message, hint string) {
		if d, err := time.ParseDuration(text); err != nil || d <= most {
			return "", ""
		}
		return "counts as " + recovery.FormatDuration(most), "write at most " + recovery.FormatDuration(most)
	}
	s.Form, s.Take = &form, func(n *tree.Node, _ string) {
		d, _ := time.ParseDuration(n.Raw)
		*to = min(d, most)
	}
	return s
}

var limitForm = &schema.Form{Pattern: recovery.BudgetForm, Judge: func(s string) (message, hint string) {
	if _, err := recovery.ParseBudget(s); err != nil {
		return "is not a limit", "write it like 5/1h or 2/phase"
	}
	return "", ""
}}

func limit(to *recovery.Budget) *schema.Shape {
	return &schema.Shape{Kind: schema.Text, Form: limitForm, Take: func(n *tree.Node, _ string) { *to, _ = recovery.ParseBudget(n.Raw) }}
}

func yes(to *bool) *schema.Shape {
	return &schema.Shape{Kind: schema.Bool, Take: func(n *tree.Node, _ string) { *to = n.Value == "true" }}
}

// count is a whole number from least to most.
func count(to *int, least, most int) *schema.Shape {
	return &schema.Shape{Kind: schema.Count, Least: least, Most: most, Take: func(n *tree.Node, _ string) { *to, _ = strconv.Atoi(n.Raw) }}
}

// never is the word for [NeverDone].
const never = "never"

var exitForm = &schema.Form{Judge: func(s string) (message, hint string) {
	if _, err := strconv.ParseUint(s, 10, 8); err != nil && s != never {
		return "is not an exit status", "write a whole number from 0 to 255, or never"
	}
	return "", ""
}}

// exitStatus is the status that means done, or the word for [NeverDone].
func exitStatus(to **int) *schema.Shape {
	return &schema.Shape{Kind: schema.Text, Form: exitForm, Take: func(n *tree.Node, _ string) {
		status, err := strconv.Atoi(n.Raw)
		if err != nil {
			status = NeverDone
		}
		*to = &status
	}, Amend: func(s *jsonschema.Schema) {
		least, most := 0.0, 255.0
		*s = jsonschema.Schema{AnyOf: []*jsonschema.Schema{{Type: "integer", Minimum: &least, Maximum: &most}, schema.Enum([]string{never})}}
	}}
}

func amount(to *float64) *schema.Shape {
	return &schema.Shape{Kind: schema.Amount, Above: true, Take: func(n *tree.Node, _ string) { *to, _ = strconv.ParseFloat(n.Raw, 64) }}
}

// given reads into *to, which it allocates if it is nil.
func given[T any](to **T, of func(*T) *schema.Shape) *schema.Shape {
	fresh := new(T)
	s := of(fresh)
	take := s.Take
	s.Take = func(n *tree.Node, label string) {
		take(n, label)
		*to = fresh
	}
	return s
}

// perClass is a mapping from classes of stalls to values.
func perClass[T any](to *map[string]T, of func(*T) *schema.Shape) *schema.Shape {
	var one T
	entry := of(&one)
	read := entry.Take
	entry.Take = func(n *tree.Node, label string) {
		read(n, label)
		if *to == nil {
			*to = map[string]T{}
		}
		(*to)[n.Key] = one
	}
	return &schema.Shape{Kind: schema.Dict, Open: notes, Names: classes, Of: entry, Amend: func(s *jsonschema.Schema) {
		s.PropertyNames = schema.Enum(Classes())
	}}
}

// stallBlind is a class that policy and budget could name in earlier releases, and nothing came of it.
const stallBlind = "monitor_blind"

// classes are the valid keys of policy and budget.
var classes = &schema.Form{Judge: func(s string) (message, hint string) {
	if s == stallBlind || slices.Contains(Classes(), s) {
		return "", ""
	}
	return "is not a class of stalls", fileerror.DidYouMean(s, Classes(), nil)
}, Old: func(s string) (message, hint string) {
	if s != stallBlind {
		return "", ""
	}
	return "has no effect", "remove it: a human is always told after three looks, and nothing else is done"
}}
