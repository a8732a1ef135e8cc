package host

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/outlive-mcp/outlive/internal/keep/backoff"
	"github.com/outlive-mcp/outlive/internal/line/lineloop"
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

// near is the client of a host.
type near struct{ lines chan string }

func (n near) Forward(line []byte) { n.lines <- string(line) }
func (n near) Send(line []byte)    { n.lines <- string(line) }
func (n near) Behind() bool        { return false }

type mute struct{}

func (mute) Write(p []byte) (int, error) { return len(p), nil }
func (mute) Room() <-chan struct{}       { return nil }
func (mute) Note(time.Time, string)      {}

// hearsay takes events for whoever waits for them.
type hearsay chan event.Event

func (h hearsay) Emit(e event.Event) { h <- e }

// kept is a host on a loop of its own, whose server is restarted at once, and its client.
type kept struct {
	*testing.T
	*Host
	loop   *lineloop.Loop
	client near
	events hearsay
	over   chan struct{}
}

// keep starts the loop and opens the host's backend.
func keep(t *testing.T, opts Options) *kept {
	t.Helper()
	loop, err := lineloop.NewLoop()
	if err != nil {
		t.Fatal(err)
	}
	k := &kept{T: t, loop: loop, client: near{make(chan string, 1000)}, events: make(hearsay, 1000), over: make(chan struct{})}
	dir := t.TempDir()
	opts.Backend.Supervise.Backoff = backoff.Policy{Tiers: []backoff.Tier{{Delay: 0}}}
	opts.MarkerPath, opts.StateDir, opts.Stderr, opts.Sink = filepath.Join(dir, "marker"), dir, mute{}, k.events
	opts.Finish = func(int) { loop.Post(loop.Stop) }
	k.Host = New(loop, k.client, opts)
	loop.Deadline = func() time.Time { return k.Host.Deadline() }
	loop.OnTick = func(now time.Time) { k.Backend.Tick(now) }
	loop.Post(func() { k.Backend.Open(time.Now()) })
	go func() {
		loop.Run()
		k.Close()
		close(k.over)
	}()
	return k
}

// do runs fn on the loop and waits for it.
func (k *kept) do(fn func()) {
	k.Helper()
	done := make(chan struct{})
	k.loop.Post(func() {
		fn()
		close(done)
	})
	select {
	case <-done:
	case <-time.After(patience):
		k.Fatal("the loop does not come to it")
	}
}

func (k *kept) say(line string) {
	k.loop.Post(func() { k.Backend.ClientLine(time.Now(), []byte(line)) })
}

// ask sends a request and returns its answer, the next line but for notifications, which must contain what is wanted.
func (k *kept) ask(line, want string) string {
	k.Helper()
	k.say(line)
	for {
		select {
		case got := <-k.client.lines:
			if !strings.Contains(got, `"id":`) {
				continue
			}
			if !strings.Contains(got, want) {
				k.Fatalf("asked %s, got %s", line, got)
			}
			return got
		case <-time.After(patience):
			k.Fatalf("no answer to %s", line)
		}
	}
}

// greet is the handshake; the answer must contain what is wanted.
func (k *kept) greet(want string) {
	k.Helper()
	k.ask(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`, want)
	k.say(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
}

// await waits for the next event of a type.
func (k *kept) await(wanted event.Type) event.Event {
	k.Helper()
	timeout := time.After(patience)
	for {
		select {
		case e := <-k.events:
			if e.Type == wanted {
				return e
			}
		case <-timeout:
			k.Fatalf("no %s", wanted)
		}
	}
}

// end closes the client's side and waits for the host's end.
func (k *kept) end() {
	k.Helper()
	k.loop.Post(func() { k.Backend.ClientClosed(time.Now()) })
	select {
	case <-k.over:
	case <-time.After(patience):
		k.Fatal("the host does not end")
	}
}
