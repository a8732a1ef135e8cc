package jsonrpc

import (
	"encoding/binary"
	"math/bits"
	"unicode/utf8"
)

// flags are properties of a string, or of all strings of a value.
type flags uint8

const (
	hasSurrogate flags = 1 << iota // a surrogate escape without its other half
	hasBadUTF8                     // raw bytes that are not UTF-8
	hasEscape                      // any escape: the raw bytes differ from the value
)

const (
	ones  = 0x0101010101010101
	highs = 0x80 * ones
)

// special marks, with the high bit of each byte of x, the bytes that end a run of plain string text: quote, backslash
// and control characters. Bytes over 0x7f are plain. Only the lowest mark is exact, because a borrow may continue
// from it; the absence of marks is exact, too. One subtraction finds both quotes and control characters, because
// flipping bit 1 puts the quote directly after them, and the space and ! elsewhere.
func special(x uint64) uint64 {
	return (((x ^ 0x02*ones) - 0x21*ones) | ((x ^ '\\'*ones) - ones)) &^ x & highs
}

// simpleEscape has the bytes that follow the backslash in an escape of two bytes.
var simpleEscape = [256]bool{'"': true, '\\': true, '/': true, 'b': true, 'f': true, 'n': true, 'r': true, 't': true}

// scanString reads a JSON string from the byte after its opening quote and returns the offset after its closing
// quote, or broken if the text is not a JSON string. Raw bytes that are not UTF-8 and lone surrogates are reported,
// not rejected.
func scanString(b []byte, i int) (int, flags) {
	if i+8 <= len(b) { // most keys end within eight bytes and contain nothing special
		x := binary.LittleEndian.Uint64(b[i:])
		if h := special(x); h != 0 && x&(h-1)&^h&highs == 0 {
			if end := i + bits.TrailingZeros64(h)>>3; b[end] == '"' {
				return end + 1, 0
			}
		}
	}
	return scanText(b, i)
}

// scanText is scanString for a string of any length.
func scanText(b []byte, i int) (int, flags) {
	start := i
	var f flags
	var high uint64
	for {
		i, high = plainText(b, i, high)
		if i >= len(b) {
			return broken, f
		}
		switch b[i] {
		case '"':
			if high&highs != 0 && !utf8.Valid(b[start:i]) {
				f |= hasBadUTF8
			}
			return i + 1, f
		case '\\':
			f |= hasEscape
			if i+1 < len(b) && simpleEscape[b[i+1]] {
				i += 2
				continue
			}
			n, lone := scanEscape(b, i)
			if n == 0 {
				return broken, f
			}
			if lone {
				f |= hasSurrogate
			}
			i += n
		default:
			return broken, f
		}
	}
}

// plainText returns the offset of the next quote, backslash or control character from i on, len(b) if there is none.
// The high bits of high show whether there was anything but ASCII up to there, or in the few bytes read after it.
func plainText(b []byte, i int, high uint64) (int, uint64) {
	for i+16 <= len(b) {
		p := b[i : i+16 : i+16]
		x, y := binary.LittleEndian.Uint64(p), binary.LittleEndian.Uint64(p[8:])
		h, k := special(x), special(y)
		high |= x | y
		if h|k != 0 {
			if h == 0 {
				h, i = k, i+8
			}
			return i + bits.TrailingZeros64(h)>>3, high
		}
		i += 16
	}
	for i < len(b) && b[i] >= ' ' && b[i] != '"' && b[i] != '\\' {
		high |= uint64(b[i])
		i++
	}
	return i, high
}

// scanEscape returns the length of the escape whose backslash is at i: a surrogate pair is one escape of 12 bytes. n
// is 0 if it is not a JSON escape; lone says that it is one half of a surrogate pair without the other.
func scanEscape(b []byte, i int) (n int, lone bool) {
	if i+1 >= len(b) {
		return 0, false
	}
	if c := b[i+1]; c != 'u' {
		if simpleEscape[c] {
			return 2, false
		}
		return 0, false
	}
	r := hex4(b, i+2)
	switch {
	case r < 0:
		return 0, false
	case r < 0xd800 || r > 0xdfff:
		return 6, false
	case r < 0xdc00 && isLowSurrogate(b, i+6):
		return 12, false
	}
	return 6, true
}

func isLowSurrogate(b []byte, i int) bool {
	if i+6 > len(b) || b[i] != '\\' || b[i+1] != 'u' {
		return false
	}
	r := hex4(b, i+2)
	return r >= 0xdc00 && r <= 0xdfff
}

// hex4 parses four hexadecimal digits at i; -1 if there are none.
func hex4(b []byte, i int) rune {
	if i+4 > len(b) {
		return -1
	}
	var r rune
	for _, c := range b[i : i+4] {
		switch {
		case c >= '0' && c <= '9':
			c -= '0'
		case c >= 'a' && c <= 'f':
			c -= 'a' - 10
		case c >= 'A' && c <= 'F':
			c -= 'A' - 10
		default:
			return -1
		}
		r = r<<4 | rune(c)
	}
	return r
}
