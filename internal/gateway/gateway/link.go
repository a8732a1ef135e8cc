package gateway

import (
	"slices"
	"strconv"
	"time"

	"github.com/outlive-mcp/outlive/internal/protocol/jsonrpc"
	"github.com/outlive-mcp/outlive/internal/protocol/mcp"
)

// phase is how far a link is with its server.
type phase uint8

const (
	greeting phase = iota // the handshake is under way
	ready                 // calls go through
	failed                // the handshake was refused; it is tried again
	foreign               // the server does not speak the era: nothing is asked of it
	retired               // no new calls; it ends once it has answered those it has
	ended
)

// Link is one kept server as the gateway is its client. It owns the handshake and the requests in flight; its lists and its log
// level are parts of their own.
type Link struct {
	gw     *Gateway
	server *server
	scope  *scope
	needed bool // somebody is to use the server, and it is not only to be seen which era it speaks
	up     Upstream
	phase  phase

	result  []byte    // raw InitializeResult or DiscoverResult
	trouble []byte    // raw error of the handshake that failed last
	fails   int       // handshakes that failed in a row
	failAt  time.Time // when the last one did
	retryAt time.Time // when the next one, or the next reading of lists that failed, is due; zero: none is

	hopeFor time.Time // until when the link is waited for: it has not failed, and not shown its lists
	lists   listing
	level   leveling
	calls   map[uint64]*exchange
	busy    int         // calls among them that clients wait for
	waiting []*exchange // until the handshake is over, and the log level confirmed
	asks    []*ask      // what clients have not answered the server yet
}

func newLink(sc *scope, s *server, needed bool) *Link {
	l := &Link{gw: sc.gw, server: s, scope: sc, needed: needed, calls: map[uint64]*exchange{}}
	l.lists.link, l.level.link = l, l
	l.hopeFor = l.gw.now.Add(l.gw.opts.ListWait)
	if s.standing == untested { // what it is tried with makes no difference: its time is one
		if !l.gw.now.Before(s.hopeFor) {
			s.hopeFor = l.hopeFor
		}
		l.hopeFor = s.hopeFor
	}
	l.gw.at(l.hopeFor)
	return l
}

// connect makes the kept server, unless sessions have as many as they may. False: they have.
func (l *Link) connect() bool {
	if l.up != nil {
		return true
	}
	if l.scope.owner != nil {
		if most := l.gw.opts.MaxProcesses; most > 0 && !l.gw.opts.Single && l.gw.own >= most {
			return false
		}
		l.gw.own++
	}
	l.up = l.gw.world.Connect(l)
	return true
}

// Name is the name of the link's server.
func (l *Link) Name() string { return l.server.Catalog.Name }

// Era is the era the link speaks.
func (l *Link) Era() mcp.Era { return l.scope.era }

// Needed reports whether the server is to be used, also if it has to be translated for that; a link that is not was made to
// see which era the server speaks.
func (l *Link) Needed() bool { return l.needed }

// crowded reports whether requests of many modern clients go to the one process.
func (l *Link) crowded() bool { return l.scope.era == mcp.Modern && !l.gw.opts.Single }

// Client names the client whose own process this is; "" if many use it.
func (l *Link) Client() string {
	if l.scope.owner == nil {
		return ""
	}
	return l.scope.owner.name
}

// Forward takes a line of the server that is valid during the call only; so does Send.
func (l *Link) Forward(line []byte) { l.heard(line) }

// Send takes a line for the client, as the client's end of a backend does.
func (l *Link) Send(line []byte) { l.heard(line) }

// Behind reports whether so much waits for the link's client that the server is not to be read for now.
func (l *Link) Behind() bool {
	if o := l.scope.owner; o != nil && o.behind != nil {
		return o.behind()
	}
	return false
}

// Finished tells that nothing is kept alive behind the link any more.
func (l *Link) Finished(now time.Time) {
	l.gw.now = now
	expected := l.phase == retired || l.phase == ended
	if l.scope.owner != nil {
		l.gw.own--
	}
	l.phase, l.up = ended, nil
	if !expected {
		l.drop()
		l.scope.changed()
	}
	l.abandon(errorOf(jsonrpc.InternalError, "the server has ended"))
	l.gw.states.forget(l)
	l.gw.flush()
}

// drop takes the link out of its scope: the next call makes another one.
func (l *Link) drop() {
	links := l.scope.links[l.server]
	l.scope.links[l.server] = slices.DeleteFunc(slices.Clone(links), func(one *Link) bool { return one == l })
}

// retire lets the link finish what it was asked and then ends it.
func (l *Link) retire() {
	if l.phase == retired || l.phase == ended {
		return
	}
	l.level.settled()
	waiting := l.waiting
	l.waiting = nil
	l.phase = retired
	for _, e := range waiting {
		e.refuse(jsonrpc.InternalError, "the server was taken out of the configuration before it was ready")
	}
	l.endIfIdle()
}

