package cli

import (
	"time"

	"golang.org/x/sys/unix"
)

// upWithSleep is a clock that says how long the machine has been up, also while it slept; nil: there is none.
func upWithSleep() func() time.Duration {
	var t unix.Timespec
	if unix.ClockGettime(unix.CLOCK_BOOTTIME, &t) != nil {
		return nil
	}
	return func() time.Duration {
		var t unix.Timespec
		_ = unix.ClockGettime(unix.CLOCK_BOOTTIME, &t) // it has not failed before
		return time.Duration(t.Nano())
	}
}
