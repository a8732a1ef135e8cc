package roster

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/jsonschema-go/jsonschema"
	"go.yaml.in/yaml/v4"

	"github.com/outlive-mcp/outlive/internal/problem"
)

// shape is what a value has to look like: how it is read, and how JSON Schema says it. Reader and schema are one table,
// so that they cannot disagree.
type shape struct {
	read   func(r *reader, v value)
	schema func() *jsonschema.Schema
	// group marks what may be empty: a list or a mapping without anything in it is as good as not given.
	group bool
}

// key is a key of a mapping.
type key struct {
	name     string
	shape    shape
	doc      string
	required bool
}

// object is a mapping with known keys. They are read in the order of the table. Others are kept by [Edit], and warned of.
func object(keys ...key) shape {
	read := func(r *reader, v value) {
		if v.Kind != yaml.MappingNode {
			r.wrong(v.Node, "write its keys below it", "%s is %s", v.label, is(v.Node))
			return
		}
		given := map[string]field{}
		for _, f := range r.fields(v.Node) {
			k := slices.IndexFunc(keys, func(k key) bool { return k.name == f.name || camel(k.name) == f.name })
			switch {
			case k >= 0 && given[keys[k].name].key != nil:
				r.wrong(f.key, "keep one of them", "%q is given twice: it is also called %q", f.name, given[keys[k].name].name)
			case k >= 0:
				given[keys[k].name] = f
			case !strings.HasPrefix(f.name, "x-"):
				r.odd(f.key, problem.DidYouMean(f.name, keyNames(keys), nil), "unknown key %q", problem.Shortened(f.name))
			}
		}
		for _, k := range keys {
			f, ok := given[k.name]
			switch {
			case ok:
				r.read(k.shape, f, strings.TrimPrefix(v.label+"."+k.name, "."))
			case k.required:
				r.wrong(v.Node, "", "%s has no %s", cmp.Or(v.label, "the registry"), k.name)
			}
		}
	}
	return shape{read: read, group: true, schema: func() *jsonschema.Schema { return objectSchema(keys) }}
}

// camel is how S4 writes a key: ack_timeout is ackTimeout.
func camel(name string) string {
	words := strings.Split(name, "_")
	for i := 1; i < len(words); i++ {
		if words[i] != "" {
			words[i] = strings.ToUpper(words[i][:1]) + words[i][1:]
		}
	}
	return strings.Join(words, "")
}

func keyNames(keys []key) []string {
	var names []string
	for _, k := range keys {
		names = append(names, k.name)
	}
	return names
}

func (r *reader) read(s shape, f field, label string) {
	if isNull(f.value) {
		if !s.group {
			r.wrong(f.value, "write a value, or remove the key", "%s is empty", label)
		}
		return
	}
	s.read(r, value{f.value, label})
}

// dict is a mapping whose keys are names.
func dict(each func(r *reader, f field, label string), names, entry func() *jsonschema.Schema) shape {
	read := func(r *reader, v value) {
		if v.Kind != yaml.MappingNode {
			r.wrong(v.Node, "want names with a value each", "%s is %s", v.label, is(v.Node))
			return
		}
		for _, f := range r.fields(v.Node) {
			if !strings.HasPrefix(f.name, "x-") {
				each(r, f, strings.TrimPrefix(v.label+"."+f.name, "."))
			}
		}
	}
	return shape{read: read, group: true, schema: func() *jsonschema.Schema {
		return &jsonschema.Schema{Types: []string{"object", "null"}, PropertyNames: names(), AdditionalProperties: entry()}
	}}
}

// text is a scalar. check says what is wrong with it; nil: nothing can be.
func text(to *string, pattern string, check func(string) (message, hint string)) shape {
	return shape{
		read: func(r *reader, v value) {
			if s, ok := r.scalar(v, check); ok {
				*to = s
			}
		},
		schema: func() *jsonschema.Schema { return &jsonschema.Schema{Type: "string", Pattern: pattern} },
	}
}

