//go:build unix

package sharing

import (
	"errors"
	"fmt"
	"net"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// pipe makes a pipe that Go's own poller does not know: otherwise it would wake up for every line, too.
func pipe() (r, w *os.File, err error) {
	var p [2]int
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	if err := unix.Pipe(p[:]); err != nil {
		return nil, nil, fmt.Errorf("make pipe: %w", err)
	}
	unix.CloseOnExec(p[0])
	unix.CloseOnExec(p[1])
	return os.NewFile(uintptr(p[0]), "lines"), os.NewFile(uintptr(p[1]), "lines"), nil
}

// pass makes two pipes, gives an end of each to whoever is at the other end of conn, and returns the other two.
func pass(conn *net.UnixConn) (in, out *os.File, err error) {
	theirs, out, err := pipe()
	if err != nil {
		return nil, nil, err
	}
	defer theirs.Close()
	in, to, err := pipe()
	if err == nil {
		defer to.Close()
		_, _, err = conn.WriteMsgUnix([]byte{0}, unix.UnixRights(int(theirs.Fd()), int(to.Fd())), nil)
		if err == nil {
			return in, out, nil
		}
		_ = in.Close()
	}
	_ = out.Close()
	return nil, nil, fmt.Errorf("pass pipes: %w", err)
}

// receive takes what pass has given.
func receive(conn *net.UnixConn) (in, out *os.File, err error) {
	rights := make([]byte, unix.CmsgSpace(2*4))
	_, n, _, _, err := conn.ReadMsgUnix(make([]byte, 1), rights)
	if err != nil {
		return nil, nil, fmt.Errorf("receive pipes: %w", err)
	}
	messages, err := unix.ParseSocketControlMessage(rights[:n])
	if err != nil {
		return nil, nil, fmt.Errorf("receive pipes: %w", err)
	}
	var fds []int
	for _, m := range messages {
		if some, err := unix.ParseUnixRights(&m); err == nil {
			fds = append(fds, some...)
		}
	}
	if len(fds) != 2 {
		for _, fd := range fds {
			_ = unix.Close(fd)
		}
		return nil, nil, errors.New("receive pipes: there are none")
	}
	return os.NewFile(uintptr(fds[0]), "lines"), os.NewFile(uintptr(fds[1]), "lines"), nil
}
