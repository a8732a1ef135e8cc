package agentcli

import (
	"hash/fnv"

	"github.com/outlive-mcp/outlive/internal/files/lazyregexp"
)

// loop recognises repeated work. It keeps digests, not texts.
type loop struct {
	last, before uint64 // the latest call with its result, and the previous one
	known        int    // how many of these two are set: 0, 1 or 2
	same         int    // times in a row that last was repeated
	swaps        int    // times in a row that a call equalled the one before the last, but not the last
	lastError    uint64
	errors       int // times in a row that calls ended with this error, once for all that were made together
	erred        int // the latest step with this error
	shown        map[uint64]struct{}
}

// shownMost is how many calls with their results are remembered. A repetition after more than that counts as new.
const shownMost = 512

// passing matches parts of results that differ in every run: durations, and names that are used once.
var passing = lazyregexp.New(`(?mi)^(?:chunk id:.*|wall time:? .*|duration:? .*|process group pgid:.*|original token count:.*)$`)

// ordersRepetition matches prompts that ask for repetition: then repeating a call is intended. "Until it works" is
// not included: an agent that never succeeds repeats itself.
var ordersRepetition = lazyregexp.New(`(?i)\b(?:\d+ ?(?:x|times)|repeat(?:edly)?|again and again|poll(?:ing)?|keep (?:checking|polling)|every \d+ ?(?:s|secs?|seconds|m|mins?|minutes|h|hours))\b`)

// exitAlone matches results that say only how a command has ended. Nothing was met in common by several of them: a search
// that finds nothing ends so, and a test that is false.
var exitAlone = lazyregexp.New(`(?i)\A(?:\s*(?:chunk id:.*|wall time:? .*|original token count:.*|process group pgid:.*|script failed|output:(?: \(empty\))?|error: \(none\)` +
	`|(?:error: )?(?:process exited with code|(?:command failed with )?exit (?:code|status)):? ?\d+)[ \t.]*(?:\r?\n|\z))*\s*\z`)

// waiting matches commands that wait, or that check something running elsewhere: repeating these is not a loop.
var waiting = lazyregexp.New(`(?:^|[;&|(\n]\s*|\b(?:do|then) )(?:sleep|wait|watch|tail -f|kubectl (?:get|wait|rollout status)|docker (?:ps|wait|inspect)|gh (?:run|workflow|pr (?:checks|view|status))|glab (?:ci|mr) |systemctl (?:status|is-active))\b|--watch\b`)

// polling matches names of tools that wait, or ask how something elsewhere is doing. Those of MCP servers are called so.
var polling = lazyregexp.New(`(?i)wait|poll|status|progress`)

func resultOf(output string) uint64 { return digest(passing.ReplaceAllString(output, "")) }

// shows reports whether a call has a result that it did not have before in this turn.
func (l *loop) shows(key, result uint64) bool {
	now := key*31 + result
	if _, known := l.shown[now]; known {
		return false
	}
	if l.shown == nil || len(l.shown) >= shownMost {
		l.shown = map[uint64]struct{}{}
	}
	l.shown[now] = struct{}{}
	return true
}

// add records a call that has ended. Calls that were made together, in one step, may meet the same error: that is no
// repetition.
func (l *loop) add(key, result uint64, failed bool, step int) {
	switch {
	case !failed:
		l.lastError, l.errors = 0, 0
	case result != l.lastError:
		l.lastError, l.errors = result, 1
	case step != l.erred:
		l.errors++
	}
	l.erred = step
	now := key*31 + result
	switch {
	case l.known > 0 && now == l.last:
		l.same++
		l.swaps = 0
	case l.known > 1 && now == l.before:
		l.same = 1
		l.swaps++
	default:
		l.same, l.swaps = 1, 0
	}
	l.before, l.last, l.known = l.last, now, min(l.known+1, 2)
}

// rest forgets the calls before one that waits: whoever looks at something again after that polls it.
func (l *loop) rest() { *l = loop{shown: l.shown} }

// repeats returns the counts. A single occurrence is not a repetition.
func (l *loop) repeats() Repeats {
	several := func(n int) int {
		if n < 2 {
			return 0
		}
		return n
	}
	return Repeats{SameCall: several(l.same), SameError: several(l.errors), Alternating: several((l.swaps + 2) / 2)}
}

func digest(texts ...string) uint64 {
	h := fnv.New64a()
	for _, text := range texts {
		_, _ = h.Write([]byte(text)) // a hash never fails
		_, _ = h.Write([]byte{0})
	}
	return h.Sum64()
}
