//go:build unix

package cli

import "syscall"

// sharingPossible says why runs cannot share a server here.
func sharingPossible() error { return nil }

// ofItsOwn has a process outlive whoever starts it, and its terminal.
func ofItsOwn() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }
