package hooks

import "golang.org/x/sys/unix"

// zombie is SZOMB of sys/proc.h: ended, but not yet waited for.
const zombie = 5

func look(pid int) (procInfo, bool) {
	k, err := unix.SysctlKinfoProc("kern.proc.pid", pid)
	if err != nil || k.Proc.P_stat == zombie || int(k.Proc.P_pid) != pid {
		return procInfo{}, false
	}
	start := k.Proc.P_starttime
	return procInfo{
		pid: pid, name: unix.ByteSliceToString(k.Proc.P_comm[:]), parent: int(k.Eproc.Ppid),
		start: uint64(start.Sec)*1e6 + uint64(start.Usec),
	}, true
}
