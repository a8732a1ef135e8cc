package incident

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Clock is a time of day, in minutes since midnight, local time.
type Clock int

// fullDay is midnight at the end of a day.
const fullDay Clock = 24 * 60

// ParseClock parses "07:30".
func ParseClock(s string) (Clock, error) {
	hours, minutes, ok := strings.Cut(strings.TrimSpace(s), ":")
	h, err := strconv.ParseUint(hours, 10, 8)
	m, err2 := strconv.ParseUint(minutes, 10, 8)
	if !ok || err != nil || err2 != nil || len(hours) > 2 || len(minutes) != 2 || m > 59 || h > 23 && (h != 24 || m != 0) {
		return 0, fmt.Errorf("%q is not a time of day: want one such as 07:30", s)
	}
	return Clock(h*60 + m), nil
}

// String formats "07:30".
func (c Clock) String() string { return fmt.Sprintf("%02d:%02d", c/60, c%60) }

func clockOf(t time.Time) Clock { return Clock(t.Hour()*60 + t.Minute()) }

// Quiet is a daily period in which only critical incidents are sent. It may include midnight.
type Quiet struct {
	From, To Clock // To is the first minute after it
}

// ParseQuiet parses "23:00-07:00 critical-only"; the last word may be omitted, because there is no other.
func ParseQuiet(s string) (Quiet, error) {
	fail := func(why error) (Quiet, error) {
		return Quiet{}, fmt.Errorf("quiet hours %q: %w: want such as %q", s, why, "23:00-07:00 critical-only")
	}
	words := strings.Fields(s)
	if len(words) == 0 || len(words) > 2 {
		return fail(fmt.Errorf("there are %d words", len(words)))
	}
	if len(words) == 2 && words[1] != "critical-only" {
		return fail(fmt.Errorf("%q is not known", words[1]))
	}
	from, to, _ := strings.Cut(words[0], "-")
	var q Quiet
	var err error
	if q.From, err = ParseClock(from); err != nil {
		return fail(err)
	}
	if q.To, err = ParseClock(to); err != nil {
		return fail(err)
	}
	if q.From == q.To || q.From == fullDay {
		return fail(fmt.Errorf("they have no length"))
	}
	return q, nil
}

// String returns the form that [ParseQuiet] parses.
func (q Quiet) String() string { return fmt.Sprintf("%s-%s critical-only", q.From, q.To) }

func (q Quiet) holds(c Clock) bool {
	if q.From < q.To {
		return q.From <= c && c < q.To
	}
	return c >= q.From || c < q.To
}

// At reports whether t is in the quiet period in loc, and until when. It uses local time, also on the days on which
// the clocks change.
func (q Quiet) At(t time.Time, loc *time.Location) (until time.Time, quiet bool) {
	local := t.In(loc)
	now := clockOf(local)
	if !q.holds(now) {
		return time.Time{}, false
	}
	minute := local.Add(-time.Duration(local.Second())*time.Second - time.Duration(local.Nanosecond()))
	left := q.To - now
	if left <= 0 {
		left += fullDay
	}
	if end := minute.Add(time.Duration(left) * time.Minute); left < fullDay && sameOffset(minute, end) {
		if !q.holds(clockOf(end)) {
			return end, true
		}
	}
	end := minute // the clocks change in between, or the period never ends: check minute by minute
	for range 2 * fullDay {
		if end = end.Add(time.Minute); !q.holds(clockOf(end)) {
			break
		}
	}
	return end, true
}

func sameOffset(a, b time.Time) bool {
	_, x := a.Zone()
	_, y := b.Zone()
	return x == y
}

// NextDigest returns the first time after after at which the local time in loc is at, or would be at on a day on
// which the clocks go forward.
func NextDigest(after time.Time, at Clock, loc *time.Location) time.Time {
	y, m, d := after.In(loc).Date()
	for day := d; ; day++ {
		if t := time.Date(y, m, day, int(at)/60, int(at)%60, 0, 0, loc); t.After(after) {
			return t
		}
	}
}
