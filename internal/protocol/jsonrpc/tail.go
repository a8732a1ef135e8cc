package jsonrpc

import "bytes"

// tailID reads the members before the closing brace of a valid message backwards, as long as their values are strings
// or words, and returns the id if it is among them, else nil. In valid JSON the last brace closes the top level, a
// quote with an even number of backslashes before it is a string's end, and the next such quote to the left is its
// beginning. So what is found is at the top level and not in a string, although the rest was not read.
func tailID(tail []byte) []byte {
	at := len(tail) - 1
	if at < 0 || tail[at] != '}' {
		return nil
	}
	for {
		value := scalarBefore(tail, at)
		if !value.Present() {
			return nil
		}
		colon := spaceBefore(tail, value.Start) - 1
		if colon < 0 || tail[colon] != ':' {
			return nil
		}
		key := scalarBefore(tail, colon)
		if !key.Present() {
			return nil
		}
		at = spaceBefore(tail, key.Start) - 1
		if at < 0 || tail[at] != ',' && tail[at] != '{' {
			return nil
		}
		if EqualString(key.Of(tail), "id") {
			id, _ := answerable(value.Of(tail))
			return id
		}
		if tail[at] == '{' {
			return nil
		}
	}
}

// scalarBefore returns the string or word that ends before offset at; it is absent if there is none or its beginning
// is not in b.
func scalarBefore(b []byte, at int) Span {
	end := spaceBefore(b, at)
	if end == 0 {
		return Span{}
	}
	start := end - 1
	if b[start] == '"' {
		if !quoteAt(b, start) {
			return Span{}
		}
		for start > 0 {
			if start = bytes.LastIndexByte(b[:start], '"'); start > 0 && quoteAt(b, start) {
				return Span{start, end}
			}
		}
		return Span{}
	}
	for start = end; start > 0 && isWord(b[start-1]); start-- {
	}
	if start == 0 {
		return Span{}
	}
	return Span{start, end}
}

// spaceBefore returns the offset after the last byte before at that is not white space.
func spaceBefore(b []byte, at int) int {
	for at > 0 && isSpace(b[at-1]) {
		at--
	}
	return at
}

// quoteAt reports whether b has an unescaped quote at i, by the number of backslashes before it. It is false if that
// is unknown because there may be more backslashes before the start of b.
func quoteAt(b []byte, i int) bool {
	if b[i] != '"' {
		return false
	}
	slash := i
	for slash > 0 && b[slash-1] == '\\' {
		slash--
	}
	return slash > 0 && (i-slash)%2 == 0
}
