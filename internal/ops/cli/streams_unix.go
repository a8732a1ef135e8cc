//go:build unix

package cli

import (
	"os"

	"golang.org/x/sys/unix"
)

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
