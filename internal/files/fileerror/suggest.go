package fileerror

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Suggest returns the known word that was probably meant, or "". habits maps words that people know from other
// programs, [Folded], to those used here; nil: none.
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
		nearest = 0 // too short or too long for a comparison
	}
	for _, h := range slices.Sorted(maps.Keys(habits)) {
		if d := Distance(plain, h); d < nearest && d <= len(plain)/4 && slices.Contains(known, habits[h]) {
			best, nearest = habits[h], d
		}
	}
	for _, k := range known {
		if d := Distance(plain, Folded(k)); d < nearest {
			best, nearest = k, d
		}
	}
	return best
}

const longestWord = 40

// Folded makes maxRestarts, max-restarts and max_restarts equal.
func Folded(word string) string { return unseparated.Replace(strings.ToLower(word)) }

var unseparated = strings.NewReplacer("_", "", "-", "", " ", "")

// Distance counts inserted, omitted, changed and swapped letters.
func Distance(a, b string) int {
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

// fewEnough is up to how many words are listed when none resembles what was written.
const fewEnough = 12

// DidYouMean is the hint for an unknown word: the one that was probably meant (see [Suggest]), otherwise all known
// words if they are few, otherwise "".
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

// Shortened keeps messages readable: it returns at most 60 characters of a text's first line.
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
