package process

import (
	"bytes"
	"encoding/binary"
	"time"

	"golang.org/x/sys/unix"
)

// All is every living process that we can see.
func (System) All() []Entry {
	all, err := unix.SysctlKinfoProcSlice("kern.proc.all")
	if err != nil {
		return nil
	}
	var list []Entry
	for i := range all {
		if all[i].Proc.P_stat != zombie {
			list = append(list, entryOf(&all[i]))
		}
	}
	return list
}

func entryOf(k *unix.KinfoProc) Entry {
	const stopped = 4 // SSTOP of sys/proc.h
	return Entry{
		Identity: identity(k), Parent: int(k.Eproc.Ppid), Age: time.Since(time.Unix(k.Proc.P_starttime.Unix())),
		CPU: Untold, Group: int(k.Eproc.Pgid), Stopped: k.Proc.P_stat == stopped,
	}
}

// Named is the line of one living process, with the name of its program. The error is that of [System.Look].
func (System) Named(pid int) (e Entry, program string, err error) {
	k, err := living(pid)
	if err != nil {
		return e, "", err
	}
	return entryOf(k), unix.ByteSliceToString(k.Proc.P_comm[:]), nil
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

// Variable is a variable of a process's environment: not available on this system.
func (System) Variable(int, string) string { return "" }

// Files are the regular files that a process has open: not available on this system.
func (System) Files(int) []string { return nil }
