package restart

import (
	"strings"
	"testing"
	"time"
)

func TestFormatTimeIsPythonsIsoformat(t *testing.T) {
	utc := time.Date(2026, 1, 13, 22, 30, 0, 123456789, time.UTC)
	for _, c := range []struct {
		t    time.Time
		want string
	}{
		{utc, "2026-01-13T22:30:00.123456+00:00"},
		{utc.Truncate(time.Second), "2026-01-13T22:30:00+00:00"},
		{utc.Truncate(time.Second).Add(999), "2026-01-13T22:30:00+00:00"},
		{utc.Truncate(time.Second).Add(1000), "2026-01-13T22:30:00.000001+00:00"},
		{utc.In(time.FixedZone("", 2*3600)), "2026-01-13T22:30:00.123456+00:00"},
	} {
		if got := FormatTime(c.t); got != c.want {
			t.Errorf("%v: got %s, want %s", c.t, got, c.want)
		}
	}
}

// The expected texts are what Python 3.11 says: datetime.fromisoformat(text).isoformat().
func TestParseTimeReadsWhatPythonReads(t *testing.T) {
	for text, want := range map[string]string{
		"2026-01-13T22:30:00Z":                "2026-01-13T22:30:00+00:00",
		"2026-01-13T22:30:00+00:00":           "2026-01-13T22:30:00+00:00",
		"2026-01-13T22:30:00.5Z":              "2026-01-13T22:30:00.500000+00:00",
		"2026-01-13T22:30:00,25Z":             "2026-01-13T22:30:00.250000+00:00",
		"2026-01-13T22:30:00.123456789+02:00": "2026-01-13T22:30:00.123456+02:00",
		"2026-01-13T22:30:00.1234567890Z":     "2026-01-13T22:30:00.123456+00:00",
		"2026-01-13T22:30:00.123456-05:30":    "2026-01-13T22:30:00.123456-05:30",
		"2026-01-13T22:30:00+0530":            "2026-01-13T22:30:00+05:30",
		"2026-01-13T22:30:00+02":              "2026-01-13T22:30:00+02:00",
		"2026-01-13T22:30:00+05:53:28":        "2026-01-13T22:30:00+05:53:28",
		"20260113T223000Z":                    "2026-01-13T22:30:00+00:00",
		"2024-02-29T00:00:00Z":                "2024-02-29T00:00:00+00:00",
		// Without an offset Python's time is naive; here it is UTC.
		"2026-01-13T22:30:00":  "2026-01-13T22:30:00+00:00",
		"2026-01-13 22:30:00":  "2026-01-13T22:30:00+00:00",
		"2026-01-13T22:30":     "2026-01-13T22:30:00+00:00",
		"2026-01-13T22":        "2026-01-13T22:00:00+00:00",
		"2026-01-13":           "2026-01-13T00:00:00+00:00",
		"20260113":             "2026-01-13T00:00:00+00:00",
		"2026-01-13 22:30:00Z": "2026-01-13T22:30:00+00:00",
		// More lenient than Python.
		" 2026-01-13t22:30:00z\n":   "2026-01-13T22:30:00+00:00",
		"2026-01-13 22:30:00 +0100": "2026-01-13T22:30:00+01:00",
	} {
		got, err := ParseTime(text)
		if err != nil {
			t.Errorf("%q: %v", text, err)
		} else if iso := isoFormat(got); iso != want {
			t.Errorf("%q: got %s, want %s", text, iso, want)
		}
	}
}

func TestParseTimeSaysWhatIsWanted(t *testing.T) {
	for _, text := range []string{
		"", "yesterday", "1768343400", "13.01.2026", "2026-1-13", "2026-02-30", "2026-13-01T00:00:00Z", "2026-01-13T25:00:00Z",
		"2026-01-13T22:61:00Z", "2026-01-13T22:30:61Z", "2026-01-13T22:30:00+25:00", "2026-01-13T22:30:00 CET", "2026-01-13TZ", strings.Repeat("9", 5000),
	} {
		_, err := ParseTime(text)
		if err == nil || !strings.Contains(err.Error(), "such as 2026-01-13T22:30:00Z") || len(err.Error()) > 250 {
			t.Errorf("%.20q: got %v", text, err)
		}
	}
}

func FuzzParseTime(f *testing.F) {
	f.Add("2026-01-13T22:30:00.123456+02:00")
	f.Add("2026-01-13")
	f.Fuzz(func(t *testing.T, text string) {
		at, err := ParseTime(text)
		if err != nil {
			return
		}
		again, err := ParseTime(isoFormat(at))
		if err != nil || !again.Equal(at) {
			t.Errorf("%q was read as %v, which is read as %v, %v", text, at, again, err)
		}
	})
}
