package config

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/outlive-mcp/outlive/internal/pattern"
	"github.com/outlive-mcp/outlive/internal/problem"
)

// shapeKind is what a value may be.
type shapeKind uint8

const (
	aText       shapeKind = iota
	aWord                 // one of shape.words
	aBool                 // true or false
	aCount                // a whole number of at least shape.least
	anAmount              // a number that is not negative
	aList                 // of shape.of
	aListOrText           // the same, or a single one without brackets
	aDict                 // names of any kind (shape.names), each with a shape.of
	anObject              // the keys of shape.keys
	anything              // a client's business: not looked at
)

// shape is what a value has to look like. The shapes of a format are its table: the reader walks it beside the file,
// and the JSON Schema is made from it.
type shape struct {
	kind  shapeKind
	keys  []key  // of an object, in the order that documentation shows them in
	of    *shape // of a list's or dict's entries
	names *form  // of a dict's names
	words []string
	least int
	most  int // 0: no bound
	form  *form
	// loose texts may be written as numbers: env: {PORT: 8080}, max_rss: 1000000.
	loose bool
	// open objects may have keys that begin with x-, for anchors.
	open bool
	doc  string // of a list's or dict's entries
}

// key is a key of an object.
type key struct {
	name     string
	shape    *shape
	required bool
	doc      string // one line; empty for keys that are known but mean nothing here
}

func (s *shape) keyNames() []string {
	var names []string
	for _, k := range s.keys {
		names = append(names, k.name)
	}
	return names
}

func (s *shape) key(name string) *key {
	i := slices.IndexFunc(s.keys, func(k key) bool { return k.name == name })
	if i < 0 {
		return nil
	}
	return &s.keys[i]
}

// check walks n and its shape together: it tells what is wrong, marks it as bad, and fills in ${…}. label is what n is
// called in messages.
func (r *reader) check(n *node, s *shape, label string) {
	if n.bad || s.kind == anything {
		return
	}
	if n.kind == null {
		r.checkNull(n, s, label)
		return
	}
	switch s.kind {
	case anObject:
		r.checkObject(n, s, label)
	case aDict:
		r.checkDict(n, s, label)
	case aListOrText:
		switch n.kind {
		case list:
			r.checkList(n, s, label)
		case object:
			r.wrong(n, fmt.Sprintf("%s is %s", label, n.is()), "want a list: [one, two]")
		default:
			r.check(n, s.of, label)
		}
	case aList:
		r.checkList(n, s, label)
	default:
		r.checkScalar(n, s, label)
	}
}

// checkNull takes a key without a value as not given, where that can be meant: an empty list or group, or a client's null.
func (r *reader) checkNull(n *node, s *shape, label string) {
	n.bad = true
	if r.strict && s.kind < aList {
		r.problem(n.pos, label+" has no value", "write one, or remove the key")
	}
}

func (r *reader) checkList(n *node, s *shape, label string) {
	if n.kind != list {
		hint := "want a list: [one, two]"
		if n.kind == text && s.of.kind == aText {
			hint = fmt.Sprintf("want a list: [%q]", problem.Shortened(n.raw))
		}
		r.wrong(n, fmt.Sprintf("%s is %s", label, n.is()), hint)
		return
	}
	for i, item := range n.items {
		name := fmt.Sprintf("%s[%d]", label, i)
		if item.kind == null && !item.bad {
			r.wrong(item, name+" is empty", "remove it, or write a value")
		}
		r.check(item, s.of, name)
	}
}

func (r *reader) checkDict(n *node, s *shape, label string) {
	if n.kind != object {
		r.wrong(n, fmt.Sprintf("%s is %s", label, n.is()), "want names with a value each")
		return
	}
	for _, f := range n.fields {
		if s.names != nil {
			if message, hint := s.names.check(f.key); message != "" {
				r.problem(f.pos, fmt.Sprintf("%q %s", problem.Shortened(f.key), message), hint)
				f.value.bad = true
				continue
			}
		}
		r.check(f.value, s.of, label+"."+problem.Shortened(f.key))
	}
}

