package incident

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// Clock is a time of day, in minutes since midnight, local time.
type Clock int

// fullDay is midnight at the end of a day.
const fullDay Clock = 24 * 60

// ParseClock parses "07:30", and "24:00".
func ParseClock(s string) (Clock, error) {
	s = strings.TrimSpace(s)
	if s == "24:00" {
		return fullDay, nil
	}
	t, err := time.Parse("15:04", s)
	if err != nil {
		return 0, fmt.Errorf("%q is not a time of day: want one such as 07:30", s)
	}
	return clockOf(t), nil
}

func clockOf(t time.Time) Clock { return Clock(t.Hour()*60 + t.Minute()) }

// Quiet is a daily period in which only critical incidents are sent. It may include midnight.
type Quiet struct {
	From, To Clock // To is the first minute after it
}

// ParseQuiet parses "23:00-07:00 critical-only"; the last word may be omitted, because there is no other.
func ParseQuiet(s string) (Quiet, error) {
	hours, only, _ := strings.Cut(strings.TrimSpace(s), " ")
	from, to, _ := strings.Cut(hours, "-")
	var q Quiet
	var errs [2]error
	q.From, errs[0] = ParseClock(from)
	q.To, errs[1] = ParseClock(to)
	known := only == "" || strings.TrimSpace(only) == "critical-only"
	if errors.Join(errs[:]...) != nil || !known || q.From == q.To || q.From == fullDay {
		return Quiet{}, fmt.Errorf("quiet hours %q: want such as %q", s, "23:00-07:00 critical-only")
	}
	return q, nil
}

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
