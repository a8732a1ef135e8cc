package gateway

import (
	"bytes"
	"slices"

	"github.com/outlive-mcp/outlive/internal/catalog"
	"github.com/outlive-mcp/outlive/internal/jsonrpc"
	"github.com/outlive-mcp/outlive/internal/mcp"
)

// listen is an open subscriptions/listen request of a client. What it asks of lists the gateway tells itself; resources are
// listened for at the servers that have them.
type listen struct {
	exchange *exchange
	lists    map[mcp.Method]bool // which changes it wants to hear of
	seen     seen
	legs     []*exchange // one for each server that was asked about resources
}

// listTold are the members of the filter that ask to be told of changes.
var listTold = []struct {
	member string
	method mcp.Method
}{
	{"toolsListChanged", mcp.NoteToolsChanged},
	{"promptsListChanged", mcp.NotePromptsChanged},
	{"resourcesListChanged", mcp.NoteResourcesChanged},
}

// listen takes subscriptions/listen.
func (s *Session) listen(e *exchange, line []byte) {
	env := &s.gw.client
	kept, sc := bytes.Clone(line), s.gw.modern
	params := bytes.Clone(env.Params.Of(line))
	sc.whenListed(s, string(e.id), func() {
		filter := jsonrpc.Find(params, "notifications").Of(params)
		l := &listen{exchange: e, lists: map[mcp.Method]bool{}}
		for _, t := range listTold {
			l.lists[t.method] = string(jsonrpc.Find(filter, t.member).Of(filter)) == "true"
		}
		view := sc.current()
		for kind := range mcp.Lists {
			l.seen[kind] = view
		}
		sc.listens = append(sc.listens, l)
		ack := append([]byte(`{"_meta":{"`+mcp.MetaSubscriptionID+`":`), e.id...)
		ack = append(ack, `},"notifications":`...)
		if filter == nil {
			filter = []byte("{}")
		}
		e.stream.Send(jsonrpc.AppendNotification(nil, mcp.NoteAcknowledged.String(), append(append(ack, filter...), '}')))
		s.listenForResources(l, kept, filter)
	})
}

// listenForResources asks each server that has some of the resources to tell of their changes.
func (s *Session) listenForResources(l *listen, line, filter []byte) {
	uris := jsonrpc.Find(filter, "resourceSubscriptions").Of(filter)
	of := map[*server][][]byte{}
	for at := range jsonrpc.Elements(uris) {
		if t, ok := s.resource(at.Of(uris)); ok {
			of[t.server] = append(of[t.server], at.Of(uris))
		}
	}
	for server, list := range of {
		link := s.gw.modern.link(server)
		if link == nil || s.gw.client.Scan(line) != nil {
			continue
		}
		wanted := jsonrpc.AppendElements([]byte(`{"resourceSubscriptions":`), []byte("[]"), list...)
		at := within(s.gw.client.Params, jsonrpc.Find(s.gw.client.Params.Of(line), "notifications"))
		leg := &exchange{session: s, stream: l.exchange.stream, id: l.exchange.id, method: mcp.Listen}
		leg.then = func(_, _ []byte) {} // its end is not the client's: the link listens again after a restart
		l.legs = append(l.legs, leg)
		leg.relay(link, &s.gw.client, line, change{at, append(wanted, '}')})
	}
}

// stopListen ends a client's listen request.
func (sc *scope) stopListen(e *exchange, reason string) {
	sc.listens = slices.DeleteFunc(sc.listens, func(l *listen) bool {
		if l.exchange != e {
			return false
		}
		for _, leg := range l.legs {
			if _, open := leg.link.calls[leg.upID]; open {
				delete(leg.link.calls, leg.upID)
				sc.gw.post(leg.link, mcp.CancelledLine(rawID(leg.upID), reason))
				leg.link.endIfIdle()
			}
		}
		return true
	})
}

// leave ends everything a session has open in a scope that many use.
func (sc *scope) leave(s *Session) {
	sc.forget(s)
	for _, l := range slices.Clone(sc.listens) {
		if l.exchange.session == s {
			sc.stopListen(l.exchange, "the client has left")
		}
	}
}

// tellChanges tells of the lists that are others now.
func (l *listen) tellChanges(view *catalog.View) {
	told := map[mcp.Method]bool{}
	for kind := range mcp.Lists {
		m := kind.Changed()
		if l.seen.differs(kind, view) && l.lists[m] && !told[m] {
			told[m] = true
			l.exchange.stream.Send(mcp.ChangedLine(kind, l.exchange.id))
		}
	}
}

// whenTried runs again once it is known of every server whether it speaks the modern era, or when that has been waited
// for long enough.
func (sc *scope) whenTried(s *Session, id string, again func()) {
	sc.openAll()
	for _, server := range sc.gw.servers {
		if server.modern == untried {
			sc.whenListed(s, id, again)
			return
		}
	}
	again()
}
