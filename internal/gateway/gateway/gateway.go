package gateway

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"github.com/outlive-mcp/outlive/internal/files/deadline"
	"github.com/outlive-mcp/outlive/internal/gateway/catalog"
	"github.com/outlive-mcp/outlive/internal/line/backend"
	"github.com/outlive-mcp/outlive/internal/protocol/jsonrpc"
	"github.com/outlive-mcp/outlive/internal/protocol/mcp"
	"github.com/outlive-mcp/outlive/internal/record/event"
)

// Stream takes messages to a client: to its stdio connection, or one HTTP response. Send copies the line, does not
// block, and may be called after the client has left.
type Stream interface {
	Send(line []byte)
}

// Upstream is a link's access to its kept server.
type Upstream interface {
	// Say sends it one message, without newline.
	Say(line []byte)
	// Translates reports whether its keeper translates between its era and the link's, once it has answered the handshake.
	Translates() bool
	// Close ends it after its open requests.
	Close()
}

// World is what a gateway acts on besides streams.
type World interface {
	// Now is the time of what is happening.
	Now() time.Time
	// Connect makes a kept server. Its lines arrive by [Link.Send], never during Connect.
	Connect(l *Link) Upstream
	// Stand describes to a client the state of the servers that are shown, for a language model.
	Stand(to *Session, shown func(server string) bool) string
	// Renew begins to replace a server's processes, those that the client knows.
	Renew(by *Session, server, reason string)
}

// Server is one server as it is configured.
type Server struct {
	Catalog   catalog.Server // its name, and how its entries are shown
	Shared    bool           // legacy clients share one process
	Instances int            // processes that share the calls of shared use; 0: 1
	Lazy      bool           // started on demand
	Sleeps    bool           // stops when idle: listening must not keep it awake
	Legacy    bool           // it is known not to speak the modern era, and not tried again
	Bridge    bool           // its keeper translates for clients of the other era
	Digest    string         // differs if any part of the server's configuration differs
	// Known is what earlier runs of its command have shown.
	Known backend.Knowledge
}

// Options are a gateway's settings.
type Options struct {
	Version  string        // of outlive, as clients are told
	Names    catalog.Names // when names carry their server's prefix
	NoTools  bool          // offer no tools of the gateway's own
	ListWait time.Duration // how long lists wait for a server that has not shown its own, from its start (default 5 s)
	Single   bool          // there is only one client, so that nothing is shared
	// Plain shows the one server there is, which is shared, as it is: its own handshake, lists and notifications. Clients of the legacy era
	// share a process if they can do the same, see [pooled].
	Plain bool
	// PoolIdle is how long with Plain a process goes on whose last client has left. 0: it ends at once.
	PoolIdle time.Duration
	// MaxProcesses limits the processes of sessions; shared ones are not counted. 0: no limit.
	MaxProcesses int
	Sink         event.Sink
}

// changedAfter is how long the gateway collects list changes before it notifies clients, so that servers that start
// together cause one notification.
const changedAfter = 100 * time.Millisecond

// Gateway joins clients and servers. One goroutine owns it.
type Gateway struct {
	opts    Options
	world   World
	now     time.Time // of what is being handled
	servers []*server // in configuration order
	views   map[string]view
	catalog *catalog.Catalog

	sessions sessionList
	modern   *scope   // of all clients of the modern era
	pools    []*scope // of clients of the legacy era that share processes: one for all, or with Plain for those that can do the same
	warm     bool     // servers run before a client of the modern era has come
	own      int      // processes of sessions
	asks     []*ask   // what clients have not answered servers yet, the oldest first
	lastNum  uint64   // of an exchange
	lastAsk  uint64
	states   stateOwners
	current  sync.Map // *catalog.View: what modern clients see at present, by view, also for other goroutines
	can      []byte   // raw capabilities of a single client of the modern era; {} until they are known, and of many

	client jsonrpc.Envelope // scratch of the client's line that is being handled
	up     jsonrpc.Envelope // scratch of the server's line that is being handled
	buf    []byte           // scratch of the line that is being made
	name   []byte           // scratch of a name that is put into a line

	outbox   []queuedLine
	emptied  []queuedLine // the outbox before, for reuse
	emptying bool
	wake     time.Time // when Tick must be called; zero: not needed
	closing  bool
}

