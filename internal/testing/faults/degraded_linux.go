package faults

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// Condition is a machine on which something is missing.
type Condition struct {
	Name string
	// Promised: nobody may be left there either.
	Promised bool
	apply    func(*Setup)
}

// On is s under that condition.
func (c Condition) On(s Setup) Setup {
	c.apply(&s)
	return s
}

// Conditions are the degraded machines. A full disk needs the right to mount; see [UnwritableState] for those without.
func Conditions() []Condition {
	return []Condition{
		{"64 descriptors", true, func(s *Setup) { s.Under = []string{"/bin/sh", "-c", `ulimit -n 64; exec "$0" "$@"`} }},
		{"state: disk full", true, func(s *Setup) { s.State = fullDisk }},
		UnwritableState(),
		{"no calls with pidfds", false, func(s *Setup) { s.Under = append(s.Victim[:len(s.Victim):len(s.Victim)], VictimArg, "nopidfd") }},
	}
}

// UnwritableState is a state directory that cannot be made, not even by root.
func UnwritableState() Condition {
	return Condition{"state: not writable", true, func(s *Setup) {
		s.State = func(dir string) (func(), error) {
			return func() {}, os.WriteFile(dir, nil, 0o400) // a file, where a directory is wanted
		}
	}}
}

// fullDisk mounts 64 KiB of memory on dir and fills them.
func fullDisk(dir string) (undo func(), err error) {
	undo = func() {}
	if err := os.Mkdir(dir, 0o700); err != nil {
		return undo, fmt.Errorf("make mount point: %w", err)
	}
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=64k"); err != nil {
		return undo, fmt.Errorf("mount: %w", err)
	}
	undo = func() { _ = unix.Unmount(dir, unix.MNT_DETACH) }
	full := os.WriteFile(filepath.Join(dir, "full"), make([]byte, 1<<20), 0o600)
	if !errors.Is(full, unix.ENOSPC) {
		undo()
		return func() {}, fmt.Errorf("fill the disk: %w", full)
	}
	return undo, nil
}
