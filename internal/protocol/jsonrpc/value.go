package jsonrpc

// maxDepth is how many objects and arrays may be open at once in a text; encoding/json has the same limit.
const maxDepth = 10_000

// spillWords is the number of words with one bit for each level that does not fit into the word that skip keeps in a
// register.
const spillWords = maxDepth/64 + 1

const (
	broken    = -1 // the text is not JSON
	needSpill = -2 // nested deeper than skip can record without spill
)

// skipValue validates the JSON value that starts at i (no white space before it) and returns the offset after it, or
// broken. open is how many objects and arrays around it count towards the depth limit.
func skipValue(b []byte, i, open int) (int, flags) {
	end, f := skip(b, i, maxDepth-open, nil)
	if end == needSpill {
		return skipDeep(b, i, maxDepth-open)
	}
	return end, f
}

// skipDeep is a separate function so that only a text nested more than 64 levels pays for clearing the spill.
//
//go:noinline
func skipDeep(b []byte, i, room int) (int, flags) {
	var spill [spillWords]uint64
	return skip(b, i, room, &spill)
}

// skip parses the grammar without recursion. nest has one bit for each open container, 1 for an object, the innermost
// in the lowest bit; every 64 levels the word is moved to spill.
func skip(b []byte, i, room int, spill *[spillWords]uint64) (int, flags) {
	var all, f flags
	var nest uint64
	depth := 0
value:
	for uint(i) < uint(len(b)) {
		switch c := b[i]; c {
		case '"':
			i, f = scanString(b, i+1)
			all |= f
		case '{', '[':
			if depth++; depth > room || depth&63 == 0 && !keep(nest, depth, spill) {
				return tooDeep(depth, room), all
			}
			nest = nest<<1 | uint64(c>>5&1) // '{' is 0x7b, '[' is 0x5b
			i = skipSpace(b, i+1)
			if byteAt(b, i) == c+2 { // an empty container: '{'+2 is '}', '['+2 is ']'
				break
			}
			i, f = skipKey(b, i, nest)
			all |= f
			continue
		default:
			i = scanScalar(b, i)
		}
		for depth > 0 {
			i = skipSpace(b, i)
			c := byteAt(b, i)
			if c == ',' {
				i, f = skipKey(b, skipSpace(b, i+1), nest)
				all |= f
				continue value
			}
			if c != byte(']'+nest&1<<5) {
				return broken, all
			}
			nest, depth = pop(nest, depth, spill)
			i++
		}
		return i, all
	}
	return broken, all
}

// byteAt is the byte at i, or 0 after the end; JSON has no 0 outside of strings.
func byteAt(b []byte, i int) byte {
	if uint(i) < uint(len(b)) {
		return b[i]
	}
	return 0
}

// skipKey moves to the value of the member that begins at i in an object; in an array the value itself begins there.
func skipKey(b []byte, i int, nest uint64) (int, flags) {
	if nest&1 == 0 {
		return i, 0
	}
	return scanKey(b, i)
}

// keep moves the word of the outer levels to spill, if there is one.
func keep(nest uint64, depth int, spill *[spillWords]uint64) bool {
	if spill != nil {
		spill[depth>>6] = nest
	}
	return spill != nil
}

// tooDeep returns broken if the depth limit is exceeded, otherwise needSpill.
func tooDeep(depth, room int) int {
	if depth > room {
		return broken
	}
	return needSpill
}

func pop(nest uint64, depth int, spill *[spillWords]uint64) (uint64, int) {
	if nest >>= 1; depth&63 == 0 {
		nest = spill[depth>>6]
	}
	return nest, depth - 1
}

// scanKey reads a member's key from its opening quote, the colon and the white space around it, and returns the
// offset of the value, or broken.
func scanKey(b []byte, i int) (int, flags) {
	if i >= len(b) || b[i] != '"' {
		return broken, 0
	}
	i, f := scanString(b, i+1)
	if i < 0 {
		return broken, f
	}
	if i = skipSpace(b, i); i >= len(b) || b[i] != ':' {
		return broken, f
	}
	return skipSpace(b, i+1), f
}

// scanScalar reads a number, true, false or null at i and returns the offset after it, or broken.
func scanScalar(b []byte, i int) int {
	switch b[i] {
	case 't':
		return scanWord(b, i, "true")
	case 'n':
		return scanWord(b, i, "null")
	case 'f':
		return scanWord(b, i, "false")
	}
	return scanNumber(b, i)
}

func scanWord(b []byte, i int, word string) int {
	end := i + len(word)
	if end > len(b) || string(b[i:end]) != word {
		return broken
	}
	return end
}

// scanNumber reads a JSON number at i and returns the offset after it, or broken.
func scanNumber(b []byte, i int) int {
	if i < len(b) && b[i] == '-' {
		i++
	}
	if i < len(b) && b[i] == '0' {
		i++
	} else if i = scanDigits(b, i); i < 0 {
		return broken
	}
	if i < len(b) && b[i] == '.' {
		if i = scanDigits(b, i+1); i < 0 {
			return broken
		}
	}
	if i < len(b) && b[i]|0x20 == 'e' {
		i++
		if i < len(b) && (b[i] == '+' || b[i] == '-') {
			i++
		}
		return scanDigits(b, i)
	}
	return i
}

// scanDigits reads at least one decimal digit at i.
func scanDigits(b []byte, i int) int {
	start := i
	for i < len(b) && b[i]-'0' <= 9 {
		i++
	}
	if i == start {
		return broken
	}
	return i
}
