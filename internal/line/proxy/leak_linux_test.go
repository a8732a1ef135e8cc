package proxy

import (
	"flag"
	"os"
	"runtime"
	"testing"
)

var leakRestarts = flag.Int("leak.restarts", 300, "how many restarts TestRestartsLeaveNothing measures")

// tiny is an MCP server that starts in a millisecond: it answers initialize, and dies of a notification.
const tiny = `while read -r l; do case $l in
*'"notifications/die"'*) kill -9 $$ ;;
*'"initialize"'*) id=${l#*'"id":'}; id=${id%%,*}; echo '{"jsonrpc":"2.0","id":'$id',"result":{"protocolVersion":"2025-11-25","capabilities":{}}}' ;;
esac; done`

// footprint is what a restart must not increase.
type footprint struct {
	goroutines, descriptors int
	heap                    uint64 // bytes
}

func measure(t *testing.T) footprint {
	t.Helper()
	fds, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	runtime.GC()
	runtime.GC() // objects that a finalizer of the first run has released
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return footprint{runtime.NumGoroutine(), len(fds), m.HeapAlloc}
}

// TestRestartsLeaveNothing: goroutines, descriptors and memory are the same after many restarts as after a few.
func TestRestartsLeaveNothing(t *testing.T) {
	r := start(t, []string{"sh", "-c", tiny})
	if _, err := r.client.Initialize(t.Context(), "2025-11-25"); err != nil {
		t.Fatal(err)
	}
	gen := r.waitReady(t, -1)
	restarts := func(n int) {
		for range n {
			if err := r.client.Notify("notifications/die", nil); err != nil {
				t.Fatal(err)
			}
			gen = r.waitReady(t, gen)
		}
	}
	restarts(30)
	before := measure(t)
	restarts(*leakRestarts)
	after := measure(t)
	t.Logf("before %+v, after %d restarts %+v", before, *leakRestarts, after)
	if after.goroutines > before.goroutines+3 {
		t.Errorf("goroutines: %d, were %d", after.goroutines, before.goroutines)
	}
	if after.descriptors > before.descriptors+3 {
		t.Errorf("descriptors: %d, were %d", after.descriptors, before.descriptors)
	}
	if after.heap > before.heap+1<<20 {
		t.Errorf("heap: %d bytes, were %d", after.heap, before.heap)
	}
	r.end(t)
}
