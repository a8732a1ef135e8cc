package hooks

import "strings"

// quoteWord quotes a word for cmd, PowerShell (after its call operator) and Git's bash alike: paths on Windows
// contain no quotation marks, and a backslash before a letter is literal in double quotes.
func quoteWord(s string) string {
	if plainWord.MatchString(s) {
		return s
	}
	return `"` + s + `"`
}

// calling is a quoted program as the CLI's shell calls it. For PowerShell a word in quotes is a text and no command unless the call
// operator is before it; for cmd and bash that would be an error.
func (v *Vendor) calling(program string) string {
	if v.PowerShell && strings.HasPrefix(program, `"`) {
		return "& " + program
	}
	return program
}
