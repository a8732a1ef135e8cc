//go:build unix

package agentrun

import (
	"errors"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"
)

// terminal is the agent's terminal, and ours, which is raw meanwhile. Only the goroutine of [Run] calls it, but for input.
type terminal struct {
	ours   *os.File // our stdin
	master *os.File // of the agent's
	before unix.Termios
	seen   *seen
	wake   [2]int // a pipe: its end is input's
	once   sync.Once
}

func isTerminal(f *os.File) bool {
	_, err := settings(f)
	return err == nil
}

// openTerminal makes a terminal like ours and gives it to the agent's command. A stderr that is no terminal stays what it is.
func openTerminal(o Options, cmd *exec.Cmd, seen *seen) (*streams, error) {
	before, err := settings(o.In)
	if err != nil {
		return nil, err
	}
	master, slave, err := pty.Open()
	if err != nil {
		return nil, err
	}
	t := &terminal{ours: o.In, before: *before, seen: seen}
	s := &streams{terminal: t, given: []*os.File{slave}, alone: true}
	err = unix.Pipe(t.wake[:])
	if err == nil {
		unix.CloseOnExec(t.wake[0])
		unix.CloseOnExec(t.wake[1])
		t.master, err = pollable(master)
	}
	if err == nil {
		s.pumps = []*pump{{from: t.master, to: o.Out, seen: seen}}
		err = apply(slave, before)
	}
	if err != nil {
		_ = master.Close()
		s.abandon()
		return nil, err
	}
	t.resize()
	cmd.Stdin, cmd.Stdout, cmd.Stderr = slave, slave, slave
	if !isTerminal(o.Err) {
		cmd.Stderr = o.Err
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	t.raw()
	return s, nil
}

// pollable makes a file whose reads and writes can be ended: the library's has become a blocking one.
func pollable(f *os.File) (*os.File, error) {
	fd, err := unix.FcntlInt(f.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	if err := errors.Join(unix.SetNonblock(fd, true), f.Close()); err != nil {
		_ = unix.Close(fd)
		return nil, err
	}
	return os.NewFile(uintptr(fd), f.Name()), nil
}

// settings reads a terminal's settings; an error says that it is none.
func settings(f *os.File) (t *unix.Termios, err error) {
	return t, on(f, func(fd int) error {
		t, err = unix.IoctlGetTermios(fd, getTermios)
		return err
	})
}

func apply(f *os.File, t *unix.Termios) error {
	return on(f, func(fd int) error { return unix.IoctlSetTermios(fd, setTermios, t) })
}

// on calls with a file's descriptor, which stays as blocking as it is.
func on(f *os.File, call func(fd int) error) error {
	raw, err := f.SyscallConn()
	if err != nil {
		return err
	}
	var failed error
	err = raw.Control(func(fd uintptr) { failed = call(int(fd)) })
	return errors.Join(err, failed)
}

// raw lets every key through as it is, as cfmakeraw(3) does.
func (t *terminal) raw() {
	if t == nil {
		return
	}
	raw := t.before
	raw.Iflag &^= unix.IGNBRK | unix.BRKINT | unix.PARMRK | unix.ISTRIP | unix.INLCR | unix.IGNCR | unix.ICRNL | unix.IXON
	raw.Oflag &^= unix.OPOST
	raw.Lflag &^= unix.ECHO | unix.ECHONL | unix.ICANON | unix.ISIG | unix.IEXTEN
	raw.Cflag = raw.Cflag&^(unix.CSIZE|unix.PARENB) | unix.CS8
	raw.Cc[unix.VMIN], raw.Cc[unix.VTIME] = 1, 0
	_ = apply(t.ours, &raw) // a terminal that has gone will be heard of by its signal
}

// restore sets our terminal back as it was found.
func (t *terminal) restore() {
	if t != nil {
		_ = apply(t.ours, &t.before)
	}
}

// resize gives the agent's terminal the size of ours; the kernel tells it.
func (t *terminal) resize() {
	if t == nil {
		return
	}
	var size *unix.Winsize
	err := on(t.ours, func(fd int) (err error) {
		size, err = unix.IoctlGetWinsize(fd, unix.TIOCGWINSZ)
		return err
	})
	if err != nil {
		return
	}
	_ = on(t.master, func(fd int) error { return unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, size) })
	if size.Col == 0 || size.Row == 0 { // nobody has said how large it is
		t.seen.resize(24, 80)
		return
	}
	t.seen.resize(int(size.Row), int(size.Col))
}

// input passes our stdin on until [terminal.endInput]. It waits for both, since a read of ours could not be ended, and would
// take the next key from whoever comes after us.
func (t *terminal) input() {
	buffer := make([]byte, 4<<10)
	for {
		var n int
		var err error
		failed := on(t.ours, func(fd int) error {
			list := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}, {Fd: int32(t.wake[0]), Events: unix.POLLIN}}
			_, err = unix.Poll(list, -1)
			switch {
			case err == unix.EINTR:
				err = unix.EAGAIN
			case err == nil && list[1].Revents != 0:
				err = os.ErrClosed
			case err == nil:
				n, err = unix.Read(fd, buffer)
			}
			return nil
		})
		switch {
		case failed != nil:
			return
		case err == unix.EAGAIN || err == unix.EINTR:
			continue
		case err != nil || n <= 0: // the terminal has gone
			return
		}
		if _, err := t.master.Write(buffer[:n]); err != nil {
			return
		}
		t.seen.input(buffer[:n], time.Now())
	}
}

// endInput ends input, also while the agent does not read.
func (t *terminal) endInput() {
	if t == nil {
		return
	}
	t.once.Do(func() {
		_, _ = unix.Write(t.wake[1], []byte{0})
		_ = t.master.SetWriteDeadline(pastDeadline)
	})
}

// close sets our terminal back. The agent's is the pump's to close.
func (t *terminal) close() {
	if t == nil {
		return
	}
	t.restore()
	if t.wake[0] != 0 || t.wake[1] != 0 {
		_ = unix.Close(t.wake[0])
		_ = unix.Close(t.wake[1])
	}
}
