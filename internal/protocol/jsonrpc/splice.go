package jsonrpc

import (
	"errors"
	"slices"
)

// ErrNoPlace is the error of Set if the document, or a parent on the path, is not a valid JSON object.
var ErrNoPlace = errors.New("not a JSON object: cannot set a member")

// Replace appends line to dst with the bytes of at replaced by value.
func Replace(dst, line []byte, at Span, value []byte) []byte {
	dst = slices.Grow(dst, at.Start+len(value)+len(line)-at.End)
	dst = append(dst, line[:at.Start]...)
	dst = append(dst, value...)
	return append(dst, line[at.End:]...)
}

// Change is one value of a line that becomes another one.
type Change struct {
	At   Span
	With []byte // raw
}

// Splice appends line to dst with its changes, which must not overlap; all other bytes stay as they are. It reorders the changes.
func Splice(dst, line []byte, changes ...Change) []byte {
	at := 0
	for len(changes) > 0 {
		next := 0
		for i := range changes {
			if changes[i].At.Start < changes[next].At.Start {
				next = i
			}
		}
		c := changes[next]
		dst = append(append(dst, line[at:c.At.Start]...), c.With...)
		at = c.At.End
		changes[next] = changes[len(changes)-1]
		changes = changes[:len(changes)-1]
	}
	return append(dst, line[at:]...)
}

// Set appends object to dst with the member at path set to value, which must be valid JSON. An existing member is
// replaced; a new one is added at the end of its object, as are missing parents. All other bytes are kept. An empty
// path replaces the whole value. The only error is ErrNoPlace; dst is then returned unchanged.
func Set(dst, object, value []byte, path ...string) ([]byte, error) {
	at := wholeValue(object)
	if !at.Present() {
		return dst, ErrNoPlace
	}
	for depth, key := range path {
		if object[at.Start] != '{' {
			return dst, ErrNoPlace
		}
		member := Find(object[at.Start:at.End], key)
		if !member.Present() {
			return insert(dst, object, at.Start, value, path[depth:]), nil
		}
		at = member.In(at)
	}
	return Replace(dst, object, at, value), nil
}

// insert adds a member at the end of the valid object whose brace is at start: path[0], with as many new nested
// objects as path has further keys, the innermost with value.
func insert(dst, doc []byte, start int, value []byte, path []string) []byte {
	place := start + 1
	c := openCursor(doc, start, 0)
	for c.member() && c.skip() {
		place = c.val.End
	}
	dst = append(dst, doc[:place]...)
	if c.inner {
		dst = append(dst, ',')
	}
	for i, key := range path {
		if i > 0 {
			dst = append(dst, '{')
		}
		dst = AppendQuoted(dst, key)
		dst = append(dst, ':')
	}
	dst = append(dst, value...)
	for range path[1:] {
		dst = append(dst, '}')
	}
	return append(dst, doc[place:]...)
}

// Delete appends object to dst without the member named key (if there are several, without all of them). If there is
// none, or object is not a valid JSON object, all bytes are kept.
func Delete(dst, object []byte, key string) []byte {
	if !Find(object, key).Present() {
		return append(dst, object...)
	}
	c, _ := openWhole(object, '{')
	done, kept := 0, false // object[:done] was handled
	for c.member() && c.skip() {
		if done == 0 {
			dst = append(dst, object[:c.key.Start]...)
			done = c.key.Start
		}
		if !c.keyIs(key) {
			if !kept { // the first remaining member must not have a comma before it
				done = c.key.Start
			}
			dst = append(dst, object[done:c.val.End]...)
			kept = true
		}
		done = c.val.End
	}
	return append(dst, object[done:]...)
}

// AppendElements appends array to dst with elements, each valid JSON, added at its end. If array is not a valid JSON
// array, all bytes are kept.
func AppendElements(dst, array []byte, elements ...[]byte) []byte {
	c, ok := openWhole(array, '[')
	place := c.at
	for ok && c.element() && c.skip() {
		place = c.val.End
	}
	if !c.whole() {
		return append(dst, array...)
	}
	dst = append(dst, array[:place]...)
	for i, element := range elements {
		if c.inner || i > 0 {
			dst = append(dst, ',')
		}
		dst = append(dst, element...)
	}
	return append(dst, array[place:]...)
}

// AppendLast appends object without the members of its top level that stand there again further on: of each name the
// last one is kept, as most parsers read it. Object must be valid JSON.
func AppendLast(dst, object []byte) []byte {
	last := map[string]Span{}
	for key := range Members(object) {
		name, _ := Unquote(key.Of(object))
		last[name] = key
	}
	dst = append(dst, '{')
	start := len(dst)
	for key, value := range Members(object) {
		if name, _ := Unquote(key.Of(object)); last[name] != key {
			continue
		}
		if len(dst) > start {
			dst = append(dst, ',')
		}
		dst = append(dst, object[key.Start:value.End]...)
	}
	return append(dst, '}')
}
