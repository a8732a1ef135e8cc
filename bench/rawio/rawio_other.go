//go:build unix && !linux

package rawio

import "golang.org/x/sys/unix"

// Read reads once from fd into b; 0 without an error is the end of the stream.
func Read(fd int, b []byte) (int, error) { return unix.Read(fd, b) }

// Write writes once to fd from b and returns how many bytes were taken.
func Write(fd int, b []byte) (int, error) { return unix.Write(fd, b) }

// Poll waits, without a limit, until one of fds is ready.
func Poll(fds []unix.PollFd) (int, error) { return unix.Poll(fds, -1) }
