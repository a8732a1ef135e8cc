//go:build linux && !outlive_stream

package wire

import (
	"context"
	"os"
	"os/exec"
	"runtime"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// deafVar makes TestCollectorRunsBesideASleepingLoop block the signal by which the runtime interrupts a thread.
const deafVar = "OUTLIVE_TEST_DEAF"

// While traffic flows the loop sleeps without telling the Go scheduler; the collector must still get its turn.
func TestCollectorRunsBesideASleepingLoop(t *testing.T) {
	r := newRelay(t, 0)
	if os.Getenv(deafVar) != "" {
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
	worst := time.Duration(0)
	for range 50 {
		_, _ = r.in.Write([]byte("x\n"))
		_, _ = r.out.Read(buf)
		begun := time.Now()
		runtime.GC()
		worst = max(worst, time.Since(begun))
	}
	t.Logf("slowest collection: %v", worst)
	if worst > lingerFor/2 {
		t.Errorf("a collection took %v: the loop does not yield when it is asked to", worst)
	}
	r.in.Close()
	<-r.done
	r.out.Close()
}

// TestNobodyInterruptsTheLoop: the runtime's signals may be switched off (GODEBUG=asyncpreemptoff=1, which a go:debug line
// sets as well) or be blocked by whoever started us; the collector still gets its turn. A process of its own: in one that
// hangs no timeout of the test would ring.
func TestNobodyInterruptsTheLoop(t *testing.T) {
	for name, env := range map[string]string{"switched off": "GODEBUG=asyncpreemptoff=1", "blocked": deafVar + "=1"} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
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
