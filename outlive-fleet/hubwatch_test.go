package main

import (
	"log/slog"
	"os"
	"testing"
	"testing/synctest"
	"time"
)

// A hub whose directory cannot be watched looks at it by itself.
func TestTokensThatCannotBeWatched(t *testing.T) {
	dir := t.TempDir() // the hub has none in it yet
	synctest.Test(t, func(t *testing.T) {
		h := &hubRun{settings: &settings{state: dir}, log: slog.New(slog.DiscardHandler)}
		events, _, looks, stop := h.notices()
		defer stop()
		if events != nil || looks == nil {
			t.Fatalf("events %v, looks %v", events, looks)
		}
		begun := time.Now()
		for n := range 3 {
			if <-looks; time.Since(begun) != time.Duration(n+1)*lookEvery {
				t.Errorf("look %d comes after %s", n+1, time.Since(begun))
			}
		}
	})
}

// A watcher that has lost events waits until that is heard, and tells nothing more meanwhile.
func TestLostNoticesAreHeard(t *testing.T) {
	dir := t.TempDir()
	h := &hubRun{settings: &settings{state: dir}, log: slog.New(slog.DiscardHandler)}
	if err := os.MkdirAll(h.hubDir(), 0o700); err != nil {
		t.Fatal(err)
	}
	events, lost, looks, stop := h.notices()
	defer stop()
	if events == nil || lost == nil || looks != nil {
		t.Errorf("events %v, lost %v, looks %v: want to hear of both", events, lost, looks)
	}
}
