package process

import (
	"fmt"
	"slices"
	"sync"

	"golang.org/x/sys/unix"
)

// NewExits starts a watcher. The caller closes it.
func NewExits() (*Exits, error) {
	event, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		return nil, fmt.Errorf("watch processes: %w", err)
	}
	w := &pidWatch{event: event, fds: map[Identity]int{}, quit: make(chan struct{})}
	w.ended = make(chan struct{}, 1)
	w.C, w.poke, w.done = w.ended, w.wake, make(chan struct{})
	w.close = sync.OnceFunc(func() {
		close(w.quit)
		w.wake()
		<-w.done
		_ = unix.Close(w.event) // not before: the number would soon be another file's
	})
	go w.run()
	return &w.Exits, nil
}

// pidWatch waits in one poll for the ends of all processes.
type pidWatch struct {
	Exits
	event int // wakes the poll
	fds   map[Identity]int
	quit  chan struct{}
}

func (w *pidWatch) wake() {
	_, _ = unix.Write(w.event, []byte{1, 0, 0, 0, 0, 0, 0, 0}) // full means that it is awake already
}

func (w *pidWatch) run() {
	defer func() {
		for _, fd := range w.fds {
			_ = unix.Close(fd)
		}
		close(w.done)
	}()
	for {
		list := w.open()
		_, err := unix.Poll(list, -1)
		var count [8]byte
		_, _ = unix.Read(w.event, count[:]) // before quit is asked, so that no wake-up is lost between the two
		select {
		case <-w.quit:
			return
		default:
		}
		if err != nil { // interrupted
			continue
		}
		for _, p := range list[1:] {
			if p.Revents != 0 {
				w.gone(int(p.Fd))
			}
		}
	}
}

// open has a pidfd of each watched process, and no others.
func (w *pidWatch) open() []unix.PollFd {
	ids := w.watched()
	for id, fd := range w.fds {
		if !slices.Contains(ids, id) {
			_ = unix.Close(fd)
			delete(w.fds, id)
		}
	}
	list := []unix.PollFd{{Fd: int32(w.event), Events: unix.POLLIN}}
	for _, id := range ids {
		fd, known := w.fds[id]
		if !known {
			fd = openPidfd(id)
			w.fds[id] = fd
			if fd < 0 { // it has gone before it could be watched
				w.tell()
			}
		}
		if fd >= 0 {
			list = append(list, unix.PollFd{Fd: int32(fd), Events: unix.POLLIN})
		}
	}
	return list
}

// openPidfd is -1 when the process is gone.
func openPidfd(id Identity) int {
	fd, err := unix.PidfdOpen(id.PID, 0)
	if err != nil {
		return -1
	}
	if s, err := readStat(id.PID); err != nil || s.start != id.Start {
		_ = unix.Close(fd)
		return -1
	}
	return fd
}

// gone keeps the identity without a descriptor: its end is reported once.
func (w *pidWatch) gone(fd int) {
	for id, known := range w.fds {
		if known == fd {
			_ = unix.Close(fd)
			w.fds[id] = -1
			w.tell()
		}
	}
}
