package schema

import (
	"slices"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/outlive-mcp/outlive/internal/files/tree"
)

// Kind is what a value may be.
type Kind uint8

// The kinds. From List on they are groups, which may be empty.
const (
	Text       Kind = iota
	Word            // one of Words
	Bool            // true or false
	Count           // a whole number of at least Least
	Amount          // a number that is not negative
	List            // of Of
	ListOrText      // the same, or a single one without brackets
	Dict            // names of any kind (Names), each with an Of
	Object          // the keys of Keys
	Anything        // not looked at
)

// Shape is what a value has to look like. The shapes of a file are its table.
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
	// Open says what keys are for that begin with x-, such as anchors, and that are passed over. "": there are none.
	Open string
	// Ordered objects are gone through in the order of Keys, since some need what others have said. Otherwise in the file's.
	Ordered bool
	// Alone is what may stand for a whole object: its most important value. nil: nothing.
	Alone *Shape
	// Null means something: it is taken as any other value.
	Null bool
	// Secret texts and their lines are not shown.
	Secret bool
	// Instead is the hint for a text where a list is wanted. nil: the text in brackets.
	Instead func(text string) string
	Doc     string // of a list's or dict's entries

	// Take gets a value that was given and is right; of a group, after its members. label is what the value is called in
	// messages. nil: the value is looked for in the tree later.
	Take func(n *tree.Node, label string)
	// Amend changes what is made of the shape, where JSON Schema can say more, or has to say it in another way.
	Amend func(*jsonschema.Schema)
}

// Key is a key of an object.
type Key struct {
	Name     string
	Also     string // another spelling of the name; "": there is none
	Shape    *Shape
	Required bool
	Doc      string // one line; empty for keys that are known but mean nothing here
}

// KeyNames are an object's keys, in their order.
func (s *Shape) KeyNames() []string {
	var names []string
	for _, k := range s.Keys {
		names = append(names, k.Name)
	}
	return names
}

// Key finds a key of an object by either of its spellings, or gives nil.
func (s *Shape) Key(name string) *Key {
	if i := s.index(name); i >= 0 {
		return &s.Keys[i]
	}
	return nil
}

func (s *Shape) index(name string) int {
	return slices.IndexFunc(s.Keys, func(k Key) bool { return k.Name == name || k.Also == name && name != "" })
}
