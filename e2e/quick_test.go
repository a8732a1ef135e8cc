package e2e

import (
	"cmp"
	"os"
	"testing"
	"time"
)

// The door runs tests of the monitor and of a fleet with one hub with an outlive whose times are shorter, see overlay/quick.go. The full run
// has the shipped one, and its times.

// quickly is the shorter times' divisor.
const quickly = 5

// quickBin is the outlive with the shorter times; "": this run has none.
func quickBin() string {
	if full() {
		return ""
	}
	return os.Getenv("OUTLIVE_QUICK_BIN")
}

// timed is the outlive of tests that wait for what the monitor and the members of a fleet do by the clock.
func timed() string { return cmp.Or(quickBin(), tools.outlive) }

// waits is how long something takes with [timed] that takes d with the shipped program.
func waits(d time.Duration) time.Duration {
	if quickBin() == "" {
		return d
	}
	return d / quickly
}

// silenceAndLease is longer than both together: in the shipped program up to long, with the shorter times 16 s.
func silenceAndLease(long time.Duration) time.Duration {
	if quickBin() == "" {
		return long
	}
	return 20 * time.Second
}

// inTime fails the test when something has taken longer than it may, which the door does not judge.
func inTime(t *testing.T, what string, took, limit time.Duration) {
	t.Helper()
	if full() && took > limit {
		t.Errorf("%s after %v, want at most %v", what, took, limit)
		return
	}
	t.Logf("%s after %v", what, took)
}
