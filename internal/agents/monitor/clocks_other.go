//go:build !linux

package monitor

import "time"

// processStart is the start of our own monotonic clock, the only one available here.
var processStart = time.Now()

// now reads the clocks. Sleeps between two runs are not detected. The ages of processes are counted by the wall clock.
func now() Clocks {
	t := time.Now()
	return Clocks{Wall: t, Up: t.Round(0).Sub(processStart.Round(0)), Mono: t.Sub(processStart)}
}
