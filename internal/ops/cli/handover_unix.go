//go:build unix

package cli

import (
	"fmt"
	"os"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// replaceImage executes path in this process with our arguments; the descriptors fds stay open. It returns only if that
// fails: then everything is as it was.
func replaceImage(path string, env []string, fds []int) error {
	syscall.ForkLock.RLock() // nothing is to be started meanwhile that would inherit them
	defer syscall.ForkLock.RUnlock()
	defer func() {
		for _, fd := range fds {
			syscall.CloseOnExec(fd)
		}
	}()
	for _, fd := range fds {
		if _, err := unix.FcntlInt(uintptr(fd), unix.F_SETFD, 0); err != nil {
			return fmt.Errorf("hand over descriptor %d: %w", fd, err)
		}
	}
	defer deferSignals()()
	return fmt.Errorf("execute %s: %w", path, syscall.Exec(path, os.Args, env))
}

// inheritedFile is the file whose descriptor number is text.
func inheritedFile(text string) (*os.File, error) {
	fd, err := strconv.Atoi(text)
	if err != nil || fd < 3 {
		return nil, fmt.Errorf("%s=%q: no descriptor", handoverVar, text)
	}
	return os.NewFile(uintptr(fd), "handover"), nil
}

// handoverPossible says why no other program can take our place.
func handoverPossible() error { return nil }
