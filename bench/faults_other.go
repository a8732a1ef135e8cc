//go:build unix && !linux

package main

import "errors"

// runFaults needs /proc to find out who is left.
func runFaults(options) error {
	return errors.New("-faults: not supported on this system; it runs on Linux")
}
