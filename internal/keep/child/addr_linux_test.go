package child

import (
	"syscall"
	"unsafe"
)

// addressOf is for a system call that nothing of the runtime takes part in.
//
//go:norace
//go:nosplit
func addressOf(ts *syscall.Timespec) uintptr { return uintptr(unsafe.Pointer(ts)) }
