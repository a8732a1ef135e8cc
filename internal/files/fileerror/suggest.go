package fileerror

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Suggest finds the word that was probably meant, or gives "". habits are what people write who come from other programs,
// [Folded], and what it is called here; nil: there are none.
func Suggest(word string, known []string, habits map[string]string) string {
	plain := Folded(word)
	for _, k := range known {
		if Folded(k) == plain {
			return k
		}
	}
	if k := habits[plain]; slices.Contains(known, k) {
		return k
	}
	best, nearest := "", 1+len(plain)/3
	if len(plain) < 3 || len(plain) > longestWord {
		nearest = 0 // too short to tell, too long to be one
	}
	for _, h := range slices.Sorted(maps.Keys(habits)) {
		if d := distance(plain, h); d < nearest && d <= len(plain)/4 && slices.Contains(known, habits[h]) {
			best, nearest = habits[h], d
		}
	}
	for _, k := range known {
		if d := distance(plain, Folded(k)); d < nearest {
			best, nearest = k, d
		}
	}
	return best
}

const longestWord = 40

// Folded makes maxRestarts, max-restarts and max_restarts the same.
func Folded(word string) string { return unseparated.Replace(strings.ToLower(word)) }

var unseparated = strings.NewReplacer("_", "", "-", "", " ", "")

// distance counts the letters that were added, left out, changed, or exchanged with their neighbour.
func distance(a, b string) int {
	before, row := make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := 1; i <= len(a); i++ {
		next := make([]int, len(b)+1)
		next[0] = i
		for j := 1; j <= len(b); j++ {
			changed := row[j-1]
			if a[i-1] != b[j-1] {
				changed++
			}
			next[j] = min(changed, row[j]+1, next[j-1]+1)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				next[j] = min(next[j], before[j-2]+1)
			}
		}
		before, row = row, next
	}
	return row[len(b)]
}

// fewEnough words are listed when none resembles what was written.
const fewEnough = 12

// DidYouMean is the hint for a word that is not known: the one that was probably meant (see [Suggest]), or else all of them if
// they are few, or else "".
func DidYouMean(word string, known []string, habits map[string]string) string {
	if k := Suggest(word, known, habits); k != "" {
		return fmt.Sprintf("did you mean %q?", k)
	}
	if len(known) > 0 && len(known) <= fewEnough {
		return "want " + Alternatives(known)
	}
	return ""
}

// Alternatives lists words: a, b or c.
func Alternatives(words []string) string {
	switch n := len(words); n {
	case 0:
		return ""
	case 1:
		return words[0]
	default:
		return strings.Join(words[:n-1], ", ") + " or " + words[n-1]
	}
}

// Shortened keeps messages readable: the first line of a text, and of that at most 60 characters.
func Shortened(s string) string {
	const most = 60
	s, _, cut := strings.Cut(s, "\n")
	if c := []rune(s); len(c) > most {
		return string(c[:most]) + "…"
	}
	if cut {
		return s + "…"
	}
	return s
}
