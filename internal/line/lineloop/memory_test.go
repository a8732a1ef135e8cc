package lineloop

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"runtime"
	"runtime/debug"
	"testing"
	"time"
)

// resident is how much memory the process has from the system and has not given back.
func resident() int {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int(m.Sys - m.HeapReleased)
}

// inUse is how much of the heap is occupied. Unlike resident it does not depend on the free pages that the runtime
// still has from earlier tests: debug.FreeOSMemory leaves up to 8 MB of them, and a line may be read into those.
func inUse() int {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int(m.HeapInuse)
}

// within30s waits until is returns true. The bound is below the two minutes after which Go collects by itself.
func within30s(t *testing.T, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); !is(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not within 30 s: %s", what)
		}
	}
}

// A long line needs memory while it passes, and that is given back when no other comes.
func TestMemoryOfALongLine(t *testing.T) {
	if 2*keepLong > 30*time.Second {
		t.Errorf("the buffers of long lines are kept for up to %v", 2*keepLong)
	}
	const size = 16 << 20
	line := append(bytes.Repeat([]byte("x"), size-1), '\n')
	r := newRelay(t, size)
	r.loop.Post(func() { r.loop.keepLong = time.Millisecond })
	got := make([]byte, size)
	debug.FreeOSMemory()
	before, usedBefore := resident(), inUse()
	for range 3 {
		if _, err := r.in.Write(line); err != nil {
			t.Fatal(err)
		}
		if held := inUse() - usedBefore; held < size || held > 40<<20 {
			t.Errorf("%d MB more while a line of 16 MB passes, want 16 to 40", held>>20)
		}
		if _, err := io.ReadFull(r.out, got); err != nil || !bytes.Equal(got, line) {
			t.Fatalf("another line came out: %v", err)
		}
		within30s(t, "the memory is given back", func() bool { return resident()-before < 4<<20 })
	}
	r.in.Close()
	<-r.done
	r.out.Close()
}

// A long line is kept in the buffer that it was read into, and nothing is written into that meanwhile.
func TestKeptLinesStayAsTheyWere(t *testing.T) {
	r := newRelay(t, 16<<20)
	onLine := r.source.opts.OnLine
	var holds []*Hold
	var kept [][]byte
	r.loop.Post(func() {
		r.source.opts.OnLine = func(line []byte, whole bool) {
			h, k := r.loop.Keep(line)
			holds, kept = append(holds, h), append(kept, k)
			onLine(line, whole)
		}
	})
	var input []byte
	for i := range 6 {
		input = append(append(input, bytes.Repeat([]byte{byte('a' + i)}, (i+1)*500_000)...), '\n')
	}
	if got := r.pump(t, input); !bytes.Equal(got, input) {
		t.Fatalf("%d bytes came out, %d went in", len(got), len(input))
	}
	for i, k := range kept {
		if want := bytes.Repeat([]byte{byte('a' + i)}, (i+1)*500_000); !bytes.Equal(k, want) {
			t.Errorf("line %d is another one now", i)
		}
		holds[i].Release()
	}
	if len(kept) != 6 {
		t.Errorf("%d lines", len(kept))
	}
}

// Of many sources only as many have a buffer as are kept for reuse, once all have been read.
func TestManySourcesShareBuffers(t *testing.T) {
	loop, err := NewLoop()
	if err != nil {
		t.Fatal(err)
	}
	const sources = 20
	read := make(chan string, sources)
	var writers []*os.File
	for range sources {
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		writers = append(writers, w)
		loop.AddSource(r, SourceOptions{OnLine: func(line []byte, _ bool) { read <- string(line) }})
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		loop.Run()
	}()
	for round := range 3 {
		for i, w := range writers {
			if _, err := fmt.Fprintf(w, "line %d of %d\n", round, i); err != nil {
				t.Fatal(err)
			}
		}
		for range sources {
			<-read
		}
	}
	out := make(chan int)
	loop.Post(func() { out <- loop.resting.out })
	if n := <-out; n > restingMost {
		t.Errorf("%d of %d sources have a buffer, want %d at most", n, sources, restingMost)
	}
	loop.Post(loop.Stop)
	<-done
	for _, w := range writers {
		w.Close()
	}
}
