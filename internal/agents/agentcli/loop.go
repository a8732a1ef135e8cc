package agentcli

import (
	"hash/fnv"

	"github.com/outlive-mcp/outlive/internal/files/lazyregexp"
)

// loop recognises work that repeats itself. It remembers digests, not texts.
type loop struct {
	last, before uint64 // the latest call with its result, and the one before
	known        int    // how many of them there are: 0, 1 or 2
	same         int    // times in a row that last was done
	swaps        int    // times in a row that a call was the one before the last, and not the last
	lastError    uint64
	errors       int // times in a row that calls ended with it
	shown        map[uint64]struct{}
}

// shownMost is how many calls with their results are remembered. One that comes again later counts as new.
const shownMost = 512

// passing are parts of results that differ although nothing else does: how long it took, and names given for once.
var passing = lazyregexp.New(`(?mi)^(?:chunk id:.*|wall time:? .*|duration:? .*|process group pgid:.*|original token count:.*)$`)

// ordersRepetition are the words of a prompt that orders one: then the same call again is what was wanted. "Until it works"
// is none of them: an agent that never gets there repeats itself.
var ordersRepetition = lazyregexp.New(`(?i)\b(?:\d+ ?(?:x|times)|repeat(?:edly)?|again and again|poll(?:ing)?|keep (?:checking|polling)|every \d+ ?(?:s|secs?|seconds|m|mins?|minutes|h|hours))\b`)

// waiting are commands that wait, or ask how something is doing that runs elsewhere: the same answer again is not a loop.
var waiting = lazyregexp.New(`(?:^|[;&|(\n]\s*|\b(?:do|then) )(?:sleep|wait|watch|tail -f|kubectl (?:get|wait|rollout status)|docker (?:ps|wait|inspect)|gh (?:run|workflow|pr (?:checks|view|status))|glab (?:ci|mr) |systemctl (?:status|is-active))\b|--watch\b`)

// resultOf stands for what a call has come to.
func resultOf(output string) uint64 { return digest(passing.ReplaceAllString(output, "")) }

// shows reports whether a call has come to what it did not come to before in this turn.
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

// add is a call that has ended.
func (l *loop) add(key, result uint64, failed bool) {
	if !failed {
		l.lastError, l.errors = 0, 0
	} else if result == l.lastError {
		l.errors++
	} else {
		l.lastError, l.errors = result, 1
	}
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

// repeats are the counts as they are told. Once is not a repetition.
func (l *loop) repeats() Repeats {
	r := Repeats{SameCall: l.same, SameError: l.errors}
	if l.swaps > 0 {
		r.Alternating = (l.swaps + 2) / 2
	}
	if r.SameCall < 2 {
		r.SameCall = 0
	}
	if r.SameError < 2 {
		r.SameError = 0
	}
	if r.Alternating < 2 {
		r.Alternating = 0
	}
	return r
}

// digest stands for texts.
func digest(texts ...string) uint64 {
	h := fnv.New64a()
	for _, text := range texts {
		_, _ = h.Write([]byte(text)) // a hash does not fail
		_, _ = h.Write([]byte{0})
	}
	return h.Sum64()
}
