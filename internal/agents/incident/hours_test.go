package incident

import (
	"fmt"
	"strings"
	"testing"
	"time"
	_ "time/tzdata" // the days on which clocks change differ by place; a test machine may have no time zone database

	"pgregory.net/rapid"

	_ "github.com/outlive-mcp/outlive/internal/testing/tier" // fixes the seed of rapid
)

func place(t interface{ Fatal(...any) }, name string) *time.Location {
	loc, err := time.LoadLocation(name)
	if err != nil {
		t.Fatal(err)
	}
	return loc
}

// String formats "07:30".
func (c Clock) String() string { return fmt.Sprintf("%02d:%02d", c/60, c%60) }

// String returns the form that [ParseQuiet] parses.
func (q Quiet) String() string { return fmt.Sprintf("%s-%s critical-only", q.From, q.To) }

func TestParseQuiet(t *testing.T) {
	for text, want := range map[string]string{
		"23:00-07:00 critical-only": "23:00-07:00 critical-only", "23:00-07:00": "23:00-07:00 critical-only",
		" 0:00-24:00 ": "00:00-24:00 critical-only", "12:30-13:00": "12:30-13:00 critical-only", "22:00-00:00": "22:00-00:00 critical-only",
	} {
		q, err := ParseQuiet(text)
		if err != nil || q.String() != want {
			t.Errorf("%q: %s, %v", text, q, err)
		}
		if again, err := ParseQuiet(q.String()); again != q || err != nil {
			t.Errorf("%q does not read back: %v %v", q, again, err)
		}
	}
	for _, text := range []string{"", "23:00", "23:00-", "-07:00", "23-07", "24:00-07:00", "24:01-07:00", "23:60-07:00", "07:00-07:00", "23:00-07:00 silent",
		"23:00-07:00 critical-only please", "1:0-2:00", "+1:00-2:00", "001:00-02:00", "25:00-07:00"} {
		if q, err := ParseQuiet(text); err == nil || !strings.Contains(err.Error(), "23:00-07:00 critical-only") {
			t.Errorf("%q was read as %v, %v: the error should show the form", text, q, err)
		}
	}
}

func FuzzParseQuiet(f *testing.F) {
	f.Add("23:00-07:00 critical-only")
	f.Add("0:00-24:00")
	f.Fuzz(func(t *testing.T, s string) {
		q, err := ParseQuiet(s)
		if err != nil {
			return
		}
		if again, err := ParseQuiet(q.String()); err != nil || again != q {
			t.Fatalf("%q -> %q -> %v, %v", s, q, again, err)
		}
		if until, in := q.At(t0, time.UTC); in && !until.After(t0) {
			t.Fatalf("%q is quiet until %s", s, until)
		}
	})
}

// Quiet hours go by the clock on the wall, over midnight and on the days on which it is set.
func TestQuietHours(t *testing.T) {
	for _, c := range []struct{ name, quiet, zone, at, until string }{
		{"evening", "23:00-07:00", "UTC", "2026-11-20T22:59:59Z", ""},
		{"night", "23:00-07:00", "UTC", "2026-11-20T23:00:00Z", "2026-11-21T07:00:00Z"},
		{"after midnight", "23:00-07:00", "UTC", "2026-11-21T03:00:30.5Z", "2026-11-21T07:00:00Z"},
		{"morning", "23:00-07:00", "UTC", "2026-11-21T07:00:00Z", ""},
		{"noon", "12:00-13:00", "UTC", "2026-11-21T12:59:59Z", "2026-11-21T13:00:00Z"},
		{"elsewhere", "23:00-07:00", "Asia/Kolkata", "2026-11-20T20:00:00Z", "2026-11-21T01:30:00Z"},
		{"the night has an hour less", "23:00-07:00", "Europe/Berlin", "2026-03-28T23:30:00Z", "2026-03-29T05:00:00Z"},
		{"the night has an hour more", "23:00-07:00", "Europe/Berlin", "2026-10-24T22:30:00Z", "2026-10-25T06:00:00Z"},
		{"it ends in the hour that is left out", "23:00-02:30", "Europe/Berlin", "2026-03-29T00:30:00Z", "2026-03-29T01:00:00Z"},
		{"it lies in the hour that is left out", "02:10-02:50", "Europe/Berlin", "2026-03-29T01:05:00Z", ""},
		{"it ends in the hour that comes twice", "23:00-02:30", "Europe/Berlin", "2026-10-24T23:30:00Z", "2026-10-25T00:30:00Z"},
		{"until midnight", "22:00-00:00", "UTC", "2026-11-20T23:59:00Z", "2026-11-21T00:00:00Z"},
	} {
		t.Run(c.name, func(t *testing.T) {
			q, err := ParseQuiet(c.quiet)
			if err != nil {
				t.Fatal(err)
			}
			at, _ := time.Parse(time.RFC3339, c.at)
			until, in := q.At(at, place(t, c.zone))
			got := ""
			if in {
				got = until.UTC().Format(time.RFC3339)
			}
			if got != c.until {
				t.Errorf("quiet until %q, want %q", got, c.until)
			}
		})
	}
}

