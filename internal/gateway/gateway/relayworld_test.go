package gateway

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"time"

	"github.com/outlive-mcp/outlive/internal/keep/backoff"
	"github.com/outlive-mcp/outlive/internal/keep/health"
	"github.com/outlive-mcp/outlive/internal/keep/restart"
	"github.com/outlive-mcp/outlive/internal/keep/supervise"
	"github.com/outlive-mcp/outlive/internal/line/backend"
	"github.com/outlive-mcp/outlive/internal/line/lineloop"
	"github.com/outlive-mcp/outlive/internal/protocol/mcp"
	"github.com/outlive-mcp/outlive/internal/record/event"
)

// relay is the whole way between clients and servers, without sockets and processes. It has a Gateway, behind each of its links a
// backend.Backend as a Runner has it, and processes that are simulated (relayproc_test.go). Time is what the test says.
type relay struct {
	t      failer
	now    time.Time
	gw     *Gateway
	kept   []*relayKept
	late   []func() // what happens once nobody is inside a call
	begun  func(p *relayProc, m relayMessage)
	eras   map[string]mcp.Era  // the only one that the next process of a server speaks; EraUnknown: it speaks both
	extra  map[string][]string // tools that it has besides those that all have
	known  map[string]backend.Knowledge
	eager  bool // processes read at once, and end when they are to
	counts bool // the system tells how much a process has not read
	spares int  // that are kept ready
	fails  bool // the next process cannot be started
}

// relayKept is what a Runner keeps behind a link.
type relayKept struct {
	w            *relay
	link         *Link
	number       int
	b            *backend.Backend
	wakeAt       time.Time
	procs        []*relayProc
	early        [][]byte
	opened, over bool
}

func newRelay(t failer, opts Options) *relay {
	w := &relay{
		t: t, now: time.Unix(1_700_000_000, 0), eras: map[string]mcp.Era{}, extra: map[string][]string{},
		begun: func(*relayProc, relayMessage) {}, eager: true, counts: true,
	}
	opts.NoTools, opts.Sink = true, event.Tee{}
	w.gw = New(opts, w)
	return w
}

// serve configures servers.
func (w *relay) serve(servers ...Server) {
	w.gw.SetServers(w.now, servers)
	w.settle()
}

// Now, Stand, Renew and Connect implement World.
func (w *relay) Now() time.Time                           { return w.now }
func (w *relay) Stand(*Session, func(string) bool) string { return "fine" }
func (w *relay) Renew(*Session, string, string)           {}

func (w *relay) Connect(l *Link) Upstream {
	k := &relayKept{w: w, link: l, number: len(w.kept)}
	w.kept = append(w.kept, k)
	opts := backend.Options{
		Name: l.Name(), Command: []string{l.Name()}, NoTools: true, Health: health.Options{Off: true},
		Supervise: supervise.Options{
			Backoff: backoff.Policy{Tiers: []backoff.Tier{{Delay: 10 * time.Millisecond}}}, Exits: restart.ExitRules{Endless: true},
			Standby: w.spares,
		},
		BridgeKey: fmt.Appendf(nil, "%032d", k.number), Shared: l.sharedModern(), Pinned: l.Needed(), Known: w.known[l.Name()],
		Whose: func(about []byte) backend.Whose { return whose(l, about) },
	}
	opts.NoBridge = !l.server.Bridge
	k.b = backend.New(opts, k, k)
	w.late = append(w.late, k.open)
	return k
}

func (k *relayKept) open() {
	if k.over {
		return
	}
	k.opened = true
	k.b.Open(k.w.now)
	for _, line := range k.early {
		k.b.ClientLine(k.w.now, line)
	}
	k.early = nil
}

// Say implements Upstream.
func (k *relayKept) Say(line []byte) {
	if !k.opened {
		k.early = append(k.early, bytes.Clone(line))
		return
	}
	k.b.ClientLine(k.w.now, line)
}

// Translates implements Upstream.
func (k *relayKept) Translates() bool { return k.b.Translates() }

// Close implements Upstream.
func (k *relayKept) Close() {
	if k.opened {
		k.b.ClientClosed(k.w.now)
		return
	}
	k.Finish(0)
}

// What follows implements backend.World and event.Sink.

