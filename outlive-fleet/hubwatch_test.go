package main

import (
	"log/slog"
	"os"
	"testing"
	"time"
)

// A hub whose directory cannot be watched looks at it by itself.
func TestTokensThatCannotBeWatched(t *testing.T) {
	h := &hubRun{settings: &settings{state: t.TempDir()}, log: slog.New(slog.NewTextHandler(os.Stderr, nil))} // it has no directory yet
	events, looks, stop := h.notices()
	defer stop()
	if events != nil || looks == nil {
		t.Fatalf("events %v, looks %v", events, looks)
	}
	select {
	case <-looks:
	case <-time.After(2 * time.Minute):
		t.Error("it does not look")
	}
}
