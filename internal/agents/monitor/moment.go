package monitor

import "time"

// Moment is one reading of all clocks.
type Moment struct {
	Wall time.Time
	// Up is the time since the machine was started, Mono the same without the time it slept.
	Up, Mono time.Duration
	// Boot identifies this start of the machine. "": the system does not tell, and two runs cannot be compared.
	Boot string
}

// sleepNoticed is the least jump between two clocks that is taken for a sleep of the machine, or for a clock that was set.
const sleepNoticed = 5 * time.Second

// Gap is how much of the wall clock's time between two moments nobody could use: the machine slept, or its clock was
// set forward. 0 across a restart of the machine, which is not a sleep: nobody survives it.
func Gap(earlier, later Moment) time.Duration {
	if earlier.Boot != later.Boot || earlier.Wall.IsZero() {
		return 0
	}
	gap := later.Wall.Round(0).Sub(earlier.Wall.Round(0)) - (later.Mono - earlier.Mono)
	if gap < sleepNoticed {
		return 0
	}
	return gap
}

// Sleep is a time that nobody could use.
type Sleep struct {
	End    time.Time // when it was noticed
	Length time.Duration
}

// Age is how long ago then was, without the sleeps between.
func Age(then, now time.Time, sleeps []Sleep) time.Duration {
	age := now.Sub(then)
	for _, s := range sleeps {
		start := s.End.Add(-s.Length)
		if start.Before(then) {
			start = then
		}
		if end := s.End; end.After(start) && !end.After(now) {
			age -= end.Sub(start)
		}
	}
	return age
}

// UnseenSleep is how long the machine has slept before anybody looked, at a time that nobody knows.
func UnseenSleep(m Moment) time.Duration {
	if m.Up-m.Mono < sleepNoticed {
		return 0
	}
	return m.Up - m.Mono
}
