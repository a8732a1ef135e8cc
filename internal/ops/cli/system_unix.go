//go:build unix

package cli

import (
	"fmt"
	"io/fs"
	"os"
	"os/signal"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// upgradeSignals ask outlive to become the version on disk.
var upgradeSignals = []os.Signal{unix.SIGUSR2}

// passedOn are the signals that a command gets which is beaten for.
var passedOn = []os.Signal{unix.SIGTERM, unix.SIGHUP, unix.SIGUSR1, unix.SIGUSR2}

// readBeside lets a command in the background read the terminal without being stopped for it: the read fails.
func readBeside() { signal.Ignore(unix.SIGTTIN) }

// upWithSleep is a clock that goes on while the machine sleeps; nil: there is none.
func upWithSleep() func() time.Duration {
	var t unix.Timespec
	if unix.ClockGettime(clockWithSleep, &t) != nil {
		return nil
	}
	return func() time.Duration {
		var t unix.Timespec
		_ = unix.ClockGettime(clockWithSleep, &t) // it has not failed before
		return time.Duration(t.Nano())
	}
}

// takeStreams moves the client's two descriptors away from 0 and 1, where a stray print or a careless child could
// reach them, and leaves the null device there.
func takeStreams(io streams) (in, out *os.File, err error) {
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return nil, nil, err
	}
	defer null.Close()
	if in, err = moveAway(io.in, null); err != nil {
		return nil, nil, err
	}
	if out, err = moveAway(io.out, null); err != nil {
		return nil, nil, err
	}
	return in, out, nil
}

// moveAway duplicates f above the standard descriptors, without the runtime's poller knowing the copy, and puts null
// in its place.
func moveAway(f, null *os.File) (*os.File, error) {
	fd := int(f.Fd()) // blocking from here on, as a plain descriptor is
	copied, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 10)
	if err != nil {
		return nil, os.NewSyscallError("fcntl", err)
	}
	if err := duplicate(int(null.Fd()), fd); err != nil {
		return nil, os.NewSyscallError("dup", err)
	}
	return os.NewFile(uintptr(copied), f.Name()), nil
}

// become runs another program in this process, so that signals reach it.
func become(_ streams, path string, args []string) error {
	return fmt.Errorf("execute %s: %w", path, syscall.Exec(path, append([]string{path}, args...), os.Environ()))
}

// sharingPossible says why runs cannot share a server on this system.
func sharingPossible() error { return nil }

// outsideJob has nothing to do: there are no jobs.
var outsideJob *syscall.SysProcAttr

// exeSuffix is what names of programs end with.
const exeSuffix = ""

// ofItsOwn makes a process independent of its parent and of its parent's terminal.
func ofItsOwn() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }

// allRead reports that every user of the machine can read a file.
func allRead(st fs.FileInfo) bool { return st.Mode().Perm()&0o004 != 0 }

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
