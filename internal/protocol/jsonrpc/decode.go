package jsonrpc

import (
	"strings"
	"unicode/utf8"
)

// maxName is longer than all member names that the envelope looks for: longer names need not be decoded completely.
const maxName = 16

// escapeMost is the maximum number of bytes that encode one byte of a value.
const escapeMost = len(`\u0069`)

// The letters of escapes that stand for another character, and these characters.
const escapes, escaped = "bfnrt", "\b\f\n\r\t"

// decoder returns the value of a string piece by piece, without allocating. in is the text between the quotes, known
// to be valid. Like encoding/json it reads a lone surrogate, and each byte that is not UTF-8, as U+FFFD.
type decoder struct {
	in  []byte
	buf [utf8.UTFMax]byte
}

// next returns the next piece of the value, empty at the end. It is valid until the next call.
func (d *decoder) next() []byte {
	if n := plainRun(d.in); n > 0 {
		piece := d.in[:n]
		d.in = d.in[n:]
		return piece
	}
	if len(d.in) == 0 {
		return nil
	}
	r, n := utf8.RuneError, 1
	if d.in[0] == '\\' {
		r, n = decodeEscape(d.in)
	}
	d.in = d.in[n:]
	return d.buf[:utf8.EncodeRune(d.buf[:], r)]
}

// plainRun returns the length of the text at the start of b without escapes and bytes that are not UTF-8.
func plainRun(b []byte) int {
	i := 0
	for i < len(b) && b[i] != '\\' {
		if b[i] < utf8.RuneSelf {
			i++
			continue
		}
		r, n := utf8.DecodeRune(b[i:])
		if r == utf8.RuneError && n == 1 {
			break
		}
		i += n
	}
	return i
}

// decodeEscape decodes the valid escape at the start of b and returns its length.
func decodeEscape(b []byte) (rune, int) {
	n, lone := scanEscape(b, 0)
	switch {
	case lone:
		return utf8.RuneError, n
	case n == 12:
		return 0x10000 + (hex4(b, 2)-0xd800)<<10 + (hex4(b, 8) - 0xdc00), n
	case n == 6:
		return hex4(b, 2), n
	}
	if i := strings.IndexByte(escapes, b[1]); i >= 0 {
		return rune(escaped[i]), n
	}
	return rune(b[1]), n
}

// inside returns the text between the quotes of a raw string, and its flags.
func inside(raw []byte) (text []byte, f flags, ok bool) {
	if len(raw) < 2 || raw[0] != '"' {
		return nil, 0, false
	}
	end, f := scanString(raw, 1)
	if end != len(raw) {
		return nil, 0, false
	}
	return raw[1 : len(raw)-1], f, true
}

// Unquote decodes a raw JSON string. Lone surrogates and bytes that are not UTF-8 become U+FFFD, as in encoding/json.
// It reports false when raw is not a JSON string.
func Unquote(raw []byte) (string, bool) {
	text, f, ok := inside(raw)
	if !ok || f == 0 {
		return string(text), ok
	}
	value := make([]byte, 0, len(text))
	for d := (decoder{in: text}); len(d.in) > 0; {
		value = append(value, d.next()...)
	}
	return string(value), true
}

// EqualString reports whether raw is a JSON string whose value is s. It does not allocate.
func EqualString(raw []byte, s string) bool {
	text, f, ok := inside(raw)
	if !ok || f == 0 {
		return ok && string(text) == s
	}
	for d := (decoder{in: text}); len(d.in) > 0; {
		piece := d.next()
		if len(piece) > len(s) || string(piece) != s[:len(piece)] {
			return false
		}
		s = s[len(piece):]
	}
	return s == ""
}

// equalText reports whether two raw strings have the same value.
func equalText(a, b []byte) bool {
	a, fa, okA := inside(a)
	b, fb, okB := inside(b)
	if !okA || !okB || fa|fb == 0 {
		return okA && okB && string(a) == string(b)
	}
	da, db := decoder{in: a}, decoder{in: b}
	var pa, pb []byte
	for {
		if len(pa) == 0 {
			pa = da.next()
		}
		if len(pb) == 0 {
			pb = db.next()
		}
		n := min(len(pa), len(pb))
		if n == 0 {
			return len(pa) == len(pb)
		}
		if string(pa[:n]) != string(pb[:n]) {
			return false
		}
		pa, pb = pa[n:], pb[n:]
	}
}

// name returns the current member's name. A name with escapes is decoded into plain, but only up to the length that
// the envelope's names can have.
func (c *cursor) name(plain []byte) []byte {
	text := c.b[c.key.Start+1 : c.key.End-1]
	switch {
	case c.keyF&hasEscape == 0:
		return text
	case len(text) > maxName*escapeMost:
		return nil
	}
	for d := (decoder{in: text}); len(d.in) > 0; {
		piece := d.next()
		if len(plain)+len(piece) > cap(plain) {
			return nil
		}
		plain = append(plain, piece...)
	}
	return plain
}
