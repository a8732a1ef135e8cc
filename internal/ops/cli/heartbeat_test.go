package cli

import (
	"errors"
	"os"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/outlive-mcp/outlive/internal/agents/heartbeat"
)

// A command is beaten for at once and every 30 seconds until it ends; a signal is passed on, except the one that the
// terminal has given it already.
func TestBeatUntil(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		var beats []time.Duration
		var passed []os.Signal
		ended, signals := make(chan error), make(chan os.Signal, 2)
		gone := errors.New("gone")
		go func() {
			time.Sleep(45 * time.Second)
			signals <- os.Interrupt
			signals <- syscall.SIGTERM
			time.Sleep(46 * time.Second)
			ended <- gone
		}()
		err := beatUntil(ended, signals, func() { beats = append(beats, time.Since(begun)) }, func(s os.Signal) { passed = append(passed, s) })
		if !errors.Is(err, gone) {
			t.Errorf("ended with %v", err)
		}
		if diff := cmp.Diff([]time.Duration{0, 30 * time.Second, 60 * time.Second, 90 * time.Second}, beats); diff != "" {
			t.Error(diff)
		}
		if diff := cmp.Diff([]os.Signal{syscall.SIGTERM}, passed); diff != "" {
			t.Error(diff)
		}
	})
}

func TestParseProgress(t *testing.T) {
	for text, want := range map[string]heartbeat.Progress{
		"": {}, "4/9": {Done: 4, Total: 9}, "0/9": {Total: 9}, "9/9": {Done: 9, Total: 9}, "4": {Done: 4},
	} {
		var got heartbeat.Progress
		if err := parseProgress(text, &got); err != nil || got != want {
			t.Errorf("%q: %v, %v; want %v", text, got, err, want)
		}
	}
	for _, text := range []string{"/", "4/", "/9", "9/4", "-1/4", "a/b", "4/9/1", "4 / 9", "99999999999999999999"} {
		var got heartbeat.Progress
		if err := parseProgress(text, &got); err == nil {
			t.Errorf("%q: taken for %v", text, got)
		}
	}
}
