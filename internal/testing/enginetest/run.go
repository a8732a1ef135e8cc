package enginetest

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/outlive-mcp/outlive/internal/fleet/engine"
)

// patience is how long a test waits for what has to happen. An engine that has to elect a leader needs some seconds.
const patience = 2 * time.Minute

// Open opens some members of one new, empty fleet, and closes them when the test ends.
type Open func(t *testing.T, members int) []engine.Engine

// Run tests an engine.
func Run(t *testing.T, open Open) {
	for name, test := range map[string]func(*testing.T, fleet){
		"Write":          testWrite,
		"OneCreates":     testOneCreates,
		"Counter":        testCounter,
		"Delete":         testDelete,
		"Sizes":          testSizes,
		"EndedContext":   testEndedContext,
		"Snapshot":       testSnapshot,
		"Changes":        testChanges,
		"SlowWatcher":    testSlowWatcher,
		"Request":        testRequest,
		"NoOwner":        testNoOwner,
		"Unknown":        testUnknown,
		"ManyAtOnce":     testManyAtOnce,
		"Stop":           testStop,
		"MessageSizes":   testMessageSizes,
		"BytesAreCopied": testBytesAreCopied,
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			t.Cleanup(cancel)
			test(t, fleet{ctx: ctx, members: open(t, 3)})
		})
	}
}

// fleet is what a test uses: three members of one fleet.
type fleet struct {
	ctx     context.Context
	members []engine.Engine
}

// put writes and says the revision.
func (f fleet) put(t *testing.T, key, value string) engine.Revision {
	t.Helper()
	revision, err := f.members[0].Put(f.ctx, key, []byte(value))
	if err != nil || revision == 0 {
		t.Fatalf("Put %s: revision %d, %v", key, revision, err)
	}
	return revision
}

// await waits until a member reads what was written, or something later.
func (f fleet) await(t *testing.T, member int, key string, least engine.Revision) engine.Entry {
	t.Helper()
	for {
		entry, err := f.members[member].Get(f.ctx, key)
		if err == nil && entry.Revision >= least {
			return entry
		}
		if err != nil && !errors.Is(err, engine.ErrNotFound) {
			t.Fatalf("Get %s: %v", key, err)
		}
		pause(t, f.ctx, "member "+key+" was never read")
	}
}

// pause waits a little for the engine, whose replicas may be behind.
func pause(t *testing.T, ctx context.Context, why string) {
	t.Helper()
	select {
	case <-ctx.Done():
		t.Fatal(why)
	case <-time.After(10 * time.Millisecond):
	}
}

// wants fails unless err is of that kind.
func wants(t *testing.T, what string, err, kind error) {
	t.Helper()
	if !errors.Is(err, kind) {
		t.Errorf("%s: %v, want: %v", what, err, kind)
	}
}

func text(n int) []byte { return []byte(strings.Repeat("x", n)) }
