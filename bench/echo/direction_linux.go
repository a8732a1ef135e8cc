package main

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/outlive-mcp/outlive/bench/rawio"
)

// direction is one way through the relay. It reads only when all it has read
// before is written, so it needs one buffer and never blocks the other way.
type direction struct {
	src, dst int
	pending  []byte
	ended    bool
	close    func() error
	buffer   [bufferSize]byte
}

// want says what this direction waits for; a negative descriptor waits for nothing.
func (d *direction) want() unix.PollFd {
	switch {
	case d.ended:
		return unix.PollFd{Fd: -1}
	case len(d.pending) > 0:
		return unix.PollFd{Fd: int32(d.dst), Events: unix.POLLOUT}
	}
	return unix.PollFd{Fd: int32(d.src), Events: unix.POLLIN}
}

// advance does what the poll made possible: it reads unless something is still
// pending, and writes at once, since the sink nearly always has room.
func (d *direction) advance() error {
	if len(d.pending) == 0 {
		n, err := rawio.Read(d.src, d.buffer[:])
		if again(err) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read: %w", err)
		}
		if n == 0 {
			return d.end()
		}
		d.pending = d.buffer[:n]
	}
	for len(d.pending) > 0 {
		n, err := rawio.Write(d.dst, d.pending)
		if again(err) {
			return nil
		}
		if errors.Is(err, unix.EPIPE) {
			return d.end()
		}
		if err != nil {
			return fmt.Errorf("write: %w", err)
		}
		d.pending = d.pending[n:]
	}
	return nil
}

// end passes the end of the stream on.
func (d *direction) end() error {
	d.ended, d.pending = true, nil
	if d.close == nil {
		return nil
	}
	return d.close()
}

// again reports whether an error only asks for another poll.
func again(err error) bool {
	return err != nil && (errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EINTR))
}

// relay copies both ways until the command's stdout ends.
func relay(toChild, toClient *direction) error {
	var fds [2]unix.PollFd
	for !toClient.ended {
		fds[0], fds[1] = toChild.want(), toClient.want()
		if _, err := rawio.Poll(fds[:]); err != nil {
			if again(err) {
				continue
			}
			return fmt.Errorf("poll: %w", err)
		}
		if fds[0].Revents != 0 {
			if err := toChild.advance(); err != nil {
				return err
			}
		}
		if fds[1].Revents != 0 {
			if err := toClient.advance(); err != nil {
				return err
			}
		}
	}
	return nil
}
