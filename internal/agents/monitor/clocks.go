package monitor

import "time"

// Clocks is one reading of all clocks.
type Clocks struct {
	Wall time.Time
	// Up is the time since the machine was started, as the ages of processes count it. Mono is without the time it slept.
	Up, Mono time.Duration
	// Boot identifies this boot of the machine. "": not available, so two runs cannot be compared.
	Boot string
}

// sleepNoticed is the smallest jump between two clocks that counts as a sleep or a clock change.
const sleepNoticed = 5 * time.Second

// Gap is the part of the wall time between two moments in which the machine slept or its clock was set forward. It is 0
// across a reboot, which no process survives.
func Gap(earlier, later Clocks) time.Duration {
	return jump(earlier, later, later.Mono-earlier.Mono)
}

// Step is the part of it by which the clock was set forward: processes have not become older by it. A virtual machine that was
// paused has its clock set so.
func Step(earlier, later Clocks) time.Duration { return jump(earlier, later, later.Up-earlier.Up) }

func jump(earlier, later Clocks, passed time.Duration) time.Duration {
	if earlier.Boot != later.Boot || earlier.Wall.IsZero() {
		return 0
	}
	gap := later.Wall.Round(0).Sub(earlier.Wall.Round(0)) - passed
	if gap < sleepNoticed {
		return 0
	}
	return gap
}

// Sleep is a time in which no process ran.
type Sleep struct {
	End    time.Time // when it was noticed
	Length time.Duration
}

// Age is how long ago then was, without the sleeps in between.
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

// UnseenSleep is how long the machine has slept before the first look, at an unknown time.
func UnseenSleep(m Clocks) time.Duration {
	if m.Up-m.Mono < sleepNoticed {
		return 0
	}
	return m.Up - m.Mono
}
