package gateway

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/outlive-mcp/outlive/internal/gateway/catalog"
	"github.com/outlive-mcp/outlive/internal/keep/backoff"
	"github.com/outlive-mcp/outlive/internal/keep/supervise"
	"github.com/outlive-mcp/outlive/internal/line/backend"
	"github.com/outlive-mcp/outlive/internal/line/host"
	"github.com/outlive-mcp/outlive/internal/record/event"
	"github.com/outlive-mcp/outlive/internal/testing/mcptest"
)

func TestMain(m *testing.M) {
	mcptest.Reexec()
	_ = os.Setenv("GORACE", "atexit_sleep_ms=0") // for our children: a second at each exit otherwise, with the detector
	goleak.VerifyTestMain(m)
}

// patience bounds every wait; nothing here comes near it.
const patience = 2 * time.Minute

// mute takes a server's stderr and forgets it.
type mute struct{}

func (mute) Write(p []byte) (int, error) { return len(p), nil }
func (mute) Room() <-chan struct{}       { return nil }
func (mute) Note(time.Time, string)      {}

// watcher counts events.
type watcher struct {
	mu    sync.Mutex
	count map[event.Type]int
}

// Emit implements event.Sink.
func (w *watcher) Emit(e event.Event) {
	w.mu.Lock()
	w.count[e.Type]++
	w.mu.Unlock()
}

// run is a gateway before real processes, with one client on real pipes.
type run struct {
	runner *Runner
	client *mcptest.Client
	events *watcher
}

