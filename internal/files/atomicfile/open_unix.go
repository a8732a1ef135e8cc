//go:build unix

package atomicfile

import "syscall"

// withoutWaiting opens a pipe at once, whether or not somebody writes into it.
const withoutWaiting = syscall.O_NONBLOCK
