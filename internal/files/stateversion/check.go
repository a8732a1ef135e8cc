package stateversion

import (
	"errors"
	"fmt"
)

// ErrNewer is wrapped by the errors about a file that a newer outlive has written.
var ErrNewer = errors.New("a newer outlive has written it")

// Check returns an error that wraps [ErrNewer] if the version of a file is above known, the newest that this program
// reads. A file without a version has version 0.
func Check(file string, version, known int) error {
	if version <= known {
		return nil
	}
	return fmt.Errorf("%s: %w (version %d of the file; this outlive reads up to %d): install that outlive, or a later one", file, ErrNewer, version, known)
}
