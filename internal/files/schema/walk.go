package schema

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/outlive-mcp/outlive/internal/files/fileerror"
	"github.com/outlive-mcp/outlive/internal/files/lazyregexp"
	"github.com/outlive-mcp/outlive/internal/files/tree"
)

// Manner is how strictly a file is checked.
type Manner uint8

// The manners.
const (
	Strict  Manner = iota // unknown keys and keys without a value are mistakes
	Foreign               // another program's file: keys without effect here are allowed, and null means not given
)

// Walk is the check of one file. The zero Walk is strict.
type Walk struct {
	Manner Manner
	// Habits maps words that people know from other programs to those of the file; see [fileerror.Suggest].
	Habits map[string]string
	// Unquoted says that quotes do not matter: a number and true are texts, too, and a text may be a number.
	Unquoted bool
	// Off is set while a part without effect is read: its mistakes are only warnings.
	Off bool
	// Fill replaces the references in a scalar, and reports whether its value is known now; if not, the value is not
	// checked. nil: there are no references.
	Fill func(n *tree.Node) bool

	Problems, Warnings []fileerror.Problem
}

// Problem reports a mistake.
func (w *Walk) Problem(at fileerror.Pos, message, hint string) {
	w.report(fileerror.Problem{Pos: at, Message: message, Hint: hint}, w.Off)
}

func (w *Walk) report(p fileerror.Problem, warning bool) {
	if warning {
		w.Warnings = append(w.Warnings, p)
		return
	}
	w.Problems = append(w.Problems, p)
}

// Warn reports something unusual that is not a mistake.
func (w *Walk) Warn(at fileerror.Pos, message, hint string) {
	w.report(fileerror.Problem{Pos: at, Message: message, Hint: hint}, true)
}

// Wrong reports a problem with a node, which is then treated as not given.
func (w *Walk) Wrong(n *tree.Node, message, hint string) {
	n.Bad = true
	w.Problem(n.Pos, message, hint)
}

// Check walks n and its shape together: it reports mistakes, marks bad nodes, replaces references, and passes valid
// values to Take. label is n's name in messages.
func (w *Walk) Check(n *tree.Node, s *Shape, label string) {
	switch {
	case n.Bad:
		return
	case s.Kind == Anything, n.Kind == tree.Null && s.Null:
	case n.Kind == tree.Null:
		w.null(n, s, label)
	case s.Kind == Object:
		w.object(n, s, label)
	case s.Kind == Dict:
		w.dict(n, s, label)
	case s.Kind == List, s.Kind == ListOrText && (n.Kind == tree.List || n.Kind == tree.Object):
		w.list(n, s, label)
	case s.Kind == ListOrText:
		w.Check(n, s.Of, label)
	default:
		w.scalar(n, s, label)
	}
	if s.Take != nil && !n.Bad {
		s.Take(n, label)
	}
}

// null treats a key without a value as not given where that is plausible: for an empty list or group, or in a
// client's file.
func (w *Walk) null(n *tree.Node, s *Shape, label string) {
	n.Bad = true
	switch {
	case w.Manner == Foreign:
	case s.Filled != "":
		w.empty(n, s, label)
	case s.Kind < List:
		w.Problem(n.Pos, label+" has no value", "write one, or remove the key")
	}
}

// empty treats a list without an entry as not given.
func (w *Walk) empty(n *tree.Node, s *Shape, label string) {
	n.Bad = true
	w.Warn(n.Pos, label+" is empty, and counts as not given", s.Filled)
}

func (w *Walk) list(n *tree.Node, s *Shape, label string) {
	if n.Kind != tree.List {
		hint := "want a list: [one, two]"
		if n.Kind == tree.Text && s.Instead != nil {
			hint = s.Instead(n.Raw)
		} else if n.Kind == tree.Text && s.Of.Kind == Text {
			hint = fmt.Sprintf("want a list: [%q]", fileerror.Shortened(n.Raw))
		}
		w.Wrong(n, fmt.Sprintf("%s is %s", label, n.Is()), hint)
		return
	}
	if len(n.Items()) == 0 && s.Filled != "" {
		w.empty(n, s, label)
		return
	}
	for i, item := range n.Items() {
		name := fmt.Sprintf("%s[%d]", label, i)
		if item.Kind == tree.Null && !item.Bad {
			w.Wrong(item, name+" is empty", "remove it, or write a value")
		}
		w.Check(item, s.Of, name)
	}
}

func (w *Walk) dict(n *tree.Node, s *Shape, label string) {
	if s.Alone != nil && n.Kind != tree.Object {
		w.Check(n, s.Alone, label)
		return
	}
	if n.Kind != tree.Object {
		w.Wrong(n, fmt.Sprintf("%s is %s", label, n.Is()), "want names with a value each")
		return
	}
	for _, f := range n.Members() {
		if s.passes(f.Key) {
			continue
		}
		if s.Names != nil {
			if message, hint, wrong := s.Names.judge(f.Key); message != "" {
				message = fmt.Sprintf("%q %s", fileerror.Shortened(f.Key), message)
				w.report(fileerror.Problem{Pos: f.KeyPos, Message: message, Hint: hint}, w.Off || !wrong)
				f.Bad = true
				continue
			}
		}
		w.Check(f, s.Of, joined(label, fileerror.Shortened(f.Key)))
	}
}

// passes reports whether a key is one of those that begin with x-, for anchors and notes.
func (s *Shape) passes(key string) bool { return s.Open != "" && strings.HasPrefix(key, "x-") }

