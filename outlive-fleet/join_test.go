package main

import (
	"context"
	"crypto/rand"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/outlive-mcp/outlive/internal/fleet/engine"
	"github.com/outlive-mcp/outlive/internal/testing/enginemem"
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
	f := joining{token: token{Host: "b", Secret: rand.Text(), Pin: id.pin()}.String()}
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

// deaf is a connection to a hub that answers nothing.
type deaf struct{ *inMemory }

func (deaf) wait(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, askLimit)
	defer cancel()
	<-ctx.Done()
	return engine.ErrUnknown
}

// Get implements engine.Registry.
func (d deaf) Get(ctx context.Context, _ string) (engine.Entry, error) {
	return engine.Entry{}, d.wait(ctx)
}

// Put implements engine.Registry.
func (d deaf) Put(ctx context.Context, _ string, _ []byte) (engine.Revision, error) {
	return 0, d.wait(ctx)
}

// CAS implements engine.Registry.
func (d deaf) CAS(ctx context.Context, _ string, _ []byte, _ engine.Revision) (engine.Revision, error) {
	return 0, d.wait(ctx)
}

// Delete implements engine.Registry.
func (d deaf) Delete(ctx context.Context, _ string) error { return d.wait(ctx) }

// A machine leaves within a time that its user waits for, also where the hub answers nothing, and says that the hub does not know.
func TestLeaveWithoutAnswer(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		m, e := memberIn(enginemem.New(), "a", dir)
		m.engine = deaf{e}
		ctx, end := context.WithCancelCause(t.Context())
		m.end = end
		if err := writeFile(m.memberFile(), membership{Version: fileVersion, Host: "a"}); err != nil {
			t.Fatal(err)
		}
		if err := m.judging.begin(ctx); err != nil {
			t.Fatal(err)
		}
		if _, err := m.judging.herald.open(silent, false); err != nil {
			t.Fatal(err)
		}
		over := make(chan struct{})
		go func() { defer close(over); m.publisher.run(ctx) }()
		m.publisher.line(stateOf1("ready", 0))
		m.publisher.line([]byte(crashed))
		time.Sleep(time.Minute) // it tries to write all the time
		begun := time.Now()
		err := m.leave(t.Context())
		if took := time.Since(begun); took >= leaveLimit {
			t.Errorf("it takes %s, and the user waits for %s", took, leaveLimit)
		}
		if err == nil || !strings.Contains(err.Error(), "this machine has left, but the fleet could not be told") {
			t.Errorf("the user is told %v", err)
		}
		if _, err := os.Stat(m.memberFile()); err == nil || !errors.Is(context.Cause(ctx), errLeft) {
			t.Errorf("it is a member still: %v, %v", err, context.Cause(ctx))
		}
		if _, err := os.Stat(m.casesFile()); err == nil {
			t.Error("a machine that has left has cases")
		}
		<-over
	})
}
