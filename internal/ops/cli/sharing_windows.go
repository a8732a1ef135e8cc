package cli

import (
	"errors"
	"syscall"
)

// sharingPossible says why runs cannot share a server here.
func sharingPossible() error {
	return errors.New("not supported on Windows yet, which does not tell whose the other end of a socket is: leave it out")
}

// ofItsOwn has a process outlive whoever starts it.
func ofItsOwn() *syscall.SysProcAttr { return nil }
