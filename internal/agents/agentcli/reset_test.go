package agentcli

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/outlive-mcp/outlive/internal/testing/tier"
)

func TestLimitLifted(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 21, 13, 0, 0, 0, time.UTC) // a Saturday; 14:00 in Berlin
	for text, want := range map[string]string{
		"Claude AI usage limit reached|1795280400":                                "2026-11-21T17:00:00Z",
		"You've hit your limit · resets 3:30pm (Europe/Berlin)":                   "2026-11-21T14:30:00Z",
		"You've hit your limit · resets 2pm (Europe/Berlin)":                      "2026-11-21T13:00:00Z",
		"You've hit your limit · resets 12:01pm (UTC)":                            "2026-11-21T12:01:00Z",
		"You've hit your limit · resets 12pm (UTC)":                               "2026-11-22T12:00:00Z",
		"You've hit your limit · resets 12am (UTC)":                               "2026-11-22T00:00:00Z",
		"Weekly limit · resets Nov 25 at 9am (UTC)":                               "2026-11-25T09:00:00Z",
		"Weekly limit · resets Jan 2, 9am (UTC)":                                  "2027-01-02T09:00:00Z",
		"You've hit your usage limit. Try again in 2 days 3 hours.":               "2026-11-23T16:00:00Z",
		"You've hit your usage limit. Try again in about 5 minutes.":              "2026-11-21T13:05:00Z",
		"5-hour limit reached ∙ resets 6pm":                                       "2026-11-21T18:00:00Z",
		"Your limit will reset at 7pm (Asia/Tokyo)":                               "2026-11-22T10:00:00Z",
		"Weekly limit reached ∙ resets Mon 12:00am":                               "2026-11-23T00:00:00Z",
		"You've hit your usage limit. Visit the page, or try again at 3:05 PM.":   "2026-11-21T15:05:00Z",
		"You've hit your usage limit, try again at Nov 25th, 2026 3:05 PM.":       "2026-11-25T15:05:00Z",
		"Rate limit reached for m in organization o. Please try again in 1m3.5s.": "2026-11-21T13:01:03Z",
		"Please retry in 37.5s.":                                                  "2026-11-21T13:00:37Z",
		"Please try again in 250ms.":                                              "2026-11-21T13:00:00Z",
		"You will regain access on 2026-12-01 at 00:00 UTC.":                      "2026-12-01T00:00:00Z",

		"You've hit your session limit · resets 12:30pm (UTC)": "2026-11-21T12:30:00Z",
		"Session limit reached ∙ resets 9am":                   "2026-11-21T09:00:00Z",
		"5-hour limit reached ∙ resets 7pm":                    "2026-11-20T19:00:00Z",
		"You've hit your session limit · resets in 6h":         "",
		"Weekly limit reached ∙ resets Sat 12:30pm (UTC)":      "2026-11-21T12:30:00Z",
		"Weekly limit reached ∙ resets Sat 11am (UTC)":         "2026-11-28T11:00:00Z",

		"You've hit your limit · resets 23:30 (Europe/Berlin)":        "2026-11-21T22:30:00Z",
		"You've hit your limit · resets 9:05":                         "2026-11-22T09:05:00Z",
		"You've hit your usage limit, try again at 14:05.":            "2026-11-21T14:05:00Z",
		"Weekly limit · resets Nov 25, 18:00 (UTC)":                   "2026-11-25T18:00:00Z",
		"You've hit your limit · resets 3:30\u202fPM (Europe/Berlin)": "2026-11-21T14:30:00Z",
		"You've hit your limit · resets 3:30 p.m. (Europe/Berlin)":    "2026-11-21T14:30:00Z",
		"You've hit your limit · resets in 2h 30m":                    "2026-11-21T15:30:00Z",
		"Resets in 2 hr 15 min":                                       "2026-11-21T15:15:00Z",
		"resets in 2 hours and 30 minutes":                            "2026-11-21T15:30:00Z",
		"Try again in 1 day, 2 hours.":                                "2026-11-22T15:00:00Z",
		"Your quota will reset after 8h44m7s.":                        "2026-11-21T21:44:07Z",
		"Your quota will reset after 0s.. Retrying after 5710ms...":   "2026-11-21T13:00:00Z",
		"You've hit your limit · resets 3pm (Europe/Barcelona)":       "2026-11-21T15:00:00Z",
		"Limit reached · resets 5pm (Etc/Unknown) · /upgrade to Max":  "2026-11-21T17:00:00Z",
		"You've hit your limit · resets 12:30pm (Nowhere/Atall)":      "2026-11-21T12:30:00Z",

		"resets 13pm (UTC)": "", "resets 25:00 (UTC)": "", "resets 3:60 (UTC)": "", "Overloaded": "", "try again in 2 months": "",
		"try again in 99999999999999999999 days": "", "resets in 900000 days": "", "limit reached|4102444800": "",
	} {
		got := ""
		if until := limitLifted(text, at, time.UTC); !until.IsZero() {
			got = until.UTC().Format(time.RFC3339)
		}
		if got != want {
			t.Errorf("%q: %q, wanted %q", text, got, want)
		}
	}
}

