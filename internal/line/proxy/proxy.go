package proxy

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"runtime"
	"time"

	"github.com/outlive-mcp/outlive/internal/keep/supervise"
	"github.com/outlive-mcp/outlive/internal/line/backend"
	"github.com/outlive-mcp/outlive/internal/line/host"
	"github.com/outlive-mcp/outlive/internal/line/lineloop"
)

// DefaultMaxToServer is the default of [Options.MaxToServer], in bytes: a Go server ends the connection at 16 MiB.
const DefaultMaxToServer = 16 << 20

const (
	// clientBehind is how many bytes may wait for a client that does not read before its server is not read any more.
	clientBehind = 256 << 10
	// lastWaitFor is how long the proxy waits at its end for a client that does not read the last answers.
	lastWaitFor = time.Second
)

// ErrEnded is returned by the methods of a proxy that has ended.
var ErrEnded = host.ErrEnded

// Options are a proxy's settings.
type Options struct {
	In, Out *os.File // the client; the proxy closes them

	host.Options // of the server; Finish is set by the proxy

	MaxToServer int // longest line of the client in bytes; default [DefaultMaxToServer]
}

// Proxy keeps one server alive behind one client.
type Proxy struct {
	opts       Options
	loop       *lineloop.Loop
	host       *host.Host
	client     *lineloop.Sink
	in         *lineloop.Source // reads the client
	begin      func(now time.Time)
	pressure   pressure
	handover   handover
	code       int
	clientGone bool      // it has closed the end it reads from
	lastWait   time.Time // until when the proxy waits at its end for the client to read
}

// New prepares a proxy; nothing is started yet.
func New(opts Options) (*Proxy, error) {
	opts.MaxToServer = cmp.Or(opts.MaxToServer, DefaultMaxToServer)
	loop, err := lineloop.NewLoop()
	if err != nil {
		return nil, fmt.Errorf("make event loop: %w", err)
	}
	p := &Proxy{opts: opts, loop: loop}
	p.opts.Finish = p.finish
	p.host = host.New(loop, (*client)(p), p.opts.Options)
	loop.Deadline = p.deadline
	loop.OnTick = func(now time.Time) { p.host.Backend.Tick(now) }
	p.begin = func(now time.Time) { p.host.Backend.Open(now) }
	return p, nil
}

// client is the client's side for the host.
type client Proxy

func (c *client) Forward(line []byte) { c.client.Forward(line) }
func (c *client) Send(line []byte)    { c.client.Send(line) }
func (c *client) Behind() bool        { return c.client.Pending() >= clientBehind }

// Run serves until the client or the server ends it, and returns outlive's exit status.
func (p *Proxy) Run() int {
	runtime.LockOSThread() // the loop sleeps in the kernel; with its own thread it wakes up faster
	defer runtime.UnlockOSThread()
	p.client = p.loop.AddSink(p.opts.Out, lineloop.SinkOptions{
		OnError: func(error) {
			p.clientGone = true
			p.host.Backend.ClientClosed(p.loop.Now())
		},
	})
	p.in = p.loop.AddSource(p.opts.In, lineloop.SourceOptions{
		Limit:      p.opts.MaxToServer,
		OnLine:     func(line []byte, _ bool) { p.clientLine(line) },
		OnOversize: func(head, tail []byte, n int64) { p.host.Backend.ClientOversize(p.loop.Now(), head, tail, n) },
		OnEOF: func(error) {
			p.handover.holding = false
			p.release()
			p.host.Backend.ClientClosed(p.loop.Now())
		},
		Gate: p.mayReadClient,
	})
	p.begin(time.Now())
	p.loop.Run()
	p.host.Close()
	return p.code
}

// finish ends the loop as soon as the client has read everything, or after lastWaitFor.
func (p *Proxy) finish(code int) {
	p.code = code
	p.lastWait = time.Now().Add(lastWaitFor)
	p.loop.Post(p.stopWhenWritten)
}

func (p *Proxy) stopWhenWritten() {
	if p.client.Pending() == 0 || p.clientGone || time.Now().After(p.lastWait) {
		p.loop.Stop()
		return
	}
	time.AfterFunc(time.Millisecond, func() { p.loop.Post(p.stopWhenWritten) })
}

// Interrupt ends the proxy like SIGTERM and SIGINT. Any goroutine.
func (p *Proxy) Interrupt() {
	p.loop.Post(func() { p.host.Backend.Interrupted(time.Now()) })
}

// Restart replaces the server and returns when the new one is ready, or says why it is not. Any goroutine.
func (p *Proxy) Restart(ctx context.Context, source supervise.Source, reason string) error {
	return p.host.Restart(ctx, source, reason)
}

// Status returns the server's state. Any goroutine.
func (p *Proxy) Status(ctx context.Context) (backend.Status, error) { return p.host.Status(ctx) }

// Used is Status of a server that its client has made use of; see [host.Host.Used]. Any goroutine.
func (p *Proxy) Used(ctx context.Context) (backend.Status, error) { return p.host.Used(ctx) }

// Last is the server's state at the end. Call it after Run has returned.
func (p *Proxy) Last() backend.Status { return p.host.Backend.Status(time.Now()) }
