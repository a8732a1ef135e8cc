package diagnose

import (
	"fmt"
	"strings"
	"time"
)

// Span is a length of time with a short form in JSON: 90 s is "1m30s", an hour "1h". It is parsed by
// [time.ParseDuration].
type Span time.Duration

// Never is longer than every span that it is compared with.
const Never = Span(1<<63 - 1)

// String formats the span without trailing zero units.
func (s Span) String() string {
	if s == Never {
		return "never"
	}
	text := time.Duration(s).String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}

// MarshalText returns the text of String.
func (s Span) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText parses a duration, or "never".
func (s *Span) UnmarshalText(text []byte) error {
	if string(text) == "never" {
		*s = Never
		return nil
	}
	d, err := time.ParseDuration(string(text))
	if err != nil {
		return fmt.Errorf("a span: %w", err)
	}
	*s = Span(d)
	return nil
}

// plus adds without overflow.
func (s Span) plus(d Span) Span {
	switch sum := s + d; {
	case s == Never:
		return Never
	case d > 0 && sum < s:
		return Never
	case d < 0 && sum > s:
		return -Never
	default:
		return sum
	}
}

// brief formats the span for people, rounded to seconds.
func (s Span) brief() string {
	if s == Never {
		return "never"
	}
	return time.Duration(s).Round(time.Second).String()
}

func ago(s Span) string { return s.brief() + " ago" }
