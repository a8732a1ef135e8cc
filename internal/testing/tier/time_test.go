package tier

import (
	"testing"
	"time"
)

// recorded is a test whose errors are counted.
type recorded struct {
	testing.TB
	errors int
}

func (r *recorded) Errorf(string, ...any) { r.errors++ }

func TestTimesAreJudgedBehindTheDoor(t *testing.T) {
	for _, test := range []struct {
		tier           string
		took, promised time.Duration
		errors         int
	}{
		{"door", time.Minute, time.Second, 0},
		{"door", 3 * time.Minute, time.Second, 1},
		{"door", 3 * time.Minute, 4 * time.Minute, 0},
		{"full", time.Minute, time.Second, 1},
		{"full", time.Second, time.Second, 0},
		{"hunt", time.Minute, time.Second, 1},
	} {
		t.Setenv("OUTLIVE_TIER", test.tier)
		r := &recorded{TB: t}
		Within(r, "it", test.took, test.promised)
		if r.errors != test.errors {
			t.Errorf("%s: %v of %v: %d errors, want %d", test.tier, test.took, test.promised, r.errors, test.errors)
		}
	}
}
