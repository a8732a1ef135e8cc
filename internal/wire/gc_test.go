//go:build linux && !outlive_stream

package wire

import (
	"runtime"
	"testing"
	"time"
)

// While traffic flows the loop sleeps without telling the Go scheduler; the collector must still get its turn.
func TestCollectorRunsBesideASleepingLoop(t *testing.T) {
	r := newRelay(t, 0)
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
