//go:build !linux

package heartbeat

import "fmt"

// Listener hears sd_notify. There is none on this system.
type Listener struct{}

// Listen gives [ErrNotAvailable].
func Listen(path string, _ ListenOptions) (*Listener, error) {
	return nil, fmt.Errorf("listen on %s: %w", path, ErrNotAvailable)
}

// Close does nothing: there is nothing to end.
func (*Listener) Close() error { return nil }
