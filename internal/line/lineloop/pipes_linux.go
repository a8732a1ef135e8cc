//go:build !outlive_stream

package lineloop

import "golang.org/x/sys/unix"

const (
	// bigPipe is the pipe size that is requested once there were lines longer than the resting buffer. One user may
	// have 64 MiB in pipes; beyond that every new pipe of that user, in any program, is tiny. So it is a quarter of
	// the usual maximum of 1 MiB.
	bigPipe = 256 << 10
	// bigPipesMax is how many pipes one loop enlarges.
	bigPipesMax = 4
)

// enlargePipes enlarges the pipes of a source with long lines, and of the sinks. Errors are ignored.
func (l *Loop) enlargePipes(s *Source) {
	if l.enlarged >= bigPipesMax {
		return
	}
	l.enlarge(s.fd)
	for _, o := range l.owners {
		if o.sink != nil && l.enlarged < bigPipesMax {
			l.enlarge(o.sink.fd)
		}
	}
}

func (l *Loop) enlarge(fd int) {
	size, err := unix.FcntlInt(uintptr(fd), unix.F_GETPIPE_SZ, 0)
	if err != nil || size >= bigPipe {
		return
	}
	if _, err := unix.FcntlInt(uintptr(fd), unix.F_SETPIPE_SZ, bigPipe); err == nil {
		l.enlarged++
	}
}
