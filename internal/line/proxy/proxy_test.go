package proxy

import (
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

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
func (mute) Tail(int) []string           { return nil }

// watcher counts events and hands the ready ones on.
type watcher struct {
	mu    sync.Mutex
	count map[event.Type]int
	ready chan int // generation of each process that became ready
}

// Emit implements event.Sink.
func (w *watcher) Emit(e event.Event) {
	w.mu.Lock()
	w.count[e.Type]++
	w.mu.Unlock()
	if e.Type == event.ServerReady {
		w.ready <- e.Generation
	}
}

// run is a proxy between a test's client and a server, over real pipes and processes.
type run struct {
	proxy  *Proxy
	client *mcptest.Client
	events *watcher
	code   chan int
}

// start runs argv behind a proxy that restarts at once, without a limit.
func start(t *testing.T, argv []string, after ...backoff.Policy) *run {
	t.Helper()
	inR, inW, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	outR, outW, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	if len(after) == 0 {
		after = []backoff.Policy{{Tiers: []backoff.Tier{{Delay: 0}}}}
	}
	r := &run{
		events: &watcher{count: map[event.Type]int{}, ready: make(chan int, 1<<16)},
		code:   make(chan int, 1),
	}
	r.proxy, err = New(Options{
		In: inR, Out: outW,
		Options: host.Options{
			Stderr: mute{}, Sink: r.events, MarkerPath: filepath.Join(t.TempDir(), "marker"), StateDir: t.TempDir(),
			Backend: backend.Options{Name: "srv", Command: argv, Supervise: supervise.Options{
				Backoff: after[0],
			}},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	go func() { r.code <- r.proxy.Run() }()
	r.client = mcptest.NewClient(mcptest.Join(outR, inW))
	t.Cleanup(func() { _ = r.client.Close() })
	return r
}

// end closes the client's side and waits for the proxy.
func (r *run) end(t *testing.T) {
	t.Helper()
	if err := r.client.CloseWrite(); err != nil {
		t.Error(err)
	}
	select {
	case code := <-r.code:
		if code != 0 {
			t.Errorf("exit status %d", code)
		}
	case <-time.After(patience):
		t.Fatal("the proxy does not end")
	}
}

// waitReady waits for a process newer than gen and returns its generation.
func (r *run) waitReady(t *testing.T, gen int) int {
	t.Helper()
	late := time.After(patience)
	for {
		select {
		case now := <-r.events.ready:
			if now > gen {
				return now
			}
		case <-late:
			t.Fatalf("no process after %d becomes ready", gen)
		}
	}
}
