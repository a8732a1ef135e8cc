//go:build !linux

package heartbeat

import "fmt"

// Listener is not available on this system.
type Listener struct{}

// Listen returns [ErrNotAvailable].
func Listen(path string, _ func(pid int, n Notice)) (*Listener, error) {
	return nil, fmt.Errorf("listen on %s: %w", path, ErrNotAvailable)
}

// Close does nothing.
func (*Listener) Close() error { return nil }
