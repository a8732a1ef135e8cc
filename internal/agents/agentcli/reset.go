package agentcli

import (
	"strconv"
	"strings"
	"time"
	_ "time/tzdata" // Windows and small containers have no zones of their own

	"github.com/outlive-mcp/outlive/internal/files/lazyregexp"
)

const (
	// justPassed is how long after its reset a limit may still be refused with the same time of day. It names the reset
	// of today then, and not that of tomorrow: limits lift minutes late (reported: up to an hour).
	justPassed = time.Hour
	// sessionWindow is how far off the reset of a session's limit can be. Its text says "session" or "5-hour".
	sessionWindow = 5 * time.Hour
	// longestLimit is the longest time to any reset that is believed.
	longestLimit = 366 * 24 * time.Hour
)

const (
	monthNames = `(jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*`
	weekdays   = "sunmontuewedthufrisat" // in the order of [time.Weekday]
	// timeUnit is a word that begins with one of the letters of resetPart, or "ms".
	timeUnit = `(?:weeks?|days?|hours?|hrs?|minutes?|mins?|seconds?|secs?|ms|[wdhms])`
)

var (
	// resetEpoch is Claude Code's "…limit reached|1760000000".
	resetEpoch = lazyregexp.New(`\|(\d{10})\b`)
	// resetDay is the Claude API's "You will regain access on 2026-12-01 at 00:00 UTC".
	resetDay = lazyregexp.New(`(?i)regain access on (\d{4}-\d{2}-\d{2}) at (\d{2}:\d{2}) UTC`)
	// resetIn is a time that is left. Codex: "try again in 2 days 3 hours 5 minutes"; OpenAI: "try again in 1m3.5s";
	// Gemini: "retry in 37.5s" and "your quota will reset after 8h44m7s"; others: "resets in 2h 30m".
	resetIn = lazyregexp.New(`(?i)(?:resets?|try again|retry) (?:in|after) (?:about )?((?:\d{1,6}(?:\.\d{1,9})?\s?` + timeUnit + `(?:,? and |[ ,]*))+)\b`)
	// resetPart is a number with its unit within that.
	resetPart = lazyregexp.New(`(?i)(\d{1,6}(?:\.\d{1,9})?)\s?(ms|[wdhms])`)
	// resetClock is a time of day, with or without a zone, a day of the week or a date. Claude Code: "resets 3:30pm
	// (Europe/Berlin)" and "will reset at 7pm"; Codex: "try again at Nov 25th, 2026 3:05 PM"; other locales: "resets
	// 23:30". Before the half of the day there may be a no-break space.
	resetClock = lazyregexp.New(`(?i)(?:resets?|try again) (?:at |on )?` +
		`(?:(mon|tue|wed|thu|fri|sat|sun)[a-z]*,? (?:at )?)?` +
		`(?:` + monthNames + ` (\d{1,2})(?:st|nd|rd|th)?(?:, (\d{4}))?,? (?:at )?)?` +
		`(?:(\d{1,2})(?::(\d{2}))?[\s\x{a0}\x{202f}]?([ap])\.?m\b\.?|(\d{1,2}):(\d{2})\b)` +
		`(?: \(([A-Za-z_/+\-0-9]+)\))?`)
	// resetDate is a gateway's "spend limit reached · resets Nov 23": a day of UTC, without a time.
	resetDate = lazyregexp.New(`(?i)resets ` + monthNames + ` (\d{1,2})\b(?:$|[^,:\d]|,? \D)`)
)

// limitLifted returns when a limit that was reached at at ends, by its text; zero: the text does not say. A clock time
// without a zone, or with one that does not exist, is in here. The end may have passed at at.
func limitLifted(text string, at time.Time, here *time.Location) time.Time {
	return readReset(text, here).after(at)
}

// reset is the end of a limit as its text names it. One of the first three is set, or the text names none.
type reset struct {
	moment time.Time
	left   *time.Duration // since the text was written
	clock  *clockTime
	window time.Duration // how far off it can be at most
}

// clockTime is a time of day, on a day of the week or a date if the text names one.
type clockTime struct {
	hour, minute int
	weekday      string     // "mon"; "": any
	month        time.Month // 0: the text names no date
	day, year    int        // year 0: the one that is nearest
	zone         *time.Location
}

func readReset(text string, here *time.Location) reset {
	r := reset{window: longestLimit}
	lower := strings.ToLower(text)
	if containsAny(lower, "session limit", "5-hour limit", "5 hour limit") && !containsAny(lower, "week", "month") {
		r.window = sessionWindow
	}
	if m := resetEpoch.FindStringSubmatch(text); m != nil {
		seconds, _ := strconv.ParseInt(m[1], 10, 64) // ten digits
		r.moment = time.Unix(seconds, 0).UTC()
		return r
	}
	if m := resetDay.FindStringSubmatch(text); m != nil {
		r.moment, _ = time.Parse("2006-01-02 15:04", m[1]+" "+m[2]) // zero if there is no such day
		return r
	}
	if m := resetIn.FindStringSubmatch(text); m != nil {
		r.left = timeLeft(m[1])
		return r
	}
	if m := resetClock.FindStringSubmatch(text); m != nil {
		r.clock = readClock(m, here)
		return r
	}
	if m := resetDate.FindStringSubmatch(text); m != nil {
		day, _ := strconv.Atoi(m[2]) // two digits
		r.clock = &clockTime{month: monthOf(m[1]), day: day, zone: time.UTC}
	}
	return r
}

