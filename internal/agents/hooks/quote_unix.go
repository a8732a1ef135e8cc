//go:build unix

package hooks

import "strings"

func quoteWord(s string) string {
	if plainWord.MatchString(s) {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// calling is a quoted program as the CLI's shell calls it: as it is.
func (v *Vendor) calling(program string) string { return program }
