package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"testing"

	"github.com/outlive-mcp/outlive/internal/fleet/mem"
	"github.com/outlive-mcp/outlive/internal/testing/await"
)

// threeHubs are what three hubs do with tokens, on one table.
func threeHubs(t *testing.T) (all [3]*admission) {
	t.Helper()
	dir, table := t.TempDir(), mem.New()
	ctx, cancel := context.WithCancel(t.Context())
	var parts sync.WaitGroup
	t.Cleanup(func() { cancel(); parts.Wait() })
	for n := range all {
		s := &settings{state: filepath.Join(dir, strconv.Itoa(n))}
		one := newShare(s, table, []string{"h0", "h1", "h2"}, n, func() bool { return true }, slog.New(slog.DiscardHandler))
		stop, err := one.serve()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(stop)
		parts.Go(func() { one.run(ctx) })
		all[n] = &admission{settings: s, share: one}
	}
	return all
}

// makes writes a token for a host to a hub's file, and returns its secret.
func (a *admission) makes(t *testing.T, host string) string {
	t.Helper()
	secret := randomText()
	if err := a.changeTokens(func(f *tokenFile) error { return f.make(host, secret) }); err != nil {
		t.Fatal(err)
	}
	return secret
}

// A token that one hub has made lets in the first machine that uses it at any hub, and no other one at any; what one has revoked is revoked
// everywhere, also where it was just used; the next token of the host is good everywhere.
func TestShare(t *testing.T) {
	hubs := threeHubs(t)
	secret := hubs[0].makes(t, "a")
	if err := hubs[1].admit("a", "one", secret, "x"); err != nil {
		t.Fatalf("at another hub: %v", err)
	}
	if err := hubs[2].admit("a", "thief", secret, "x"); !errors.Is(err, errOtherUser) {
		t.Errorf("another machine at the third hub: %v", err)
	}
	if err := hubs[2].admit("a", "one", secret, "x"); err != nil {
		t.Errorf("the same machine there: %v", err)
	}
	if err := hubs[1].changeTokens(func(f *tokenFile) error { return f.revoke("a") }); err != nil {
		t.Fatal(err)
	}
	hubs[1].share.kick()
	for n, h := range hubs {
		await.Until(t, fmt.Sprintf("hub %d refuses who was revoked", n), func() bool { return errors.Is(h.admit("a", "one", secret, "x"), errNoToken) })
	}
	secret = hubs[2].makes(t, "a")
	if err := hubs[0].admit("a", "two", secret, "x"); err != nil {
		t.Errorf("with a new token: %v", err)
	}
}

// Machines that use one token at the same time at all hubs: one of them is let in.
func TestShareFirstUse(t *testing.T) {
	hubs := threeHubs(t)
	for range 20 {
		host := "h" + randomText()
		secret := hubs[0].makes(t, host)
		var all sync.WaitGroup
		var in [3]error
		for n, h := range hubs {
			all.Go(func() { in[n] = h.admit(host, randomText(), secret, "x") })
		}
		all.Wait()
		count := 0
		for _, err := range in {
			if err == nil {
				count++
			} else if !errors.Is(err, errOtherUser) {
				t.Errorf("not let in: %v", err)
			}
		}
		if count != 1 {
			t.Fatalf("%d machines are let in with one token: %v", count, in)
		}
	}
}

// A hub that has lost its file has it again from the others.
func TestShareLostFile(t *testing.T) {
	hubs := threeHubs(t)
	secret := hubs[0].makes(t, "a")
	for _, h := range hubs {
		if err := h.admit("a", "one", secret, "x"); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Remove(hubs[2].tokensPath()); err != nil {
		t.Fatal(err)
	}
	if err := hubs[2].admit("a", "one", secret, "x"); err != nil {
		t.Errorf("by a hub that has lost its file: %v", err)
	}
	if err := hubs[2].admit("a", "thief", secret, "x"); !errors.Is(err, errOtherUser) {
		t.Errorf("another machine: %v", err)
	}
}
