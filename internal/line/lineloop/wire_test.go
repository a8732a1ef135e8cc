package lineloop

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func pipe(t testing.TB) (r, w *os.File) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	return r, w
}

// relay is a loop that forwards the lines of one pipe to another.
type relay struct {
	loop     *Loop
	in       *os.File // the test writes here
	out      *os.File // and reads here
	source   *Source
	sink     *Sink
	lines    int
	torn     int // lines ended by EOF
	oversize []int64
	tails    [][]byte
	done     chan struct{}
}

func newRelay(t testing.TB, limit int) *relay {
	t.Helper()
	loop, err := NewLoop()
	if err != nil {
		t.Fatal(err)
	}
	r := &relay{loop: loop, done: make(chan struct{})}
	inR, inW := pipe(t)
	outR, outW := pipe(t)
	r.in, r.out = inW, outR
	r.sink = loop.AddSink(outW, SinkOptions{OnError: func(error) { loop.Stop() }})
	r.source = loop.AddSource(inR, SourceOptions{
		Limit: limit,
		OnLine: func(line []byte, whole bool) {
			r.lines++
			if !whole {
				r.torn++
			}
			r.sink.Forward(line)
		},
		OnOversize: func(_, tail []byte, size int64) {
			r.oversize = append(r.oversize, size)
			r.tails = append(r.tails, bytes.Clone(tail))
		},
		OnEOF: func(error) { r.sink.CloseWhenDrained(); r.finish() },
		Gate:  func() bool { return r.sink.Pending() < 64<<10 },
	})
	go func() { defer close(r.done); loop.Run() }()
	return r
}

// finish stops the loop once everything is written.
func (r *relay) finish() {
	if r.sink.Pending() == 0 {
		r.loop.Stop()
		return
	}
	time.AfterFunc(time.Millisecond, func() { r.loop.Post(r.finish) })
}

// pump writes input and returns everything that came out.
func (r *relay) pump(t testing.TB, input []byte) []byte {
	t.Helper()
	go func() { _, _ = r.in.Write(input); r.in.Close() }()
	got, err := io.ReadAll(r.out)
	if err != nil {
		t.Fatal(err)
	}
	<-r.done
	r.out.Close()
	return got
}

func TestLinesArriveWholeAndInOrder(t *testing.T) {
	var input bytes.Buffer
	for i := range 3000 {
		fmt.Fprintf(&input, "%d %s\n", i, strings.Repeat("x", i*7%5000))
	}
	r := newRelay(t, 0)
	if got := r.pump(t, input.Bytes()); !bytes.Equal(got, input.Bytes()) {
		t.Fatalf("%d bytes came out, %d went in", len(got), input.Len())
	}
	if r.lines != 3000 {
		t.Fatalf("%d lines, want 3000", r.lines)
	}
}

func TestLineLongerThanMemoryLimit(t *testing.T) {
	input := append(bytes.Repeat([]byte("0123456789abcdef"), 300_000), '\n')
	input = append(input, "short\n"...)
	input = append(input, input...)
	r := newRelay(t, 0)
	if got := r.pump(t, input); !bytes.Equal(got, input) {
		t.Fatalf("%d bytes came out, %d went in", len(got), len(input))
	}
	if r.lines != 4 {
		t.Fatalf("%d lines, want 4", r.lines)
	}
}

func TestLastLineWithoutNewline(t *testing.T) {
	r := newRelay(t, 0)
	if got := r.pump(t, []byte("a\nb")); string(got) != "a\nb\n" {
		t.Fatalf("got %q", got)
	}
	if r.torn != 1 {
		t.Fatalf("torn lines: %d, want 1", r.torn)
	}
}

func TestOversizeLinesAreSkippedWithTheirEnds(t *testing.T) {
	long := strings.Repeat("y", 3<<20) + "the end"
	r := newRelay(t, 1<<20)
	got := r.pump(t, []byte("a\n"+long+"\nb\n"+long+"\n"))
	if string(got) != "a\nb\n" {
		t.Fatalf("got %d bytes", len(got))
	}
	if len(r.oversize) != 2 || r.oversize[0] != int64(len(long)) {
		t.Fatalf("oversize: %v, want twice %d", r.oversize, len(long))
	}
	if !bytes.HasSuffix(r.tails[0], []byte("the end")) {
		t.Fatalf("tail %q", r.tails[0][max(0, len(r.tails[0])-20):])
	}
}

