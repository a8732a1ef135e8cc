//go:build unix

package cli

import (
	"os"

	"golang.org/x/sys/unix"
)

// passedOn are the signals that a command gets which is beaten for.
var passedOn = []os.Signal{unix.SIGTERM, unix.SIGHUP, unix.SIGUSR1, unix.SIGUSR2}
