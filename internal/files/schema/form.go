package schema

import "github.com/outlive-mcp/outlive/internal/files/lazyregexp"

// Form is what a text has to look like. A form is data until a file is read: every process of outlive is linked with this room.
type Form struct {
	// Pattern is what a text has to match; where there is a Judge, as much as JSON Schema can say. nil: nothing.
	Pattern *lazyregexp.Pattern
	// Message and Hint are what Check says of a text that does not match.
	Message, Hint string
	// Judge decides instead of the pattern, where a pattern cannot. It must not quote the text, which may hold a secret by
	// now.
	Judge func(text string) (message, hint string)
}

// Check says what is wrong with a text, and what to do; it gives "" for a good one.
func (f *Form) Check(text string) (message, hint string) {
	switch {
	case f.Judge != nil:
		return f.Judge(text)
	case f.Pattern.MatchString(text):
		return "", ""
	}
	return f.Message, f.Hint
}

// Matching is a form that is nothing but a pattern.
func Matching(p *lazyregexp.Pattern, message, hint string) *Form {
	return &Form{Pattern: p, Message: message, Hint: hint}
}