// Around New Year, a date without a year is in the year that is nearest.
func TestResetsOfTheOtherYear(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ at, text, want string }{
		{"2027-01-01T00:30:00Z", "Weekly limit · resets Dec 31, 11:45pm (UTC)", "2026-12-31T23:45:00Z"},
		{"2027-01-01T00:30:00Z", "try again at Dec 31st, 2026 11:45 PM.", "2026-12-31T23:45:00Z"},
		{"2026-12-31T23:30:00Z", "Weekly limit · resets Jan 2, 9am (UTC)", "2027-01-02T09:00:00Z"},
		{"2026-12-31T23:30:00Z", "spend limit reached · resets Jan 1", "2027-01-01T00:00:00Z"},
	} {
		at, err := time.Parse(time.RFC3339, test.at)
		if err != nil {
			t.Fatal(err)
		}
		if got := limitLifted(test.text, at, time.UTC).UTC().Format(time.RFC3339); got != test.want {
			t.Errorf("%s %q: %s, wanted %s", test.at, test.text, got, test.want)
		}
	}
}

// A clock without a zone, or with one that does not exist, is the clock of here.
func TestResetWithoutAZoneIsHere(t *testing.T) {
	t.Parallel()
	here, err := time.LoadLocation("Asia/Kolkata")
	if err != nil {
		t.Fatal(err)
	}
	at := time.Date(2026, 11, 21, 13, 0, 0, 0, time.UTC)
	for text, want := range map[string]string{"resets 7:30pm": "14:00", "resets 19:30 (Europe/Barcelona)": "14:00", "resets 7:30pm (Etc/Unknown)": "19:30"} {
		if got := limitLifted(text, at, here).UTC().Format("15:04"); got != want {
			t.Errorf("%q: %s, wanted %s", text, got, want)
		}
	}
}

// In some zones a clock is put forward at midnight, so that there is no midnight on that day.
func TestResetAtAMidnightThatIsSkipped(t *testing.T) {
	t.Parallel()
	before := time.Date(2026, 9, 6, 3, 30, 0, 0, time.UTC) // 23:30 in Santiago
	got := limitLifted("You've hit your limit · resets 12am (America/Santiago)", before, time.UTC)
	if got.Before(before.Add(-time.Hour)) || got.After(before.Add(time.Hour)) {
		t.Errorf("%v: the midnight of %v", got, before)
	}
}

