//go:build unix

package hooks

import "strings"

// quoteWord quotes a word for sh.
func quoteWord(s string) string {
	if plainWord.MatchString(s) {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
