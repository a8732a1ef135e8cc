package wire

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// Yield lets others have the processor first. Linux often puts a process that was just written to on the writer's
// processor, where it waits until the writer sleeps, however long that has something to do.
func Yield() { _, _, _ = syscall.Syscall(unix.SYS_SCHED_YIELD, 0, 0, 0) }
