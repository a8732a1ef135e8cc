//go:build !linux

package heartbeat

import "fmt"

// Listener is not available on this system.
type Listener struct{}

// Listen fails: the system does not identify the sender of a datagram.
func Listen(path string, _ func(pid int, n Notice)) (*Listener, error) {
	return nil, fmt.Errorf("listen on %s: sd_notify is available on Linux only", path)
}

// Close does nothing.
func (*Listener) Close() error { return nil }
