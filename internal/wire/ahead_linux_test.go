//go:build linux && !outlive_stream

package wire

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"time"
)

// aheadRelay is a loop that forwards lines of one pipe to another; may says which go ahead, seen is what OnLine does first.
func aheadRelay(t *testing.T, may func(line []byte) bool, seen func(line []byte)) (in, out *os.File, loop *Loop, done chan struct{}) {
	t.Helper()
	loop, err := NewLoop()
	if err != nil {
		t.Fatal(err)
	}
	if !loop.linger {
		t.Skip("one processor: the loop never sleeps where a line could go ahead")
	}
	inR, inW := pipe(t)
	outR, outW := pipe(t)
	sink := loop.AddSink(outW, SinkOptions{})
	source := loop.AddSource(inR, SourceOptions{
		OnLine: func(line []byte, _ bool) {
			seen(line)
			sink.Forward(line)
			if bytes.HasPrefix(line, []byte("echo")) {
				sink.Send([]byte("echoed"))
			}
		},
		OnEOF: func(error) { sink.CloseWhenDrained(); loop.Stop() },
	})
	source.SendAhead(sink, may)
	done = make(chan struct{})
	go func() { defer close(done); loop.Run() }()
	return inW, outR, loop, done
}

// pause is time that has to pass: only after one does a line go ahead, and there is no event in which nothing happens.
func pause() { time.Sleep(2 * time.Millisecond) }

// The reader has the line before the owner has seen it: the owner waits until the reader has it.
func TestALineGoesAheadOfItsHandling(t *testing.T) {
	read := make(chan struct{})
	in, out, loop, done := aheadRelay(t, func([]byte) bool { return true }, func([]byte) { <-read })
	got := bufio.NewReader(out)
	for i := range 20 {
		pause()
		fmt.Fprintf(in, "echo %d\n", i)
		if line, err := got.ReadString('\n'); err != nil || line != fmt.Sprintf("echo %d\n", i) {
			t.Fatalf("read %q, %v", line, err)
		}
		posted := make(chan struct{})
		loop.Post(func() { close(posted) })
		read <- struct{}{}
		<-posted // what is posted comes after the handling
		if line, err := got.ReadString('\n'); err != nil || line != "echoed\n" {
			t.Fatalf("read %q, %v", line, err)
		}
	}
	close(read)
	in.Close()
	<-done
	out.Close()
}

// Without a next event the loop deals with the line all the same.
func TestTheLoopCatchesUpByItself(t *testing.T) {
	seen := make(chan string, 1)
	in, out, _, done := aheadRelay(t, func([]byte) bool { return true }, func(line []byte) { seen <- string(line) })
	pause()
	fmt.Fprintln(in, "x")
	select {
	case line := <-seen:
		if line != "x" {
			t.Errorf("saw %q", line)
		}
	case <-time.After(10 * time.Second):
		t.Error("the line was never dealt with")
	}
	in.Close()
	<-done
	out.Close()
}

// Whatever goes ahead and whatever does not: each line comes out once, whole and in its place.
func TestLinesThatGoAheadKeepTheirPlace(t *testing.T) {
	const lines = 2000
	r := rand.New(rand.NewPCG(1, 2))
	var allowed int
	in, out, _, done := aheadRelay(t, func(line []byte) bool {
		ok := bytes.HasSuffix(line, []byte("!"))
		if ok {
			allowed++
		}
		return ok
	}, func([]byte) {})
	var want strings.Builder
	go func() {
		defer in.Close()
		for i := range lines {
			line := fmt.Sprintf("%d%s%s", i, strings.Repeat(" x", r.IntN(40)), []string{"", "!"}[r.IntN(2)])
			if r.IntN(200) == 0 {
				line += strings.Repeat("long", 100_000) + "!"
			}
			fmt.Fprintln(&want, line)
			text := line + "\n"
			if cut := r.IntN(len(text)); r.IntN(5) == 0 { // in two pieces
				_, _ = in.WriteString(text[:cut])
				pause()
				text = text[cut:]
			}
			_, _ = in.WriteString(text)
			if r.IntN(3) == 0 {
				pause()
			}
		}
	}()
	got, err := io.ReadAll(out)
	<-done
	out.Close()
	if err != nil || string(got) != want.String() {
		t.Fatalf("%v; %d bytes came out, %d went in", err, len(got), want.Len())
	}
	if allowed == 0 {
		t.Error("no line went ahead")
	}
}

// A pipe that is full gets nothing ahead of what waits for it already, and no line in halves.
func TestAFullPipeGetsNothingAhead(t *testing.T) {
	in, out, _, done := aheadRelay(t, func([]byte) bool { return true }, func([]byte) {})
	const lines = 100 // far more than a pipe takes
	want := strings.Repeat(strings.Repeat("y", 3000)+"\n", lines)
	for rest := want; rest != ""; rest = rest[3001:] {
		pause()
		if _, err := in.WriteString(rest[:3001]); err != nil {
			t.Fatal(err)
		}
	}
	got := make([]byte, len(want)) // nobody has read until here
	if _, err := io.ReadFull(out, got); err != nil || string(got) != want {
		t.Errorf("%v; what came out is not what went in", err)
	}
	in.Close()
	<-done
	out.Close()
}

// Whether a full pipe gets room just before a line goes ahead is chance, so what must come first is asked here.
func TestNothingGoesAheadOfWhatWaits(t *testing.T) {
	for name, k := range map[string]*Sink{
		"refused by the kernel": {private: true, queue: []chunk{{data: []byte("x")}}},
		"not written yet":       {private: true, dirty: true},
		"gone ahead already":    {private: true, ahead: []byte("x\n")},
		"closing":               {private: true, closing: true},
		"nobody reads":          {private: true, dead: true},
		"a write could block":   {},
	} {
		if k.free() {
			t.Errorf("%s: a line may go ahead", name)
		}
	}
	if k := (&Sink{private: true}); !k.free() {
		t.Error("nothing waits, and no line may go ahead")
	}
}
