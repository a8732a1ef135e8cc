package process

import (
	"os"

	"golang.org/x/sys/unix"
)

// watchEnd calls ended once: when a process has ended, or at once if there is no pidfd of it. stop ends the goroutine that waits for
// it. The pidfd is closed with the goroutine: who has ended may stay in the list for long.
func watchEnd(id Identity, ended func()) (stop func()) {
	fd, err := unix.PidfdOpen(id.PID, 0)
	if err != nil {
		ended()
		return func() {}
	}
	_ = unix.SetNonblock(fd, true) // so that the runtime waits for it; it cannot fail
	f := os.NewFile(uintptr(fd), "pidfd")
	if s, err := readStat(id.PID); err != nil || s.start != id.Start {
		_ = f.Close()
		ended()
		return func() {}
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer f.Close()
		conn, err := f.SyscallConn()
		if err == nil {
			err = conn.Read(func(fd uintptr) bool {
				n, _ := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 0) // an end from now on wakes us again
				return n > 0
			})
		}
		if err == nil {
			ended()
		}
	}()
	return func() {
		_ = f.Close() // ends the wait
		<-done
	}
}
