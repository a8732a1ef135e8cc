package process

import (
	"errors"
	"unsafe"

	"golang.org/x/sys/windows"
)

// All is every living process that we can see.
func (s System) All() []Entry {
	var list []Entry
	for pid, parent := range parents() {
		if p, err := s.Look(pid); err == nil {
			list = append(list, Entry{Identity: p.Identity, Parent: parent, Age: p.Age, CPU: Untold})
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
	name := make([]uint16, windows.MAX_LONG_PATH)
	size := uint32(len(name))
	if windows.QueryFullProcessImageName(h, 0, unsafe.SliceData(name), &size) != nil {
		return nil
	}
	return []string{windows.UTF16ToString(name[:size])}
}

// Files are the regular files that a process has open: not available on this system.
func (System) Files(int) []string { return nil }

// Interrupt is not possible: a program in another console cannot be signalled.
func (System) Interrupt(Identity) error { return errors.ErrUnsupported }
