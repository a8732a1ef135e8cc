package main

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"testing"

	"github.com/outlive-mcp/outlive/internal/fleet/engine"
	"github.com/outlive-mcp/outlive/internal/testing/await"
	"github.com/outlive-mcp/outlive/outlive-fleet/natsengine"
)

// What a machine without a token has said is deleted, also what is written a moment later because it was on its way; and nothing of others.
func TestForgetting(t *testing.T) {
	t.Parallel()
	hub, e, err := natsengine.StartHub(natsengine.HubOptions{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer hub.Close()
	defer e.Close()
	h := &hubRun{settings: &settings{state: t.TempDir()}, hub: hub, engine: e, log: slog.New(slog.DiscardHandler), forgets: make(chan struct{}, 1)}
	ctx, cancel := context.WithTimeout(t.Context(), 2*await.Limit)
	letIn := func(host string) {
		t.Helper()
		if err := h.changeTokens(func(f *tokenFile) error {
			f.Tokens = append(f.Tokens, known{Host: host, Hash: "x"})
			return nil
		}); err != nil {
			t.Fatal(err)
		}
	}
	write := func(host string) {
		t.Helper()
		if _, err := e.Put(ctx, engine.Key(digestTable, host), []byte("{}")); err != nil {
			t.Fatal(err)
		}
	}
	gone := func(host string) bool {
		_, err := e.Get(ctx, engine.Key(digestTable, host))
		return errors.Is(err, engine.ErrNotFound)
	}
	letIn("stays")
	awaitGone := func(what string) {
		t.Helper()
		await.Until(t, what+" is deleted", func() bool { return gone("revoked") })
	}
	write("stays")
	write("revoked")
	var run sync.WaitGroup
	run.Go(func() { h.forgetting(ctx) })
	defer run.Wait()
	defer cancel()
	h.forgets <- struct{}{}
	awaitGone("what was said before")
	write("revoked")
	awaitGone("what came late")
	if gone("stays") {
		t.Error("what another machine has said is deleted, too")
	}

	write("returns")
	write("revoked")
	said, err := h.said(ctx)
	if err != nil {
		t.Fatal(err)
	}
	write("returns") // once more, after that was read
	letIn("new")
	write("new")
	if err := h.forgetOf(ctx, said); err != nil {
		t.Fatal(err)
	}
	if gone("new") || gone("returns") || !gone("revoked") {
		t.Errorf("of a machine that is new: %v, of one that has said more meanwhile: %v, of one that is revoked: %v; want only the last to be deleted", gone("new"), gone("returns"), gone("revoked"))
	}
}
