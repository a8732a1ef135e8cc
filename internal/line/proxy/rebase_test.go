package proxy

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestTimesOfAnEarlierImage(t *testing.T) {
	at := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	type inner struct{ Deadline, Never time.Time }
	type outer struct {
		Since time.Time
		All   []inner
		One   *inner
		None  *inner
		Named map[string]*inner
		Fixed [2]time.Time
		Bytes []byte
		Text  string
	}
	build := func(since, deadline time.Time) *outer {
		return &outer{Since: since, All: []inner{{Deadline: deadline}}, One: &inner{Deadline: deadline},
			Named: map[string]*inner{"a": {Deadline: deadline}}, Fixed: [2]time.Time{since}, Bytes: []byte("b"), Text: "t"}
	}
	for name, c := range map[string]struct {
		now   time.Time
		moved time.Duration // what every time is moved by
	}{
		"at once":                   {at, 0},
		"a moment later":            {at.Add(30 * time.Millisecond), 0},
		"the clock was set back":    {at.Add(-time.Hour), -time.Hour},
		"the clock was set forward": {at.Add(time.Hour), time.Hour - longestGap},
		"as late as can be":         {at.Add(longestGap), 0},
	} {
		t.Run(name, func(t *testing.T) {
			v := build(at.Add(-time.Minute), at.Add(time.Second))
			rebase(v, at, c.now)
			want := build(at.Add(-time.Minute+c.moved), at.Add(time.Second+c.moved))
			if diff := cmp.Diff(want, v); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
