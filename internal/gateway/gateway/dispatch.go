package gateway

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/outlive-mcp/outlive/internal/gateway/catalog"
	"github.com/outlive-mcp/outlive/internal/protocol/jsonrpc"
	"github.com/outlive-mcp/outlive/internal/protocol/mcp"
)

// target is where a request goes: the server, and its own name for the tool, prompt or resource.
type target struct {
	server *server
	own    string       // the server's own name of the tool, prompt or resource
	at     jsonrpc.Span // where that belongs in the client's line; absent: it stays as it is
}

// dispatch sends a request to its server. If that is unknown because servers have not shown their lists yet, it waits
// for them.
func (s *Session) dispatch(e *exchange, line []byte) {
	if e.method == mcp.ToolsCall && s.callTool(e, line) {
		return
	}
	if t, ok := s.find(e, line); ok {
		s.send(e, line, t)
		return
	}
	if e.method == mcp.Other { // no list will show whose it is
		s.refuseUnknown(e, line)
		return
	}
	kept, env := bytes.Clone(line), s.gw.client
	retrying := func(otherwise func()) func() {
		return func() {
			s.gw.client = env
			if t, ok := s.find(e, kept); ok {
				s.send(e, kept, t)
				return
			}
			otherwise()
		}
	}
	refuse := func() { s.refuseUnknown(e, kept) }
	look := func() { s.scope().lookAgain(e, retrying(func() { s.scope().whenStarted(e, retrying(refuse)) })) }
	s.scope().noLongerPresume()
	s.scope().whenListed(e, retrying(look))
}

// find looks up the server of a request.
func (s *Session) find(e *exchange, line []byte) (target, bool) {
	env := &s.gw.client
	if s.gw.opts.Plain {
		return target{server: s.gw.servers[0]}, true
	}
	switch e.method {
	case mcp.ToolsCall:
		return s.named(mcp.Tools, line, env.Name)
	case mcp.PromptsGet:
		return s.named(mcp.Prompts, line, env.Name)
	case mcp.ResourcesRead, mcp.Subscribe, mcp.Unsubscribe:
		return s.resource(line, env.URI)
	case mcp.Complete:
		params := env.Params.Of(line)
		if ref := jsonrpc.FindPath(params, "ref", "name"); ref.Present() {
			return s.named(mcp.Prompts, line, ref.In(env.Params))
		}
		return s.resource(line, jsonrpc.FindPath(params, "ref", "uri").In(env.Params))
	}
	if all := s.servers(); len(all) == 1 { // there is only one server
		return target{server: all[0]}, true
	}
	return target{}, false
}

// named looks up the server of the tool or prompt whose raw name is at the given place. One that is not shown may be what a server
// itself calls it: dots, slashes and long names are shown changed. It must not have been shown for another tool, nor be one
// that a server which has not shown its list may have, too.
func (s *Session) named(l mcp.List, line []byte, at jsonrpc.Span) (target, bool) {
	name, ok := jsonrpc.Unquote(at.Of(line))
	if !ok {
		return target{}, false
	}
	view := s.shown()
	if i, own, ok := view.Named(l, name); ok {
		return target{s.gw.servers[i], own, at}, true
	}
	if s.gw.catalog.Given(l, name) || !s.scope().complete(s.view, []mcp.List{l}, s.gw.servers) {
		return target{}, false
	}
	i, ok := view.Own(l, name)
	if !ok {
		return target{}, false
	}
	return target{s.gw.servers[i], name, at}, true
}

// resource looks up the server of the raw URI at the given place. The first of several servers with a URI has it, so those before one
// that lists it must have shown what they have. A URI that no list has goes to the first server with similar ones.
func (s *Session) resource(text []byte, at jsonrpc.Span) (target, bool) {
	uri, ok := jsonrpc.Unquote(at.Of(text))
	if !ok {
		return target{}, false
	}
	sc := s.scope()
	view := s.shown()
	if i, own, ok := view.Owner(uri); ok {
		if !sc.complete(s.view, resourcesOnly, s.gw.servers[:i]) {
			return target{}, false
		}
		t := target{server: s.gw.servers[i]}
		if own != uri {
			t.own, t.at = own, at
		}
		return t, true
	}
	if !sc.complete(s.view, resourcesOnly, s.gw.servers) {
		return target{}, false
	}
	if like := view.Candidates(uri); len(like) > 0 {
		return target{server: s.gw.servers[like[0]]}, true
	}
	with := slices.DeleteFunc(s.servers(), func(one *server) bool {
		return !slices.ContainsFunc(sc.all(one), func(l *Link) bool { return l.capability("resources") })
	})
	if len(with) == 1 {
		return target{server: with[0]}, true
	}
	return target{}, false
}

