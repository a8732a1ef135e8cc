package enginetest

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/outlive-mcp/outlive/internal/fleet/engine"
)

// watch watches until the test ends, or until the returned function is called.
func (f fleet) watch(t *testing.T, member int, prefixes ...string) (<-chan engine.Change, context.CancelFunc) {
	t.Helper()
	ctx, cancel := context.WithCancel(f.ctx)
	changes, err := f.members[member].Watch(ctx, prefixes...)
	if err != nil {
		t.Fatalf("Watch %s: %v", prefixes, err)
	}
	t.Cleanup(cancel)
	return changes, cancel
}

// next is the next change.
func (f fleet) next(t *testing.T, changes <-chan engine.Change) engine.Change {
	t.Helper()
	select {
	case c, ok := <-changes:
		if !ok {
			t.Fatal("the watch has ended")
		}
		return c
	case <-f.ctx.Done():
		t.Fatal("no change was told")
		return engine.Change{}
	}
}

// follow takes changes into known until done holds, and returns how often Synced was told.
func (f fleet) follow(t *testing.T, changes <-chan engine.Change, known map[string]string, done func(synced int) bool) int {
	t.Helper()
	synced := 0
	for !done(synced) {
		switch c := f.next(t, changes); {
		case c.Synced:
			synced++
		case c.Gone:
			delete(known, c.Key)
		default:
			known[c.Key] = string(c.Value)
		}
	}
	return synced
}

// What is there is told first, then Synced; keys of other names and tables are not.
func testSnapshot(t *testing.T, f fleet) {
	inside, beside, table := engine.Key("beat", "h", "a"), engine.Key("beat", "h1"), engine.Key("beats", "h")
	for _, key := range []string{inside, beside, table} {
		f.put(t, key, key)
	}
	empty, _ := f.watch(t, 0, engine.Key("beat", "nobody"))
	if c := f.next(t, empty); !c.Synced {
		t.Errorf("of nothing %+v is told", c)
	}
	for prefixes, want := range map[string]string{
		engine.Key("beat", "h"): fmt.Sprint(map[string]string{inside: inside}),
		"beat":                  fmt.Sprint(map[string]string{inside: inside, beside: beside}),
		"beat beats":            fmt.Sprint(map[string]string{inside: inside, beside: beside, table: table}),
	} {
		known := map[string]string{}
		changes, _ := f.watch(t, 1, strings.Fields(prefixes)...)
		f.follow(t, changes, known, func(synced int) bool { return synced > 0 && fmt.Sprint(known) == want })
	}
}

// Changes of every member are told, deletions too, until the context ends.
func testChanges(t *testing.T, f fleet) {
	a, b := engine.Key("beat", "a"), engine.Key("beat", "b")
	f.put(t, b, "there before")
	changes, cancel := f.watch(t, 2, "beat")
	known := map[string]string{}
	f.follow(t, changes, known, func(synced int) bool { return synced > 0 && known[b] != "" })
	revision := f.put(t, a, "one")
	f.follow(t, changes, known, func(int) bool { return known[a] == "one" })
	if _, err := f.members[1].CAS(f.ctx, a, []byte("two"), revision); err != nil {
		t.Fatal(err)
	}
	f.follow(t, changes, known, func(int) bool { return known[a] == "two" })
	if err := f.members[1].Delete(f.ctx, b); err != nil {
		t.Fatal(err)
	}
	f.follow(t, changes, known, func(int) bool { return len(known) == 1 })
	cancel()
	for {
		select {
		case _, ok := <-changes:
			if !ok {
				return
			}
		case <-f.ctx.Done():
			t.Fatal("the channel is not closed when its context has ended")
		}
	}
}

// One who reads slowly misses some values, but not the last one of any key, and holds up nobody.
func testSlowWatcher(t *testing.T, f fleet) {
	const keys, times = 10, 50
	changes, _ := f.watch(t, 0, "beat")
	for n := range times {
		for k := range keys {
			f.put(t, engine.Key("beat", strconv.Itoa(k)), strconv.Itoa(n))
		}
	}
	known := map[string]string{}
	f.follow(t, changes, known, func(int) bool {
		for k := range keys {
			if known[engine.Key("beat", strconv.Itoa(k))] != strconv.Itoa(times-1) {
				return false
			}
		}
		return true
	})
}
