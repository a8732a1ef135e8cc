package wire

import (
	"testing"
	"time"
)

func TestRhythmWaitsAwakeOnlyWhereThatPays(t *testing.T) {
	r := rhythm{served: 2}
	if r.patience() != 0 {
		t.Fatal("waits awake before anything is known")
	}
	for range 30 {
		r.woke(8*time.Microsecond, true)
	}
	if p := r.patience(); p < 10*time.Microsecond || p > 60*time.Microsecond {
		t.Fatalf("a pause of 8 µs is waited for %v", p)
	}
	for range 3 {
		r.waited(true)
	}
	if r.patience() != 0 {
		t.Fatal("goes on waiting awake in vain")
	}
	for range 100 {
		r.woke(8*time.Microsecond, true)
	}
	if r.patience() == 0 {
		t.Fatal("never tries again")
	}
	for range 30 {
		r.woke(20*time.Millisecond, true)
	}
	if r.patience() != 0 {
		t.Fatal("waits awake for a slow server")
	}
}
