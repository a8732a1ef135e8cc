//go:build !outlive_stream

package lineloop

import "golang.org/x/sys/unix"

const (
	// bigPipe is the size asked for once lines over the resting buffer were seen. One user may have 64 MiB in pipes;
	// beyond that every new pipe of that user, in any program, is tiny. A quarter of the usual megabyte is modest.
	bigPipe = 256 << 10
	// bigPipesMax bounds how many pipes one loop enlarges.
	bigPipesMax = 4
)

// enlargePipes makes the pipes of a source with long lines, and of the sinks, bigger. A refusal does no harm.
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
