//go:build !linux

package monitor

import "time"

// processStart is the start of our own monotonic clock, the only one available here.
var processStart = time.Now()

// now reads the clocks. Sleeps between two runs are not detected.
func now() Clocks {
	t := time.Now()
	return Clocks{Wall: t, Up: t.Sub(processStart), Mono: t.Sub(processStart)}
}
