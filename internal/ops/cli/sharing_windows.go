package cli

import (
	"errors"
	"io/fs"
	"syscall"

	"golang.org/x/sys/windows"
)

// sharingPossible says why runs cannot share a server on this system.
func sharingPossible() error {
	return errors.New("not supported on Windows yet, which does not tell whose the other end of a socket is: leave it out")
}

// outsideJob lets a process live on when outlive and its job end.
var outsideJob = &syscall.SysProcAttr{CreationFlags: windows.CREATE_BREAKAWAY_FROM_JOB}

// exeSuffix is what names of programs end with.
const exeSuffix = ".exe"

// ofItsOwn makes a process independent of its parent.
func ofItsOwn() *syscall.SysProcAttr { return nil }

// allRead is not known: who may read a file is not in its mode.
func allRead(fs.FileInfo) bool { return false }
