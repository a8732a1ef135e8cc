package proxy

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"time"

	"github.com/outlive-mcp/outlive/internal/backend"
	"github.com/outlive-mcp/outlive/internal/child"
	"github.com/outlive-mcp/outlive/internal/event"
	"github.com/outlive-mcp/outlive/internal/supervise"
	"github.com/outlive-mcp/outlive/internal/wire"
)

// Defaults of [Options] (protocol limits of the well-known SDKs: a TypeScript client closes the connection at 10 MiB,
// a Go server at 16 MiB).
const (
	DefaultMaxToClient = 10<<20 - 64<<10
	DefaultMaxToServer = 16 << 20
)

// clientBehind is how many bytes may wait for a client that does not read before its server is not read either.
const clientBehind = 256 << 10

// ErrEnded is returned to those who ask something of a proxy that is no more.
var ErrEnded = errors.New("outlive run has ended")

// Stderr takes what servers write to their stderr.
type Stderr interface {
	// Write gets the bytes as they come; it must not block and must not keep p.
	Write(p []byte) (int, error)
}

// Options are a proxy's settings.
type Options struct {
	In, Out *os.File // the client; the proxy closes them

	Backend backend.Options
	Dir     string   // working directory of the server; "" is ours
	Env     []string // environment of the server; nil is ours

	KillMode child.KillMode // what ends with a server (default its whole tree)

	MaxToClient int // longest line in bytes, default [DefaultMaxToClient]
	MaxToServer int // default [DefaultMaxToServer]

	MarkerPath string // of the restart marker file
	StateDir   string // handed to the server as OUTLIVE_STATE_DIR

	Stderr   Stderr
	Sink     event.Sink
	Remember func(backend.Knowledge) // keeps what was learned of the command; may be nil
}

// Proxy keeps one server alive behind one client.
type Proxy struct {
	opts       Options
	loop       *wire.Loop
	backend    *backend.Backend
	client     *wire.Sink
	in         *wire.Source // the client's, too
	begin      func(now time.Time)
	servers    []*server
	pressure   pressure
	shortcut   shortcut
	code       int
	clientGone bool      // it closed the end it reads from
	lastWait   time.Time // until when the end waits for it to read
	ended      chan struct{}
	waiters    []waiter
}

// waiter is somebody who waits for the restart he asked for.
type waiter struct {
	generation int // the process that was to be replaced
	tell       func(error)
}

// New prepares a proxy; nothing is started yet.
func New(opts Options) (*Proxy, error) {
	if opts.MaxToClient == 0 {
		opts.MaxToClient = DefaultMaxToClient
	}
	if opts.MaxToServer == 0 {
		opts.MaxToServer = DefaultMaxToServer
	}
	loop, err := wire.NewLoop()
	if err != nil {
		return nil, fmt.Errorf("make event loop: %w", err)
	}
	p := &Proxy{opts: opts, loop: loop, ended: make(chan struct{})}
	p.backend = backend.New(opts.Backend, (*world)(p), p.sink())
	loop.Deadline = p.deadline
	loop.OnTick = func(now time.Time) { p.backend.Tick(now) }
	p.begin = p.backend.Open
	return p, nil
}

// sink is where the backend's events go.
func (p *Proxy) sink() event.Sink { return event.Tee{p.opts.Sink, (*restartWatch)(p)} }

// Run serves until the client or the server ends it, and returns outlive's exit status.
func (p *Proxy) Run() int {
	runtime.LockOSThread() // the loop sleeps in the kernel; a thread of its own spares every wake-up a hand-over
	defer runtime.UnlockOSThread()
	defer close(p.ended)
	p.client = p.loop.AddSink(p.opts.Out, wire.SinkOptions{
		OnError: func(error) {
			p.clientGone = true
			p.backend.ClientClosed(p.loop.Now())
		},
	})
	p.in = p.loop.AddSource(p.opts.In, wire.SourceOptions{
		Limit:      p.opts.MaxToServer,
		OnLine:     func(line []byte, _ bool) { p.backend.ClientLine(p.loop.Now(), line) },
		OnOversize: func(head, tail []byte, n int64) { p.backend.ClientOversize(p.loop.Now(), head, tail, n) },
		OnEOF:      func(error) { p.backend.ClientClosed(p.loop.Now()) },
		Gate:       p.mayReadClient,
	})
	p.begin(time.Now())
	p.loop.Run()
	for _, s := range p.servers {
		s.Kill()
	}
	p.tellWaiters(ErrEnded)
	return p.code
}

// byGen returns the process of a generation, nil if it is gone.
func (p *Proxy) byGen(gen int) *server {
	for _, s := range p.servers {
		if s.gen == gen {
			return s
		}
	}
	return nil
}

// Interrupt ends the proxy as SIGTERM and SIGINT do. Any goroutine.
func (p *Proxy) Interrupt() {
	p.loop.Post(func() { p.backend.Interrupted(time.Now()) })
}

// Restart replaces the server and returns when the new one is ready, or says why it is not. Any goroutine.
func (p *Proxy) Restart(ctx context.Context, source supervise.Source, reason string) error {
	done := make(chan error, 1)
	p.loop.Post(func() {
		p.waiters = append(p.waiters, waiter{p.backend.Generation(), func(err error) { done <- err }})
		p.backend.Restart(time.Now(), source, reason)
	})
	select {
	case err := <-done:
		return err
	case <-p.ended:
		return ErrEnded
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Status tells how the server stands. Any goroutine.
func (p *Proxy) Status(ctx context.Context) (backend.Status, error) {
	got := make(chan backend.Status, 1)
	p.loop.Post(func() { got <- p.backend.Status(time.Now()) })
	select {
	case s := <-got:
		return s, nil
	case <-p.ended:
		return backend.Status{}, ErrEnded
	case <-ctx.Done():
		return backend.Status{}, ctx.Err()
	}
}

// Restarts is how often the server was restarted. After Run has returned, or on its goroutine.
func (p *Proxy) Restarts() int { return p.backend.Status(time.Now()).RestartCount }

// restartWatch hears the events and tells those who wait for a restart how it went.
type restartWatch Proxy

// Emit implements event.Sink.
func (w *restartWatch) Emit(e event.Event) {
	p := (*Proxy)(w)
	if e.Type == event.ServerReady || e.Type == event.SpareReady {
		p.findShortcut(e.Generation)
	}
	if len(p.waiters) == 0 {
		return
	}
	switch e.Type {
	case event.ReloadFailed:
		p.tellWaiters(errors.New(e.Message))
	case event.ServerReady, event.ServerSpawned:
		// A server that no client has spoken to yet is as ready as it can be once it runs.
		if e.Type == event.ServerReady || p.backend.Unspoken() {
			p.tellNewer(e.Generation, nil)
		}
	case event.SpawnFailed, event.ServerCrashed, event.BreakerOpened, event.StartTimeout:
		p.tellNewer(e.Generation, fmt.Errorf("the new server did not become ready: %s", e.Message))
	}
}

// tellNewer tells those whose old process is older than generation.
func (p *Proxy) tellNewer(generation int, err error) {
	kept := p.waiters[:0]
	for _, w := range p.waiters {
		if w.generation < generation {
			w.tell(err)
		} else {
			kept = append(kept, w)
		}
	}
	p.waiters = kept
}

func (p *Proxy) tellWaiters(err error) {
	for _, w := range p.waiters {
		w.tell(err)
	}
	p.waiters = nil
}