// A quiet period ends at the first minute that is not quiet, in every place and on every day.
func TestQuietEndsWhenItDoes(t *testing.T) {
	zones := []string{"UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Asia/Kathmandu", "Pacific/Apia"}
	rapid.Check(t, func(t *rapid.T) {
		q := Quiet{Clock(rapid.IntRange(0, 1439).Draw(t, "from")), Clock(rapid.IntRange(0, 1440).Draw(t, "to"))}
		if q.From == q.To {
			q.To++
		}
		loc := place(t, rapid.SampledFrom(zones).Draw(t, "zone"))
		at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).Add(time.Duration(rapid.IntRange(0, 366*86400).Draw(t, "second")) * time.Second)
		want := at.In(loc).Truncate(time.Minute)
		in := q.holds(clockOf(want))
		for n := 0; n < 2900 && q.holds(clockOf(want)); n++ {
			want = want.Add(time.Minute)
		}
		until, quiet := q.At(at, loc)
		if quiet != in {
			t.Fatalf("%s at %s: %v", q, at.In(loc), quiet)
		}
		if in && q.To != fullDay && !until.Equal(want) {
			t.Fatalf("%s at %s: until %s, want %s", q, at.In(loc), until, want)
		}
	})
}

// Two quiet times that touch are one.
func TestQuietTimesThatTouch(t *testing.T) {
	p := Policy{Quiet: []Quiet{{22 * 60, 24 * 60}, {0, 6 * 60}, {6 * 60, 7 * 60}}}
	until, quiet := p.quiet(time.Date(2026, 11, 20, 22, 30, 0, 0, time.UTC))
	if want := time.Date(2026, 11, 21, 7, 0, 0, 0, time.UTC); !quiet || !until.Equal(want) {
		t.Errorf("%v until %s, want %s", quiet, until, want)
	}
}

// A digest comes once a day, also on the days on which the clock is set.
func TestNextDigest(t *testing.T) {
	for _, zone := range []string{"UTC", "Europe/Berlin", "America/New_York"} {
		loc := place(t, zone)
		for _, at := range []Clock{0, 90, 150, 7*60 + 30, 23*60 + 59} {
			now := time.Date(2026, 1, 1, 12, 0, 0, 0, loc)
			days := 0
			for now.Year() == 2026 {
				next := NextDigest(now, at, loc)
				if gap := next.Sub(now); gap <= 0 || days > 0 && (gap < 22*time.Hour || gap > 26*time.Hour) {
					t.Fatalf("%s in %s: %s follows %s", at, zone, next, now)
				}
				now = next
				days++
			}
			if days < 364 || days > 366 {
				t.Errorf("%s in %s: %d in a year", at, zone, days)
			}
		}
	}
	got := NextDigest(t0, 7*60+30, time.UTC)
	if want := time.Date(2026, 11, 21, 7, 30, 0, 0, time.UTC); !got.Equal(want) {
		t.Errorf("%s, want %s", got, want)
	}
}