// start runs servers, given by name as the flags of mcptest's server, behind a gateway.
func start(t *testing.T, opts Options, servers ...fake) *run {
	t.Helper()
	inR, inW, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	outR, outW, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	r := &run{events: &watcher{count: map[event.Type]int{}}}
	opts.Sink = r.events
	dir := t.TempDir()
	commands := map[string][]string{}
	var list []Server
	for _, f := range servers {
		argv, _ := mcptest.Command(f.flags...)
		if f.argv != nil {
			argv = f.argv
		}
		commands[f.name] = argv
		f.server.Catalog.Name = f.name
		list = append(list, f.server)
	}
	r.runner, err = NewRunner(RunnerOptions{Gateway: opts, In: inR, Out: outW, Host: func(l *Link) host.Options {
		return host.Options{
			Stderr: mute{}, Sink: r.events, MarkerPath: filepath.Join(dir, "marker"), StateDir: dir,
			Backend: backend.Options{Name: l.Name(), Command: commands[l.Name()], NoTools: true, Supervise: supervise.Options{
				Backoff: backoff.Policy{Tiers: []backoff.Tier{{Delay: 0}}},
			}},
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	r.runner.SetServers(list)
	go r.runner.Run()
	r.client = mcptest.NewClient(mcptest.Join(outR, inW))
	t.Cleanup(func() {
		_ = r.client.CloseWrite()
		select {
		case <-r.runner.Ended():
		case <-time.After(patience):
			t.Error("the gateway does not end")
		}
		_ = r.client.Close()
		if err := r.client.Verify(); err != nil {
			t.Error(err)
		}
	})
	return r
}

type fake struct {
	name   string
	flags  []string
	argv   []string
	server Server
}

func within60(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	return ctx
}

// names are the names of the entries of a raw list result.
func names(t *testing.T, result json.RawMessage, member string) []string {
	t.Helper()
	var page map[string]json.RawMessage
	var items []struct{ Name string }
	if err := json.Unmarshal(result, &page); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(page[member], &items); err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, i := range items {
		all = append(all, i.Name)
	}
	return all
}

// text calls a tool and returns the text of its result.
func (r *run) text(t *testing.T, tool string, args map[string]any) string {
	t.Helper()
	result, err := r.client.Call(within60(t), "tools/call", map[string]any{"name": tool, "arguments": args})
	if err != nil {
		t.Fatalf("%s: %v", tool, err)
	}
	var answer struct{ Content []struct{ Text string } }
	if err := json.Unmarshal(result, &answer); err != nil || len(answer.Content) == 0 {
		t.Fatalf("%s: %s", tool, result)
	}
	return answer.Content[0].Text
}

// pid is the process id of a server.
func (r *run) pid(t *testing.T, server string) int {
	t.Helper()
	var p struct{ PID int }
	if err := json.Unmarshal([]byte(r.text(t, server+"_pid", nil)), &p); err != nil {
		t.Fatal(err)
	}
	return p.PID
}

func TestTwoServersLookLikeOne(t *testing.T) {
	r := start(t, Options{Names: catalog.Always}, fake{name: "a"}, fake{name: "b"})
	ctx := within60(t)
	if _, err := r.client.Initialize(ctx, "2025-11-25"); err != nil {
		t.Fatal(err)
	}
	tools, err := r.client.Call(ctx, "tools/list", nil)
	if err != nil {
		t.Fatal(err)
	}
	all := names(t, tools, "tools")
	for _, want := range []string{"a_echo", "b_echo"} {
		if !slices.Contains(all, want) {
			t.Errorf("no %s among %v", want, all)
		}
	}
	if got := r.text(t, "a_echo", map[string]any{"text": "hello"}); got != "hello" {
		t.Errorf("a_echo says %q", got)
	}
	if r.pid(t, "a") == r.pid(t, "b") {
		t.Error("both servers are one process")
	}
}

// Those that were only greeted, and asked for their lists, are left out of what is looked at each minute.
func TestUsedServers(t *testing.T) {
	r := start(t, Options{Names: catalog.Always}, fake{name: "a"}, fake{name: "b"})
	ctx := within60(t)
	if _, err := r.client.Initialize(ctx, "2025-11-25"); err != nil {
		t.Fatal(err)
	}
	if _, err := r.client.Call(ctx, "tools/list", nil); err != nil {
		t.Fatal(err)
	}
	if used, err := r.runner.Used(ctx); err != nil || len(used) != 0 {
		t.Errorf("before the first call: %+v, %v", used, err)
	}
	pid := r.pid(t, "a")
	used, err := r.runner.Used(ctx)
	if err != nil || len(used) != 1 || used[0].Name != "a" || len(used[0].Links) != 1 || used[0].Links[0].ServerPID != pid {
		t.Fatalf("after a call of a: %+v, %v", used, err)
	}
	if counted := used[0].Counted(); !counted.Used() {
		t.Errorf("nothing was counted: %+v", counted)
	}
}

// A server that is killed while it works is back for the next call; the others, and the list, notice nothing.
func TestKilledServer(t *testing.T) {
	r := start(t, Options{}, fake{name: "a"}, fake{name: "b"})
	ctx := within60(t)
	if _, err := r.client.Initialize(ctx, "2025-11-25"); err != nil {
		t.Fatal(err)
	}
	before, err := r.client.Call(ctx, "tools/list", nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 20 {
		was, other := r.pid(t, "a"), r.pid(t, "b")
		pending := r.client.Go("tools/call", map[string]any{"name": "a_slow", "arguments": map[string]any{"ms": 200}})
		victim, err := os.FindProcess(was)
		if err == nil {
			err = victim.Kill()
		}
		if err != nil {
			t.Fatal(err)
		}
		result, err := pending.Wait(ctx)
		if err != nil || !strings.Contains(string(result), "may or may not have taken effect") {
			t.Logf("%d: %s, %v", i, result, err) // it may not have reached the server, and then ran on the next one
		}
		if r.pid(t, "a") == was || r.pid(t, "b") != other {
			t.Fatal("the wrong server was replaced")
		}
		after, err := r.client.Call(ctx, "tools/list", nil)
		if err != nil || string(after) != string(before) {
			t.Fatalf("the list is another one: %s, %v", after, err)
		}
	}
	if n := len(r.client.Notifications("notifications/tools/list_changed")); n != 0 {
		t.Errorf("%d needless notifications", n)
	}
}

// Requests of a server reach the client, and its answer that server.
func TestServerAsksClient(t *testing.T) {
	r := start(t, Options{}, fake{name: "a"}, fake{name: "b"})
	ctx := within60(t)
	for _, m := range []string{"sampling/createMessage", "elicitation/create"} {
		r.client.Handle(m, func(json.RawMessage) (any, error) {
			return map[string]any{"action": "accept", "role": "assistant", "model": "m", "content": map[string]any{"type": "text", "text": "fine"}}, nil
		})
	}
	if _, err := r.client.Initialize(ctx, "2025-11-25"); err != nil {
		t.Fatal(err)
	}
	for _, server := range []string{"a", "b"} {
		for _, kind := range []string{"sampling", "elicitation"} {
			if got := r.text(t, server+"_ask", map[string]any{"kind": kind}); !strings.Contains(got, "fine") {
				t.Errorf("%s %s: %s", server, kind, got)
			}
		}
	}
	// Progress comes under the client's own token.
	result, err := r.client.Call(ctx, "tools/call", map[string]any{"name": "b_slow", "arguments": map[string]any{"ms": 60},
		"_meta": map[string]any{"progressToken": "mine"}})
	if err != nil {
		t.Fatal(result, err)
	}
	seen := r.client.Notifications("notifications/progress")
	if len(seen) == 0 || !strings.Contains(fmt.Sprint(seen), "mine") {
		t.Errorf("progress: %v", seen)
	}
}
