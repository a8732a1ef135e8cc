package config

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// habits are what people write who come from other programs.
var habits = map[string]string{
	"environment": "env", "arguments": "args", "argv": "args", "cmd": "command", "exec": "command", "program": "command",
	"workdir": "cwd", "workingdir": "cwd", "workingdirectory": "cwd", "dir": "cwd", "directory": "cwd",
	"endpoint": "url", "uri": "url", "httpurl": "url", "serverurl": "url", "mcpservers": "servers", "backends": "servers",
	"includetools": "allow", "enabledtools": "allow", "excludetools": "deny", "disabledtools": "deny",
	"timeout": "call_timeout", "enabled": "disabled", "port": "listen", "address": "listen", "token": "bearer",
	"httpheaders": "headers", "alias": "rename",
}

// suggest finds the word that was probably meant, or gives "".
func suggest(word string, known []string) string {
	plain := folded(word)
	for _, k := range known {
		if folded(k) == plain {
			return k
		}
	}
	if k := habits[plain]; slices.Contains(known, k) {
		return k
	}
	best, nearest := "", 1+len(plain)/3
	if len(plain) < 3 || len(plain) > longestKey {
		nearest = 0 // too short to tell, too long to be one
	}
	for _, h := range slices.Sorted(maps.Keys(habits)) {
		if d := distance(plain, h); d < nearest && d <= len(plain)/4 && slices.Contains(known, habits[h]) {
			best, nearest = habits[h], d
		}
	}
	for _, k := range known {
		if d := distance(plain, folded(k)); d < nearest {
			best, nearest = k, d
		}
	}
	return best
}

const longestKey = 40

// folded makes maxRestarts, max-restarts and max_restarts the same.
func folded(word string) string {
	return strings.NewReplacer("_", "", "-", "", " ", "").Replace(strings.ToLower(word))
}

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

// fewEnough keys are listed when none resembles what was written.
const fewEnough = 12

// didYouMean is the hint for a word that is not known.
func didYouMean(word string, known []string) string {
	if k := suggest(word, known); k != "" {
		return fmt.Sprintf("did you mean %q?", k)
	}
	if len(known) <= fewEnough {
		return "want " + alternatives(known)
	}
	return ""
}

// alternatives lists words: a, b or c.
func alternatives(words []string) string {
	switch n := len(words); n {
	case 0:
		return ""
	case 1:
		return words[0]
	default:
		return strings.Join(words[:n-1], ", ") + " or " + words[n-1]
	}
}
