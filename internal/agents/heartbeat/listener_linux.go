package heartbeat

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// longestSocket is the longest path in a struct sockaddr_un, without the final NUL.
const longestSocket = 107

// Listener receives sd_notify datagrams on a socket of its own.
type Listener struct {
	conn *net.UnixConn
	path string
	hear func(pid int, n Notice)
	done chan struct{}
}

// Listen creates the socket; senders get its path as NOTIFY_SOCKET. It should be in a directory that only the user
// can enter. A socket that a killed listener has left is replaced; one that is in use is an error. hear is called with each
// notice and the process that sent it, which may be a helper of the agent, on the listener's goroutine.
func Listen(path string, hear func(pid int, n Notice)) (*Listener, error) {
	if len(path) > longestSocket {
		return nil, fmt.Errorf("listen on %s: its name is longer than %d bytes, the maximum for a socket", path, longestSocket)
	}
	if err := removeDead(path); err != nil {
		return nil, fmt.Errorf("listen on %s: %w", path, err)
	}
	// Credentials are enabled before the socket is bound, so that every datagram has its sender.
	config := net.ListenConfig{Control: func(_, _ string, raw syscall.RawConn) error {
		var failed error
		err := raw.Control(func(fd uintptr) { failed = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_PASSCRED, 1) })
		return errors.Join(err, failed)
	}}
	packet, err := config.ListenPacket(context.Background(), "unixgram", path)
	if err != nil {
		return nil, fmt.Errorf("listen on %s: %w", path, err)
	}
	if err := os.Chmod(path, 0o600); err != nil {
		return nil, fmt.Errorf("listen on %s: %w", path, errors.Join(err, packet.Close()))
	}
	l := &Listener{conn: packet.(*net.UnixConn), path: path, hear: hear, done: make(chan struct{})}
	go l.run()
	return l, nil
}

// removeDead removes a socket that no process reads.
func removeDead(path string) error {
	st, err := os.Lstat(path)
	if err != nil {
		return nil // there is none, or Listen will report what is wrong
	}
	if st.Mode().Type() != os.ModeSocket {
		return errors.New("the path exists and is not a socket")
	}
	conn, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: path, Net: "unixgram"})
	if err == nil {
		return errors.Join(errors.New("another process listens there"), conn.Close())
	}
	return os.Remove(path)
}

func (l *Listener) run() {
	defer close(l.done)
	buffer := make([]byte, NotifyLimit)
	control := make([]byte, unix.CmsgSpace(unix.SizeofUcred)+unix.CmsgSpace(4*maxDescriptors))
	for {
		n, c, flags, _, err := l.conn.ReadMsgUnix(buffer, control)
		if err != nil {
			if errors.Is(err, net.ErrClosed) {
				return
			}
			time.Sleep(errorPause) // the error may be over, but a lasting one must not use a whole CPU
			continue
		}
		sender := openUp(control[:c])
		if sender == nil || sender.Uid != uint32(os.Getuid()) && sender.Uid != 0 {
			continue
		}
		text := buffer[:n]
		if flags&unix.MSG_TRUNC != 0 {
			text = text[:bytes.LastIndexByte(text, '\n')+1] // whole lines: it is a sign of life all the same
		}
		if notice, err := ParseNotice(text); err == nil {
			l.hear(int(sender.Pid), notice)
		}
	}
}

// errorPause is the pause before reading again after an error.
const errorPause = 100 * time.Millisecond

// maxDescriptors is Linux's limit of descriptors in one message (SCM_MAX_FD).
const maxDescriptors = 253

// openUp returns the sender of a message, nil if the system did not provide it, and closes descriptors in the
// message. They are not needed; sd_notify_barrier waits for them to be closed.
func openUp(control []byte) *unix.Ucred {
	messages, err := unix.ParseSocketControlMessage(control)
	if err != nil {
		return nil
	}
	var sender *unix.Ucred
	for _, m := range messages {
		if fds, err := unix.ParseUnixRights(&m); err == nil {
			for _, fd := range fds {
				_ = unix.Close(fd)
			}
		}
		if cred, err := unix.ParseUnixCredentials(&m); err == nil {
			sender = cred
		}
	}
	return sender
}

// Close ends the listener, waits for its goroutine, and removes the socket.
func (l *Listener) Close() error {
	err := l.conn.Close()
	<-l.done
	if gone := os.Remove(l.path); gone != nil && !errors.Is(gone, os.ErrNotExist) {
		err = errors.Join(err, gone)
	}
	return err
}
