package hooks

// quoteWord is a word that cmd, PowerShell behind its call operator and Git's bash take alike: paths on Windows have no
// quotation marks, and a backslash in double quotes stays one before a letter.
func quoteWord(s string) string {
	if plainWord.MatchString(s) {
		return s
	}
	return `"` + s + `"`
}
