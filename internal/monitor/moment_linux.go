package monitor

import (
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// now reads the clocks.
func now() Moment {
	return Moment{Wall: time.Now(), Up: clock(unix.CLOCK_BOOTTIME), Mono: clock(unix.CLOCK_MONOTONIC), Boot: bootID()}
}

func clock(which int32) time.Duration {
	var t unix.Timespec
	if unix.ClockGettime(which, &t) != nil {
		return 0
	}
	return time.Duration(t.Nano())
}

var bootID = sync.OnceValue(func() string {
	b, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
})
