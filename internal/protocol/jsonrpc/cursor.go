package jsonrpc

// cursor walks the members of one object or the elements of one array, and validates them. It is opened with
// openCursor; member or element then moves to the next value, which starts at at. Before the next step the caller
// must move at to the end of the value, with skip or directly.
type cursor struct {
	b     []byte
	at    int
	key   Span // key of the current member, with its quotes
	val   Span // value, set by skip
	open  int  // number of open levels, this container included
	f     flags
	keyF  flags
	inner bool // after the first value
	ended bool // the closing bracket was read: at is after it
	bad   bool // not JSON: there are no further values
}

// openCursor starts at the opening bracket at offset i; open is the number of levels around it.
func openCursor(b []byte, i, open int) cursor {
	return cursor{b: b, at: i + 1, open: open + 1}
}

// member moves to the next member of an object: it sets key, and at to the start of the value. It returns false at
// the end and at an error.
func (c *cursor) member() bool {
	if !c.next('}') {
		return false
	}
	start := c.at
	if start >= len(c.b) || c.b[start] != '"' {
		return c.fail()
	}
	end, f := scanString(c.b, start+1)
	if end < 0 {
		return c.fail()
	}
	c.key, c.keyF = Span{start, end}, f
	c.f |= f
	i := skipSpace(c.b, end)
	if i >= len(c.b) || c.b[i] != ':' {
		return c.fail()
	}
	c.at = skipSpace(c.b, i+1)
	return true
}

// element moves to the next element of an array.
func (c *cursor) element() bool { return c.next(']') }

// next skips the white space and the comma before a member or element.
func (c *cursor) next(closing byte) bool {
	i := skipSpace(c.b, c.at)
	if c.bad || c.ended || i >= len(c.b) {
		return c.fail()
	}
	switch {
	case c.b[i] == closing:
		c.at, c.ended = i+1, true
		return false
	case !c.inner:
		c.inner = true
	case c.b[i] == ',':
		i = skipSpace(c.b, i+1)
	default:
		return c.fail()
	}
	c.at = i
	return true
}

// skip validates the value at at, stores its span in val and moves to its end.
func (c *cursor) skip() bool {
	end, f := skipValue(c.b, c.at, c.open)
	if end < 0 {
		return c.fail()
	}
	c.val = Span{c.at, end}
	c.at = end
	c.f |= f
	return true
}

func (c *cursor) fail() bool {
	c.bad = !c.ended
	return false
}

// keyIs reports whether the current member has this name, in any escaping.
func (c *cursor) keyIs(name string) bool {
	if c.keyF == 0 {
		raw := c.b[c.key.Start+1 : c.key.End-1]
		return string(raw) == name
	}
	return EqualString(c.b[c.key.Start:c.key.End], name)
}