// after returns the end of a limit whose text was written at at, or the zero time.
func (r reset) after(at time.Time) time.Time {
	end := r.moment
	switch {
	case at.IsZero():
		return end // only a moment says more than the text's own time
	case r.left != nil:
		end = at.Add(*r.left)
	case r.clock != nil && r.clock.month != 0:
		end = r.clock.onDate(at)
	case r.clock != nil:
		end = r.clock.nearest(at, r.window)
	}
	if end.Sub(at) > r.window || at.Sub(end) > longestLimit {
		return time.Time{}
	}
	return end
}

// timeLeft adds up the time in words, matched by resetIn.
func timeLeft(words string) *time.Duration {
	units := map[string]time.Duration{
		"w": 7 * 24 * time.Hour, "d": 24 * time.Hour, "h": time.Hour, "m": time.Minute, "s": time.Second, "ms": time.Millisecond,
	}
	var left time.Duration
	for _, part := range resetPart.FindAllStringSubmatch(words) {
		n, _ := strconv.ParseFloat(part[1], 64) // digits
		more := min(n*float64(units[strings.ToLower(part[2])]), float64(2*longestLimit))
		left = min(left+time.Duration(more), 2*longestLimit) // more is not believed, and must not overflow
	}
	return &left
}

// readClock reads a match of resetClock; nil: there is no such time. A zone that does not exist says nothing, and the CLI
// most probably has the zone of here.
func readClock(m []string, here *time.Location) *clockTime {
	c := clockTime{weekday: strings.ToLower(m[1]), zone: here}
	c.hour, _ = strconv.Atoi(m[5] + m[8]) // one of the two is empty
	c.minute, _ = strconv.Atoi("0" + m[6] + m[9])
	if half := strings.ToLower(m[7]); half != "" {
		if c.hour < 1 || c.hour > 12 {
			return nil
		}
		if c.hour %= 12; half == "p" {
			c.hour += 12
		}
	}
	if c.hour > 23 || c.minute > 59 {
		return nil
	}
	switch zone, err := time.LoadLocation(m[10]); {
	case m[10] == "":
	case err == nil:
		c.zone = zone
	case m[10] == "Etc/Unknown": // what Claude Code writes on a machine without a zone, which has UTC
		c.zone = time.UTC
	}
	if m[2] != "" {
		c.month = monthOf(m[2])
		c.day, _ = strconv.Atoi(m[3])
		c.year, _ = strconv.Atoi("0" + m[4])
	}
	return &c
}

// monthOf is the month with these first three letters, which resetClock or resetDate has matched.
func monthOf(name string) time.Month {
	of, _ := time.Parse("Jan", name[:3]) // case is ignored
	return of.Month()
}

// onDay is the time of day so many days after the day of t.
func (c *clockTime) onDay(t time.Time, days int) time.Time {
	local := t.In(c.zone)
	return time.Date(local.Year(), local.Month(), local.Day()+days, c.hour, c.minute, 0, 0, c.zone).UTC()
}

// nearest returns the time that a text from at means. It is the first that has not passed by more than an hour. If that
// is farther off than the limit can last, it is the one before, and has passed.
func (c *clockTime) nearest(at time.Time, window time.Duration) time.Time {
	from, days, every := at.Add(-justPassed), 0, 1
	if c.weekday != "" {
		today := int(from.In(c.zone).Weekday())
		days, every = (strings.Index(weekdays, c.weekday)/3-today+7)%7, 7
	}
	end := c.onDay(from, days)
	for !end.After(from) { // counted from the same day: where a clock is put forward, a time may fall on the day before
		days += every
		end = c.onDay(from, days)
	}
	if end.Sub(at) > window {
		return c.onDay(from, days-every)
	}
	return end
}

// onDate returns the time of day on its date. In December a date in January is in the next year, and the other way
// round. Zero: that is too long ago to be meant.
func (c *clockTime) onDate(at time.Time) time.Time {
	year := c.year
	date := func(year int) time.Time {
		return time.Date(year, c.month, c.day, c.hour, c.minute, 0, 0, c.zone).UTC()
	}
	if year == 0 {
		year = at.In(c.zone).Year()
		switch end := date(year); {
		case end.Before(at.AddDate(0, -6, 0)):
			year++
		case end.After(at.AddDate(0, 6, 0)):
			year--
		}
	}
	end := date(year)
	if end.Before(at.AddDate(0, -6, 0)) {
		return time.Time{}
	}
	return end
}
