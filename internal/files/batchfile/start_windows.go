package batchfile

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/windows"
)

// Program returns the program to start for the one at path, and completes attr: for a batch file that is cmd.exe with [Line].
func Program(path string, args []string, attr *syscall.SysProcAttr) (string, error) {
	if !Is(path) {
		return path, nil
	}
	line, err := Line(path, args)
	if err != nil {
		return "", err
	}
	system, err := windows.GetSystemDirectory()
	if err != nil {
		return "", fmt.Errorf("find cmd.exe: %w", err)
	}
	attr.CmdLine = line
	return filepath.Join(system, "cmd.exe"), nil
}

// Prepare makes a command that has not been started yet right for a batch file.
func Prepare(cmd *exec.Cmd) error {
	attr := &syscall.SysProcAttr{}
	if cmd.SysProcAttr != nil {
		*attr = *cmd.SysProcAttr
	}
	program, err := Program(cmd.Path, cmd.Args[1:], attr)
	if err != nil || program == cmd.Path {
		return err
	}
	cmd.Path, cmd.SysProcAttr = program, attr
	return nil
}
