package launcher

import "strings"

// isShell reports whether a program runs commands given with -c.
func isShell(name string) bool {
	switch name {
	case "sh", "bash", "dash", "ash", "zsh", "ksh", "mksh", "busybox":
		return true
	}
	return false
}

// isCover recognises a shell that runs one simple command and waits for it. Everything it adds can be seen on the
// command's own process.
func isCover(argv []string) bool {
	if len(argv) < 3 || !isShell(program(argv[0])) || argv[1] != "-c" {
		return false
	}
	words, ok := splitSimple(argv[2])
	return ok && len(words) > 0
}

// splitSimple splits a shell script that is one simple command of words, quotes and backslashes, without expansions.
// ok is false for every other script.
func splitSimple(script string) (words []string, ok bool) {
	var word strings.Builder
	inWord := false
	for i := 0; i < len(script); i++ {
		c := script[i]
		switch {
		case c == ' ' || c == '\t':
			if inWord {
				words = append(words, word.String())
				word.Reset()
				inWord = false
			}
			continue
		case c == '\'':
			end := strings.IndexByte(script[i+1:], '\'')
			if end < 0 {
				return nil, false
			}
			word.WriteString(script[i+1 : i+1+end])
			i += end + 1
		case c == '"':
			n, ok := doubleQuoted(script[i+1:], &word)
			if !ok {
				return nil, false
			}
			i += n
		case c == '\\':
			if i++; i == len(script) || script[i] == '\n' {
				return nil, false
			}
			word.WriteByte(script[i])
		case strings.IndexByte(";&|<>()`$\n\r*?[]{}#!~", c) >= 0:
			return nil, false
		default:
			word.WriteByte(c)
		}
		inWord = true
	}
	if inWord {
		words = append(words, word.String())
	}
	return words, true
}

// doubleQuoted appends the text up to the closing quote to word and returns how many bytes it took, with the quote.
func doubleQuoted(s string, word *strings.Builder) (n int, ok bool) {
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '"':
			return i + 1, true
		case c == '$' || c == '`':
			return 0, false
		case c == '\\' && i+1 < len(s) && strings.IndexByte("\"\\$`", s[i+1]) >= 0:
			i++
			word.WriteByte(s[i])
		default:
			word.WriteByte(c)
		}
	}
	return 0, false
}
