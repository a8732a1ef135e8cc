package cli

import (
	"os"
	"runtime"

	"golang.org/x/sys/unix"

	"github.com/outlive-mcp/outlive/internal/ops/service"
)

// systemName picks the places of the clients' files, see clients.System, and nativeService who keeps services running.
const systemName, nativeService = "linux", service.ForSystemd

// clockWithSleep goes on while the machine sleeps.
const clockWithSleep = unix.CLOCK_BOOTTIME

// browserCommand is the command that opens a page in the desktop's browser; nil without a desktop.
func browserCommand(page string) []string {
	if os.Getenv("DISPLAY") == "" && os.Getenv("WAYLAND_DISPLAY") == "" {
		return nil
	}
	return []string{"xdg-open", page}
}

// duplicate is dup2, which newer architectures do not have.
func duplicate(from, to int) error { return unix.Dup3(from, to, 0) }

// documentFile is a file in memory that nobody else sees.
func documentFile() (*os.File, error) {
	fd, err := unix.MemfdCreate("outlive-handover", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, os.NewSyscallError("memfd_create", err)
	}
	return os.NewFile(uintptr(fd), "handover"), nil
}

// deferred are the signals that would end a program which has not yet said that it handles them.
func deferred() *unix.Sigset_t {
	set := &unix.Sigset_t{}
	for _, sig := range []unix.Signal{unix.SIGUSR2, unix.SIGHUP, unix.SIGTERM, unix.SIGINT} {
		set.Val[0] |= 1 << (uint(sig) - 1) // all are under 32, so they are in the first word on every machine
	}
	return set
}

// deferSignals keeps signals back that come while one image ends and the next begins: they wait for it. The returned
// function ends that, should there be no next one.
func deferSignals() (undo func()) {
	var was unix.Sigset_t
	if unix.PthreadSigmask(unix.SIG_BLOCK, deferred(), &was) != nil {
		return func() {}
	}
	return func() { _ = unix.PthreadSigmask(unix.SIG_SETMASK, &was, nil) }
}

// admitSignals is for the next image, once it handles signals: what it starts must not have them blocked. Only the thread
// of the loop starts anything, and this goroutine becomes the loop.
func admitSignals() {
	runtime.LockOSThread()
	_ = unix.PthreadSigmask(unix.SIG_UNBLOCK, deferred(), nil)
}
