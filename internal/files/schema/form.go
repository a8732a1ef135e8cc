package schema

import "github.com/outlive-mcp/outlive/internal/files/lazyregexp"

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

// Matching returns a form that is only a pattern.
func Matching(p *lazyregexp.Pattern, message, hint string) *Form {
	return &Form{Pattern: p, Message: message, Hint: hint}
}
