//go:build unix

package cli

import (
	"os"

	"golang.org/x/sys/unix"
)

var watchedSignals = []os.Signal{unix.SIGINT, unix.SIGTERM, unix.SIGHUP, unix.SIGUSR2}

func kindOf(sig os.Signal) signalKind {
	switch sig {
	case unix.SIGINT, unix.SIGTERM:
		return endSignal
	case unix.SIGHUP:
		return restartSignal
	case unix.SIGUSR2:
		return upgradeSignal
	}
	return noSignal
}
