package monitor

import (
	"time"

	"golang.org/x/sys/unix"

	"github.com/outlive-mcp/outlive/internal/agents/process"
)

func now() Clocks {
	return Clocks{Wall: time.Now(), Up: clock(unix.CLOCK_BOOTTIME), Mono: clock(unix.CLOCK_MONOTONIC), Boot: process.BootID()}
}

func clock(which int32) time.Duration {
	var t unix.Timespec
	if unix.ClockGettime(which, &t) != nil {
		return 0
	}
	return time.Duration(t.Nano())
}