func (r *reader) checkObject(n *node, s *shape, label string) {
	if n.kind != object {
		r.wrong(n, fmt.Sprintf("%s is %s", label, n.is()), "want keys, such as "+s.keys[0].name)
		return
	}
	for _, f := range n.fields {
		k := s.key(f.key)
		if k == nil {
			r.unknownKey(f, s, label)
			continue
		}
		r.check(f.value, k.shape, joined(label, k.name))
	}
	for _, k := range s.keys {
		if k.required && n.get(k.name) == nil {
			r.problem(n.pos, fmt.Sprintf("%s has no %s", label, k.name), fmt.Sprintf("add %s (%s)", k.name, k.doc))
		}
	}
}

func joined(label, name string) string {
	if label == "" {
		return name
	}
	return label + "." + name
}

func (r *reader) unknownKey(f field, s *shape, label string) {
	if s.open && strings.HasPrefix(f.key, "x-") {
		return
	}
	where := ""
	if label != "" {
		where = " in " + label
	}
	message := fmt.Sprintf("unknown key %q%s", problem.Shortened(f.key), where)
	if r.strict {
		r.problem(f.pos, message, didYouMean(f.key, s.keyNames()))
		return
	}
	hint := suggest(f.key, s.keyNames())
	if hint != "" {
		hint = fmt.Sprintf("did you mean %q?", hint)
	}
	r.warn(f.pos, message, hint)
}

// checkScalar takes texts for numbers and words only where they hold a reference, which has no type of its own.
func (r *reader) checkScalar(n *node, s *shape, label string) {
	if n.kind == list || n.kind == object {
		r.wrong(n, fmt.Sprintf("%s is %s", label, n.is()), "want "+s.wants())
		return
	}
	referring := n.kind == text && strings.Contains(n.raw, "${")
	if referring && r.quiet {
		return
	}
	r.fill(n)
	if n.bad {
		return
	}
	if complaint := s.unlike(n, referring); complaint != "" && (!r.dry || !strings.Contains(n.raw, "${input:")) {
		r.wrong(n, fmt.Sprintf("%s is %s", label, n.is()), complaint)
		return
	}
	if s.form == nil || r.dry && strings.Contains(n.raw, "${input:") {
		return
	}
	if message, hint := s.form.check(n.value); message != "" {
		r.wrong(n, fmt.Sprintf("%s %s %s", label, quoted(n), message), hint)
	}
}

// quoted shows a value as the file has it, so that nothing that was filled in is seen.
func quoted(n *node) string {
	if n.kind == number {
		return n.raw
	}
	return fmt.Sprintf("%q", problem.Shortened(n.raw))
}

// wants says what a scalar has to be.
func (s *shape) wants() string {
	switch s.kind {
	case aWord:
		return problem.Alternatives(s.words)
	case aBool:
		return "true or false"
	case aCount:
		if s.most > 0 {
			return fmt.Sprintf("a whole number from %d to %d", s.least, s.most)
		}
		return fmt.Sprintf("a whole number of at least %d", s.least)
	case anAmount:
		return "a number"
	}
	return "a text"
}

var wholeNumber = pattern.New(`^[0-9]{1,9}$`)

// unlike says what a scalar should be if it is not that, and "" if it is.
func (s *shape) unlike(n *node, referring bool) string {
	switch s.kind {
	case aText:
		switch {
		case n.kind == number && !s.loose, n.kind == boolean:
			return fmt.Sprintf("put it in quotes: %q", n.raw)
		}
	case aWord:
		if !slices.Contains(s.words, n.value) || n.kind != text {
			if k := suggest(n.value, s.words); k != "" && !referring && n.kind == text {
				return fmt.Sprintf("did you mean %q?", k)
			}
			return "want " + s.wants()
		}
	case aBool:
		if n.kind != boolean && (!referring || n.value != "true" && n.value != "false") {
			return "want " + s.wants()
		}
	case aCount:
		if n.kind != number && !referring || !wholeNumber.MatchString(n.value) || asInt(n) < s.least || s.most > 0 && asInt(n) > s.most {
			return "want " + s.wants()
		}
	case anAmount:
		if f, err := strconv.ParseFloat(n.value, 64); n.kind != number || err != nil || f < 0 || f > 1e9 {
			return "want a number that is not negative"
		}
	}
	return ""
}

// asInt reads what wholeNumber lets through.
func asInt(n *node) int {
	v, err := strconv.Atoi(n.value)
	if err != nil {
		return -1
	}
	return v
}
