package main

import (
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/outlive-mcp/outlive/outlive-fleet/natsengine"
)

// A machine that was not let in is the same one when it tries again: the hub may have written down that it uses the token.
func TestMachineThatTriesAgain(t *testing.T) {
	id, pair, err := (&settings{state: t.TempDir()}).identity()
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	came := map[string]bool{}
	hub, e, err := natsengine.StartHub(natsengine.HubOptions{
		Dir: t.TempDir(), Listen: "127.0.0.1:0", Certificate: pair,
		Admit: func(_, machine, _, _ string) error {
			mu.Lock()
			defer mu.Unlock()
			came[machine] = true
			return natsengine.ErrLater
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer hub.Close()
	defer e.Close()
	dir := t.TempDir()
	s := &settings{state: dir, socket: filepath.Join(dir, "member.sock")}
	f := joining{token: token{Host: "b", Secret: randomText(), Pin: id.pin()}.String()}
	for range 2 {
		if err := s.join(t.Context(), f, hub.Address()); err == nil {
			t.Fatal("it is let in")
		}
	}
	mu.Lock()
	defer mu.Unlock()
	if len(came) != 1 {
		t.Errorf("it has come as %d machines, want 1", len(came))
	}
	if _, err := os.Stat(s.memberFile()); err == nil {
		t.Error("it counts as a member")
	}
}
