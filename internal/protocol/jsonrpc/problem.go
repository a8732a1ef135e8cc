package jsonrpc

import "strconv"

// Problem says what is wrong with a line for which Scan has returned ErrSyntax: it is not JSON, or nested too deep.
func Problem(line []byte) string {
	depth := 0
	for i := 0; i < len(line); i++ {
		switch line[i] {
		case '"':
			end, _ := scanString(line, i+1)
			if end < 0 {
				return ErrSyntax.Error()
			}
			i = end - 1
		case '{', '[':
			if depth++; depth > maxDepth {
				return "nested more than " + strconv.Itoa(maxDepth) + " levels deep"
			}
		case '}', ']':
			depth--
		}
	}
	return ErrSyntax.Error()
}
