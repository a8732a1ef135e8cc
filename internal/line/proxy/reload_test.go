//go:build unix

package proxy

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/outlive-mcp/outlive/internal/keep/supervise"
	"github.com/outlive-mcp/outlive/internal/record/event"
	"github.com/outlive-mcp/outlive/internal/testing/mcptest"
	"github.com/outlive-mcp/outlive/internal/testing/tier"
)

var chaosReloads = flag.Int("chaos.reloads", 25, "how often TestReloadsUnderLoad replaces the server")

// span is one call: what it was and how long it took.
type span struct {
	line, tool string
	pause      bool // it was told to take its time
	begun      time.Time
	ended      time.Time
}

// reloads is 64 callers of one proxy whose server is replaced repeatedly.
type reloads struct {
	*run
	t      *testing.T
	dir    string
	stop   chan struct{}
	mu     sync.Mutex
	spans  []span
	failed []string
}

// TestReloadsUnderLoad replaces the server by an overlap under 64 concurrent calls. Each call goes well, is answered once
// under its id, byte for byte, and is carried out once, whichever process got it.
func TestReloadsUnderLoad(t *testing.T) {
	tier.NeedFull(t, "64 callers meet reloads at random moments")
	r := &reloads{t: t, dir: t.TempDir(), stop: make(chan struct{})}
	argv, _ := mcptest.Command("-starts", filepath.Join(r.dir, "starts"))
	r.run = start(t, argv)
	ctx, cancel := context.WithTimeout(t.Context(), 20*patience)
	defer cancel()
	if _, err := r.client.Initialize(ctx, "2025-11-25"); err != nil {
		t.Fatal(err)
	}
	if _, err := r.client.Call(ctx, "tools/list", nil); err != nil {
		t.Fatal(err)
	}
	gen := r.waitReady(t, -1)
	chance := tier.Rand(t)
	var all sync.WaitGroup
	for n := range callers {
		own := rand.New(rand.NewPCG(chance.Uint64(), 0))
		all.Go(func() { r.calls(ctx, n, own) })
	}
	var busy [][2]time.Time
	for i := range *chaosReloads {
		begin := time.Now()
		gen = r.reload(ctx, i, gen)
		// As long again without a reload, so that both kinds of calls have the same machine.
		end := time.Now()
		busy = append(busy, [2]time.Time{begin, end})
		time.Sleep(end.Sub(begin) + time.Duration(chance.IntN(5_000))*time.Microsecond)
	}
	close(r.stop)
	all.Wait()
	if err := r.client.Verify(); err != nil {
		t.Errorf("the client saw: %v", err)
	}
	r.end(t)
	r.judge()
	r.compare(busy)
}

// reload replaces process gen and returns the generation of the one that serves then.
func (r *reloads) reload(ctx context.Context, i, gen int) int {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if err := r.proxy.Restart(ctx, supervise.SourceSignal, fmt.Sprint("reload ", i)); err != nil {
		r.events.mu.Lock()
		defer r.events.mu.Unlock()
		r.t.Fatalf("reload %d: %v; events so far: %v", i, err, r.events.count)
	}
	return r.waitReady(r.t, gen)
}

// calls is one caller: one call after the other, with ids of various forms.
func (r *reloads) calls(ctx context.Context, n int, chance *rand.Rand) {
	for i := 0; ; i++ {
		select {
		case <-r.stop:
			return
		default:
		}
		line, id := nameOfCall(n, i)
		s := span{line: line, tool: []string{"bump", "idem", "read"}[chance.IntN(3)], pause: chance.IntN(8) == 0}
		args := map[string]any{"path": filepath.Join(r.dir, s.tool), "line": line}
		if s.pause {
			args["ms"] = chance.IntN(50) // these are still at the old process when the new one takes over
		}
		s.begun = time.Now()
		result, err := r.client.CallID(ctx, id, "tools/call", map[string]any{"name": s.tool, "arguments": args})
		s.ended = time.Now()
		r.mu.Lock()
		if fate(result, err) == "ok" {
			r.spans = append(r.spans, s)
		} else {
			r.failed = append(r.failed, fmt.Sprintf("%s %s: %s, %v", s.tool, line, result, err))
		}
		r.mu.Unlock()
		if errors.Is(err, mcptest.ErrClosed) || ctx.Err() != nil {
			return
		}
	}
}

// judge: no call failed, each was carried out once, and only the expected processes ran.
func (r *reloads) judge() {
	r.t.Helper()
	for i, f := range r.failed {
		if i < 10 {
			r.t.Errorf("failed: %s", f)
		}
	}
	done := map[string]int{}
	for _, tool := range []string{"bump", "idem", "read"} {
		for _, line := range strings.Fields(readAll(r.t, filepath.Join(r.dir, tool))) {
			done[line]++
		}
	}
	for _, s := range r.spans {
		if done[s.line] != 1 {
			r.t.Errorf("%s %s was carried out %d times", s.tool, s.line, done[s.line])
		}
	}
	if starts := len(strings.Fields(readAll(r.t, filepath.Join(r.dir, "starts")))); starts != *chaosReloads+1 {
		r.t.Errorf("%d processes for %d reloads", starts, *chaosReloads)
	}
	for _, bad := range []event.Type{event.ServerCrashed, event.ReloadFailed, event.RequestLost, event.RequestRefused, event.RequestResent} {
		if n := r.events.count[bad]; n > 0 {
			r.t.Errorf("%s happened %d times", bad, n)
		}
	}
	if len(r.spans) < callers*2 {
		r.t.Errorf("only %d calls", len(r.spans))
	}
}

// compare prints how long calls took during a reload, and the others. The limit is checked by the benchmark, because
// here the client shares its process with the proxy.
func (r *reloads) compare(busy [][2]time.Time) {
	var during, apart []time.Duration
	for _, s := range r.spans {
		if s.pause {
			continue
		}
		at, _ := slices.BinarySearchFunc(busy, s.begun, func(b [2]time.Time, t time.Time) int { return b[1].Compare(t) })
		if at < len(busy) && busy[at][0].Before(s.ended) {
			during = append(during, s.ended.Sub(s.begun))
		} else {
			apart = append(apart, s.ended.Sub(s.begun))
		}
	}
	slices.Sort(during)
	slices.Sort(apart)
	if len(during) == 0 || len(apart) == 0 {
		r.t.Fatalf("%d calls during reloads, %d apart", len(during), len(apart))
	}
	at := func(d []time.Duration, percent int) time.Duration { return d[(len(d)-1)*percent/100] }
	r.t.Logf("%d reloads; during: %d calls, p50 %v, p99 %v, max %v; apart: %d calls, p50 %v, p99 %v, max %v", len(busy),
		len(during), at(during, 50), at(during, 99), at(during, 100), len(apart), at(apart, 50), at(apart, 99), at(apart, 100))
}