func (k *relayKept) ForwardToClient(line []byte) { k.link.Send(line) }
func (k *relayKept) SendToClient(line []byte)    { k.link.Send(line) }
func (k *relayKept) Flush()                      {}
func (k *relayKept) Noise(line []byte)           { k.w.t.Fatalf("noise of %s: %s", k.link.Name(), line) }
func (k *relayKept) WakeAt(at time.Time)         { k.wakeAt = at }
func (k *relayKept) Rand() float64               { return 0 }
func (k *relayKept) MarkerPath() string          { return "marker" }
func (k *relayKept) Emit(e event.Event)          { k.link.server.heard(e) }

func (k *relayKept) Keep(line []byte) (*lineloop.Hold, []byte) {
	h := lineloop.HoldCopy(line)
	return h, h.Bytes
}

func (k *relayKept) WriteMarker(restart.MarkerRecord) error { return nil }

func (k *relayKept) ReadMarker() (restart.MarkerRecord, error) {
	return restart.MarkerRecord{}, fs.ErrNotExist
}

// Remember keeps what was learned for the next run of the command, if the test wants that.
func (k *relayKept) Remember(was, now backend.Knowledge) {
	if k.w.known != nil {
		k.w.known[k.link.Name()] = k.w.known[k.link.Name()].After(was, now)
	}
}

func (k *relayKept) Finish(int) {
	if k.over {
		k.w.t.Fatalf("%s is finished twice", k.link.Name())
	}
	k.over = true
	k.w.late = append(k.w.late, func() { k.link.Finished(k.w.now) })
}

func (k *relayKept) Start(l backend.Launch) (backend.Server, error) {
	if k.over {
		k.w.t.Fatalf("%s starts process %d after its end", k.link.Name(), l.Gen)
	}
	if k.w.fails {
		k.w.fails = false
		return nil, errors.New("no such file")
	}
	p := &relayProc{k: k, gen: l.Gen, era: k.w.eras[k.link.Name()], asks: map[string]relayQuestion{}, states: map[string]int{}}
	k.procs = append(k.procs, p)
	return p, nil
}

// restart asks for a planned restart.
func (k *relayKept) restart() {
	if k.opened && !k.over {
		k.b.Restart(k.w.now, supervise.SourceControl, "asked")
	}
}

// procs yields the processes that run.
func (w *relay) procs(yield func(*relayProc) bool) {
	for _, k := range w.kept {
		for _, p := range k.procs {
			if !p.dead && !yield(p) {
				return
			}
		}
	}
}

// proc is the process of a server that was started last, of those that run.
func (w *relay) proc(server string) *relayProc {
	w.t.Helper()
	for _, p := range slices.Backward(slices.Collect(w.procs)) {
		if p.k.link.Name() == server {
			return p
		}
	}
	w.t.Fatalf("no process of %s runs", server)
	return nil
}

// settle lets everything happen that needs no time.
func (w *relay) settle() {
	for i := 0; w.happens(); i++ {
		if i > 100_000 {
			w.t.Fatalf("it goes on for ever")
		}
	}
}

// happens lets one thing happen that needs no time; false: there is none.
func (w *relay) happens() bool {
	if w.gw.waiting() {
		w.gw.flush()
		return true
	}
	if len(w.late) > 0 {
		next := w.late[0]
		w.late = w.late[1:]
		next()
		return true
	}
	for p := range w.procs {
		if p.obeys() || w.eager && p.read() {
			return true
		}
	}
	return false
}

// pass lets time pass.
func (w *relay) pass(d time.Duration) {
	w.settle()
	end := w.now.Add(d)
	for i := 0; ; i++ {
		at, whose := w.gw.Deadline(), (*relayKept)(nil)
		for _, k := range w.kept {
			if !k.over && !k.wakeAt.IsZero() && (at.IsZero() || k.wakeAt.Before(at)) {
				at, whose = k.wakeAt, k
			}
		}
		if at.IsZero() || at.After(end) {
			break
		}
		if i > 100_000 {
			w.t.Fatalf("it ticks without end")
		}
		if at.After(w.now) {
			w.now = at
		}
		if whose != nil {
			whose.b.Tick(w.now)
		} else {
			w.gw.Tick(w.now)
		}
		w.settle()
	}
	w.now = end
}
