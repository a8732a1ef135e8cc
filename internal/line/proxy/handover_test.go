//go:build unix

package proxy

import (
	"context"
	"errors"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/outlive-mcp/outlive/internal/record/event"
	"github.com/outlive-mcp/outlive/internal/testing/mcptest"
)

var errExec = errors.New("exec format error")

// TestAFailedHandoverChangesNothing: whatever was held still goes on: calls, the reading of stderr, the noticing of an exit.
func TestAFailedHandoverChangesNothing(t *testing.T) {
	argv, _ := mcptest.Command()
	r := start(t, argv)
	if _, err := r.client.Initialize(t.Context(), "2025-11-25"); err != nil {
		t.Fatal(err)
	}
	gen := r.waitReady(t, -1)
	slow := r.client.Go("tools/call", map[string]any{"name": "slow", "arguments": map[string]any{"ms": 300}})
	for range 5 {
		err := r.proxy.HandOver(t.Context(), func(s *Saved) error {
			fds := s.Descriptors()
			if slices.Contains(fds, -1) || len(s.Backend.Calls) == 0 {
				t.Errorf("saved descriptors %v, %d calls", fds, len(s.Backend.Calls))
			}
			return errExec
		})
		if !errors.Is(err, errExec) {
			t.Fatalf("handover: %v", err)
		}
	}
	if _, err := slow.Wait(t.Context()); err != nil {
		t.Errorf("the call in flight: %v", err)
	}
	// The marker comes over stderr, the restart after the exit.
	if _, err := r.client.Call(t.Context(), "tools/call", map[string]any{"name": "marker"}); err != nil {
		t.Error(err)
	}
	gen = r.waitReady(t, gen)
	s, err := r.proxy.Status(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(s.ServerPID, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	r.waitReady(t, gen)
	if err := r.client.Verify(); err != nil {
		t.Error(err)
	}
	r.end(t)
}

// TestNoHandoverWhileNothingServes: it is waited for, and given up with the reason.
func TestNoHandoverWhileNothingServes(t *testing.T) {
	argv, _ := mcptest.Command("-slow-start", "20s")
	r := start(t, argv)
	r.client.Go("initialize", map[string]any{"protocolVersion": "2025-11-25"})
	r.waitFor(t, event.InitializeCaptured)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	err := r.proxy.HandOver(ctx, func(*Saved) error { return errors.New("handed over") })
	if !errors.Is(err, ErrNoHandover) || err.Error() != "no moment for it: the server is starting" {
		t.Errorf("handover: %v", err)
	}
	r.proxy.Interrupt()
	<-r.code
	if err := r.proxy.HandOver(t.Context(), func(*Saved) error { return nil }); !errors.Is(err, ErrEnded) {
		t.Errorf("handover after the end: %v", err)
	}
}

// waitFor waits until something of this kind has happened.
func (r *run) waitFor(t *testing.T, kind event.Type) {
	t.Helper()
	for end := time.Now().Add(patience); ; time.Sleep(time.Millisecond) {
		r.events.mu.Lock()
		n := r.events.count[kind]
		r.events.mu.Unlock()
		if n > 0 {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("no %s", kind)
		}
	}
}
