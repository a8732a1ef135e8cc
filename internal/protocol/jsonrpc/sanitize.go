package jsonrpc

import "unicode/utf8"

// Sanitize appends line to dst in a form that every peer can read: raw bytes that are not UTF-8 become U+FFFD, one
// for each maximal ill-formed part (as the Unicode standard recommends and as browsers, Node and Python decode), and
// lone surrogate escapes become \ufffd. Everything else is kept byte for byte. The bytes are replaced at any place: a
// line that is not JSON is treated the same way.
func Sanitize(dst, line []byte) []byte {
	for len(line) > 0 {
		n := plainRun(line)
		dst = append(dst, line[:n]...)
		if line = line[n:]; len(line) == 0 {
			break
		}
		if line[0] != '\\' {
			dst = utf8.AppendRune(dst, utf8.RuneError)
			line = line[illFormed(line):]
			continue
		}
		n, lone := scanEscape(line, 0)
		if lone {
			dst = append(dst, `\ufffd`...)
		} else {
			n = max(n, 1) // after a backslash that starts no escape, the next byte is checked by itself
			dst = append(dst, line[:n]...)
		}
		line = line[n:]
	}
	return dst
}

// illFormed returns the length of the maximal ill-formed part at the start of b: the longest start of a well-formed
// sequence, or one byte.
func illFormed(b []byte) int {
	n := 1
	for n < len(b) && !utf8.FullRune(b[:n+1]) {
		n++
	}
	return n
}
