//go:build unix

package agentrun

import (
	"errors"
	"os"
	"os/exec"
	"syscall"
	"time"

	"github.com/charmbracelet/x/term"
	"github.com/creack/pty"
	"golang.org/x/sys/unix"
)

// terminal is the agent's terminal, and ours, which is raw meanwhile. Only the goroutine of [Run] calls it, but for input.
type terminal struct {
	ours   *os.File // our stdin; nil: none, people join later
	master *os.File // of the agent's
	before *term.State
	seen   *seen
	shared *shared
	wake   [2]int // a pipe: a byte in it ends input
}

// KeepsTerminals says that an agent can be given a terminal that people join later, see [Options.Terminal].
const KeepsTerminals = true

// The size of a terminal before anybody has joined: enough for what terminal programs draw.
const (
	keptRows = 40
	keptCols = 120
)

func isTerminal(f *os.File) bool {
	_, err := settings(f)
	return err == nil
}

// openTerminal makes a terminal like ours and gives it to the agent's command. A stderr that is not a terminal stays what it is.
func openTerminal(o Options, cmd *exec.Cmd, seen *seen) (*streams, error) {
	before, err := settings(o.In)
	if err != nil {
		return nil, err
	}
	s, slave, err := makeTerminal(&terminal{ours: o.In, before: before, seen: seen}, o, cmd)
	if err != nil {
		return nil, err
	}
	if err := apply(slave, before); err != nil {
		s.abandon()
		return nil, err
	}
	s.terminal.resize()
	if !isTerminal(o.Err) {
		cmd.Stderr = o.Err
	}
	s.terminal.raw()
	return s, nil
}

// keepTerminal makes a terminal that people join later. The agent's output goes to our stdout as well.
func keepTerminal(o Options, cmd *exec.Cmd, seen *seen) (*streams, error) {
	s, _, err := makeTerminal(&terminal{seen: seen}, o, cmd)
	if err != nil {
		return nil, err
	}
	s.terminal.setSize(keptRows, keptCols)
	return s, nil
}

// makeTerminal makes the agent's terminal and gives it to its command.
func makeTerminal(t *terminal, o Options, cmd *exec.Cmd) (s *streams, slave *os.File, err error) {
	master, slave, err := pty.Open()
	if err != nil {
		return nil, nil, err
	}
	s = &streams{terminal: t, given: []*os.File{slave}, alone: true}
	err = unix.Pipe(t.wake[:])
	if err == nil {
		unix.CloseOnExec(t.wake[0])
		unix.CloseOnExec(t.wake[1])
		t.master, err = pollable(master)
	}
	if err != nil {
		_ = master.Close()
		s.abandon()
		return nil, nil, err
	}
	s.pumps = []*pump{{from: t.master, to: o.Out, seen: t.seen}}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = slave, slave, slave
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	return s, slave, nil
}

func (t *terminal) openSocket(path string) error {
	l, at, err := listenAt(path)
	if err == nil {
		t.seen.setSocket(at)
	}
	size := windowOf(t.master)
	t.shared = share(t.seen, l, t.ours == nil, size, t.setSize, func(b []byte) error {
		_, err := t.master.Write(b)
		return err
	})
	if t.ours != nil {
		t.shared.ownWindow(size)
	}
	return err
}

// pollable reopens a file so that its reads and writes can be interrupted: the library's blocks.
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
func settings(f *os.File) (state *term.State, err error) {
	err = on(f, func(fd uintptr) (err error) {
		state, err = term.GetState(fd)
		return err
	})
	return state, err
}

func apply(f *os.File, state *term.State) error {
	return on(f, func(fd uintptr) error { return term.Restore(fd, state) })
}

// on calls with a file's descriptor, which stays as blocking as it is.
func on(f *os.File, call func(fd uintptr) error) error {
	raw, err := f.SyscallConn()
	if err != nil {
		return err
	}
	var failed error
	err = raw.Control(func(fd uintptr) { failed = call(fd) })
	return errors.Join(err, failed)
}

// raw makes our terminal pass every key unchanged.
func (t *terminal) raw() {
	if t != nil && t.ours != nil {
		makeRaw(t.ours)
	}
}

// makeRaw makes a terminal pass every key unchanged. One that is lost is noticed by its signal.
func makeRaw(f *os.File) {
	_ = on(f, func(fd uintptr) error {
		_, err := term.MakeRaw(fd)
		return err
	})
}

func (t *terminal) restore() {
	if t != nil && t.ours != nil {
		_ = apply(t.ours, t.before)
	}
}

// resize gives the agent's terminal the size of ours; the kernel tells it.
func (t *terminal) resize() {
	if t == nil || t.ours == nil {
		return
	}
	switch size := windowOf(t.ours); {
	case size == window{}:
	case t.shared != nil:
		t.shared.ownWindow(size)
	default:
		t.setSize(size.Rows, size.Cols)
	}
}

// windowOf is the size of a terminal, or zero.
func windowOf(f *os.File) (w window) {
	_ = on(f, func(fd uintptr) (err error) {
		w.Cols, w.Rows, err = term.GetSize(fd)
		return err
	})
	return w
}

func (t *terminal) setSize(rows, cols int) {
	size := unix.Winsize{Row: uint16(rows), Col: uint16(cols)}
	_ = on(t.master, func(fd uintptr) error { return unix.IoctlSetWinsize(int(fd), unix.TIOCSWINSZ, &size) }) // one that has gone needs none
}

// input forwards our stdin until [terminal.endInput]. It polls both, since a blocking read could not be interrupted, and
// would take the next key from the program after us.
func (t *terminal) input() {
	buffer := make([]byte, 4<<10)
	for {
		n, err := readUnless(t.ours, buffer, t.wake[0])
		if err != nil || n <= 0 { // the end, or the terminal has gone
			return
		}
		if _, err := t.master.Write(buffer[:n]); err != nil {
			return
		}
		t.seen.input(buffer[:n], time.Now())
	}
}

// readUnless reads from a terminal, unless the descriptor wake is readable: then it returns [os.ErrClosed].
func readUnless(f *os.File, buffer []byte, wake int) (n int, err error) {
	for {
		failed := on(f, func(fd uintptr) error {
			list := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}, {Fd: int32(wake), Events: unix.POLLIN}}
			_, err = unix.Poll(list, -1)
			switch {
			case err == unix.EINTR:
				err = unix.EAGAIN
			case err == nil && list[1].Revents != 0:
				err = os.ErrClosed
			case err == nil:
				n, err = unix.Read(int(fd), buffer)
			}
			return nil
		})
		if failed != nil {
			return 0, failed
		}
		if err != unix.EAGAIN && err != unix.EINTR {
			return n, err
		}
	}
}

// typed reports whether there are keys of ours.
func (t *terminal) typed() bool { return t != nil && t.ours != nil }

// endInput stops input, even while the agent does not read.
func (t *terminal) endInput() {
	if t == nil {
		return
	}
	_, _ = unix.Write(t.wake[1], []byte{0})
	_ = t.master.SetWriteDeadline(time.Now()) // a write that waits ends
}

// endSharing tells joined people of the end.
func (t *terminal) endSharing(exit Exit) {
	if t != nil {
		t.shared.close(exit)
	}
}

// close restores our terminal. The pump closes the agent's.
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
