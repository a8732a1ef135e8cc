package await

import (
	"testing"
	"time"
)

// Limit is how long [Until] and [Value] wait: nothing that works takes so long, however busy the machine is.
const Limit = 2 * time.Minute

// Between two looks there is a pause, which grows: what is there at once is found at once, and a long wait costs little.
const (
	firstPause = time.Millisecond
	lastPause  = 20 * time.Millisecond
)

// Until waits until is returns true, or fails the test: what says what was waited for.
func Until(t testing.TB, what string, is func() bool) {
	t.Helper()
	if !within(Limit, is) {
		t.Fatalf("not within %v: %s", Limit, what)
	}
}

// Value waits until look says that it has seen what was waited for, and returns it. A test that fails shows what was seen last.
func Value[T any](t testing.TB, what string, look func() (T, bool)) T {
	t.Helper()
	var last T
	if !within(Limit, func() (good bool) { last, good = look(); return good }) {
		t.Fatalf("not within %v: %s; seen last: %+v", Limit, what, last)
	}
	return last
}

// within looks until is returns true or the time is up; once in any case, and once more at the end.
func within(limit time.Duration, is func() bool) bool {
	end := time.Now().Add(limit)
	for pause := firstPause; ; pause = min(2*pause, lastPause) {
		if is() {
			return true
		}
		if time.Now().After(end) {
			return false
		}
		time.Sleep(pause)
	}
}
