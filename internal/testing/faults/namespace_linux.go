package faults

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"
)

// insideVar says that this process is the first of a namespace that [Isolate] made.
const insideVar = "OUTLIVE_FAULTS_INSIDE"

// Isolate runs this program again, with the same arguments, as the first process of a pid namespace of its own with its
// own /proc: whatever it starts ends with it, and nobody else's processes are in the way. ran is true in the process
// that was there before, when the other one has ended; err is how. Where that is not allowed, or already so, ran is
// false, and inside tells which.
func Isolate() (ran, inside bool, err error) {
	if os.Getenv(insideVar) != "" {
		return false, true, ownProc()
	}
	runtime.LockOSThread() // the second process is to end with this one, not with this thread
	defer runtime.UnlockOSThread()
	c := exec.Command("/proc/self/exe", os.Args[1:]...)
	c.Args[0] = os.Args[0]
	c.Stdin, c.Stdout, c.Stderr = os.Stdin, os.Stdout, os.Stderr
	c.Env = append(os.Environ(), insideVar+"=1")
	c.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWPID | syscall.CLONE_NEWNS, Pdeathsig: syscall.SIGKILL}
	if os.Getuid() != 0 {
		c.SysProcAttr.Cloneflags |= syscall.CLONE_NEWUSER
		c.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}}
		c.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}}
	}
	if c.Start() != nil {
		return false, false, nil
	}
	return true, false, c.Wait()
}

// ownProc mounts the namespace's /proc, for this mount namespace only.
func ownProc() error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("make mounts private: %w", err)
	}
	if err := unix.Mount("proc", "/proc", "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, ""); err != nil {
		return fmt.Errorf("mount /proc: %w", err)
	}
	return os.Unsetenv(insideVar) // what we start is not the first process of anything
}