func (w *Walk) object(n *tree.Node, s *Shape, label string) {
	switch {
	case s.Alone != nil && n.Kind != tree.Object && n.Kind != tree.List:
		w.Check(n, s.Alone, label)
		return
	case n.Kind != tree.Object:
		w.Wrong(n, fmt.Sprintf("%s is %s", label, n.Is()), "want keys, such as "+s.Keys[0].Name)
		return
	}
	fields := n.Members()
	if s.Ordered {
		fields = slices.SortedStableFunc(slices.Values(fields), func(a, b *tree.Node) int { return cmp.Compare(s.index(a.Key), s.index(b.Key)) })
	}
	for _, f := range fields {
		k := s.Key(f.Key)
		switch {
		case k == nil:
			w.Unknown(f, s, label)
		case f.Key == k.Also && n.Get(k.Name) != nil:
			w.Wrong(f, fmt.Sprintf("%q is given twice: it is also called %q", f.Key, k.Name), "keep one of them")
		default:
			w.Check(f, k.Shape, joined(label, k.Name))
		}
	}
	for _, k := range s.Keys {
		if k.Required && n.Get(k.Name) == nil && (k.Also == "" || n.Get(k.Also) == nil) {
			w.Problem(n.Pos, fmt.Sprintf("%s has no %s", label, k.Name), fmt.Sprintf("add %s (%s)", k.Name, k.Doc))
		}
	}
}

func joined(label, name string) string { return strings.TrimPrefix(label+"."+name, ".") }

// Unknown reports an unknown key.
func (w *Walk) Unknown(f *tree.Node, s *Shape, label string) {
	if s.passes(f.Key) {
		return
	}
	message := fmt.Sprintf("unknown key %q", fileerror.Shortened(f.Key))
	if label != "" {
		message += " in " + label
	}
	hint := fileerror.DidYouMean(f.Key, s.KeyNames(), w.Habits)
	if w.Manner == Foreign && fileerror.Suggest(f.Key, s.KeyNames(), w.Habits) == "" {
		hint = "" // most keys are not meant for us
	}
	if w.Manner == Strict {
		w.Problem(f.KeyPos, message, hint)
		return
	}
	w.Warn(f.KeyPos, message, hint)
}

// scalar accepts texts for numbers and words only if they contain a reference, which has no type.
func (w *Walk) scalar(n *tree.Node, s *Shape, label string) {
	if n.Kind == tree.List || n.Kind == tree.Object {
		w.Wrong(n, fmt.Sprintf("%s is %s", label, n.Is()), "want "+s.wants())
		return
	}
	if w.Fill != nil && !w.Fill(n) || n.Bad {
		return
	}
	if hint := w.unlike(n, s); hint != "" {
		w.Wrong(n, fmt.Sprintf("%s is %s", label, n.Is()), hint)
		return
	}
	if s.Form == nil {
		return
	}
	message, hint, wrong := s.Form.judge(n.Value)
	if n.Bad = wrong; message == "" {
		return
	}
	if !s.Secret {
		message = Quoted(n) + " " + message
	}
	w.report(fileerror.Problem{Pos: n.Pos, Message: label + " " + message, Hint: hint, Secret: s.Secret}, w.Off || !wrong)
}

// Quoted returns a value as in the file, so that no filled-in value is shown.
func Quoted(n *tree.Node) string {
	if n.Kind == tree.Number {
		return n.Raw
	}
	return fmt.Sprintf("%q", fileerror.Shortened(n.Raw))
}

// wants describes the required scalar.
func (s *Shape) wants() string {
	switch s.Kind {
	case Word:
		return fileerror.Alternatives(s.Words)
	case Bool:
		return "true or false"
	case Count:
		if s.Most > 0 {
			return fmt.Sprintf("a whole number from %d to %d", s.Least, s.Most)
		}
		return fmt.Sprintf("a whole number of at least %d", s.Least)
	case Amount:
		if s.Above {
			return "a number above 0"
		}
		return "a number that is not negative"
	}
	return "a text"
}

var wholeNumber = lazyregexp.New(`^[0-9]{1,10}$`)

// mostCount is the maximum of a count without one of its own.
const mostCount = 999_999_999

// unlike describes what a scalar should be, or returns "" if it is valid.
func (w *Walk) unlike(n *tree.Node, s *Shape) string {
	refers := w.Fill != nil && n.Kind == tree.Text && strings.Contains(n.Raw, "${") // a reference has no type
	good := true
	switch s.Kind {
	case Text:
		if (n.Kind == tree.Number && !s.Loose || n.Kind == tree.Bool) && !w.Unquoted {
			return fmt.Sprintf("put it in quotes: %q", n.Raw)
		}
	case Word:
		good = n.Kind == tree.Text && slices.Contains(s.Words, n.Value)
		if k := fileerror.Suggest(n.Value, s.Words, w.Habits); !good && k != "" && !refers && n.Kind == tree.Text {
			return fmt.Sprintf("did you mean %q?", k)
		}
	case Bool:
		good = n.Kind == tree.Bool || refers && (n.Value == "true" || n.Value == "false")
	case Count:
		count, err := strconv.Atoi(n.Value)
		good = (n.Kind == tree.Number || refers || w.Unquoted) && wholeNumber.MatchString(n.Value) &&
			err == nil && count >= s.Least && count <= cmp.Or(s.Most, mostCount)
	case Amount:
		f, err := strconv.ParseFloat(n.Value, 64)
		good = (n.Kind == tree.Number || w.Unquoted) && err == nil && f >= 0 && (f > 0 || !s.Above) &&
			!math.IsInf(f, 0) && (s.Most == 0 || f <= float64(s.Most))
	}
	if !good {
		return "want " + s.wants()
	}
	return ""
}