// send forwards a request.
func (s *Session) send(e *exchange, line []byte, t target) {
	if s.unplaced() {
		s.askRoots()
		kept, env := bytes.Clone(line), s.gw.client
		s.own.hold(e, func() bool { return !s.unplaced() }, func() {
			s.gw.client = env
			s.send(e, kept, t)
		})
		return
	}
	env := &s.gw.client
	l := s.gw.states.owner(env.RequestState.Of(line), t.server)
	if l == nil {
		l = s.scope().link(t.server)
	}
	if l == nil {
		e.refuse(jsonrpc.InternalError, fmt.Sprintf("server %s is not available", t.server.Catalog.Name))
		return
	}
	if e.method == mcp.Subscribe || e.method == mcp.Unsubscribe {
		if e.uri = t.own; !t.at.Present() {
			e.uri, _ = jsonrpc.Unquote(env.URI.Of(line))
		}
		if l = s.subscribe(e, l); l == nil {
			return
		}
	}
	if !t.at.Present() {
		e.relay(l, env, line, jsonrpc.Change{})
		return
	}
	if e.method == mcp.ResourcesRead {
		e.uri, e.ownURI = string(env.URI.Of(line)), t.own
	}
	s.gw.name = jsonrpc.AppendQuoted(s.gw.name[:0], t.own)
	e.relay(l, env, line, jsonrpc.Change{At: t.at, With: s.gw.name})
}

// refuseUnknown answers a request that no server takes.
func (s *Session) refuseUnknown(e *exchange, line []byte) {
	env := &s.gw.client
	name, _ := jsonrpc.Unquote(env.Name.Of(line))
	uri, _ := jsonrpc.Unquote(env.URI.Of(line))
	code, text := jsonrpc.InvalidParams, "Unknown reference"
	switch e.method {
	case mcp.ToolsCall:
		text = "Unknown tool: " + name + alike(s.shown(), mcp.Tools, name)
	case mcp.PromptsGet:
		text = "Unknown prompt: " + name + alike(s.shown(), mcp.Prompts, name)
	case mcp.ResourcesRead, mcp.Subscribe, mcp.Unsubscribe:
		if text = "Resource not found: " + uri; s.own != nil {
			code = mcp.CodeNoResource
		}
	case mcp.Complete:
	default:
		e.refuse(jsonrpc.MethodNotFound, "Method not found")
		return
	}
	e.refuse(code, text+s.missing())
}

// alike names those of several servers that may be meant by an own name.
func alike(view *catalog.View, l mcp.List, own string) string {
	if called := view.Called(l, own); len(called) > 1 {
		return " (several servers have one: " + strings.Join(called, ", ") + ")"
	}
	return ""
}

// missing lists the servers that are not usable now, or not yet, or do not show a list, which may have what is looked for. They are
// tried again.
func (s *Session) missing() string {
	text := ""
	for _, server := range s.servers() {
		for _, l := range s.scope().all(server) {
			if l.fails > 0 {
				l.sooner()
				text += fmt.Sprintf(" (server %s cannot be used: %s)", server.Catalog.Name, messageOf(l.unusable()))
				break
			}
			if l.unsettled() && server.standing == unusable {
				text += fmt.Sprintf(" (server %s cannot be used: %s; it is tried again by itself, and nothing was delivered to it)", server.Catalog.Name, server.trouble)
				break
			}
			if lack := l.lists.lacking(); lack != "" {
				text += fmt.Sprintf(" (server %s is used without a list: %s)", server.Catalog.Name, lack)
				break
			}
		}
	}
	return text
}
