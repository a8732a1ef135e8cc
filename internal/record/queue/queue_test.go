package queue

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// disk is a destination that fails on demand, or accepts nothing until it is told to.
type disk struct {
	full   bool
	hangs  chan struct{} // nil: it accepts at once
	pieces []string
}

func (d *disk) Write(p []byte) (int, error) {
	if d.hangs != nil {
		<-d.hangs
	}
	if d.full {
		return 0, errors.New("full")
	}
	d.pieces = append(d.pieces, string(p))
	return len(p), nil
}

func (d *disk) text() string { return strings.Join(d.pieces, "") }

func told(g Gap) []byte { return fmt.Appendf(nil, "[%d lines, %d bytes]\n", g.Lines, g.Bytes) }

// What could not be written is told where it is missing, and a series of failures once.
func TestGapOfAFullDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var d disk
		var failures int
		q := New(&d, told, Options{Failed: func(error) { failures++ }})
		put := func(text string) {
			q.Put([]byte(text), 1)
			synctest.Wait()
		}
		put("one\nhalf")
		d.full = true
		put("two\n")
		put("three\n")
		d.full = false
		put("four\n")
		d.full = true
		put("five\n")
		d.full = false
		if err := q.Close(time.Second); err != nil {
			t.Error(err)
		}
		if want := "one\nhalf\n[2 lines, 10 bytes]\nfour\n[1 lines, 5 bytes]\n"; d.text() != want || failures != 2 || q.Lost() != 3 {
			t.Errorf("%q, want %q; %d failures, %d lost", d.text(), want, failures, q.Lost())
		}
	})
}

// What does not fit at all is told too, and stops nothing.
func TestMoreThanFits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var d disk
		q := New(&d, told, Options{})
		q.Put(make([]byte, most+1), 1)
		synctest.Wait()
		q.Put([]byte("after\n"), 1)
		if err := q.Close(time.Second); err != nil {
			t.Error(err)
		}
		if want := fmt.Sprintf("[1 lines, %d bytes]\nafter\n", most+1); d.text() != want {
			t.Errorf("%.80q, want %q", d.text(), want)
		}
	})
}

// A destination that hangs gets what was queued and the gap in its place. Close does not wait for it for ever.
func TestGapOfAHangingDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := disk{hangs: make(chan struct{})}
		q := New(&d, told, Options{})
		line := strings.Repeat("x", 1023) + "\n"
		for range 3 * most / len(line) {
			q.Put([]byte(line), 1)
		}
		if err := q.Flush(); !errors.Is(err, ErrUnflushed) {
			t.Errorf("flush: %v", err)
		}
		close(d.hangs)
		synctest.Wait()
		q.Put([]byte("after\n"), 1)
		if err := q.Close(time.Second); err != nil {
			t.Error(err)
		}
		kept := strings.Count(d.text(), line)
		want := fmt.Sprintf("%s[%d lines, %d bytes]\nafter\n", line, q.Lost(), q.Lost()*len(line))
		if lost := q.Lost(); lost == 0 || kept+lost != 3*most/len(line) || !strings.HasSuffix(d.text(), want) {
			t.Errorf("%d kept, %d lost, …%q", kept, lost, d.text()[max(0, len(d.text())-100):])
		}
	})
}

func TestWholeLines(t *testing.T) {
	for whole, want := range map[bool][]string{
		true:  {"one\n", strings.Repeat("x", 2*pieceSize) + "\n", "two\n", "three\n"},
		false: {"one\n", strings.Repeat("x", pieceSize), strings.Repeat("x", pieceSize), "\ntwo\n", "three\n"},
	} {
		synctest.Test(t, func(t *testing.T) {
			d := disk{hangs: make(chan struct{}, 10)}
			q := New(&d, told, Options{WholeLines: whole})
			q.Put([]byte("one\n"+strings.Repeat("x", 2*pieceSize)+"\ntwo\n"), 3)
			synctest.Wait() // it writes what it has
			q.Put([]byte("three\n"), 1)
			close(d.hangs)
			if err := q.Close(time.Second); err != nil {
				t.Error(err)
			}
			if !slices.Equal(d.pieces, want) {
				t.Errorf("whole lines %v: %.60q", whole, d.pieces)
			}
		})
	}
}

// A file whose writes cost more than their bytes gets larger pieces.
func TestPieces(t *testing.T) {
	line := strings.Repeat("x", pieceSize-1) + "\n"
	for size, want := range map[int]int{0: 8, pieceSize: 8, 2 * pieceSize: 4, 9 * pieceSize: 1} {
		synctest.Test(t, func(t *testing.T) {
			var d disk
			q := New(&d, told, Options{Piece: size})
			q.Put([]byte(strings.Repeat(line, 8)), 8)
			if err := q.Close(time.Second); err != nil {
				t.Error(err)
			}
			if len(d.pieces) != want || d.text() != strings.Repeat(line, 8) {
				t.Errorf("pieces of %d bytes: %d, want %d", size, len(d.pieces), want)
			}
		})
	}
}

// A destination that never accepts anything again does not hold its caller up.
func TestCloseGivesUp(t *testing.T) {
	r, stuck := io.Pipe()
	q := New(stuck, told, Options{})
	q.Put([]byte("one\n"), 1)
	if err := q.Close(time.Millisecond); !errors.Is(err, ErrUnflushed) {
		t.Errorf("close: %v", err)
	}
	_ = r.Close() // ends the goroutine
	<-q.done
	if q.Put([]byte("late\n"), 1); q.Lost() != 2 {
		t.Errorf("%d lost", q.Lost())
	}
}
