package hooks

// quoteWord quotes a word for cmd, PowerShell (after its call operator) and Git's bash alike: paths on Windows
// contain no quotation marks, and a backslash before a letter is literal in double quotes.
func quoteWord(s string) string {
	if plainWord.MatchString(s) {
		return s
	}
	return `"` + s + `"`
}
