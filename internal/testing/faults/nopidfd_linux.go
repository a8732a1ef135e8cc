package faults

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// withoutPidfd runs a command to which the kernel refuses the calls with pidfds, as the seccomp profiles of older
// container engines do: they know no calls younger than themselves. It returns only if that fails.
func withoutPidfd(argv []string) int {
	runtime.LockOSThread() // the filter is the thread's, and stays with what it executes
	err := filterPidfd()
	if err == nil {
		var path string
		if path, err = exec.LookPath(argv[0]); err == nil {
			err = syscall.Exec(path, argv, os.Environ())
		}
	}
	fmt.Fprintln(os.Stderr, "victim:", err)
	return 1
}

// filterPidfd makes pidfd_open, pidfd_send_signal and pidfd_getfd fail with ENOSYS on this thread.
func filterPidfd() error {
	const load, equal, give = unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, unix.BPF_RET | unix.BPF_K
	refuse := uint32(unix.SECCOMP_RET_ERRNO) | uint32(unix.ENOSYS)
	filter := []unix.SockFilter{{Code: load, K: 0}} // the number of the call; these three are the same on all architectures
	for _, number := range []uint32{unix.SYS_PIDFD_OPEN, unix.SYS_PIDFD_SEND_SIGNAL, unix.SYS_PIDFD_GETFD} {
		filter = append(filter, unix.SockFilter{Code: equal, Jf: 1, K: number}, unix.SockFilter{Code: give, K: refuse})
	}
	filter = append(filter, unix.SockFilter{Code: give, K: unix.SECCOMP_RET_ALLOW})
	program := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return os.NewSyscallError("prctl", err)
	}
	err := unix.PrctlArg5Ptr(unix.PR_SET_SECCOMP, unix.SECCOMP_MODE_FILTER, uintptr(unsafe.Pointer(&program)), 0, nil)
	runtime.KeepAlive(filter)
	return os.NewSyscallError("seccomp", err)
}
