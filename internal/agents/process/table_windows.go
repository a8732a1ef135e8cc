package process

import (
	"errors"

	"golang.org/x/sys/windows"
)

// All is every living process that we can see.
func (System) All() []Process {
	var list []Process
	for pid, line := range snapshot() {
		if p, err := look(pid, &line); err == nil {
			list = append(list, p)
		}
	}
	return list
}

// Args is the known part of a process's command line: its program's file.
func (System) Args(pid int) []string {
	h, err := windows.OpenProcess(windows.PROCESS_QUERY_LIMITED_INFORMATION, false, uint32(pid))
	if err != nil {
		return nil
	}
	defer windows.CloseHandle(h)
	if path := image(h); path != "" {
		return []string{path}
	}
	return nil
}

// Variable is a variable of a process's environment: not available on this system.
func (System) Variable(int, string) string { return "" }

// Files are the regular files that a process has open: not available on this system.
func (System) Files(int) []string { return nil }

// Interrupt is not possible: a program in another console cannot be signalled.
func (System) Interrupt(Identity) error { return errors.ErrUnsupported }
