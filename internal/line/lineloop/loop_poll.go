//go:build unix && !outlive_stream

package lineloop

import (
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"runtime/metrics"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// driver is the part of a loop that talks to the kernel: poll(2) over raw descriptors.
type driver struct {
	wakeR, wakeW int           // raw descriptors: the runtime's own poller must not wake up for them
	fds          []unix.PollFd // fds[0] is wakeR
	owners       []owner       // parallel to fds
	unseen       bool          // see sleep
	bound        unix.Timespec // timeout of one sleep
	sleepMost    time.Duration // sleepMost, or less in tests
	busyUntil    time.Time     // traffic was seen until shortly before this time
	enlarged     int           // number of pipes enlarged so far
	gone         bool          // an entry of fds was freed during the walk
	used         bool          // there was traffic since rest last returned memory
	restedAt     time.Time     // when rest last looked whether there is memory to return
	returned     uint64        // how much had been allocated when rest last returned memory, in bytes
}

// sleepMost limits a sleep. The garbage collector of Go 1.26.8 sometimes misses a goroutine that is just entering a
// system call (the runtime checks for a collection before it marks the goroutine as waiting, and not after). It then
// waits until that call returns, and all other goroutines wait, too, including timers and the news of a server's end.
// This sleep is such a call, so it has to return even if there is nothing to do.
const sleepMost = 10 * time.Second

// owner is what a poll entry belongs to; both nil: free.
type owner struct {
	source *Source
	sink   *Sink
}

func (l *Loop) initDriver() error {
	var p [2]int
	if err := rawPipe(&p); err != nil {
		return fmt.Errorf("make wake-up pipe: %w", err)
	}
	l.wakeR, l.wakeW = p[0], p[1]
	l.unseen, l.sleepMost = mayBeUnseen(), sleepMost
	l.fds = []unix.PollFd{{Fd: int32(l.wakeR), Events: unix.POLLIN}}
	l.owners = make([]owner, 1)
	return nil
}

// rawDescriptor returns f's descriptor in the mode the loop needs: non-blocking if it is ours alone. A terminal or a
// file is shared with the shell that started us and is left blocking, because the shell does not expect the change;
// it is ready whenever poll says so. private reports that the descriptor is ours alone: a pipe or a socket.
func rawDescriptor(f *os.File) (fd int, private bool) {
	if rc, err := f.SyscallConn(); err == nil {
		_ = rc.Control(func(p uintptr) { fd = int(p) })
	} else {
		fd = int(f.Fd())
	}
	var st unix.Stat_t
	if unix.Fstat(fd, &st) == nil {
		switch st.Mode & unix.S_IFMT {
		case unix.S_IFIFO, unix.S_IFSOCK:
			private = unix.SetNonblock(fd, true) == nil
		}
	}
	return fd, private
}

func (l *Loop) watchSource(s *Source) {
	s.fd, s.private = rawDescriptor(s.file)
	s.pos = l.enter(s.fd, owner{source: s})
}

func (l *Loop) watchSink(k *Sink) {
	k.fd, k.private = rawDescriptor(k.file)
	k.pos = l.enter(k.fd, owner{sink: k})
}

func (l *Loop) enter(fd int, o owner) int {
	l.fds = append(l.fds, unix.PollFd{Fd: int32(fd)})
	l.owners = append(l.owners, o)
	return len(l.fds) - 1
}

func (l *Loop) removeSource(s *Source) { l.leave(s.pos, s.file) }
func (l *Loop) removeSink(k *Sink)     { l.leave(k.pos, k.file) }

// leave removes an entry. During a walk the slice must not move, so the entry is only marked as free.
func (l *Loop) leave(pos int, f *os.File) {
	l.fds[pos].Fd = -1
	l.owners[pos] = owner{}
	l.gone = true
	_ = f.Close()
}

func (l *Loop) compact() {
	if !l.gone {
		return
	}
	l.gone = false
	n := 1
	for i := 1; i < len(l.fds); i++ {
		o := l.owners[i]
		if o.source == nil && o.sink == nil {
			continue
		}
		l.fds[n], l.owners[n] = l.fds[i], o
		if o.source != nil {
			o.source.pos = n
		} else {
			o.sink.pos = n
		}
		n++
	}
	clear(l.owners[n:])
	l.fds, l.owners = l.fds[:n], l.owners[:n]
}

func (l *Loop) wake() {
	_, _ = unix.Write(l.wakeW, newline)
}

// wait sleeps until a descriptor is ready, and serves those that are. It reports whether work was posted.
func (l *Loop) wait() (posted bool) {
	l.compact()
	for i := 1; i < len(l.fds); i++ {
		l.owners[i].prepare(&l.fds[i])
	}
	n := l.sleep()
	l.now = time.Now()
	if n <= 0 {
		if n == 0 && l.now.Sub(l.busyUntil) > l.sleepMost/2 {
			l.rest()
		}
		return false
	}
	l.used = true
	if posted = l.fds[0].Revents != 0; posted {
		var wakes [64]byte
		_, _ = unix.Read(l.wakeR, wakes[:])
	}
	l.busyUntil = l.now.Add(unseenFor)
	for i := 1; i < len(l.fds) && !l.stopped; i++ {
		if got := l.fds[i].Revents; got != 0 && l.fds[i].Fd >= 0 {
			l.serve(l.owners[i], got)
			l.Flush()
		}
	}
	return posted
}

const (
	// restEvery is the least time between two attempts of rest to return memory, because that takes a garbage collection.
	restEvery = time.Minute
	// worthReturning is how many bytes must have been allocated since the last time, or since the start of the process.
	//
	// Go's collector does not run by itself before the heap has 4 MB, and the first collection costs more than the garbage of
	// an ordinary start: it leaves objects all over the heap, and up to 16 KB of lists for each size of objects
	// (runtime.mcentral), about 1 MB that is never returned. So a process that relays little is not collected at all.
	worthReturning = 3 << 20
)

// rest returns the memory to the system that the last traffic has left. It is called when nothing has happened for half of
// sleepMost.
func (l *Loop) rest() {
	if !l.used || l.now.Sub(l.restedAt) < restEvery {
		return
	}
	l.used, l.restedAt = false, l.now
	now := allocated()
	if now-l.returned < worthReturning {
		return
	}
	l.returned = now
	l.resting.free = nil
	go debug.FreeOSMemory() // it takes milliseconds
}

// allocated is how many bytes were allocated since the process began. Unlike runtime.ReadMemStats it stops nobody, and makes
// none of those lists.
func allocated() uint64 {
	sample := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}

// prepare sets what an entry waits for. A source that is held back and a sink with nothing to write wait for nothing,
// not even for errors: the next read or write reports those.
func (o owner) prepare(p *unix.PollFd) {
	p.Fd = -1
	switch {
	case o.source != nil && (o.source.opts.Gate == nil || o.source.opts.Gate()):
		p.Fd, p.Events = int32(o.source.fd), unix.POLLIN
	case o.sink != nil && len(o.sink.queue) > 0:
		p.Fd, p.Events = int32(o.sink.fd), unix.POLLOUT
	}
}

func (l *Loop) serve(o owner, got int16) {
	switch {
	case o.source != nil:
		l.read(o.source)
	case got&unix.POLLOUT != 0:
		o.sink.drain()
	default:
		o.sink.fail(ErrSinkClosed)
	}
}

func (l *Loop) read(s *Source) {
	n, err := sysRead(s.fd, s.room(), s.private)
	switch {
	case n > 0:
		s.took(n)
	case err == nil:
		s.finish(nil)
	case errors.Is(err, syscall.EAGAIN), errors.Is(err, syscall.EINTR):
	case errors.Is(err, syscall.EIO), errors.Is(err, syscall.ECONNRESET):
		s.finish(nil) // a terminal or a socket whose other end was closed
	default:
		s.finish(err)
	}
}

// write writes batch and returns how many bytes were accepted; 0 and nil means that none can be written now.
func (l *Loop) write(k *Sink, batch [][]byte) (int, error) {
	for {
		var n int
		var err error
		if len(batch) == 1 {
			n, err = sysWrite(k.fd, batch[0], k.private)
		} else {
			n, err = unix.Writev(k.fd, batch[:min(len(batch), 512)])
		}
		switch {
		case err == nil:
			return n, nil
		case errors.Is(err, syscall.EINTR):
			continue
		case errors.Is(err, syscall.EAGAIN):
			return 0, nil
		default:
			return 0, err
		}
	}
}

func (l *Loop) closeDriver() {
	l.Flush()
	for i := 1; i < len(l.owners); i++ {
		switch o := l.owners[i]; {
		case o.source != nil:
			o.source.Close()
		case o.sink != nil:
			o.sink.Close()
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.awake = true // this pipe is not read and must not be written to any more
	_ = unix.Close(l.wakeR)
	_ = unix.Close(l.wakeW)
}

// HandsOver says that the descriptors of a [Loop] can be passed to another image of the same program: everything that
// was read has been passed on, except for what [Source.Whole] reports.
const HandsOver = true

// Reopen makes an os.File of a descriptor that another image of this program had in its loop. The descriptor is made
// blocking until the loop takes it, so that the runtime does not add it to its own poller.
func Reopen(fd int, name string) *os.File {
	_ = syscall.SetNonblock(fd, false) // if it fails, the descriptor was blocking
	return os.NewFile(uintptr(fd), name)
}
