package gateway

import (
	"bytes"
	"strconv"
	"time"

	"github.com/outlive-mcp/outlive/internal/catalog"
	"github.com/outlive-mcp/outlive/internal/jsonrpc"
	"github.com/outlive-mcp/outlive/internal/mcp"
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

// Link is one kept server as the gateway is its client.
type Link struct {
	gw     *Gateway
	server *server
	scope  *scope
	up     Upstream
	phase  phase

	result  []byte // raw InitializeResult or DiscoverResult
	trouble []byte // raw error of the handshake that failed last
	fails   int
	retryAt time.Time

	lists   *catalog.Lists
	walks   [mcp.Lists]walk
	lastID  uint64
	calls   map[uint64]*exchange
	waiting []*exchange // until the handshake is over
	level   []byte      // raw params of the logging/setLevel that the server was told

	listening bool // it was asked to tell of changes of its lists
}

func newLink(sc *scope, s *server) *Link {
	l := &Link{gw: sc.gw, server: s, scope: sc, calls: map[uint64]*exchange{}}
	l.up = sc.gw.world.Connect(l)
	return l
}

// Name is the name of the link's server.
func (l *Link) Name() string { return l.server.Catalog.Name }

// Era is the era the link speaks.
func (l *Link) Era() mcp.Era { return l.scope.era }

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
	l.up = nil
	l.fail(errorOf("the server has ended"))
	if l.phase != retired && l.phase != ended {
		l.drop()
	}
	l.phase = ended
	l.gw.flush()
}

// drop takes the link out of its scope: the next call makes another one.
func (l *Link) drop() {
	links := l.scope.links[l.server]
	for i, one := range links {
		if one == l {
			l.scope.links[l.server] = append(links[:i:i], links[i+1:]...)
		}
	}
	if l.lists != nil {
		l.server.known = l.lists
	}
}

// retire lets the link finish what it was asked and then ends it.
func (l *Link) retire() {
	if l.phase == retired || l.phase == ended {
		return
	}
	if l.listed() {
		l.server.known = l.lists
	}
	for _, e := range l.waiting {
		e.refuse(jsonrpc.InternalError, "the server was taken out of the configuration before it was ready")
	}
	l.waiting = nil
	l.phase = retired
	l.endIfIdle()
}

// endIfIdle ends a retired link once nothing is in flight.
func (l *Link) endIfIdle() {
	if l.phase != retired {
		return
	}
	for _, e := range l.calls {
		if e.session != nil && e.method != mcp.Listen {
			return
		}
	}
	l.phase = ended
	for _, e := range l.calls {
		e.refuse(jsonrpc.InternalError, "the server was taken out of the configuration")
	}
	if l.up != nil {
		l.up.Close()
	}
}

// listed reports whether all lists of the server are known.
func (l *Link) listed() bool { return l.lists != nil && l.phase != failed && l.phase != foreign }

// hopeful reports whether lists may still come soon.
func (l *Link) hopeful() bool {
	return l.phase == greeting || l.phase == ready && l.lists == nil
}

// tick tries a handshake again.
func (l *Link) tick() {
	if l.phase != failed || l.retryAt.IsZero() {
		return
	}
	if l.gw.now.Before(l.retryAt) {
		l.gw.at(l.retryAt)
		return
	}
	l.retryAt = time.Time{}
	l.greet()
}

// nextID makes up the id of a request.
func (l *Link) nextID() uint64 {
	l.lastID++
	return l.lastID
}

func rawID(id uint64) []byte { return strconv.AppendUint(nil, id, 10) }

// ask sends the server a request of the gateway's own; then gets the raw result, or the raw error.
func (l *Link) ask(m mcp.Method, make func(id []byte) []byte, then func(result, err []byte)) {
	id := l.nextID()
	l.calls[id] = &exchange{link: l, upID: id, method: m, then: then}
	l.gw.post(l, make(rawID(id)))
}

// meta is the _meta of the gateway's own requests to a modern server.
func (l *Link) meta() []byte {
	if l.scope.era != mcp.Modern {
		return nil
	}
	return l.gw.meta()
}

// meta says who the gateway is, as every request of the modern era does.
func (g *Gateway) meta() []byte {
	out := []byte(`{"` + mcp.MetaProtocolVersion + `":"` + mcp.ModernVersion + `","` + mcp.MetaClientInfo + `":`)
	out = append(out, g.info()...)
	return append(out, `,"`+mcp.MetaClientCapabilities+`":{}}`...)
}

// info is the gateway's name and version.
func (g *Gateway) info() []byte {
	out := jsonrpc.AppendQuoted([]byte(`{"name":"outlive","title":"outlive gateway","version":`), g.opts.Version)
	return append(out, '}')
}

// errorOf makes a raw JSON-RPC error object.
func errorOf(text string) []byte {
	out := jsonrpc.AppendQuoted([]byte(`{"code":`+strconv.Itoa(jsonrpc.InternalError)+`,"message":`), text)
	return append(out, '}')
}

// capability reports whether the server has declared the capability.
func (l *Link) capability(path ...string) bool {
	return jsonrpc.FindPath(l.result, append([]string{"capabilities"}, path...)...).Present()
}

// messageOf reads the text of a raw error object.
func messageOf(err []byte) string {
	text, ok := jsonrpc.Unquote(jsonrpc.Find(err, "message").Of(err))
	if !ok {
		return string(bytes.ToValidUTF8(err, nil))
	}
	return text
}
