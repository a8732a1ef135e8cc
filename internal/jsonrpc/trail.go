package jsonrpc

import "unicode/utf8"

const (
	longText   = 1 << 20   // bytes; the scan of a longer text is reported
	reportStep = 256 << 10 // bytes between two reports
)

// trail is what the scan of a long text takes along to report how far it is. It is nil for all other scans.
type trail struct {
	tell  func(upTo int)
	step  int                // bytes between two reports, at least utf8.UTFMax
	next  int                // the offset to report at
	spill [spillWords]uint64 // for skip, which could not start again without reading twice
}

// scanLong stands apart so that only a long text pays for clearing the spill.
//
//go:noinline
func (e *Envelope) scanLong(line []byte, step int) error {
	return e.scan(line, &trail{tell: e.Behind, step: step, next: step})
}

// report says that nothing before upTo is needed any more.
func (t *trail) report(upTo int) {
	t.tell(upTo)
	t.next = upTo + t.step
}

// scanParts is scanText in parts, each checked before it is reported.
func scanParts(b []byte, i int, t *trail) (int, flags) {
	var f flags
	var high uint64
	start := i // of the part
	check := func(end int) {
		if high&highs != 0 && !validUTF8(b[start:end]) {
			f |= hasBadUTF8
		}
	}
	for {
		text := b[:min(t.next, len(b))]
		i, high = plainText(text, i, high)
		switch {
		case i >= len(b):
			return broken, f
		case i >= len(text):
			end := start + wholeRunes(b[start:i])
			check(end)
			t.report(end)
			start, i, high = end, end, 0
		case b[i] == '"':
			check(i)
			return i + 1, f
		case b[i] == '\\':
			n, lone := scanEscape(b, i)
			if n == 0 {
				return broken, f
			}
			if f |= hasEscape; lone {
				f |= hasSurrogate
			}
			i += n
		default:
			return broken, f
		}
	}
}

// wholeRunes returns how much of b stands before a character that may go on behind the end of b: the parts before and
// after that offset are both UTF-8 if and only if the whole is.
func wholeRunes(b []byte) int {
	for i := len(b) - 1; i >= 0 && i > len(b)-utf8.UTFMax; i-- {
		if utf8.RuneStart(b[i]) {
			if !utf8.FullRune(b[i:]) {
				return i
			}
			break
		}
	}
	return len(b)
}
