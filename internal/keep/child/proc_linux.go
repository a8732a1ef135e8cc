package child

import (
	"bytes"
	"fmt"
	"os"
	"slices"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// tick is the unit of the times in /proc/PID/stat: USER_HZ, 100 a second on every Linux.
const tick = 10 * time.Millisecond

// procStat is what is needed of /proc/PID/stat.
type procStat struct {
	state                  byte
	parent, group, session int64
	cpu                    time.Duration // user and system, with the children waited for
	threads                int
	born                   int64 // when it was started, in ticks since the machine was
}

// parseStat reads /proc/PID/stat. The command's name is in parentheses and may itself contain parentheses, spaces and
// newlines, so fields are counted after the last closing one.
func parseStat(b []byte) (s procStat, ok bool) {
	end := bytes.LastIndexByte(b, ')')
	if end < 0 || bytes.IndexByte(b[:end], '(') < 0 {
		return s, false
	}
	b = b[end+1:]
	var ticks int64
	for field := 3; field <= 22; field++ {
		var word []byte
		if word, b = nextWord(b); len(word) == 0 {
			return procStat{}, false
		}
		n, number := parseCount(word)
		switch field {
		case 3:
			s.state, number = word[0], len(word) == 1
		case 4:
			s.parent = n
		case 5:
			s.group = n
		case 6:
			s.session = n
		case 14, 15, 16, 17: // utime, stime, cutime, cstime
			ticks += n
		case 20:
			s.threads = int(n)
		case 22:
			s.born = n
		default:
			continue
		}
		if !number {
			return procStat{}, false
		}
	}
	s.cpu = time.Duration(ticks) * tick
	return s, true
}

// nextWord cuts the first word off b.
func nextWord(b []byte) (word, rest []byte) {
	b = bytes.TrimLeft(b, " \n")
	if i := bytes.IndexAny(b, " \n"); i >= 0 {
		return b[:i], b[i:]
	}
	return b, nil
}

// countLimit keeps sums and products of what is read within 64 bits. In ticks it is 43 years, in pages 512 TiB.
const countLimit = 1 << 37

// parseCount reads a decimal number below countLimit. The kernel's cutime and cstime are signed, but not below 0.
func parseCount(b []byte) (int64, bool) {
	var n int64
	for _, c := range b {
		if c < '0' || c > '9' {
			return 0, false
		}
		if n = n*10 + int64(c-'0'); n >= countLimit {
			return 0, false
		}
	}
	return n, len(b) > 0
}

// procReader reads files of /proc into one buffer, without the runtime's poller, which costs four more system calls for each file.
// The zero value is ready.
type procReader struct {
	buf   []byte
	path  []byte
	names []string
}

// newProcReader has a buffer for an environment of usual length.
func newProcReader() *procReader { return &procReader{buf: make([]byte, 0, 8<<10)} }

func (r *procReader) stat(pid int) (procStat, error) {
	b, err := r.read(pid, "/stat")
	if err != nil {
		return procStat{}, err
	}
	s, ok := parseStat(b)
	if !ok {
		return procStat{}, fmt.Errorf("unexpected content of /proc/%d/stat", pid)
	}
	return s, nil
}

// parentOf is the parent's pid; -1 when there is no such process.
func parentOf(pid int) int {
	s, err := newProcReader().stat(pid)
	if err != nil {
		return -1
	}
	return int(s.parent)
}

// Children returns the children of all threads of pid. It may be incomplete while processes fork and die.
func Children(pid int) []int { return newProcReader().children(pid, 0, nil) }

// children appends the children of all threads of pid to found; threads is their number, 0: unknown. The kernel lists children by
// the thread that started them.
func (r *procReader) children(pid, threads int, found []int) []int {
	if threads == 1 {
		return r.threadChildren(pid, pid, found)
	}
	r.setPath(pid, "/task")
	fd, err := unix.Open(string(r.path), unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return found
	}
	r.names, r.buf = r.names[:0], slices.Grow(r.buf[:0], 512)
	for {
		n, err := unix.Getdents(fd, r.buf[:cap(r.buf)])
		if err != nil || n <= 0 {
			break
		}
		_, _, r.names = unix.ParseDirent(r.buf[:n], -1, r.names)
	}
	_ = unix.Close(fd)
	for _, name := range r.names {
		if tid, err := strconv.Atoi(name); err == nil {
			found = r.threadChildren(pid, tid, found)
		}
	}
	return found
}

// threadChildren appends the children of one thread of pid to found.
func (r *procReader) threadChildren(pid, tid int, found []int) []int {
	b, err := r.read(pid, "/task/"+strconv.Itoa(tid)+"/children")
	for err == nil {
		var word []byte
		if word, b = nextWord(b); len(word) == 0 {
			break
		}
		if n, ok := parseCount(word); ok {
			found = append(found, int(n))
		}
	}
	return found
}

func (r *procReader) setPath(pid int, file string) {
	r.path = append(r.path[:0], "/proc/"...)
	r.path = strconv.AppendInt(r.path, int64(pid), 10)
	r.path = append(r.path, file...)
}

// read returns the content of a file of process pid, valid until the next read. If there is no such process, or it ends
// meanwhile, the error is [os.ErrProcessDone].
func (r *procReader) read(pid int, file string) ([]byte, error) {
	r.setPath(pid, file)
	fd, err := unix.Open(string(r.path), unix.O_RDONLY|unix.O_CLOEXEC, 0)
	for r.buf = r.buf[:0]; err == nil; {
		r.buf = slices.Grow(r.buf, 512)
		var n int
		if n, err = unix.Read(fd, r.buf[len(r.buf):cap(r.buf)]); err == unix.EINTR {
			err = nil
			continue
		}
		if n <= 0 {
			break
		}
		r.buf = r.buf[:len(r.buf)+n]
	}
	if fd >= 0 {
		_ = unix.Close(fd)
	}
	switch err {
	case nil:
		return r.buf, nil
	case unix.ENOENT, unix.ESRCH:
		return nil, os.ErrProcessDone
	}
	return nil, &os.PathError{Op: "read", Path: string(r.path), Err: err}
}
