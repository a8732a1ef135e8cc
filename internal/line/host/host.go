package host

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"math"
	"os"
	"slices"
	"time"

	"github.com/outlive-mcp/outlive/internal/files/atomicfile"
	"github.com/outlive-mcp/outlive/internal/keep/child"
	"github.com/outlive-mcp/outlive/internal/keep/restart"
	"github.com/outlive-mcp/outlive/internal/line/backend"
	"github.com/outlive-mcp/outlive/internal/line/lineloop"
	"github.com/outlive-mcp/outlive/internal/line/remote"
	"github.com/outlive-mcp/outlive/internal/record/event"
)

// DefaultMaxToClient is the default of [Options.MaxToClient], in bytes: a TypeScript client closes the connection at 10 MiB.
const DefaultMaxToClient = 10<<20 - 64<<10

// bridgeKeySize is the size of the key of a host's bridge, in bytes.
const bridgeKeySize = 32

// Client is the client of the kept server. It is called on the loop's goroutine.
type Client interface {
	// Forward takes a slice of the line that is being handled, without its newline, and need not copy it.
	Forward(line []byte)
	// Send must copy the line.
	Send(line []byte)
	// Behind reports whether so much waits to be taken that the server is not to be read for now.
	Behind() bool
}

// Stderr takes what servers write to their stderr. Any goroutine may use it.
type Stderr interface {
	// Write gets the bytes as they come; it must not block and must not keep p.
	Write(p []byte) (int, error)
	// Room returns nil if there is room for more, otherwise a channel that is closed when there may be. Servers are kept
	// waiting meanwhile, so it must be closed after some time even if there is none.
	Room() <-chan struct{}
	// Note gets what has become of the process that wrote before, or that another one is started.
	Note(at time.Time, text string)
}

// Options are a host's settings.
type Options struct {
	Backend backend.Options
	Dir     string   // working directory of the server; "" is ours
	Env     []string // environment of the server; nil is ours

	// Join connects to a server that others use, too, in place of a process: pipes for lines from it and to it. nil: there is none.
	Join   func(ctx context.Context) (in, out *os.File, err error)
	Remote *remote.Options // where the server is, if it is not a process of ours; MaxMessage and Log are the host's own

	KillMode child.KillMode // what ends with a server (default its whole tree)

	MaxToClient int // longest line of the server in bytes, default [DefaultMaxToClient]

	MarkerPath string // of the restart marker file
	StateDir   string // handed to the server as OUTLIVE_STATE_DIR

	Stderr   Stderr
	Sink     event.Sink
	Remember func(was, now backend.Knowledge) // keeps what was learned of the command, see [backend.World]; may be nil
	Finish   func(code int)                   // the backend is done; nothing is kept alive any more
	WakeAt   func(at time.Time)               // the backend wants its Tick at another time; zero: not at all. May be nil
}

// Host runs one backend on a loop.
type Host struct {
	// Backend is who decides.
	Backend *backend.Backend

	opts     Options
	loop     *lineloop.Loop
	client   Client
	events   eventQueue
	running  []backend.Server // processes, or connections in their place
	shortcut shortcut
	waiters  Waiters
	ended    chan struct{}
	wakeAt   time.Time
}

// New prepares a host on a loop; nothing is started yet.
func New(loop *lineloop.Loop, client Client, opts Options) *Host {
	opts.MaxToClient = cmp.Or(opts.MaxToClient, DefaultMaxToClient)
	opts.Backend.BridgeKey = make([]byte, bridgeKeySize)
	_, _ = rand.Read(opts.Backend.BridgeKey) // it never fails
	opts.Backend.Remote = opts.Remote != nil || opts.Join != nil
	h := &Host{opts: opts, loop: loop, client: client, events: eventQueue{loop: loop, to: opts.Sink}, ended: make(chan struct{})}
	// Those who tell of events are told soon, those who act on them at once.
	h.Backend = backend.New(opts.Backend, (*world)(h), event.Tee{&h.events, (*restartWatch)(h), stderrNotes{opts.Stderr}})
	return h
}

