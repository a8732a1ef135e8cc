package cli

import (
	"errors"
	"strings"
)

var errOpenQuote = errors.New("a quote is not closed")

// splitWords takes a command apart as a shell does: blanks between words, quotes and backslashes. Nothing is expanded and
// nothing is run: the registry keeps programs with their arguments.
func splitWords(text string) ([]string, error) {
	var words []string
	var word strings.Builder
	var quote rune // that is open; 0: none
	begun, escaped := false, false
	for _, r := range text {
		switch {
		case escaped:
			if !strings.ContainsRune(" \t\"'\\", r) {
				word.WriteRune('\\') // it is a path of Windows
			}
			word.WriteRune(r)
			escaped = false
		case r == '\\' && quote != '\'':
			escaped, begun = true, true
		case r == quote:
			quote = 0
		case quote != 0:
			word.WriteRune(r)
		case r == '\'' || r == '"':
			quote, begun = r, true
		case strings.ContainsRune(" \t\r\n", r):
			if begun {
				words = append(words, word.String())
			}
			word.Reset()
			begun = false
		default:
			word.WriteRune(r)
			begun = true
		}
	}
	if quote != 0 || escaped {
		return nil, errOpenQuote
	}
	if begun {
		words = append(words, word.String())
	}
	return words, nil
}