// scalar reads what may be written without quotes: a port, a time of day, yes.
func (r *reader) scalar(v value, check func(string) (message, hint string)) (string, bool) {
	if v.Kind != yaml.ScalarNode || isNull(v.Node) {
		r.wrong(v.Node, "want a text", "%s is %s", v.label, is(v.Node))
		return "", false
	}
	if check != nil {
		if message, hint := check(v.Value); message != "" {
			r.wrong(v.Node, hint, "%s: %q %s", v.label, problem.Shortened(v.Value), message)
			return "", false
		}
	}
	return v.Value, true
}

// list is a list of scalars; a single one may stand without brackets.
func list(to *[]string, entry func() *jsonschema.Schema, check func(string) (message, hint string)) shape {
	read := func(r *reader, v value) {
		nodes := v.Content
		switch {
		case v.Kind == yaml.ScalarNode:
			nodes = []*yaml.Node{v.Node}
		case v.Kind != yaml.SequenceNode:
			r.wrong(v.Node, "want a list: [one, two]", "%s is %s", v.label, is(v.Node))
			return
		}
		items := []string{}
		for i, n := range nodes {
			if s, ok := r.scalar(value{resolve(n), fmt.Sprintf("%s[%d]", v.label, i)}, check); ok {
				items = append(items, s)
			}
		}
		*to = items
	}
	return shape{read: read, group: true, schema: func() *jsonschema.Schema {
		l := &jsonschema.Schema{Types: []string{"array", "null"}, Items: entry()}
		return &jsonschema.Schema{AnyOf: []*jsonschema.Schema{l, entry()}}
	}}
}

// command is a list of arguments; a line of shell is a mistake that is better told than guessed at.
func command(to *[]string) shape {
	s := list(to, anyText, nil)
	inner := s.read
	s.schema = func() *jsonschema.Schema {
		return &jsonschema.Schema{Types: []string{"array", "null"}, Items: anyText()}
	}
	s.read = func(r *reader, v value) {
		if v.Kind == yaml.ScalarNode {
			r.wrong(v.Node, fmt.Sprintf("want the program and its arguments: [%s]", strings.Join(strings.Fields(problem.Shortened(v.Value)), ", ")), "%s is %s", v.label, is(v.Node))
			return
		}
		inner(r, v)
		if v.Kind == yaml.SequenceNode && len(v.Content) > 0 && resolve(v.Content[0]).Value == "" {
			r.wrong(v.Content[0], "", "%s names no program", v.label)
		}
	}
	return s
}

func anyText() *jsonschema.Schema {
	return &jsonschema.Schema{Types: []string{"string", "number", "boolean"}}
}

func anyOf(words []string) func() *jsonschema.Schema {
	return func() *jsonschema.Schema {
		enum := make([]any, len(words))
		for i, w := range words {
			enum[i] = w
		}
		return &jsonschema.Schema{Enum: enum}
	}
}

// oneOf wants one of the words.
func oneOf(words []string) func(string) (message, hint string) {
	return func(s string) (string, string) {
		if slices.Contains(words, s) {
			return "", ""
		}
		return "is not known here", problem.DidYouMean(s, words, nil)
	}
}

func word[T ~string](to *T, words []T) shape {
	var plain []string
	for _, w := range words {
		plain = append(plain, string(w))
	}
	return shape{schema: anyOf(plain), read: func(r *reader, v value) {
		if s, ok := r.scalar(v, oneOf(plain)); ok {
			*to = T(s)
		}
	}}
}

// durationPattern are durations as Go writes them.
const durationPattern = `^([0-9]+(\.[0-9]+)?(ns|us|µs|ms|s|m|h))+$`

