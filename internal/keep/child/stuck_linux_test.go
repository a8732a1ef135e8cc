package child

import (
	"os"
	"runtime"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// A child that SIGKILL does not end, because it is stuck in the kernel, is not waited for for ever. Neither the report of its
// server's end nor the end of the keeper depends on it.
func TestAStuckChildIsNotWaitedFor(t *testing.T) {
	runtime.LockOSThread() // the kernel lists children by thread
	defer runtime.UnlockOSThread()
	fork := func(script string) int {
		pid, err := syscall.ForkExec("/bin/sh", []string{"sh", "-c", script}, &syscall.ProcAttr{Sys: &syscall.SysProcAttr{Setsid: true}})
		if err != nil {
			t.Fatal(err)
		}
		return pid
	}
	child := fork("sleep 600")
	defer func() {
		_ = unix.Kill(-child, unix.SIGKILL)
		_, _ = unix.Wait4(child, nil, 0, nil)
	}()
	k := &keeper{pid: os.Getpid(), thread: unix.Gettid(), stuck: map[int]bool{}, kill: func(int, syscall.Signal) error { return nil }}
	dead := func(ended time.Time) *server {
		return &server{slot: 1, pid: fork("exit"), pidfd: -1, channel: -1, exited: true, ended: ended}
	}
	long := time.Now().Add(-2 * stuckTime)

	w := dead(time.Now())
	k.servers = append(k.servers, w)
	if k.sweep(); len(k.servers) != 1 {
		t.Error("its server's end is reported while it may still end")
	}
	w.ended = long
	if k.sweep(); len(k.servers) != 0 {
		t.Fatal("its server's end is never reported")
	}
	k.servers = append(k.servers, dead(time.Now()))
	if k.sweep(); len(k.servers) != 0 {
		t.Fatal("the next server waits for it, too")
	}

	k.stuck = map[int]bool{}
	k.ending, k.deadline = true, time.Now().Add(-lastGrace)
	for range 2 { // each look counts
		if k.finished() {
			t.Error("the keeper leaves while it may still end")
		}
	}
	k.deadline = long
	if k.finished(); !k.finished() {
		t.Error("the keeper never ends")
	}
}
