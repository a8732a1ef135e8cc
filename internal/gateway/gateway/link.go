package gateway

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/outlive-mcp/outlive/internal/protocol/jsonrpc"
	"github.com/outlive-mcp/outlive/internal/protocol/mcp"
)

// phase is the state of a link.
type phase uint8

const (
	greeting    phase = iota // the handshake is under way
	ready                    // calls go through
	failed                   // the handshake was refused; it is tried again
	unsupported              // the server does not speak the era, and is not used
	retired                  // no new calls; it ends after those it has
	ended
)

// Link is one kept server, whose client the gateway is. It owns the handshake and the requests in flight; its lists are
// a separate part.
type Link struct {
	gw     *Gateway
	server *server
	scope  *scope
	needed bool // the server is to be used, not only tested for its era
	up     Upstream
	phase  phase

	result  []byte    // raw InitializeResult or DiscoverResult
	trouble []byte    // raw error of the handshake that failed last
	fails   int       // handshakes that failed in a row
	twice   bool      // the handshake is said a second time, since the server knows the version and has refused it
	failAt  time.Time // when the last one did
	retryAt time.Time // when the handshake, or the reading of lists, is retried; zero: not

	hopeFor     time.Time // how long the link is waited for before it has failed or shown its lists
	lists       listing
	level       []byte // raw params of the last logging/setLevel sent
	calls       map[uint64]*exchange
	waiting     []*exchange // until the handshake is over, or it is their turn
	attribution attribution
}

func newLink(sc *scope, s *server, needed bool) *Link {
	l := &Link{gw: sc.gw, server: s, scope: sc, needed: needed, calls: map[uint64]*exchange{}}
	l.lists.link, l.attribution.link = l, l
	l.hopeFor = l.gw.now.Add(l.gw.opts.ListWait)
	if s.standing == untested && needed { // its first links share one deadline, but not with one that is only asked for the era
		if !l.gw.now.Before(s.hopeFor) {
			s.hopeFor = l.hopeFor
		}
		l.hopeFor = s.hopeFor
	}
	l.gw.at(l.hopeFor)
	return l
}

// connect makes the kept server, unless the limit of session processes is reached; it returns false then.
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

// Needed reports whether the server is to be used, translated if necessary; a link that is not needed only tests the
// server's era.
func (l *Link) Needed() bool { return l.needed }

// sharedModern reports whether requests of many modern clients go to the one process.
func (l *Link) sharedModern() bool { return l.scope.era == mcp.Modern && !l.gw.opts.Single }

// Client names the client whose own process this is, or with Plain those that share it; "" if many use it.
func (l *Link) Client() string {
	if l.scope.owner != nil {
		return l.scope.owner.name
	}
	var names []string
	for s := range l.scope.members {
		if l.gw.opts.Plain && !slices.Contains(names, s.name) {
			names = append(names, s.name)
		}
	}
	return strings.Join(names, ", ")
}

// apart says why the clients of a shared server have this process and not the one that others have; "": there is no other one.
func apart(l *Link) string {
	sc := l.scope
	others := func(other *scope) bool { return other != sc && len(other.links[l.server]) > 0 }
	switch {
	case !l.gw.opts.Plain || !slices.ContainsFunc(l.gw.pools, others):
		return ""
	case sc.era == mcp.Modern:
		return "they speak the modern era of the protocol"
	case sc.pool.private:
		return "the server has tasks, which would be shown to other clients, too"
	}
	return "they declare other capabilities"
}

// Behind reports whether the link's client reads so slowly that the server must not be read now.
func (l *Link) Behind() bool {
	o := l.scope.owner
	return o != nil && o.behind != nil && o.behind()
}

// Finished reports that nothing is kept alive behind the link any more.
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
	l.abandon(jsonrpc.ErrorObject(nil, jsonrpc.InternalError, "the server has ended", nil))
	l.gw.states = slices.DeleteFunc(l.gw.states, func(one stateOwner) bool { return one.link == l })
	l.gw.flush()
}

// drop removes the link from its scope: the next call makes another one.
func (l *Link) drop() {
	links := l.scope.links[l.server]
	l.scope.links[l.server] = slices.DeleteFunc(slices.Clone(links), func(one *Link) bool { return one == l })
}

// retire ends the link after its open requests.
func (l *Link) retire() {
	if l.phase == retired || l.phase == ended {
		return
	}
	waiting := l.waiting
	l.waiting = nil
	l.phase = retired
	l.attribution.rule()
	for _, e := range waiting {
		e.refuse(jsonrpc.InternalError, "the server was taken out of the configuration before it was ready")
	}
	l.endIfIdle()
}

// endIfIdle ends a retired link when nothing is in flight.
func (l *Link) endIfIdle() {
	if l.phase != retired || l.busy() > 0 {
		return
	}
	l.phase = ended
	for _, e := range inOrder(l.calls) {
		if e.then != nil && e.method != mcp.Initialize { // otherwise its answer would be waited for with the server's end
			l.gw.post(l, mcp.CancelledLine(rawID(e.num), "nobody waits for it any more"))
		}
	}
	l.abandon(jsonrpc.ErrorObject(nil, jsonrpc.InternalError, "the server was taken out of the configuration", nil))
	l.gw.post(l, nil)
}

