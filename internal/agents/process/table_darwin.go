package process

import (
	"bytes"
	"encoding/binary"
	"time"

	"golang.org/x/sys/unix"
)

// All is every living process that we can see.
func (System) All() []Process {
	all, err := unix.SysctlKinfoProcSlice("kern.proc.all")
	if err != nil {
		return nil
	}
	var list []Process
	for i := range all {
		if all[i].Proc.P_stat != zombie {
			list = append(list, described(&all[i]))
		}
	}
	return list
}

func described(k *unix.KinfoProc) Process {
	const stopped = 4 // SSTOP of sys/proc.h
	return Process{
		Identity: identity(k), Program: unix.ByteSliceToString(k.Proc.P_comm[:]), Parent: int(k.Eproc.Ppid),
		Age: time.Since(time.Unix(k.Proc.P_starttime.Unix())), CPU: Untold, Group: int(k.Eproc.Pgid), Stopped: k.Proc.P_stat == stopped,
	}
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
