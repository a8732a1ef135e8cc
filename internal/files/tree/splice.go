package tree

import (
	"fmt"
	"slices"
)

// Splice replaces the text Was at byte offset At by Now.
type Splice struct {
	At  int    `json:"at"`
	Was string `json:"was"`
	Now string `json:"now"`
}

// Apply applies splices that do not overlap, in any order.
func Apply(text []byte, splices []Splice) ([]byte, error) {
	var out []byte
	at := 0
	for _, s := range ordered(splices) {
		if s.At < at || s.At+len(s.Was) > len(text) || string(text[s.At:s.At+len(s.Was)]) != s.Was {
			return nil, fmt.Errorf("splice at byte %d: the text is another one", s.At)
		}
		out = append(append(out, text[at:s.At]...), s.Now...)
		at = s.At + len(s.Was)
	}
	return append(out, text[at:]...), nil
}

// Reversed returns the splices that turn the result of [Apply] into the text it was made from.
func Reversed(splices []Splice) []Splice {
	splices = ordered(splices)
	shift := 0
	for i, s := range splices {
		splices[i] = Splice{At: s.At + shift, Was: s.Now, Now: s.Was}
		shift += len(s.Now) - len(s.Was)
	}
	return splices
}

func ordered(splices []Splice) []Splice {
	return slices.SortedStableFunc(slices.Values(splices), func(a, b Splice) int { return a.At - b.At })
}
