package peer

import (
	"net"
	"syscall"
	"time"
)

// Silence is how long the other end's system may acknowledge nothing before a connection of [Dialer], or one given to [Watch], counts as
// broken, as after a change of networks. A program that works on a call for hours is not affected: its system acknowledges what it receives.
const Silence = 20 * time.Second

// probes ask the other end's system whether it is there while nothing is sent.
var probes = net.KeepAliveConfig{Enable: true, Idle: Silence / 2, Interval: Silence / 4, Count: 2}

// Dialer connects within a time, by TCP. Its connections break after [Silence].
func Dialer(within time.Duration) *net.Dialer {
	return &net.Dialer{Timeout: within, KeepAliveConfig: probes, Control: func(_, _ string, conn syscall.RawConn) error {
		_ = limitSilence(conn, Silence) // where unsupported, the system's default holds
		return nil
	}}
}

// Watch has an accepted connection break after [Silence]. Where that is unsupported, the system's defaults hold.
func Watch(conn *net.TCPConn) {
	_ = conn.SetKeepAliveConfig(probes)
	if raw, err := conn.SyscallConn(); err == nil {
		_ = limitSilence(raw, Silence)
	}
}

// limitSilence has a connection break when its peer has not acknowledged for that long what was sent.
func limitSilence(conn syscall.RawConn, long time.Duration) error {
	var failed error
	if err := conn.Control(func(fd uintptr) { failed = setSilence(fd, long) }); err != nil {
		return err
	}
	return failed
}
