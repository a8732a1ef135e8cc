package cli

import (
	"os"

	"golang.org/x/sys/unix"

	"github.com/outlive-mcp/outlive/internal/ops/service"
)

// systemName picks the places of the clients' files, see clients.System, and nativeService who keeps services running.
const systemName, nativeService = "darwin", service.ForLaunchd

// clockWithSleep goes on while the machine sleeps. That of package time stands still here then.
const clockWithSleep = unix.CLOCK_MONOTONIC

// browserCommand is the command that opens a page in the desktop's browser.
func browserCommand(page string) []string { return []string{"open", page} }

func duplicate(from, to int) error { return unix.Dup2(from, to) }

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
