//go:build unix && !outlive_stream

package lineloop

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"
)

// again carries what is saved through JSON, as another image of the program gets it.
func again[T any](t *testing.T, v T) (out T) {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

// copied is a copy of a descriptor, as exec leaves one: the old loop closes its own.
func copied(t *testing.T, fd int) int {
	t.Helper()
	other, err := syscall.Dup(fd)
	if err != nil {
		t.Fatal(err)
	}
	return other
}

// TestALoopGoesOnInAnother: half a line read, the beginning of a line over the limit, and a queue that nobody took yet are
// all there after a handover.
func TestALoopGoesOnInAnother(t *testing.T) {
	const limit = 300 << 10
	big := strings.Repeat("x", 2*limit)
	for name, c := range map[string]struct {
		first, then, want string
		oversize          int64
	}{
		"half a line":            {"one\ntw", "o\nthree\n", "one\ntwo\nthree\n", 0},
		"half a long line":       {big[:limit-5], "end\n", big[:limit-5] + "end\n", 0},
		"half an over-long line": {"a\n" + big, "yz\nb\n", "a\nb\n", int64(len(big)) + 2},
		"nothing":                {"one\n", "two\n", "one\ntwo\n", 0},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRelay(t, limit)
			output := make(chan []byte)
			go func() { output <- readAll(t, r.out) }()
			write(t, r.in, c.first)
			source, sink := r.handOver(t, len(c.first))
			next := newRelayOf(t, limit, source, sink)
			write(t, r.in, c.then)
			_ = r.in.Close()
			<-next.done
			if got := <-output; string(got) != c.want {
				t.Errorf("got %d bytes, want %d", len(got), len(c.want))
			}
			if c.oversize > 0 && (len(next.oversize) != 1 || next.oversize[0] != c.oversize || !bytes.HasSuffix(next.tails[0], []byte("yz"))) {
				t.Errorf("oversize %v", next.oversize)
			}
		})
	}
}

// TestAQueueGoesOnInAnother: what the reader has not taken is neither lost nor doubled.
func TestAQueueGoesOnInAnother(t *testing.T) {
	r := newRelay(t, 0)
	line := strings.Repeat("z", 1000) + "\n"
	const lines = 200 // more than a pipe takes, less than the gate lets in
	go func() {
		write(t, r.in, strings.Repeat(line, lines))
		_ = r.in.Close()
	}()
	for r.pending(t) == 0 {
		time.Sleep(time.Millisecond)
	}
	source, sink := r.handOver(t, -1)
	if len(sink.Queue) == 0 {
		t.Fatal("nothing was queued")
	}
	next := newRelayOf(t, 0, source, sink)
	if got := readAll(t, r.out); string(got) != strings.Repeat(line, lines) {
		t.Errorf("got %d bytes, want %d", len(got), lines*len(line))
	}
	<-next.done
}

func (r *relay) pending(t *testing.T) int {
	t.Helper()
	n := make(chan int)
	r.loop.Post(func() { n <- r.sink.Pending() })
	return <-n
}

// handOver ends a loop once it has read so many bytes (-1: as it is) and returns what it leaves, with descriptors that
// outlast it.
func (r *relay) handOver(t *testing.T, read int) (source SavedSource, sink SavedSink) {
	t.Helper()
	for done := false; !done; {
		posted := make(chan bool)
		r.loop.Post(func() {
			quiet := r.loop.Quiet()
			source, sink = r.source.Save(), r.sink.Save()
			got := int64(r.sink.Written()) + int64(len(source.Unread)) + source.Size
			ready := quiet && (read < 0 || got >= int64(read))
			if ready {
				source, sink = again(t, source), again(t, sink)
				source.FD, sink.FD = copied(t, source.FD), copied(t, sink.FD)
				r.loop.Stop()
			}
			posted <- ready
		})
		done = <-posted
	}
	<-r.done
	return source, sink
}

func newRelayOf(t *testing.T, limit int, source SavedSource, sink SavedSink) *relay {
	t.Helper()
	loop, err := NewLoop()
	if err != nil {
		t.Fatal(err)
	}
	r := &relay{loop: loop, done: make(chan struct{})}
	r.sink = loop.AddSink(Reopen(sink.FD, "out"), SinkOptions{})
	r.source = loop.AddSource(Reopen(source.FD, "in"), SourceOptions{
		Limit:  limit,
		OnLine: func(line []byte, _ bool) { r.sink.Forward(line) },
		OnOversize: func(_, tail []byte, size int64) {
			r.oversize = append(r.oversize, size)
			r.tails = append(r.tails, bytes.Clone(tail))
		},
		OnEOF: func(error) { r.sink.CloseWhenDrained(); r.finish() },
	})
	r.sink.Resume(sink)
	r.source.Resume(source)
	go func() { defer close(r.done); loop.Run() }()
	return r
}

func write(t *testing.T, to *os.File, text string) {
	t.Helper()
	if _, err := io.WriteString(to, text); err != nil {
		t.Error(err)
	}
}

func readAll(t *testing.T, from *os.File) []byte {
	t.Helper()
	got, err := io.ReadAll(from)
	if err != nil {
		t.Error(err)
	}
	_ = from.Close()
	return got
}
