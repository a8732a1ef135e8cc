package child

import (
	"testing"
	"time"
)

// A wait that was interrupted at its very end does not become one without end.
func TestPollTimeout(t *testing.T) {
	end := time.Unix(100, 0)
	for before, want := range map[time.Duration]int{5 * time.Second: 5000, time.Microsecond: 0, 0: 0, -time.Millisecond: 0, -time.Hour: 0} {
		if got := pollTimeout(end, end.Add(-before)); got != want {
			t.Errorf("%v before the end: %d, want %d", before, got, want)
		}
	}
}
