package restart

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/outlive-mcp/outlive/internal/files/lazyregexp"
)

// FormatTime writes t in UTC as Python's datetime.isoformat does: microseconds if they are not zero, and "+00:00".
func FormatTime(t time.Time) string { return isoFormat(t.UTC()) }

// isoFormat writes t in its own zone as Python's datetime.isoformat does.
func isoFormat(t time.Time) string {
	t = t.Truncate(time.Microsecond)
	text := t.Format("2006-01-02T15:04:05")
	if us := t.Nanosecond() / 1000; us != 0 {
		text += fmt.Sprintf(".%06d", us)
	}
	if _, offset := t.Zone(); offset%60 != 0 {
		return text + t.Format("-07:00:00")
	}
	return text + t.Format("-07:00")
}

// isoForm is what Python's datetime.fromisoformat (3.11 and later) takes of ISO 8601, without week dates.
var isoForm = lazyregexp.New(`^(\d{4})-?(\d\d)-?(\d\d)` +
	`(?:[Tt ](\d\d)(?::?(\d\d)(?::?(\d\d)(?:[.,](\d+))?)?)? ?` +
	`([Zz]|[+-]\d\d(?::?\d\d(?::?\d\d)?)?)?)?$`)

// ParseTime reads an ISO 8601 time as Python's datetime.fromisoformat does: with T or a space, Z or an offset, a
// fraction (cut to microseconds), or only a date. Without an offset it is UTC. Errors say what form is wanted.
func ParseTime(s string) (time.Time, error) {
	m := isoForm.FindStringSubmatch(strings.TrimSpace(s))
	if m == nil {
		return time.Time{}, timeError(s, "")
	}
	var n [7]int // year, month, day, hour, minute, second, microsecond
	for i := range 6 {
		n[i], _ = strconv.Atoi(m[i+1]) // digits only, or empty for 0
	}
	n[6], _ = strconv.Atoi((m[7] + "000000")[:6])
	zone, ok := parseZone(m[8])
	if !ok {
		return time.Time{}, timeError(s, "no such offset; ")
	}
	t := time.Date(n[0], time.Month(n[1]), n[2], n[3], n[4], n[5], n[6]*1000, zone)
	// time.Date makes the first of March of a 30th of February.
	if t.Year() != n[0] || int(t.Month()) != n[1] || t.Day() != n[2] || t.Hour() != n[3] || t.Minute() != n[4] || t.Second() != n[5] {
		return time.Time{}, timeError(s, "no such day or hour; ")
	}
	return t, nil
}

func timeError(s, why string) error {
	const most = 64
	if len(s) > most {
		s = s[:most] + "…"
	}
	return fmt.Errorf("cannot read as a time: %q: %swant ISO 8601 such as 2026-01-13T22:30:00Z", s, why)
}

// parseZone reads Z, an offset such as +02:00, or nothing, which is UTC.
func parseZone(s string) (*time.Location, bool) {
	digits := strings.ReplaceAll(strings.TrimLeft(s, "+-Zz"), ":", "")
	if digits == "" {
		return time.UTC, true
	}
	n, _ := strconv.Atoi((digits + "0000")[:6]) // digits only
	hours, minutes, seconds := n/10000, n/100%100, n%100
	if hours > 23 || minutes > 59 || seconds > 59 {
		return nil, false
	}
	offset := hours*3600 + minutes*60 + seconds
	if s[0] == '-' {
		offset = -offset
	}
	if offset == 0 {
		return time.UTC, true
	}
	return time.FixedZone("", offset), true
}
