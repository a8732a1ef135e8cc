package gateway

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/outlive-mcp/outlive/internal/protocol/jsonrpc"
	"github.com/outlive-mcp/outlive/internal/protocol/mcp"
)

// target is where a request goes: the server, and its own name for the tool, prompt or resource.
type target struct {
	server *server
	own    string       // the server's own name of the tool, prompt or resource; "": unchanged
	at     jsonrpc.Span // of that in the client's line
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
		code, text := s.unknown(e, line)
		e.refuse(code, text)
		return
	}
	kept := bytes.Clone(line)
	refuse := func() {
		code, text := s.unknown(e, kept)
		e.refuse(code, text)
	}
	look := func() { s.scope().lookAgain(e, retrying(s, e, kept, refuse)) }
	s.scope().noLongerPresume()
	s.scope().whenListed(e, retrying(s, e, kept, look))
}

// retrying returns what sends a request once its server is known, and calls otherwise if it is not.
func retrying(s *Session, e *exchange, line []byte, otherwise func()) func() {
	return func() {
		if s.gw.client.Scan(line) != nil {
			return // it was a message before
		}
		if t, ok := s.find(e, line); ok {
			s.send(e, line, t)
			return
		}
		otherwise()
	}
}

// find looks up the server of a request.
func (s *Session) find(e *exchange, line []byte) (target, bool) {
	env := &s.gw.client
	if s.gw.opts.Plain {
		return target{server: s.gw.servers[0]}, true
	}
	view := s.shown()
	named := func(look func(string) (int, string, bool), at jsonrpc.Span) (target, bool) {
		name, _ := jsonrpc.Unquote(at.Of(line))
		i, own, ok := look(name)
		if !ok {
			return target{}, false
		}
		return target{s.gw.servers[i], own, at}, true
	}
	switch e.method {
	case mcp.ToolsCall:
		return named(view.Tool, env.Name)
	case mcp.PromptsGet:
		return named(view.Prompt, env.Name)
	case mcp.ResourcesRead, mcp.Subscribe, mcp.Unsubscribe:
		return s.resource(line, env.URI)
	case mcp.Complete:
		params := env.Params.Of(line)
		if ref := jsonrpc.FindPath(params, "ref", "name"); ref.Present() {
			return named(view.Prompt, within(env.Params, ref))
		}
		return s.resource(line, within(env.Params, jsonrpc.FindPath(params, "ref", "uri")))
	}
	if all := s.servers(); len(all) == 1 { // there is only one server
		return target{server: all[0]}, true
	}
	return target{}, false
}

// resource looks up the server of the raw URI at the given place. A URI that no list has goes to the first server with
// similar ones.
func (s *Session) resource(text []byte, at jsonrpc.Span) (target, bool) {
	uri, ok := jsonrpc.Unquote(at.Of(text))
	if !ok {
		return target{}, false
	}
	sc := s.scope()
	view := s.shown()
	if i, own, ok := view.Owner(uri); ok {
		t := target{server: s.gw.servers[i]}
		if own != uri {
			t.own, t.at = own, at
		}
		return t, true
	}
	if !sc.complete(s.view, resourcesOnly) {
		return target{}, false
	}
	if like := view.Candidates(uri); len(like) > 0 {
		return target{server: s.gw.servers[like[0]]}, true
	}
	var with []*server
	for _, server := range s.servers() {
		if slices.ContainsFunc(sc.all(server), func(l *Link) bool { return l.capability("resources") }) {
			with = append(with, server)
		}
	}
	if len(with) == 1 {
		return target{server: with[0]}, true
	}
	return target{}, false
}

// send forwards a request.
func (s *Session) send(e *exchange, line []byte, t target) {
	if s.unplaced() {
		s.askRoots()
		kept := bytes.Clone(line)
		s.own.hold(e, func(*scope) bool { return !s.unplaced() }, func() {
			if s.gw.client.Scan(kept) == nil { // it was a message before
				s.send(e, kept, t)
			}
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
		if e.uri = t.own; t.own == "" {
			e.uri, _ = jsonrpc.Unquote(env.URI.Of(line))
		}
		if l = s.subscribe(e, l); l == nil {
			return
		}
	}
	if t.own == "" {
		e.relay(l, env, line, change{})
		return
	}
	if e.method == mcp.ResourcesRead {
		e.uri, e.ownURI = string(env.URI.Of(line)), t.own
	}
	s.gw.name = jsonrpc.AppendQuoted(s.gw.name[:0], t.own)
	e.relay(l, env, line, change{t.at, s.gw.name})
}

// unknown is the error for a request that no server takes.
func (s *Session) unknown(e *exchange, line []byte) (code int, text string) {
	env := &s.gw.client
	name, _ := jsonrpc.Unquote(env.Name.Of(line))
	uri, _ := jsonrpc.Unquote(env.URI.Of(line))
	switch e.method {
	case mcp.ToolsCall:
		return jsonrpc.InvalidParams, "Unknown tool: " + name + s.missing()
	case mcp.PromptsGet:
		return jsonrpc.InvalidParams, "Unknown prompt: " + name + s.missing()
	case mcp.ResourcesRead, mcp.Subscribe, mcp.Unsubscribe:
		if s.own != nil {
			return resourceNotFound, "Resource not found: " + uri + s.missing()
		}
		return jsonrpc.InvalidParams, "Resource not found: " + uri + s.missing()
	case mcp.Complete:
		return jsonrpc.InvalidParams, "Unknown reference" + s.missing()
	}
	return jsonrpc.MethodNotFound, "Method not found"
}

// resourceNotFound is the legacy era's code for that.
const resourceNotFound = -32002

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
				text += fmt.Sprintf(" (server %s cannot be used: %s; a start of it is under way, and nothing was delivered to it: it is safe to try again in a moment)", server.Catalog.Name, server.trouble)
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
