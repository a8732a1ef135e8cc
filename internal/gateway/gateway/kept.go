package gateway

import (
	"log/slog"
	"time"

	"github.com/outlive-mcp/outlive/internal/line/backend"
	"github.com/outlive-mcp/outlive/internal/line/host"
	"github.com/outlive-mcp/outlive/internal/record/event"
)

// kept is a server kept alive behind a link: the host's client, and the link's upstream.
type kept struct {
	runner *Runner
	link   *Link
	host   *host.Host
	sink   event.Sink
	opened bool
	early  [][]byte // lines sent before it was opened
}

// Connect implements [World].
func (r *Runner) Connect(l *Link) Upstream {
	k := &kept{runner: r, link: l}
	opts := r.opts.Host(l)
	k.sink, opts.Sink = opts.Sink, k
	opts.Backend.Shared = l.sharedModern()
	opts.Backend.Whose = func(about []byte) backend.Whose { return whose(l, about) }
	opts.WakeAt = r.hear
	opts.Finish = func(int) { r.loop.Post(k.finished) }
	k.host = host.New(r.loop, k, opts)
	r.kept[l] = k
	r.gate.enter(k)
	return k
}

// whose tells whose request or progress a raw id or token of the link is. Who watches the messages shows it, and a round of a call on a
// shared server goes on for that principal only.
func whose(l *Link, about []byte) backend.Whose {
	switch e := l.inFlight(about); {
	case e == nil:
		return backend.Whose{Client: l.Client()}
	case e.session == nil:
		return backend.Whose{Own: true}
	default:
		return backend.Whose{Client: e.session.name, Principal: e.session.principal, ID: []byte(e.id)}
	}
}

// open starts it.
func (k *kept) open() {
	k.opened = true
	k.host.Backend.Open(time.Now())
	for _, line := range k.early {
		k.host.Backend.ClientLine(time.Now(), line)
	}
	k.early = nil
	k.runner.flushSoon()
}

// Say implements [Upstream].
func (k *kept) Say(line []byte) {
	if !k.opened {
		k.early = append(k.early, line)
		return
	}
	k.host.Backend.ClientLine(k.runner.Now(), line)
}

// Translates implements [Upstream].
func (k *kept) Translates() bool { return k.host.Backend.Translates() }

// Close implements [Upstream].
func (k *kept) Close() {
	if k.opened {
		k.host.Backend.ClientClosed(k.runner.Now())
		return
	}
	delete(k.runner.kept, k.link) // it was never opened: drop its lines
	k.runner.loop.Post(k.finished)
}

func (k *kept) finished() {
	delete(k.runner.kept, k.link)
	past := k.runner.past[k.link.Name()]
	past.Merge(k.host.Backend.Status(k.runner.Now()).Counters)
	k.runner.past[k.link.Name()] = past
	k.runner.gate.leave(k)
	k.host.Close()
	k.link.Finished(k.runner.Now())
	k.link.server.left = k.runner.Now()
	k.runner.stopIfDone()
}

// Forward implements host.Client.
func (k *kept) Forward(line []byte) { k.Send(line) }

// Send implements host.Client.
func (k *kept) Send(line []byte) {
	k.link.Send(line)
	k.runner.flushSoon()
}

// Behind implements host.Client.
func (k *kept) Behind() bool { return k.link.Behind() }

// Emit implements event.Sink: the server's account knows of it, and once a server is up or has failed, the next one may start. The end
// of a process that was started only to learn the server's era is logged at debug level, and so is that a second link to a server elsewhere
// is lost, too.
func (k *kept) Emit(e event.Event) {
	told := e
	if over := k.link.phase == retired || k.link.phase == ended; over && !k.link.needed && e.Level < slog.LevelWarn {
		told.Level = slog.LevelDebug
	}
	if e.Type == event.ConnectionLost && e.Level >= slog.LevelWarn && !k.link.server.tellsOfLoss(k.link, e.Time) {
		told.Level = slog.LevelDebug
	}
	k.sink.Emit(told)
	k.link.server.heard(e)
	switch e.Type {
	case event.ServerReady, event.ServerCrashed, event.ConnectionLost, event.SpawnFailed, event.StartTimeout, event.ServerExited, event.AnsweredFromMemory:
		k.runner.gate.leave(k)
	}
}

// gateFor is how long one server delays the start of others.
const gateFor = 2 * time.Second

// gate lets a few servers start at a time: twenty at once would each take twenty times as long.
type gate struct {
	width   int
	inside  map[*kept]bool
	waiting []*kept
}

// enter opens k when it is its turn.
func (g *gate) enter(k *kept) {
	g.waiting = append(g.waiting, k)
	k.runner.loop.Post(g.admit)
}

// leave makes room for the next one.
func (g *gate) leave(k *kept) {
	if !g.inside[k] {
		return
	}
	delete(g.inside, k)
	k.runner.loop.Post(g.admit)
}

func (g *gate) admit() {
	for len(g.waiting) > 0 && len(g.inside) < g.width {
		k := g.waiting[0]
		g.waiting = g.waiting[1:]
		if k.runner.kept[k.link] != k {
			continue // it was closed before it was opened
		}
		g.inside[k] = true
		time.AfterFunc(gateFor, func() { k.runner.loop.Post(func() { g.leave(k) }) })
		k.open()
	}
}
