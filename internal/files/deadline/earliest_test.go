package deadline

import (
	"testing"
	"time"
)

func TestEarliest(t *testing.T) {
	var none time.Time
	one := time.Date(2026, 1, 13, 22, 30, 0, 0, time.UTC)
	two := one.Add(time.Second)
	for _, c := range []struct {
		times []time.Time
		want  time.Time
	}{
		{nil, none}, {[]time.Time{none, none}, none}, {[]time.Time{none, two}, two}, {[]time.Time{two, none}, two},
		{[]time.Time{two, one}, one}, {[]time.Time{one, two}, one}, {[]time.Time{two, none, one, none}, one},
	} {
		if got := Earliest(c.times...); !got.Equal(c.want) {
			t.Errorf("the first of %v is %v, want %v", c.times, got, c.want)
		}
	}
}
