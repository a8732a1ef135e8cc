package overview

import (
	"cmp"
	"fmt"
	"strings"
	"time"
)

// Shape is a health as a sign that needs no colour.
func (h Health) Shape() string { return [healths]string{"?", "○", "●", "◐", "▲", "✖"}[h] }

// Word is a health in words for people.
func (h Health) Word() string {
	return [healths]string{"nothing known", "not needed", "well", "starting", "trouble", "broken"}[h]
}

// StateWord is a state for people: that of a server as status has it.
func StateWord(state string) string {
	switch state {
	case "backoff":
		return "is down"
	case "failed":
		return "keeps failing"
	case "unusable":
		return "cannot be used"
	}
	return state
}

// Unplanned reports a restart that nobody asked for.
func (r Renewal) Unplanned() bool { return r.Source == "" || r.Source == "none" }

// Asker is who asked for a restart.
func (r Renewal) Asker() string {
	if r.Unplanned() {
		return "nobody"
	}
	return r.Source
}

// Text is a restart in words.
func (r Renewal) Text(now time.Time) string {
	text := "at " + Clock(r.At, now) + " (" + r.Cause
	if !r.Unplanned() {
		text += ", asked by " + r.Source
	}
	switch {
	case r.Done:
		text += ", took " + Took(r.Took)
	case r.Failed:
		text += ", it did not come up"
	}
	return text + ")"
}

// Tried says what outlive has done about a server since it is wrong, and when it starts it again. "": nothing.
func (s Server) Tried(now time.Time) string {
	var done []string
	since, all := 0, len(s.Renewals)
	for since < all && !s.Renewals[since].At.Add(time.Second).Before(s.Since) { // an event has its time in milliseconds
		since++
	}
	if all > 0 {
		last := Clock(cmp.Or(s.Renewals[0].Begun, s.Renewals[0].At), now)
		text := fmt.Sprintf("has restarted it %s since then, last at %s", Times(since), last)
		switch {
		case since == 0:
			text = fmt.Sprintf("has restarted it %s in the last 24 h, last at %s", Times(all), last)
		case since < all:
			text += fmt.Sprintf(" (%s in the last 24 h)", Times(all))
		}
		done = append(done, text)
	}
	if !s.Next.IsZero() {
		done = append(done, "starts it again at "+Clock(s.Next, now))
	} else if s.State == "failed" {
		done = append(done, "does not start it again by itself")
	}
	return strings.Join(done, ", and ")
}

// Times is how often something was.
func Times(n int) string {
	if n == 1 {
		return "once"
	}
	return fmt.Sprintf("%d ×", n)
}

// Clock is a time of day, with its date if it is another day's.
func Clock(t, now time.Time) string {
	switch {
	case t.IsZero():
		return "–"
	case sameDay(t, now):
		return t.Local().Format(time.TimeOnly)
	}
	return Minute(t, now)
}

// Minute is the same to the minute.
func Minute(t, now time.Time) string {
	if sameDay(t, now) {
		return t.Local().Format("15:04")
	}
	return t.Local().Format("2 Jan 15:04")
}

func sameDay(t, now time.Time) bool {
	return t.Local().Format(time.DateOnly) == now.Local().Format(time.DateOnly)
}

// Took is how long something lasted, in one or two units.
func Took(d time.Duration) string {
	switch {
	case d < 0:
		return "–"
	case d < time.Millisecond:
		return fmt.Sprintf("%d µs", d.Microseconds())
	case d < time.Second:
		return fmt.Sprintf("%d ms", d.Milliseconds())
	case d < 10*time.Second:
		return fmt.Sprintf("%.1f s", d.Seconds())
	case d < 2*time.Minute:
		return fmt.Sprintf("%d s", int(d.Seconds()))
	case d < 2*time.Hour:
		return fmt.Sprintf("%d min", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%d h %d min", int(d.Hours()), int(d.Minutes())%60)
	}
	return fmt.Sprintf("%d days", int(d.Hours()/24))
}

// Size is a number of bytes.
func Size(n int64) string {
	switch {
	case n <= 0:
		return "–"
	case n < 10<<20:
		return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20))
	}
	return fmt.Sprintf("%d MiB", n>>20)
}
