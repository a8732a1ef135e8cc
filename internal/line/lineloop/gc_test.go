//go:build linux && !outlive_stream

package lineloop

import (
	"context"
	"math"
	"os"
	"os/exec"
	"runtime"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/outlive-mcp/outlive/internal/testing/tier"
)

// blockSignalVar makes TestCollectorRunsBesideASleepingLoop block the signal by which the runtime interrupts a thread.
const blockSignalVar = "OUTLIVE_TEST_BLOCK_SIGNAL"

// collections is how many collections have to be in time.
const collections = 20

// While there is traffic the loop sleeps without notifying the Go scheduler; the garbage collector must still run. A
// collection counts if it ends before the loop can have changed to its ordinary sleep. A longer one proves nothing: the
// machine may be busy with other programs, or the loop does not yield, but then every collection is longer.
func TestCollectorRunsBesideASleepingLoop(t *testing.T) {
	r := newRelay(t, 0)
	if os.Getenv(blockSignalVar) != "" {
		r.loop.Post(func() {
			runtime.LockOSThread() // the loop's goroutine ends with its thread
			set := unix.Sigset_t{}
			set.Val[0] = 1 << (unix.SIGURG - 1)
			if err := unix.PthreadSigmask(unix.SIG_BLOCK, &set, nil); err != nil {
				t.Error(err)
			}
		})
	}
	buf := make([]byte, 16)
	begun, missesMost := time.Now(), 10
	if tier.Name() == "door" {
		missesMost = math.MaxInt // a busy machine can make any number of collections late; only no end of them is an error
	}
	for proved, missed := 0, 0; proved < collections; {
		sent := time.Now()
		_, _ = r.in.Write([]byte("x\n"))
		_, _ = r.out.Read(buf)
		runtime.GC()
		switch took := time.Since(sent); {
		case took < unseenFor: // the scheduler did not see the sleep
			proved++
		case missed < missesMost && sent.Sub(begun) < tier.Patience:
			missed++
			t.Logf("a collection took %v", took)
		default:
			t.Fatalf("of %d collections, %d have waited for the loop's ordinary sleep: it does not yield when it is asked to", proved+missed, missed)
		}
	}
	r.in.Close()
	<-r.done
	r.out.Close()
}

// TestNobodyInterruptsTheLoop: the runtime's signals may be disabled (GODEBUG=asyncpreemptoff=1, which a go:debug
// line sets as well) or blocked by the parent process; the garbage collector still runs. It uses a process of its
// own: in one that hangs no timeout of the test would fire.
func TestNobodyInterruptsTheLoop(t *testing.T) {
	for name, env := range map[string]string{"switched off": "GODEBUG=asyncpreemptoff=1", "blocked": blockSignalVar + "=1"} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 2*tier.Patience)
			defer cancel()
			again := exec.CommandContext(ctx, os.Args[0], "-test.run=^TestCollectorRunsBesideASleepingLoop$", "-test.v")
			again.Env = append(os.Environ(), env)
			out, err := again.CombinedOutput()
			t.Logf("%s", out)
			if err != nil {
				t.Errorf("with %s: %v", env, err)
			}
		})
	}
}