// number makes the unique number of an exchange, its id at the server. Since it is unique, a request can be given to
// another process unchanged.
func (g *Gateway) number() uint64 {
	g.lastNum++
	return g.lastNum
}

// server is a configured server with what is known of it.
type server struct {
	Server
	modern  eraSupport
	legacy  eraSupport
	bridged bool   // it speaks the modern era by translation only
	known   memory // what processes of it have shown
	about   string // its instructions

	askers      map[string]bool // tools that have asked their client something, by method and name
	rootsWanted bool            // it has asked for roots

	hidden map[string]string // resources of which the log has told that another server's are shown, and whose, by URI

	standing standing
	trouble  string    // why it is unusable
	since    time.Time // when it was found to be usable, or stopped being that; before both: when it was configured
	fell     time.Time // when a process of it crashed or did not start; zero: one has come up since
	left     time.Time // when its last process was no longer kept; zero: there was none
	told     toldTrouble
	loser    *Link           // that tells of lost connections
	lost     time.Time       // when it has done so last
	hopeFor  time.Time       // until when it is waited for while untested; zero: not started yet
	late     [mcp.Lists]bool // latest: a process has not shown that list within ListWait
}

// newServer is a server that is configured, or configured anew in place of was.
func newServer(now time.Time, s Server, was *server) *server {
	one := &server{Server: s, since: now, askers: map[string]bool{}}
	if was != nil { // its lists stay until the new one has shown its own
		one.known, one.about = slices.Clone(was.known), was.about
		if was.standing != usable {
			one.since = was.since // it has not worked meanwhile
		}
	}
	one.known.recall(s.Known)
	if one.bridged = s.Legacy && s.Bridge; s.Legacy && !s.Bridge {
		one.modern = refuses
	}
	return one
}

// eraSupport says whether a server speaks an era.
type eraSupport uint8

const (
	untried eraSupport = iota
	speaks
	refuses
)

// queuedLine is a message to a server; without a line it ends the server after earlier messages.
type queuedLine struct {
	link *Link
	line []byte
}

// New returns a gateway without servers.
func New(opts Options, w World) *Gateway {
	opts.ListWait = cmp.Or(opts.ListWait, 5*time.Second)
	g := &Gateway{opts: opts, world: w, catalog: catalog.New(opts.Names), can: []byte("{}")}
	g.modern = newScope(g, mcp.Modern, nil)
	if !opts.Plain {
		// The gateway introduces itself to what many clients share, and can do nothing for it.
		own := append([]byte(`{"protocolVersion":"`+mcp.NewestLegacy+`","capabilities":{},"clientInfo":`), g.info()...)
		g.newPool(append(own, '}'))
	}
	return g
}

// SetServers applies a configuration. Unchanged servers are not touched; removed ones, and processes of changed ones,
// finish their requests, and so do servers that a view does not have any more.
func (g *Gateway) SetServers(now time.Time, servers []Server, views ...View) {
	g.now = now
	g.setViews(views)
	was := g.servers
	g.servers = nil
	for _, s := range servers {
		i := slices.IndexFunc(was, func(old *server) bool { return old.Catalog.Name == s.Catalog.Name })
		switch {
		case i < 0:
			g.servers = append(g.servers, newServer(now, s, nil))
		case was[i].Digest == s.Digest:
			g.servers = append(g.servers, was[i])
		default:
			g.servers = append(g.servers, newServer(now, s, was[i]))
		}
	}
	var gone []*server
	for _, old := range was {
		if slices.Contains(g.servers, old) {
			continue
		}
		gone = append(gone, old)
		if !slices.ContainsFunc(servers, func(s Server) bool { return s.Catalog.Name == old.Catalog.Name }) {
			g.catalog.Forget(old.Catalog.Name)
		}
	}
	for sc := range g.scopes {
		sc.outdated() // a view refers to servers by index
	}
	for sc := range g.scopes {
		sc.serversChanged(gone)
	}
	g.openAllShared()
	g.flush()
}

