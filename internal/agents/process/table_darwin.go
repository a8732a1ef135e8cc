package process

import (
	"bytes"
	"encoding/binary"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// All is every living process that we can see.
func (System) All() []Entry {
	all, err := unix.SysctlKinfoProcSlice("kern.proc.all")
	if err != nil {
		return nil
	}
	const stopped = 4 // SSTOP of sys/proc.h
	var list []Entry
	for i := range all {
		k := &all[i]
		list = append(list, Entry{
			Identity: identity(k), Parent: int(k.Eproc.Ppid), Age: time.Since(time.Unix(k.Proc.P_starttime.Unix())),
			CPU: Untold, Stopped: k.Proc.P_stat == stopped,
		})
	}
	return list
}

// Args is a process's command line, nil when it is not ours to know.
func (System) Args(pid int) []string {
	b, err := unix.SysctlRaw("kern.procargs2", pid)
	if err != nil || len(b) < 4 {
		return nil
	}
	count := int(binary.LittleEndian.Uint32(b))
	b = b[4:]
	if end := bytes.IndexByte(b, 0); end >= 0 { // the executable's path precedes the arguments
		b = bytes.TrimLeft(b[end:], "\x00")
	}
	var args []string
	for len(args) < count {
		arg, rest, found := bytes.Cut(b, []byte{0})
		if !found {
			break
		}
		args, b = append(args, string(arg)), rest
	}
	return args
}

// Files are the regular files that a process has open: not available on this system.
func (System) Files(int) []string { return nil }

// Interrupt interrupts a process (SIGINT). The error wraps os.ErrProcessDone when it is gone.
func (System) Interrupt(id Identity) error {
	k, err := unix.SysctlKinfoProc("kern.proc.pid", id.PID)
	if err != nil || identity(k) != id {
		return os.ErrProcessDone
	}
	return strike(id, unix.SIGINT)
}