// Deadline returns when the backend's Tick wants to be called; the zero time means not at all. Loop goroutine.
func (h *Host) Deadline() time.Time { return h.wakeAt }

// stderrNotes notes beside what servers write when one has crashed, and when the next one is started, before that one writes.
type stderrNotes struct{ to Stderr }

// Emit implements event.Sink.
func (n stderrNotes) Emit(e event.Event) {
	switch {
	case e.Level < slog.LevelInfo:
	case e.Type == event.ServerCrashed, e.Type == event.ConnectionLost, e.Type == event.BreakerOpened, e.Type == event.ServerStarting && e.Generation > 0:
		n.to.Note(e.Time, e.Message)
	}
}

// Close kills what still runs and tells those who wait that there is nothing to wait for. Loop goroutine, or after the loop.
func (h *Host) Close() {
	select {
	case <-h.ended:
		return
	default:
	}
	for _, s := range slices.Clone(h.running) {
		if p, ok := s.(*server); ok {
			h.finishStart(p)
		}
		s.Kill()
	}
	h.events.tell()
	h.waiters.TellOf(math.MaxInt, ErrEnded)
	close(h.ended)
}

// Alone reports whether no process is left here, nor a connection. Loop goroutine.
func (h *Host) Alone() bool { return len(h.running) == 0 }

// Quiet tells what has not been told yet. Loop goroutine.
func (h *Host) Quiet() { h.events.tell() }

// Ended is closed by [Host.Close].
func (h *Host) Ended() <-chan struct{} { return h.ended }

// Stalled tells how many bytes the serving process was given and has not taken from us, and how many it took in all.
// running is false if none serves. Loop goroutine.
func (h *Host) Stalled() (refused int, taken uint64, running bool) {
	s, running := h.Backend.Serving().(*server)
	if !running || s.process == nil {
		return 0, 0, false
	}
	return s.sink.Refused(), s.sink.Written(), true
}

// byGen returns the process of a generation, nil if it is gone.
func (h *Host) byGen(gen int) *server {
	for _, one := range h.running {
		if s, ok := one.(*server); ok && s.gen == gen {
			return s
		}
	}
	return nil
}

// world is the host as its backend sees it.
type world Host

func (w *world) ForwardToClient(line []byte)               { w.client.Forward(line) }
func (w *world) SendToClient(line []byte)                  { w.client.Send(line) }
func (w *world) Keep(line []byte) (*lineloop.Hold, []byte) { return w.loop.Keep(line) }

func (w *world) Flush() {
	w.loop.Flush()
}

// Finish hands the end on, when all else has been told.
func (w *world) Finish(code int) {
	w.events.tell()
	w.opts.Finish(code)
}

// Noise writes the line to the server's stderr, where it should have gone, with a prefix that tells whence it came.
func (w *world) Noise(line []byte) {
	text := append([]byte("[stdout] "), line...)
	_, _ = w.opts.Stderr.Write(append(text, '\n')) // a Stderr accounts its own losses
}

func (w *world) MarkerPath() string { return w.opts.MarkerPath }

func (w *world) WriteMarker(m restart.MarkerRecord) error {
	return restart.WriteMarker(w.opts.MarkerPath, m)
}

func (w *world) ReadMarker() (restart.MarkerRecord, error) {
	raw, err := atomicfile.Read(w.opts.MarkerPath, restart.MarkerLimit)
	if errors.Is(err, fs.ErrNotExist) {
		err = fmt.Errorf("%w at %s", restart.ErrNoMarker, w.opts.MarkerPath)
	}
	if err != nil {
		return restart.MarkerRecord{}, err
	}
	return restart.ParseMarker(raw)
}

func (w *world) Remember(was, now backend.Knowledge) {
	if w.opts.Remember != nil {
		w.opts.Remember(was, now)
	}
}