// Warm starts what many clients share before any has come, and asks servers of unknown era for it. What starts on demand
// is left alone.
func (g *Gateway) Warm(now time.Time) {
	g.now, g.warm = now, true
	g.modern.showing("").probed = true
	g.modern.probeEras("")
	g.openAllShared()
	g.flush()
}

func (g *Gateway) openAllShared() {
	for _, s := range g.servers {
		g.openShared(s)
	}
}

// openShared starts the shared process of a legacy server, once its era is known.
func (g *Gateway) openShared(s *server) {
	if g.warm && !g.opts.Plain && s.Shared && !s.Lazy && s.legacy != refuses && (s.modern == refuses || s.bridged) {
		g.pools[0].open(s)
	}
}

// scopes yields all scopes in use, shared ones first.
func (g *Gateway) scopes(yield func(*scope) bool) {
	if !yield(g.modern) {
		return
	}
	for _, sc := range g.pools {
		if !yield(sc) {
			return
		}
	}
	for s := range g.sessions.all {
		if s.own != nil && !yield(s.own) {
			return
		}
	}
}

// Deadline is when [Gateway.Tick] must be called; zero: not at all.
func (g *Gateway) Deadline() time.Time { return g.wake }

// at makes sure that Tick is called at the time.
func (g *Gateway) at(when time.Time) {
	g.wake = deadline.Earliest(g.wake, when)
}

// isDue reports whether a time has come, and clears it then. Otherwise Tick is called when it comes; zero never does.
func (g *Gateway) isDue(at *time.Time) bool {
	switch {
	case at.IsZero():
		return false
	case g.now.Before(*at):
		g.at(*at)
		return false
	}
	*at = time.Time{}
	return true
}

// Tick handles everything that is due.
func (g *Gateway) Tick(now time.Time) {
	g.now = now
	g.wake = time.Time{}
	for sc := range g.scopes {
		sc.tick()
	}
	for s := range g.sessions.all {
		s.leaveIfIdle()
		if g.isDue(&s.roots.by) { // the client has not answered in time
			s.place(nil)
		}
	}
	g.dropIdlePools()
	g.flush()
}

// post puts a message for a server into the outbox, which then owns the line; nil ends the server after the messages before it.
func (g *Gateway) post(l *Link, line []byte) {
	g.outbox = append(g.outbox, queuedLine{l, line})
}

// flush sends the outbox, and what that leads to. It is called when no message is being handled, and by the world outside of any server's
// call.
func (g *Gateway) flush() {
	if g.emptying {
		return
	}
	g.emptying = true
	for len(g.outbox) > 0 {
		batch := g.outbox
		g.outbox = g.emptied[:0]
		for _, p := range batch {
			switch up := p.link.up; {
			case up == nil:
			case p.line == nil:
				up.Close()
			default:
				up.Say(p.line)
			}
		}
		clear(batch)
		g.emptied = batch
	}
	g.emptying = false
}

// waiting reports whether flush has anything to do.
func (g *Gateway) waiting() bool { return len(g.outbox) > 0 && !g.emptying }

// Close ends all sessions and servers. Servers finish their requests.
func (g *Gateway) Close(now time.Time) {
	g.now, g.closing = now, true
	g.modern.endListens()
	for s := range g.sessions.all {
		s.end()
	}
	for sc := range g.scopes {
		sc.closeAll()
	}
	g.flush()
}
