//go:build unix && !linux

package cli

import "os"

// documentFile is a file that nobody else finds.
func documentFile() (*os.File, error) {
	f, err := os.CreateTemp("", "outlive-handover-*")
	if err != nil {
		return nil, err
	}
	return f, os.Remove(f.Name())
}

// deferSignals does nothing: Go has no means here to hold signals back over the millisecond between two images.
func deferSignals() (undo func()) { return func() {} }

// admitSignals has nothing to do: none was held back.
func admitSignals() {}
