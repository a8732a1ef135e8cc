package await

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// failing is a test that may fail: Fatalf keeps what it says and ends the goroutine.
type failing struct {
	testing.TB
	said string
}

func (f *failing) Helper() {}

func (f *failing) Fatalf(format string, args ...any) {
	f.said = fmt.Sprintf(format, args...)
	runtime.Goexit()
}

// fails runs a part of a test that is to fail, and returns what it says.
func fails(t *testing.T, part func(testing.TB)) string {
	t.Helper()
	f, done := &failing{TB: t}, make(chan struct{})
	go func() { defer close(done); part(f) }()
	<-done
	return f.said
}

func TestItWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		Until(t, "nothing", func() bool { return true })
		if took := time.Since(begun); took > 0 {
			t.Errorf("what is there is waited for: %v", took)
		}
		Until(t, "a minute has passed", func() bool { return time.Since(begun) >= time.Minute })
		if took := time.Since(begun); took > time.Minute+lastPause {
			t.Errorf("a minute took %v", took)
		}
		looks := 0
		if got := Value(t, "the third look", func() (int, bool) { looks++; return looks, looks == 3 }); got != 3 {
			t.Errorf("the value is %d", got)
		}
	})
}

func TestItGivesUpAndSaysWhy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		said := fails(t, func(t testing.TB) { Until(t, "the moon", func() bool { return false }) })
		if took := time.Since(begun); took < Limit || took > Limit+2*lastPause {
			t.Errorf("it gives up after %v", took)
		}
		if !strings.Contains(said, "2m0s: the moon") {
			t.Errorf("it says %q", said)
		}
		said = fails(t, func(t testing.TB) { Value(t, "the sun", func() (string, bool) { return "clouds", false }) })
		if !strings.Contains(said, "the sun; seen last: clouds") {
			t.Errorf("it says %q", said)
		}
	})
}
