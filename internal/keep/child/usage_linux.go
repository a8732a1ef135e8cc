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

// usageLimit bounds the processes examined, for the case of a fork bomb.
const usageLimit = 4096

var pageSize = int64(os.Getpagesize())

// TreeUsage reads the usage of process pid and its living descendants from /proc, with a few system calls for each
// process and thread. It returns an error that wraps [os.ErrProcessDone] when there is no such process; descendants that
// end meanwhile are left out. Descendants whose parent has died are not found.
func TreeUsage(pid int) (Usage, error) {
	var (
		u         Usage
		r         = procReader{buf: make([]byte, 0, 4096)}
		mostShare int64
		group     int64 // of processes, pid's
		todo      = append(make([]int, 0, 16), pid)
	)
	for i := 0; i < len(todo) && i < usageLimit; i++ {
		s, err := r.stat(todo[i])
		if i == 0 {
			if err != nil {
				return Usage{}, fmt.Errorf("usage of process %d: %w", pid, err)
			}
			u.State, group = s.state, s.group
		}
		if err != nil {
			continue
		}
		// A server behind a launcher counts, too. A job of a terminal has a group of its own, and says nothing of the server.
		if s.group == group && (s.state == 'T' || s.state == 't' && u.State != 'T') {
			u.State = s.state
		}
		u.CPU += s.cpu
		if s.state == 'Z' || s.state == 'X' {
			continue // a zombie has no memory, and its children have another parent
		}
		u.Processes++
		resident, shared := r.statm(todo[i])
		u.RSS += resident - shared
		mostShare = max(mostShare, shared)
		todo = r.children(todo[i], s.threads, todo)
	}
	u.RSS += mostShare
	return u, nil
}

// Continue sends SIGCONT to the process group that pid leads. It returns an error that wraps [os.ErrProcessDone] when
// there is no such group. The leader must not have been reaped.
func Continue(pid int) error {
	if pid <= 1 { // the kernel would signal every process, or us
		return fmt.Errorf("continue process group %d: %w", pid, os.ErrInvalid)
	}
	err := unix.Kill(-pid, unix.SIGCONT)
	if err == unix.ESRCH {
		err = os.ErrProcessDone
	}
	if err != nil {
		return fmt.Errorf("continue process group %d: %w", pid, err)
	}
	return nil
}

// procStat is what usage needs of /proc/PID/stat.
type procStat struct {
	state   byte
	group   int64
	cpu     time.Duration // user and system, with the children waited for
	threads int
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
	for field := 3; field <= 20; field++ {
		var word []byte
		if word, b = nextWord(b); len(word) == 0 {
			return procStat{}, false
		}
		n, number := parseCount(word)
		switch field {
		case 3:
			s.state, number = word[0], len(word) == 1
		case 5:
			s.group = n
		case 14, 15, 16, 17: // utime, stime, cutime, cstime
			ticks += n
		case 20:
			s.threads = int(n)
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

// procReader reads small files of /proc into one buffer.
type procReader struct {
	buf   []byte
	path  []byte
	names []string
}

func (r *procReader) stat(pid int) (procStat, error) {
	r.setPath(pid, "/stat")
	b, err := r.read()
	if err != nil {
		return procStat{}, err
	}
	s, ok := parseStat(b)
	if !ok {
		return procStat{}, fmt.Errorf("unexpected content of /proc/%d/stat", pid)
	}
	return s, nil
}

// statm returns resident memory and its shared part, in bytes; 0 for a process that has ended.
func (r *procReader) statm(pid int) (resident, shared int64) {
	r.setPath(pid, "/statm")
	b, err := r.read()
	if err != nil {
		return 0, 0
	}
	_, b = nextWord(b)
	word, b := nextWord(b)
	resident, _ = parseCount(word)
	word, _ = nextWord(b)
	shared, _ = parseCount(word)
	return resident * pageSize, min(shared, resident) * pageSize // the kernel keeps two counters, each a little late
}

// children appends the children of all threads of pid to found. The kernel lists children by the thread that started
// them.
func (r *procReader) children(pid, threads int, found []int) []int {
	if threads == 1 {
		return r.threadChildren(pid, pid, found)
	}
	r.setPath(pid, "/task")
	fd, err := unix.Open(string(r.path), unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return found
	}
	r.names = r.names[:0]
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

func (r *procReader) threadChildren(pid, tid int, found []int) []int {
	r.setPath(pid, "/task/")
	r.path = append(strconv.AppendInt(r.path, int64(tid), 10), "/children"...)
	b, err := r.read()
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

// read returns the content of the file at r.path, valid until the next read. If there is no such process, or it ends
// meanwhile, the error is [os.ErrProcessDone].
func (r *procReader) read() ([]byte, error) {
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
