//go:build unix

package cli

import (
	"io/fs"
	"syscall"
)

// sharingPossible says why runs cannot share a server on this system.
func sharingPossible() error { return nil }

// outsideJob has nothing to do: there are no jobs.
var outsideJob *syscall.SysProcAttr

// exeSuffix is what names of programs end with.
const exeSuffix = ""

// ofItsOwn makes a process independent of its parent and of its parent's terminal.
func ofItsOwn() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }

// allRead reports that every user of the machine can read a file.
func allRead(st fs.FileInfo) bool { return st.Mode().Perm()&0o004 != 0 }
