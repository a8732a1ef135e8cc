package main

import (
	"log/slog"
	"testing"
	"testing/synctest"
	"time"
)

// A hub whose directory cannot be watched looks at it by itself.
func TestTokensThatCannotBeWatched(t *testing.T) {
	dir := t.TempDir() // the hub has none in it yet
	synctest.Test(t, func(t *testing.T) {
		h := &hubRun{settings: &settings{state: dir}, log: slog.New(slog.DiscardHandler)}
		events, looks, stop := h.notices()
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
