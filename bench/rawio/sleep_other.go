//go:build unix && !linux

package rawio

import "time"

// Sleep waits for d.
func Sleep(d time.Duration) { time.Sleep(d) }