// clockText writes a time of day, in minutes, as one of the CLIs may.
func clockText(minutes, form int) string {
	hour, minute := minutes/60, minutes%60
	half, short := "am", (hour+11)%12+1
	if hour >= 12 {
		half = "pm"
	}
	switch form {
	case 0:
		if minute == 0 {
			return fmt.Sprintf("%d%s", short, half)
		}
		return fmt.Sprintf("%d:%02d%s", short, minute, half)
	case 1:
		return fmt.Sprintf("%d:%02d %s", short, minute, strings.ToUpper(half))
	case 2:
		return fmt.Sprintf("%d:%02d\u202f%c.m.", short, minute, half[0])
	}
	return fmt.Sprintf("%d:%02d", hour, minute)
}

const clockForms = 4

// Whatever the words and the zone: in every minute of two days the end of a limit is where it can be, and one that has
// passed within the last hour has passed.
func TestResetsStayInTheirWindow(t *testing.T) {
	t.Parallel()
	here, err := time.LoadLocation("Asia/Kolkata")
	if err != nil {
		t.Fatal(err)
	}
	day := 24 * time.Hour
	wordings := []struct {
		text          string
		every, window time.Duration // between two such times; how far off the next can be
	}{
		{"You've hit your limit · resets %s", day, day},
		{"Claude usage limit reached. Your limit will reset at %s.", day, day},
		{"You've hit your usage limit. Visit the page, or try again at %s.", day, day},
		{"You've hit your session limit · resets %s", day, 5 * time.Hour},
		{"5-hour limit reached ∙ resets %s", day, 5 * time.Hour},
		{"Weekly limit reached ∙ resets Mon %s", 7 * day, 7 * day},
	}
	zones := []string{"", "UTC", "Europe/Berlin", "America/New_York", "America/Santiago", "Asia/Kathmandu", "Australia/Lord_Howe", "Pacific/Apia", "Etc/GMT+12", "Europe/Barcelona"}
	// The first is without, all others are with a clock that is put forward or back in one of these zones, or a New Year.
	days := []string{"2026-11-20", "2026-03-28", "2026-10-24", "2026-03-07", "2026-10-31", "2026-09-05", "2026-04-04", "2026-12-31"}
	chance := tier.Rand(t)
	for _, w := range wordings {
		for _, name := range zones {
			for form := range clockForms {
				zone, clock := here, chance.IntN(24*60)
				words := clockText(clock, form)
				if name != "" {
					words += " (" + name + ")"
					if named, err := time.LoadLocation(name); err == nil {
						zone = named
					}
				}
				begin, err := time.Parse(time.DateOnly, days[chance.IntN(len(days))])
				if err != nil {
					t.Fatal(err)
				}
				text := fmt.Sprintf(w.text, words)
				lifted := readReset(text, here)
				for at := begin; at.Before(begin.Add(2 * day)); at = at.Add(time.Minute) {
					if why := misplaced(lifted.after(at), at, clock, w.every, w.window, zone); why != "" {
						t.Errorf("%q at %s: %s", text, at.Format(time.RFC3339), why)
						break
					}
				}
			}
		}
	}
}

// misplaced says what is wrong with the end of a limit that a text from at names by a time of day; "": nothing.
func misplaced(end, at time.Time, clock int, every, window time.Duration, zone *time.Location) string {
	left := end.Sub(at)
	if end.IsZero() || left > window {
		return fmt.Sprintf("%v, in %s, is not within %s", end, left, window)
	}
	_, was := at.Add(-every).In(zone).Zone()
	_, will := at.Add(every).In(zone).Zone()
	if was != will { // the times are not every apart, and one of them may not exist
		return ""
	}
	local := end.In(zone)
	switch {
	case local.Hour()*60+local.Minute() != clock || local.Second() != 0:
		return fmt.Sprintf("%v is another time of day", local)
	case every > 24*time.Hour && local.Weekday() != time.Monday:
		return fmt.Sprintf("%v is another day", local)
	case left > -time.Hour && left-every > -time.Hour:
		return fmt.Sprintf("%v, and the one before has only just passed", local)
	case left <= -time.Hour && left+every <= window:
		return fmt.Sprintf("%v has long passed, and the next can be meant", local)
	}
	return ""
}
