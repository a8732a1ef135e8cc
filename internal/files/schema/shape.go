package schema

import (
	"slices"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/outlive-mcp/outlive/internal/files/lazyregexp"
	"github.com/outlive-mcp/outlive/internal/files/tree"
)

// Kind is the type of a value.
type Kind uint8

// The kinds. Those from List on are groups, which may be empty.
const (
	Text       Kind = iota
	Word            // one of Words
	Bool            // true or false
	Count           // a whole number of at least Least
	Amount          // a number that is not negative
	List            // its entries have the shape Of
	ListOrText      // like List, or a single entry without brackets
	Dict            // any names (Names), each with a value of the shape Of
	Object          // the keys of Keys
	Anything        // not checked
)

// Shape describes a valid value. The shapes of a file are its table.
type Shape struct {
	Kind  Kind
	Keys  []Key  // of an object, in the order that documentation shows them in
	Of    *Shape // of a list's or dict's entries
	Names *Form  // of a dict's names; nil: any
	Words []string
	Least int
	Most  int  // of a count or an amount; 0: no bound
	Above bool // an amount that may not be 0
	Form  *Form
	// Loose texts may be written as numbers: env: {PORT: 8080}, max_rss: 1000000.
	Loose bool
	// Open is the purpose of keys that begin with x-, such as anchors, which are ignored. "": such keys are unknown.
	Open string
	// Ordered objects are walked in the order of Keys, because some need the values of others. Otherwise the order is
	// the file's.
	Ordered bool
	// Alone is the shape of a value that may be given instead of the whole object, its most important one, or instead of
	// a dict, such as a list of its names. nil: none.
	Alone *Shape
	// Null says that null is a valid value, and is passed to Take.
	Null bool
	// Secret texts and their lines are not shown.
	Secret bool
	// Filled is the hint for a list without an entry, which counts as not given. "": it may be empty.
	Filled string
	// Instead is the hint for a text where a list is required. nil: the text in brackets.
	Instead func(text string) string
	Doc     string // of a list's or dict's entries

	// Take is called with each valid value that was given; for a group, after its members. label is the value's name
	// in messages. nil: the value is read from the tree later.
	Take func(n *tree.Node, label string)
	// Amend changes the shape's JSON Schema, where that can express more, or must express it in another way.
	Amend func(*jsonschema.Schema)
}

// Key is a key of an object.
type Key struct {
	Name     string
	Also     string // another spelling of the name; "": there is none
	Shape    *Shape
	Required bool
	Doc      string // one line; empty for keys that are accepted but have no effect
}

// KeyNames returns an object's keys, in order.
func (s *Shape) KeyNames() []string {
	var names []string
	for _, k := range s.Keys {
		names = append(names, k.Name)
	}
	return names
}

// Key returns a key of an object by either of its spellings, or nil.
func (s *Shape) Key(name string) *Key {
	if i := s.index(name); i >= 0 {
		return &s.Keys[i]
	}
	return nil
}

func (s *Shape) index(name string) int {
	return slices.IndexFunc(s.Keys, func(k Key) bool { return k.Name == name || k.Also == name && name != "" })
}

// Form is the required form of a text. It compiles nothing until a file is read, because every process of outlive is
// linked with this package.
type Form struct {
	// Pattern is what a text has to match. If there is a Judge, it is the part of the rule that JSON Schema can
	// express. nil: none.
	Pattern *lazyregexp.Pattern
	// Message and Hint are Check's result for a text that does not match.
	Message, Hint string
	// Judge decides instead of the pattern, for rules that a pattern cannot express. It must not quote the text, in
	// which a secret may have been filled in.
	Judge func(text string) (message, hint string)
	// Old says of a valid text what it means and what to write instead, if only an earlier release took it. That is a
	// warning. nil: of none. It must not quote the text either.
	Old func(text string) (message, hint string)
}

// Check says what is wrong with a text, and what to do; both are "" if it is valid.
func (f *Form) Check(text string) (message, hint string) {
	switch {
	case f.Judge != nil:
		return f.Judge(text)
	case f.Pattern.MatchString(text):
		return "", ""
	}
	return f.Message, f.Hint
}

// judge says what is wrong with a text, or else what Old has to say of it.
func (f *Form) judge(text string) (message, hint string, wrong bool) {
	message, hint = f.Check(text)
	if wrong = message != ""; !wrong && f.Old != nil {
		message, hint = f.Old(text)
	}
	return message, hint, wrong
}

// Matching returns a form that is only a pattern.
func Matching(p *lazyregexp.Pattern, message, hint string) *Form {
	return &Form{Pattern: p, Message: message, Hint: hint}
}
