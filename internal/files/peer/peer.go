package peer

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strings"
	"syscall"
	"time"
)

// ErrUnknown is returned if the system does not say which user has the other end.
var ErrUnknown = errors.New("the system does not say which user the other end belongs to")

// OursOrRoots reports whether uid is the user of this process, or root, who may do everything anyway.
func OursOrRoots(uid int) bool { return uid == 0 || uid == os.Getuid() }

// IsLoopback reports whether a host always means this machine: an address without brackets, or a name, which is not resolved
// (localhost and what is below it, RFC 6761).
func IsLoopback(host string) bool {
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	addr, err := netip.ParseAddr(host)
	return host == "localhost" || strings.HasSuffix(host, ".localhost") || err == nil && addr.Unmap().IsLoopback()
}

// Unix returns the user id of the other end of a Unix socket; for a client it is the user of the listening process.
// The error is [ErrUnknown] on Windows.
func Unix(conn *net.UnixConn) (uid int, err error) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return 0, fmt.Errorf("ask for the peer: %w", err)
	}
	var asked error
	if err := raw.Control(func(fd uintptr) { uid, asked = userOf(int(fd)) }); err != nil {
		return 0, fmt.Errorf("ask for the peer: %w", err)
	}
	return uid, asked
}

// Silence is how long the other end's system may acknowledge nothing before a connection of [Dialer], or one given to [Watch], counts as
// broken, as after a change of networks. A program that works on a call for hours is not affected: its system acknowledges what it receives.
const Silence = 20 * time.Second

// probes ask the other end's system whether it is there while nothing is sent.
var probes = net.KeepAliveConfig{Enable: true, Idle: Silence / 2, Interval: Silence / 4, Count: 2}

// Dialer connects within a time, by TCP. Its connections break after [Silence].
func Dialer(within time.Duration) *net.Dialer {
	return &net.Dialer{Timeout: within, KeepAliveConfig: probes, Control: func(_, _ string, conn syscall.RawConn) error {
		limitSilence(conn)
		return nil
	}}
}

// Watch has an accepted connection break after [Silence].
func Watch(conn *net.TCPConn) {
	_ = conn.SetKeepAliveConfig(probes)
	if raw, err := conn.SyscallConn(); err == nil {
		limitSilence(raw)
	}
}

// limitSilence has a connection break when its peer has not acknowledged for [Silence] what was sent. Where that is unsupported, the system's
// default holds.
func limitSilence(conn syscall.RawConn) {
	_ = conn.Control(func(fd uintptr) { _ = setSilence(fd, Silence) })
}
