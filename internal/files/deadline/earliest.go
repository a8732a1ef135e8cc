package deadline

import "time"

// Earliest returns the first of several times; zero is none, and the result if there is no other.
func Earliest(times ...time.Time) (first time.Time) {
	for _, t := range times {
		if first.IsZero() || !t.IsZero() && t.Before(first) {
			first = t
		}
	}
	return first
}
