package gateway

import (
	"bytes"
	"slices"

	"github.com/outlive-mcp/outlive/internal/protocol/jsonrpc"
	"github.com/outlive-mcp/outlive/internal/protocol/mcp"
)

// listen is an open subscriptions/listen request of a client. The gateway itself reports list changes; resources are
// listened for at their servers.
type listen struct {
	exchange *exchange
	line     []byte              // the request as it came
	lists    map[mcp.Method]bool // which list changes it wants
	uris     [][]byte            // raw URIs of the resources it wants
	seen     seen
	legs     []*exchange // its parts, one at each server
}

// listen takes subscriptions/listen.
func (s *Session) listen(e *exchange, line []byte) {
	kept, sc := bytes.Clone(line), s.gw.modern
	params := bytes.Clone(s.gw.client.Params.Of(line))
	sc.whenListed(e, func() {
		filter := jsonrpc.Find(params, "notifications").Of(params)
		l := &listen{exchange: e, line: kept, lists: map[mcp.Method]bool{}}
		wants := func(kind mcp.List) bool { return kind.In(filter) }
		for _, kind := range mcp.Announced {
			l.lists[kind.Changed()] = wants(kind)
		}
		uris := jsonrpc.Find(filter, "resourceSubscriptions").Of(filter)
		for at := range jsonrpc.Elements(uris) {
			if len(l.uris) == mcp.ListenURIsMost {
				break
			}
			l.uris = append(l.uris, at.Of(uris))
		}
		view := s.shown()
		for kind := range mcp.Lists {
			l.seen[kind] = view
		}
		sc.listens = append(sc.listens, l)
		e.stream.Send(mcp.AcknowledgedLine([]byte(e.id), mcp.ListenFilter(wants, l.uris)))
		s.listenForResources(l)
	})
}

// listenForResources subscribes to the resources at each server that has some, unless that was done.
func (s *Session) listenForResources(l *listen) {
	if len(l.uris) == 0 {
		return
	}
	of := map[*server][][]byte{}
	for _, uri := range l.uris {
		if t, ok := s.resource(uri, jsonrpc.Span{End: len(uri)}); ok {
			if t.own != "" {
				uri = jsonrpc.AppendQuoted(nil, t.own)
			}
			of[t.server] = append(of[t.server], uri)
		}
	}
	for _, server := range s.gw.servers {
		if of[server] == nil || slices.ContainsFunc(l.legs, func(one *exchange) bool { return one.link.Name() == server.Catalog.Name }) {
			continue
		}
		var env jsonrpc.Envelope // the scratch may be in use: a server's answer can lead here
		link := s.gw.modern.link(server)
		if link == nil || env.Scan(l.line) != nil {
			continue
		}
		one := &exchange{num: s.gw.number(), session: s, stream: l.exchange.stream, id: l.exchange.id, method: mcp.Listen, link: link}
		one.then = func(_, _ []byte) { // its end is not the client's: it is asked again on the next change
			l.legs = slices.DeleteFunc(l.legs, func(other *exchange) bool { return other == one })
		}
		l.legs = append(l.legs, one)
		filter := jsonrpc.AppendElements([]byte(`{"resourceSubscriptions":`), []byte("[]"), of[server]...)
		at := jsonrpc.Find(env.Params.Of(l.line), "notifications").In(env.Params)
		one.relay(link, &env, l.line, jsonrpc.Change{At: at, With: append(filter, '}')})
	}
}

// stopListen ends a client's listen request.
func (sc *scope) stopListen(e *exchange, reason string) {
	at := slices.IndexFunc(sc.listens, func(l *listen) bool { return l.exchange == e })
	if at < 0 {
		return
	}
	legs := sc.listens[at].legs
	sc.listens = slices.Delete(sc.listens, at, at+1)
	for _, one := range legs {
		one.withdraw(reason)
	}
}

// endListens answers all listen requests: nothing more will come.
func (sc *scope) endListens() {
	for _, l := range slices.Clone(sc.listens) {
		sc.stopListen(l.exchange, "the gateway ends")
		meta := sc.gw.madeHere(`"` + mcp.MetaSubscriptionID + `":` + l.exchange.id + `,`)
		l.exchange.answer(append(append([]byte(`{"resultType":"complete","_meta":`), meta...), '}'))
	}
}

// whenTried runs again once it is known of every server that the client sees whether it is modern, or after the waiting time.
func (sc *scope) whenTried(e *exchange, again func()) {
	view := e.session.view
	sc.showing(view).probed = true
	sc.probeEras(view)
	unknown := func(s *server) bool {
		return s.modern == untried && !s.bridged &&
			slices.ContainsFunc(sc.links[s], func(l *Link) bool { return l.phase == greeting && l.fails == 0 && l.hopeful(allLists) })
	}
	sc.hold(e, func() bool { return !slices.ContainsFunc(e.session.servers(), unknown) }, again)
}
