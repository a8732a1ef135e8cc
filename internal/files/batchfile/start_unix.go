//go:build unix

package batchfile

import (
	"os/exec"
	"syscall"
)

// Program returns path: a script is started as any program.
func Program(path string, _ []string, _ *syscall.SysProcAttr) (string, error) { return path, nil }

// Prepare has nothing to do.
func Prepare(*exec.Cmd) error { return nil }