// endIfIdle ends a retired link once nothing is in flight.
func (l *Link) endIfIdle() {
	if l.phase != retired || l.busy > 0 {
		return
	}
	l.phase = ended
	l.abandon(errorOf(jsonrpc.InternalError, "the server was taken out of the configuration"))
	l.gw.postEnd(l)
}

// abandon answers what clients still wait for. What the gateway itself has asked does not matter any more.
func (l *Link) abandon(err []byte) {
	open := append(inOrder(l.calls), l.waiting...)
	clear(l.calls)
	l.busy, l.waiting = 0, nil
	for _, e := range open {
		if e.session != nil {
			e.answerError(err)
		}
	}
	l.withdrawAsks("the server has ended")
}

// forget takes an exchange out of flight.
func (l *Link) forget(e *exchange) {
	delete(l.calls, e.num)
	if e.counts() {
		l.busy--
	}
}

// listed reports whether all lists of the server are known.
func (l *Link) listed() bool { return l.lists.all != nil && l.phase != failed && l.phase != foreign }

// quiet reports whether the link has neither shown its lists nor failed.
func (l *Link) quiet() bool { return l.phase == greeting || l.phase == ready && l.lists.all == nil }

// hopeful reports whether the link's lists are worth waiting for: they may still come soon, and nothing speaks against it.
func (l *Link) hopeful() bool {
	return l.quiet() && l.server.standing != unusable && l.gw.now.Before(l.hopeFor)
}

// rank orders links of a server by how soon they answer; of two with the same, the one with less to do is better.
func (l *Link) rank() int {
	switch l.phase {
	case ready:
		return 0
	case greeting:
		return 1
	case failed:
		return 2
	}
	return 3
}

// load is how much the link's clients wait for.
func (l *Link) load() int { return l.busy + len(l.waiting) }

// again sets when what has failed is tried again, after the tries-th time; it returns how long that is from now.
func (l *Link) again(tries int) time.Duration {
	wait := min(greetAgain<<min(tries-1, 10), greetRarely)
	l.retryAt = l.gw.now.Add(wait)
	l.gw.at(l.retryAt)
	return wait
}

// sooner has a failed handshake tried again because somebody needs the server, but not more often than greetAgain.
func (l *Link) sooner() {
	if at := l.failAt.Add(greetAgain); l.phase == failed && at.Before(l.retryAt) {
		l.retryAt = at
		l.tick()
	}
}

// tick tries again what has failed, and ends what has waited for long enough.
func (l *Link) tick() {
	l.level.tick()
	switch {
	case l.hopeFor.IsZero() || !l.quiet():
	case l.gw.now.Before(l.hopeFor):
		l.gw.at(l.hopeFor)
	default:
		l.hopeFor = time.Time{}
		l.waitedEnough()
	}
	switch {
	case l.retryAt.IsZero():
	case l.gw.now.Before(l.retryAt):
		l.gw.at(l.retryAt)
	case l.phase == failed:
		l.retryAt = time.Time{}
		l.greet()
	default:
		l.retryAt = time.Time{}
		l.lists.readAgain()
	}
}

func rawID(id uint64) []byte { return strconv.AppendUint(nil, id, 10) }

// ask sends the server a request of the gateway's own; then gets the raw result, or the raw error.
func (l *Link) ask(m mcp.Method, make func(id []byte) []byte, then func(result, err []byte)) {
	e := &exchange{num: l.gw.number(), link: l, method: m, then: then}
	l.calls[e.num] = e
	l.gw.post(l, make(rawID(e.num)))
}

// meta is the _meta of the gateway's own requests to a modern server.
func (l *Link) meta() []byte {
	if l.scope.era != mcp.Modern {
		return nil
	}
	return l.gw.meta()
}

// meta says who the gateway is, as every request of the modern era does, and what its single client can do: a server that is
// translated is told of that when it is greeted.
func (g *Gateway) meta() []byte {
	out := []byte(`{"` + mcp.MetaProtocolVersion + `":"` + mcp.ModernVersion + `","` + mcp.MetaClientInfo + `":`)
	out = append(out, g.info()...)
	out = append(out, `,"`+mcp.MetaClientCapabilities+`":`...)
	if g.can != nil {
		return append(append(out, g.can...), '}')
	}
	return append(out, "{}}"...)
}

// info is the gateway's name and version.
func (g *Gateway) info() []byte {
	out := jsonrpc.AppendQuoted([]byte(`{"name":"outlive","title":"outlive gateway","version":`), g.opts.Version)
	return append(out, '}')
}

// capability reports whether the server has declared the capability.
func (l *Link) capability(path ...string) bool {
	return jsonrpc.FindPath(l.result, append([]string{"capabilities"}, path...)...).Present()
}
