package jsonrpc

import "bytes"

// Span is a half-open range of a line: the raw bytes of one JSON value. The zero Span is "absent": no value found by
// this package starts and ends at offset 0.
type Span struct{ Start, End int }

// Present reports whether the span is a value.
func (s Span) Present() bool { return s.End > s.Start }

// Of returns the bytes of the span in line, nil when it is absent. line must be the one the span was found in.
func (s Span) Of(line []byte) []byte {
	if !s.Present() {
		return nil
	}
	return line[s.Start:s.End:s.End]
}

// In converts a span that was found in the bytes of outer to one in the line of outer.
func (s Span) In(outer Span) Span { return Span{s.Start + outer.Start, s.End + outer.Start} }

const bom = "\xef\xbb\xbf"

// Trim removes what may surround a message on its line without belonging to it: a UTF-8 byte order mark at the start,
// and JSON white space (including carriage returns) at both ends.
func Trim(line []byte) []byte { return trimSpace(trimBOM(line)) }

// OneLine replaces the line breaks between the tokens of a JSON text by spaces, in place.
func OneLine(text []byte) {
	for _, c := range []byte{'\n', '\r'} {
		rest := text
		for at := bytes.IndexByte(rest, c); at >= 0; at = bytes.IndexByte(rest, c) {
			rest[at] = ' '
			rest = rest[at+1:]
		}
	}
}

func trimBOM(line []byte) []byte {
	if len(line) >= len(bom) && string(line[:len(bom)]) == bom {
		return line[len(bom):]
	}
	return line
}

func trimSpace(b []byte) []byte {
	i, n := 0, len(b)
	for i < n && isSpace(b[i]) {
		i++
	}
	for n > i && isSpace(b[n-1]) {
		n--
	}
	return b[i:n]
}

func isSpace(c byte) bool { return c == ' ' || c == '\t' || c == '\n' || c == '\r' }

// skipSpace returns the first offset from i on that is not JSON white space. An offset outside b is returned
// unchanged.
func skipSpace(b []byte, i int) int {
	for uint(i) < uint(len(b)) && b[i] <= ' ' && isSpace(b[i]) {
		i++
	}
	return i
}

// first returns the first byte of a raw value, 0 when there is none.
func first(raw []byte) byte {
	if i := skipSpace(raw, 0); i < len(raw) {
		return raw[i]
	}
	return 0
}

// IsObject reports whether a raw value, known to be valid JSON, is an object.
func IsObject(raw []byte) bool { return first(raw) == '{' }

// IsArray reports whether a raw value, known to be valid JSON, is an array.
func IsArray(raw []byte) bool { return first(raw) == '[' }

// IsString reports whether a raw value, known to be valid JSON, is a string.
func IsString(raw []byte) bool { return first(raw) == '"' }

// IsNull reports whether a raw value is null. An absent value (nil) is not.
func IsNull(raw []byte) bool { return string(trimSpace(raw)) == "null" }
