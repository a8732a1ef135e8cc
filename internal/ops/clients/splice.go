package clients

import (
	"fmt"
	"slices"
	"strings"
)

// Splice replaces the text Was, which stands at byte offset At, with Now.
type Splice struct {
	At  int    `json:"at"`
	Was string `json:"was"`
	Now string `json:"now"`
}

// apply carries out splices that do not overlap, in any order.
func apply(text []byte, splices []Splice) ([]byte, error) {
	splices = slices.Clone(splices)
	slices.SortStableFunc(splices, func(a, b Splice) int { return a.At - b.At })
	var out []byte
	at := 0
	for _, s := range splices {
		if s.At < at || s.At+len(s.Was) > len(text) || string(text[s.At:s.At+len(s.Was)]) != s.Was {
			return nil, fmt.Errorf("splice at byte %d: the text is another one", s.At)
		}
		out = append(out, text[at:s.At]...)
		out = append(out, s.Now...)
		at = s.At + len(s.Was)
	}
	return append(out, text[at:]...), nil
}

// reversed returns the splices that turn the result of apply into the text it was made from.
func reversed(splices []Splice) []Splice {
	splices = slices.Clone(splices)
	slices.SortStableFunc(splices, func(a, b Splice) int { return a.At - b.At })
	shift := 0
	for i, s := range splices {
		splices[i] = Splice{At: s.At + shift, Was: s.Now, Now: s.Was}
		shift += len(s.Now) - len(s.Was)
	}
	return splices
}

// span is a range of bytes of a text.
type span struct{ start, end int }

func (s span) of(text []byte) string { return string(text[s.start:s.end]) }

// replace is the splice that puts now in the place of the bytes of at.
func replace(text []byte, at span, now string) Splice {
	return Splice{At: at.start, Was: at.of(text), Now: now}
}

// trailingSpace returns the white space that text ends with.
func trailingSpace(text string) string {
	return text[len(strings.TrimRight(text, " \t\r\n")):]
}
