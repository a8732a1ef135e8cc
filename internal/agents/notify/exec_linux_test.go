package notify

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/outlive-mcp/outlive/internal/testing/await"
)

// What a program that is out of its time has started goes with it.
func TestExecEndsTheGroup(t *testing.T) {
	x := pager(t, "leave")
	x.timeout = 2 * time.Second
	_, err := x.Send(t.Context(), text("x"))
	if err == nil {
		t.Fatal("no error")
	}
	_, rest, _ := strings.Cut(err.Error(), "left ")
	var pid int
	if _, err := fmt.Sscan(rest, &pid); err != nil {
		t.Fatalf("%q: %v", rest, err)
	}
	gone := false
	t.Cleanup(func() {
		if !gone {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	})
	await.Until(t, fmt.Sprintf("process %d, which its program has left, has ended", pid), func() bool {
		// Dead it may still be in the table, until whoever has got it waits for it.
		state, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		gone = errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) || strings.Contains(string(state), ") Z ")
		return gone
	})
}