// abandon answers the clients' open requests. The gateway's own are dropped.
func (l *Link) abandon(err []byte) {
	open := append(inOrder(l.calls), l.waiting...)
	clear(l.calls)
	l.waiting = nil
	for _, e := range open {
		if e.session != nil {
			e.answerError(err)
		}
	}
	for _, a := range l.asks() {
		a.settle()
		a.stream().Send(mcp.CancelledLine([]byte(a.shown), "the server has ended"))
	}
	l.attribution.drop(nil)
	clear(l.attribution.cancelled)
}

// forget removes an exchange.
func (l *Link) forget(e *exchange) {
	delete(l.calls, e.num)
	if l.mustAttribute() && (len(l.attribution.open) > 0 || len(l.waiting) > 0) {
		l.gw.at(l.gw.now)
	}
}

// listed reports whether lists of the server are known, each as far as it was shown or is remembered.
func (l *Link) listed() bool {
	return l.lists.all != nil && l.phase != failed && l.phase != unsupported
}

// unsettled reports whether the link has neither shown its lists nor failed.
func (l *Link) unsettled() bool { return l.phase == greeting || l.phase == ready && !l.lists.complete }

// hopeful reports whether one of these lists of the link may still come soon.
func (l *Link) hopeful(kinds []mcp.List) bool {
	return l.unsettled() && l.server.standing != unusable && l.gw.now.Before(l.hopeFor) &&
		slices.ContainsFunc(kinds, func(kind mcp.List) bool { return !l.lists.reads[kind].done })
}

// ranks order a server's links by how soon they answer; among equals the less loaded is better.
var ranks = [...]int{ready: 0, greeting: 1, failed: 2, unsupported: 3, retired: 3, ended: 3}

// load is how many calls clients wait for.
func (l *Link) load() int { return l.busy() + len(l.waiting) }

// busy is how many of those the server has.
func (l *Link) busy() (n int) {
	for _, e := range l.calls {
		if e.counts() {
			n++
		}
	}
	return n
}

// again schedules the next try after the tries-th failure, and returns the delay.
func (l *Link) again(tries int) time.Duration {
	wait := min(greetAgain<<min(tries-1, 10), greetRarely)
	l.retryAt = l.gw.now.Add(wait)
	l.gw.at(l.retryAt)
	return wait
}

// sooner retries a failed handshake because a client needs the server, but not more often than greetAgain.
func (l *Link) sooner() {
	if at := l.failAt.Add(greetAgain); l.phase == failed && at.Before(l.retryAt) {
		l.retryAt = at
		l.tick()
	}
}

// tick retries what has failed, and ends what has waited long enough.
func (l *Link) tick() {
	l.attribution.tick()
	l.lists.tick()
	if l.unsettled() && l.gw.isDue(&l.hopeFor) {
		l.waitedEnough()
	}
	switch due := l.gw.isDue(&l.retryAt); {
	case due && l.phase == failed:
		l.greet()
	case due:
		l.lists.readAgain()
	}
}

func rawID(id uint64) []byte { return strconv.AppendUint(nil, id, 10) }

// ask sends the server a request of the gateway's own, with raw params, which is an object; then gets the raw result or the raw error.
func (l *Link) ask(m mcp.Method, params []byte, then func(result, err []byte)) {
	if l.scope.era == mcp.Modern {
		params, _ = jsonrpc.Set(nil, params, l.gw.meta(), "_meta")
	}
	e := &exchange{num: l.gw.number(), link: l, method: m, then: then}
	l.calls[e.num] = e
	l.gw.post(l, jsonrpc.AppendRequest(nil, rawID(e.num), m.String(), params))
}

// meta identifies the gateway, as every modern request must, with the capabilities of its single client: a translated
// server gets them in its handshake.
func (g *Gateway) meta() []byte {
	return mcp.RequestMeta(g.info(), g.can)
}

// info is the gateway's name and version.
func (g *Gateway) info() []byte {
	out := jsonrpc.AppendQuoted([]byte(`{"name":"outlive","title":"outlive gateway","version":`), g.opts.Version)
	return append(out, '}')
}

// madeHere is the raw _meta of a result of the modern era that the gateway makes itself. before are members in front of it,
// each with its comma.
func (g *Gateway) madeHere(before string) []byte {
	out := append([]byte(`{`+before+`"`+mcp.MetaServerInfo+`":`), g.info()...)
	return append(out, '}')
}

// capability reports whether the server has declared the capability.
func (l *Link) capability(name string) bool { return declares(l.result, name) }

// declares reports whether a raw handshake result has the capability.
func declares(result []byte, capability string) bool {
	return jsonrpc.FindPath(result, "capabilities", capability).Present()
}