func checkDuration(s string) (message, hint string) {
	d, err := time.ParseDuration(s)
	switch {
	case err == nil && d <= 0:
		return "is not longer than 0", "leave the key out for the default"
	case err == nil:
		return "", ""
	case s != "" && strings.Trim(s, "0123456789") == "":
		return "has no unit", "write " + problem.Shortened(s) + "s or " + problem.Shortened(s) + "m"
	}
	return "is no duration", "write it like 30s, 2m or 1h30m"
}

func duration(to *time.Duration) shape {
	var s string
	t := text(&s, durationPattern, checkDuration)
	inner := t.read
	t.read = func(r *reader, v value) {
		s = ""
		if inner(r, v); s != "" {
			*to, _ = time.ParseDuration(s)
		}
	}
	return t
}

func limit(to *Limit) shape {
	return shape{
		read: func(r *reader, v value) {
			if s, ok := r.scalar(v, checkLimit); ok {
				*to, _ = ParseLimit(s)
			}
		},
		schema: limitSchema,
	}
}

func checkLimit(s string) (message, hint string) {
	if _, err := ParseLimit(s); err != nil {
		return "is no limit", "write it like 5/1h or 2/phase"
	}
	return "", ""
}

func limitSchema() *jsonschema.Schema {
	return &jsonschema.Schema{Type: "string", Pattern: limitPattern}
}

func yes(to *bool) shape {
	return shape{
		read: func(r *reader, v value) {
			if v.Kind != yaml.ScalarNode || v.Tag != "!!bool" {
				r.wrong(v.Node, "want true or false", "%s is %s", v.label, is(v.Node))
				return
			}
			*to = strings.EqualFold(v.Value, "true")
		},
		schema: func() *jsonschema.Schema { return &jsonschema.Schema{Type: "boolean"} },
	}
}

// count is a whole number from least to most.
func count(to *int, least, most int) shape {
	return shape{
		read: func(r *reader, v value) {
			n, err := strconv.Atoi(v.Value)
			if v.Kind != yaml.ScalarNode || err != nil || n < least || n > most {
				r.wrong(v.Node, fmt.Sprintf("want a whole number from %d to %d", least, most), "%s is %s", v.label, is(v.Node))
				return
			}
			*to = n
		},
		schema: func() *jsonschema.Schema {
			from, to := float64(least), float64(most)
			return &jsonschema.Schema{Type: "integer", Minimum: &from, Maximum: &to}
		},
	}
}

// amount is a number above 0.
func amount(to *float64) shape {
	return shape{
		read: func(r *reader, v value) {
			f, err := strconv.ParseFloat(v.Value, 64)
			if v.Kind != yaml.ScalarNode || err != nil || !(f > 0) || math.IsInf(f, 0) {
				r.wrong(v.Node, "want a number above 0", "%s is %s", v.label, is(v.Node))
				return
			}
			*to = f
		},
		schema: func() *jsonschema.Schema {
			zero := 0.0
			return &jsonschema.Schema{Type: "number", ExclusiveMinimum: &zero}
		},
	}
}

// given fills in what a pointer points to, and makes it when there is none.
func given[T any](to **T, of func(*T) shape) shape {
	fresh := new(T)
	s := of(fresh)
	inner := s.read
	s.read = func(r *reader, v value) {
		before := len(r.problems)
		if inner(r, v); len(r.problems) == before {
			*to = fresh
		}
	}
	return s
}

// perClass is a mapping from classes of stalls to something.
func perClass[T any](to *map[string]T, of func(*T) shape) shape {
	return dict(func(r *reader, f field, label string) {
		if message, hint := oneOf(Classes())(f.name); message != "" {
			r.wrong(f.key, hint, "%s: %q %s", label, problem.Shortened(f.name), message)
			return
		}
		var one T
		r.read(of(&one), f, label)
		if *to == nil {
			*to = map[string]T{}
		} else {
			*to = maps.Clone(*to)
		}
		(*to)[f.name] = one
	}, anyOf(Classes()), func() *jsonschema.Schema { return of(new(T)).schema() })
}
