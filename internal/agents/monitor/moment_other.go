//go:build !linux

package monitor

import "time"

// processStart is the beginning of the only monotonic clock there is here: our own.
var processStart = time.Now()

// now reads the clocks. Across two runs nothing is known of sleeps.
func now() Moment {
	t := time.Now()
	return Moment{Wall: t, Up: t.Sub(processStart), Mono: t.Sub(processStart)}
}
