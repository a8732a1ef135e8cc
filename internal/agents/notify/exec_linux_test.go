package notify

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"
)

// What a program that is out of its time has started goes with it.
func TestExecEndsTheGroup(t *testing.T) {
	x := pager(t, "leave")
	x.opts.Timeout = 2 * time.Second
	_, err := x.Send(t.Context(), text("x"))
	if err == nil {
		t.Fatal("no error")
	}
	_, rest, _ := strings.Cut(err.Error(), "left ")
	var pid int
	if _, err := fmt.Sscan(rest, &pid); err != nil {
		t.Fatalf("%q: %v", rest, err)
	}
	for end := time.Now().Add(2 * time.Minute); time.Now().Before(end); time.Sleep(time.Millisecond) {
		// Dead it may still be in the table, until whoever has got it waits for it.
		state, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) || strings.Contains(string(state), ") Z ") {
			return
		}
	}
	_ = syscall.Kill(pid, syscall.SIGKILL)
	t.Errorf("process %d outlives its program", pid)
}