func TestSlowReaderHoldsTheSourceBack(t *testing.T) {
	r := newRelay(t, 0)
	line := append(bytes.Repeat([]byte("z"), 100_000), '\n')
	written := make(chan struct{})
	go func() {
		defer close(written)
		for range 50 {
			_, _ = r.in.Write(line)
		}
		r.in.Close()
	}()
	select {
	case <-written:
		t.Fatal("5 MB were taken although nobody reads")
	case <-time.After(50 * time.Millisecond): // absence cannot be waited for in any other way
	}
	got, _ := io.ReadAll(r.out)
	if len(got) != 50*len(line) {
		t.Fatalf("%d bytes, want %d", len(got), 50*len(line))
	}
	<-written
	<-r.done
	r.out.Close()
}

func TestPostAndDeadline(t *testing.T) {
	loop, err := NewLoop()
	if err != nil {
		t.Fatal(err)
	}
	at := time.Now().Add(time.Millisecond)
	ticks := 0
	loop.Deadline = func() time.Time { return at }
	loop.OnTick = func(time.Time) {
		ticks++
		at = time.Time{}
		go loop.Post(loop.Stop)
	}
	loop.Run()
	if ticks != 1 {
		t.Fatalf("%d ticks, want 1", ticks)
	}
}

func TestSendCopies(t *testing.T) {
	loop, err := NewLoop()
	if err != nil {
		t.Fatal(err)
	}
	r, w := pipe(t)
	sink := loop.AddSink(w, SinkOptions{})
	loop.Post(func() {
		line := []byte("one")
		sink.Send(line)
		copy(line, "two")
		sink.Send(line)
		sink.Send(bytes.Repeat([]byte("l"), 5000))
		sink.CloseWhenDrained()
		loop.Stop()
	})
	loop.Run()
	got, _ := io.ReadAll(r)
	r.Close()
	if want := "one\ntwo\n" + strings.Repeat("l", 5000) + "\n"; string(got) != want {
		t.Fatalf("got %.40q…", got)
	}
}

func TestReaderGoneIsTold(t *testing.T) {
	loop, err := NewLoop()
	if err != nil {
		t.Fatal(err)
	}
	r, w := pipe(t)
	r.Close()
	told := false
	sink := loop.AddSink(w, SinkOptions{OnError: func(error) { told = true; loop.Stop() }})
	loop.Post(func() { sink.Send([]byte("x")) })
	loop.Run()
	if !told {
		t.Fatal("nobody was told")
	}
}

func BenchmarkRelay(b *testing.B) {
	for _, size := range []int{200, 4 << 10, 64 << 10, 1 << 20} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			r := newRelay(b, 0)
			line := append(bytes.Repeat([]byte("x"), size-1), '\n')
			buf := make([]byte, size)
			b.SetBytes(int64(size))
			b.ReportAllocs()
			for b.Loop() {
				_, _ = r.in.Write(line)
				_, _ = io.ReadFull(r.out, buf)
			}
			r.in.Close()
			<-r.done
			r.out.Close()
		})
	}
}

// What a callback puts into a sink is written before the loop sleeps again, for every kind of callback.
func TestWhatACallbackSendsIsWritten(t *testing.T) {
	for _, from := range []string{"OnDrain", "OnEOF", "OnError"} {
		t.Run(from, func(t *testing.T) {
			loop, err := NewLoop()
			if err != nil {
				t.Fatal(err)
			}
			newsR, newsW := pipe(t)
			slowR, slowW := pipe(t)
			inR, inW := pipe(t)
			news := loop.AddSink(newsW, SinkOptions{})
			tell := func(which string) {
				if which == from {
					news.Send([]byte(which))
				}
			}
			slow := loop.AddSink(slowW, SinkOptions{OnDrain: func() { tell("OnDrain") }, OnError: func(error) { tell("OnError") }})
			loop.AddSource(inR, SourceOptions{OnLine: func([]byte, bool) {}, OnEOF: func(error) { tell("OnEOF") }})
			queued := make(chan struct{})
			loop.Post(func() {
				slow.Send(bytes.Repeat([]byte("x"), 4<<20)) // more than a pipe takes
				loop.Post(func() { close(queued) })         // after what was sent has been offered to the pipe
			})
			done := make(chan struct{})
			go func() { defer close(done); loop.Run() }()
			<-queued
			switch from {
			case "OnDrain":
				go func() { _, _ = io.Copy(io.Discard, slowR) }()
			case "OnError":
				slowR.Close()
			case "OnEOF":
				inW.Close()
			}
			got := make(chan string, 1)
			go func() { // a pipe has no deadline on Windows
				b := make([]byte, len(from))
				_, _ = io.ReadFull(newsR, b)
				got <- string(b)
			}()
			select {
			case text := <-got:
				if text != from {
					t.Errorf("read %q", text)
				}
			case <-time.After(2 * time.Minute):
				t.Error("nothing was written")
			}
			loop.Post(loop.Stop)
			<-done
			for _, f := range []*os.File{newsR, slowR, inW} {
				f.Close()
			}
		})
	}
}
