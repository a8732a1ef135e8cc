package jsonrpc

// Object reads the members of one object, and of objects within it, in one pass: each byte is read once, however deep
// the nesting. [Find] and [Members] read an inner object once more for each level.
//
// After [Object.Next] the value must be read before Next is called again: with [Object.Value], or with [Object.Enter]
// and, after the inner object, [Object.Leave].
type Object struct{ c cursor }

// OpenObject begins to read text, which must start with an object.
func OpenObject(text []byte) (Object, bool) {
	c, ok := openWhole(text, '{')
	return Object{c}, ok
}

// Next moves to the next member. It returns false at the end, and where the text is not JSON.
func (o *Object) Next() bool { return o.c.member() }

// KeyIs reports whether the member has this name, in any escaping.
func (o *Object) KeyIs(name string) bool { return o.c.keyIs(name) }

// Key is the member's name with its quotes.
func (o *Object) Key() []byte { return o.c.key.Of(o.c.b) }

// Value reads the value and returns it; nil where the text is not JSON.
func (o *Object) Value() []byte {
	if !o.c.skip() {
		return nil
	}
	return o.c.val.Of(o.c.b)
}

// Enter begins to read the value, if it is an object. Otherwise it does nothing.
func (o *Object) Enter() (inner Object, ok bool) {
	if o.c.at >= len(o.c.b) || o.c.b[o.c.at] != '{' || o.c.open >= maxDepth {
		return Object{}, false
	}
	return Object{openCursor(o.c.b, o.c.at, o.c.open)}, true
}

// Leave continues after an inner object that was read to its end; false if it was not.
func (o *Object) Leave(inner *Object) bool {
	if !inner.c.ended {
		return o.c.fail()
	}
	o.c.at = inner.c.at
	return true
}

// Whole reports whether the object was read to its end and nothing follows it.
func (o *Object) Whole() bool { return o.c.whole() }
