//go:build unix

package proxy

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/outlive-mcp/outlive/internal/keep/backoff"
	"github.com/outlive-mcp/outlive/internal/record/event"
	"github.com/outlive-mcp/outlive/internal/testing/await"
	"github.com/outlive-mcp/outlive/internal/testing/mcptest"
	"github.com/outlive-mcp/outlive/internal/testing/proc"
)

var errExec = errors.New("exec format error")

// TestAFailedHandoverChangesNothing: calls that came meanwhile are answered, by a server that got the same handshake
// as the previous one, and whose end is noticed.
func TestAFailedHandoverChangesNothing(t *testing.T) {
	argv, _ := mcptest.Command()
	r := start(t, argv)
	if _, err := r.client.Initialize(t.Context(), "2025-11-25"); err != nil {
		t.Fatal(err)
	}
	gen := r.waitReady(t, -1)
	slow := r.client.Go("tools/call", map[string]any{"name": "slow", "arguments": map[string]any{"ms": 300}})
	for range 5 {
		var late *mcptest.Pending
		err := r.proxy.HandOver(t.Context(), func(s *Saved) error {
			if s.Session.InitParams == nil || s.In < 0 || s.Out < 0 {
				t.Errorf("saved %+v", s)
			}
			late = r.client.Go("tools/call", map[string]any{"name": "echo", "arguments": map[string]any{"text": "late"}})
			return errExec
		})
		if !errors.Is(err, errExec) {
			t.Fatalf("handover: %v", err)
		}
		if _, err := late.Wait(t.Context()); err != nil {
			t.Errorf("a call that came meanwhile: %v", err)
		}
	}
	select {
	case <-slow.Done():
	default:
		t.Error("the call in flight was not waited for")
	}
	r.waitReady(t, gen)
	s, err := r.proxy.Status(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := proc.Kill(s.ServerPID); err != nil {
		t.Fatal(err)
	}
	r.waitReady(t, s.Generation)
	if err := r.client.Verify(); err != nil {
		t.Error(err)
	}
	r.end(t)
}

// TestCallsWaitForAHandoverNotForEver: new calls are held back while one is in flight, and pass when that takes too
// long. The answers and cancellations of the one in flight are not held back.
func TestCallsWaitForAHandoverNotForEver(t *testing.T) {
	argv, _ := mcptest.Command()
	r := start(t, argv)
	if _, err := r.client.Initialize(t.Context(), "2025-11-25"); err != nil {
		t.Fatal(err)
	}
	r.waitReady(t, -1)
	slow := r.client.Go("tools/call", map[string]any{"name": "slow", "arguments": map[string]any{"ms": 60000}})
	handedOver := make(chan error, 1)
	go func() { handedOver <- r.proxy.HandOver(t.Context(), func(*Saved) error { return errExec }) }()
	for range 2 {
		if _, err := r.client.Call(t.Context(), "tools/call", map[string]any{"name": "echo", "arguments": map[string]any{"text": "x"}}); err != nil {
			t.Error(err)
		}
	}
	if err := r.client.Cancel(slow); err != nil {
		t.Fatal(err)
	}
	if err := <-handedOver; !errors.Is(err, errExec) {
		t.Errorf("handover: %v", err)
	}
	if err := r.client.Verify(); err != nil {
		t.Error(err)
	}
	r.end(t)
}

// TestHandoverOfAServerThatDoesNotRun: nothing is in flight, and the next program may start what this one could not.
func TestHandoverOfAServerThatDoesNotRun(t *testing.T) {
	argv, _ := mcptest.Command("-starts", filepath.Join(t.TempDir(), "starts"), "-no-start", "1000")
	r := start(t, argv, backoff.Policy{MaxRestarts: 2, OpenFor: time.Hour})
	if _, err := r.client.Initialize(t.Context(), "2025-11-25"); err == nil {
		t.Fatal("a server that does not start has answered")
	}
	for range 2 { // the first changes nothing
		err := r.proxy.HandOver(t.Context(), func(s *Saved) error {
			if s.Session.Refused == nil {
				t.Errorf("the initialize that was refused is not handed over: %+v", s.Session)
			}
			return errExec
		})
		if !errors.Is(err, errExec) {
			t.Fatalf("handover: %v", err)
		}
	}
	if _, err := r.client.Call(t.Context(), "tools/call", map[string]any{"name": "echo"}); err == nil {
		t.Error("a call without a server was answered")
	}
	if err := r.client.Verify(); err != nil {
		t.Error(err)
	}
	r.end(t)
}

// TestNoHandoverWhileAServerStarts: it is waited for, and given up with the reason.
func TestNoHandoverWhileAServerStarts(t *testing.T) {
	argv, _ := mcptest.Command("-slow-start", "20s")
	r := start(t, argv)
	r.client.Go("initialize", map[string]any{"protocolVersion": "2025-11-25"})
	r.waitFor(t, event.InitializeCaptured)
	ctx, cancel := context.WithTimeout(t.Context(), 40*time.Millisecond)
	defer cancel()
	err := r.proxy.HandOver(ctx, func(*Saved) error { return errors.New("handed over") })
	if !errors.Is(err, ErrNoHandover) || !strings.HasSuffix(err.Error(), "s: the server is starting; nothing has changed, try again later") {
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
	await.Until(t, string(kind), func() bool {
		r.events.mu.Lock()
		defer r.events.mu.Unlock()
		return r.events.count[kind] > 0
	})
}
