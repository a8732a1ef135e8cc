package main

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/outlive-mcp/outlive/internal/fleet/engine"
	"github.com/outlive-mcp/outlive/internal/testing/enginemem"
	"github.com/outlive-mcp/outlive/outlive-fleet/natsengine"
)

// lettingIn is a hub's file of tokens, and what machines write at it.
type lettingIn struct {
	*hubRun
	t  *testing.T
	to engine.Registry
}

func (l lettingIn) letIn(host string) {
	l.t.Helper()
	if err := l.changeTokens(func(f *tokenFile) error {
		f.Tokens = append(f.Tokens, known{Host: host, Hash: "x"})
		return nil
	}); err != nil {
		l.t.Fatal(err)
	}
}

func (l lettingIn) write(hosts ...string) {
	l.t.Helper()
	for _, host := range hosts {
		if _, err := l.to.Put(l.t.Context(), engine.Key(digestTable, host), []byte(`{"v":1}`)); err != nil {
			l.t.Fatal(err)
		}
	}
}

// left are those of the hosts of which something is there.
func (l lettingIn) left(hosts ...string) []string {
	return slices.DeleteFunc(hosts, func(host string) bool {
		_, err := l.to.Get(l.t.Context(), engine.Key(digestTable, host))
		return errors.Is(err, engine.ErrNotFound)
	})
}

// What a machine without a token has said is deleted, and nothing of others: nor what is said, by one that was let in since, or once more.
func TestForgetting(t *testing.T) {
	t.Parallel()
	hub, e, err := natsengine.StartHub(natsengine.HubOptions{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer hub.Close()
	defer e.Close()
	l := lettingIn{&hubRun{settings: &settings{state: t.TempDir()}, engine: e}, t, e}
	l.letIn("stays")
	l.write("stays", "revoked")
	if err := l.forget(t.Context()); err != nil {
		t.Fatal(err)
	}
	if left := l.left("stays", "revoked"); !slices.Equal(left, []string{"stays"}) {
		t.Errorf("something is left of %q, want stays", left)
	}

	l.write("returns", "revoked")
	keys, last, err := l.engine.Written(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	l.write("returns") // once more, after that was read
	l.letIn("new")
	l.write("new")
	if err := l.forgetOf(t.Context(), keys, last); err != nil {
		t.Fatal(err)
	}
	if left := l.left("new", "returns", "revoked"); !slices.Equal(left, []string{"new", "returns"}) {
		t.Errorf("something is left of %q, want of new and of returns", left)
	}
}

// inTables is what the hub reads and deletes, in memory.
type inTables struct {
	*enginemem.Engine
	fails int // so often
}

var errAway = errors.New("the tables do not answer")

// Written implements writtenTables.
func (e *inTables) Written(ctx context.Context) (keys []string, last engine.Revision, err error) {
	if e.fails > 0 {
		e.fails--
		return nil, 0, errAway
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	changes, err := e.Watch(ctx, digestTable)
	if err != nil {
		return nil, 0, err
	}
	for c := range changes {
		if c.Synced {
			break
		}
		keys, last = append(keys, c.Key), max(last, c.Revision)
	}
	return keys, last, nil
}

// DeleteAt implements writtenTables.
func (e *inTables) DeleteAt(ctx context.Context, key string, revision engine.Revision) error {
	switch entry, err := e.Get(ctx, key); {
	case errors.Is(err, engine.ErrNotFound) || err == nil && entry.Revision != revision:
		return engine.ErrConflict
	case err != nil:
		return err
	}
	return e.Delete(ctx, key)
}

// What a machine without a token has said is deleted when that is due, and once more a while later: what was on its way is written by then. Where
// it fails it is tried again.
func TestForgettingOnceMore(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		e := &inTables{Engine: enginemem.New(), fails: 3}
		l := lettingIn{&hubRun{settings: &settings{state: dir}, engine: e, log: slog.New(slog.DiscardHandler), forgets: make(chan struct{}, 1)}, t, e}
		ctx, cancel := context.WithCancel(t.Context())
		over := make(chan struct{})
		go func() { defer close(over); l.forgetting(ctx) }()
		is := func(when string, want ...string) {
			t.Helper()
			synctest.Wait()
			if left := l.left("stays", "revoked"); !slices.Equal(left, want) {
				t.Errorf("%s: something is left of %q, want of %q", when, left, want)
			}
		}
		l.letIn("stays")
		l.write("stays", "revoked")
		time.Sleep(time.Minute)
		is("before it is due", "stays", "revoked")
		l.forgets <- struct{}{}
		is("while it fails", "stays", "revoked")
		time.Sleep(3 * tryAgain)
		is("when it does not fail any more", "stays")
		l.write("revoked")
		time.Sleep(forgetAgain - 3*tryAgain - time.Second) // it counts from when it is due
		is("what came late, before the second time", "stays", "revoked")
		time.Sleep(time.Second)
		is("what came late", "stays")
		l.write("revoked")
		time.Sleep(10 * forgetAgain)
		is("what came later, when it is not due", "stays", "revoked")
		cancel()
		<-over
	})
}
