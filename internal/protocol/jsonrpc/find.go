package jsonrpc

import "iter"

// Find returns the value of the member named key, as a range of object. It is absent if there is none, or if object
// is not one complete valid JSON object.
func Find(object []byte, key string) Span {
	var found Span
	c, ok := openWhole(object, '{')
	if !ok {
		return Span{}
	}
	for c.member() && c.skip() {
		if c.keyIs(key) {
			found = c.val
		}
	}
	if !c.whole() {
		return Span{}
	}
	return found
}

// FindPath follows the keys of path through nested objects and returns the value there as a range of doc. It is
// absent if a step is missing or is not an object, or if doc is not valid. With an empty path it is the whole value.
func FindPath(doc []byte, path ...string) Span {
	at := wholeValue(doc)
	for _, key := range path {
		found := Find(at.Of(doc), key)
		if !found.Present() {
			return Span{}
		}
		at = found.In(at)
	}
	return at
}

// Members yields the key (with its quotes) and the value of each member, as ranges of object, in their order. It
// yields nothing if object is not one complete valid JSON object.
func Members(object []byte) iter.Seq2[Span, Span] {
	return func(yield func(Span, Span) bool) {
		if !wholeValue(object).Present() {
			return
		}
		c, ok := openWhole(object, '{')
		for ok && c.member() && c.skip() && yield(c.key, c.val) {
		}
	}
}

// Elements yields each element of an array as a range of array. It yields nothing if array is not one complete valid
// JSON array.
func Elements(array []byte) iter.Seq[Span] {
	return func(yield func(Span) bool) {
		if !wholeValue(array).Present() {
			return
		}
		c, ok := openWhole(array, '[')
		for ok && c.element() && c.skip() && yield(c.val) {
		}
	}
}

// Within reports whether doc is one valid JSON value with at most depth nested objects and arrays.
func Within(doc []byte, depth int) bool {
	end, _ := skipValue(doc, skipSpace(doc, 0), maxDepth-depth)
	return end >= 0 && skipSpace(doc, end) == len(doc)
}

// wholeValue returns the range of the one valid JSON value in doc, without the white space around it.
func wholeValue(doc []byte) Span {
	i := skipSpace(doc, 0)
	end, _ := skipValue(doc, i, 0)
	if end < 0 || skipSpace(doc, end) != len(doc) {
		return Span{}
	}
	return Span{i, end}
}

// openWhole opens a cursor on text, which must start with the bracket.
func openWhole(text []byte, bracket byte) (cursor, bool) {
	i := skipSpace(text, 0)
	if i >= len(text) || text[i] != bracket {
		return cursor{}, false
	}
	return openCursor(text, i, 0), true
}

// whole reports whether the cursor has read its container to the end, and nothing follows it.
func (c *cursor) whole() bool {
	return c.ended && skipSpace(c.b, c.at) == len(c.b)
}
