//go:build unix && !outlive_stream

package lineloop

import (
	"bytes"
	"io"
	"runtime"
	"runtime/debug"
	"testing"
	"time"

	"github.com/outlive-mcp/outlive/internal/testing/await"
)

// The alarm rings while a callback takes its time, and is taken together with other posted work: the loop still thinks it is
// earlier than the deadline, and must be woken for it once more. A loop in an unseen sleep is interrupted after a while in any case.
func TestAnAlarmThatRingsEarlyIsSetAgain(t *testing.T) {
	loop, err := NewLoop()
	if err != nil {
		t.Fatal(err)
	}
	loop.unseen = false
	r, w := pipe(t)
	defer w.Close()
	const wait = 20 * time.Millisecond
	var at time.Time
	loop.AddSource(r, SourceOptions{OnLine: func([]byte, bool) { time.Sleep(2 * wait) }})
	ticked := make(chan time.Time, 1)
	loop.Deadline = func() time.Time { return at }
	loop.OnTick = func(now time.Time) {
		at = time.Time{}
		ticked <- now
	}
	done := make(chan struct{})
	go func() { defer close(done); loop.Run() }()
	loop.Post(func() { // the next turn finds a line and posted work
		at = loop.Now().Add(wait)
		loop.Post(func() {})
		if _, err := io.WriteString(w, "x\n"); err != nil {
			t.Error(err)
		}
	})
	select {
	case <-ticked:
	case <-time.After(2 * time.Minute):
		t.Error("the deadline has passed, and nothing was done")
	}
	loop.Post(loop.Stop)
	<-done
}

// While long lines come, their buffers are used again.
func TestLongLinesMakeNoGarbage(t *testing.T) {
	const size = 1 << 20
	line := append(bytes.Repeat([]byte("x"), size-1), '\n')
	r := newRelay(t, 16<<20)
	got := make([]byte, size)
	pass := func() {
		_, _ = r.in.Write(line)
		_, _ = io.ReadFull(r.out, got)
	}
	pass()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range 50 {
		pass()
	}
	runtime.ReadMemStats(&after)
	if made := after.TotalAlloc - before.TotalAlloc; made > 8*size {
		t.Errorf("%d MB were allocated for 50 lines of 1 MB", made>>20)
	}
	r.in.Close()
	<-r.done
	r.out.Close()
}

// A loop with nothing to do leaves its system call from time to time, see sleepMost. Without descriptors, posted work or a deadline
// nothing else ends a sleep: Deadline is asked before each one.
func TestAnIdleLoopReturnsFromItsSleep(t *testing.T) {
	loop, err := NewLoop()
	if err != nil {
		t.Fatal(err)
	}
	loop.sleepMost = time.Millisecond
	sleeps := 0
	loop.Deadline = func() time.Time {
		if sleeps++; sleeps == 5 {
			loop.Stop()
		}
		return time.Time{}
	}
	loop.Run()
}

// What a start, or any other work, has left in the heap is given back once nothing happens any more, although the heap is too small for the
// collector to run by itself. For less than that nothing is collected, since a first collection takes more memory than it returns.
func TestMemoryAtRest(t *testing.T) {
	r := newRelay(t, 1<<20)
	percent := debug.SetGCPercent(-1) // a collection by Go's own decision would take the garbage first
	t.Cleanup(func() { debug.SetGCPercent(percent) })
	debug.FreeOSMemory()
	looks := make(chan time.Time, 1)
	r.loop.Post(func() { r.loop.sleepMost, r.loop.returned = 10*time.Millisecond, allocated() })
	rested := func() (at time.Time) {
		r.loop.Post(func() { looks <- r.loop.restedAt })
		return <-looks
	}
	collections := func() uint32 {
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.NumForcedGC
	}
	litter := func(size int) {
		garbage := make([]byte, size)
		for i := range garbage {
			garbage[i] = 1
		}
		runtime.KeepAlive(garbage)
	}
	before, used, collected := resident(), inUse(), collections()
	litter(worthReturning / 4)
	await.Until(t, "it has looked", func() bool {
		time.Sleep(unseenFor + 100*time.Millisecond) // without being asked, since that wakes it up
		return !rested().IsZero()
	})
	if n := collections() - collected; n != 0 {
		t.Errorf("%d collections for little garbage", n)
	}
	litter(worthReturning)
	if more := inUse() - used; more < worthReturning/2 { // free pages of earlier tests may hold it: resident says less
		t.Fatalf("%d bytes of garbage take %d bytes", worthReturning, more)
	}
	r.loop.Post(func() { r.loop.restedAt = time.Time{} }) // as after a minute
	await.Until(t, "the memory is given back", func() bool {
		return collections() == collected+1 && inUse()-used < worthReturning/2 && resident()-before < worthReturning/2
	})
	r.loop.Post(func() { r.loop.restedAt = time.Time{} })
	time.Sleep(unseenFor + 100*time.Millisecond) // several sleeps without traffic
	if n := collections() - collected; n != 1 {
		t.Errorf("%d collections while nothing happened", n-1)
	}
	r.in.Close()
	<-r.done
	r.out.Close()
}
