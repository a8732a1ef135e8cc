//go:build unix && !outlive_stream

package wire

import (
	"io"
	"testing"
	"time"
)

// The alarm rings while a callback takes its time, and is taken together with other posted work: the loop still thinks it is
// earlier than the deadline, and must be woken for it once more. A loop that lingers is interrupted after a while in any case.
func TestAnAlarmThatRingsEarlyIsSetAgain(t *testing.T) {
	loop, err := NewLoop()
	if err != nil {
		t.Fatal(err)
	}
	loop.linger = false
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
	case <-time.After(2 * time.Second):
		t.Error("the deadline has passed, and nothing was done")
	}
	loop.Post(loop.Stop)
	<-done
}
