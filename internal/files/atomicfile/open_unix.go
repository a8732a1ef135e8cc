//go:build unix

package atomicfile

import "syscall"

// withoutWaiting opens a pipe at once, even if no process writes into it.
const withoutWaiting = syscall.O_NONBLOCK
