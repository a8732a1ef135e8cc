package gateway

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/outlive-mcp/outlive/internal/gateway/catalog"
	"github.com/outlive-mcp/outlive/internal/keep/supervise"
	"github.com/outlive-mcp/outlive/internal/protocol/jsonrpc"
	"github.com/outlive-mcp/outlive/internal/protocol/mcp"
)

// The gateway's own tools: those of RT-1, for all servers.
const (
	toolStatus  = "outlive_server_status"
	toolRestart = "outlive_restart_server"
)

var ownTools = [][]byte{
	[]byte(`{"name":"` + toolStatus + `","description":"Show how the MCP servers behind this gateway are doing.\n\n` +
		`Tells for each whether it is running, starting or down, its process id, how often it was restarted, how it last\n` +
		`ended and what it last wrote to stderr. Use when calls fail, before deciding to restart a server.",` +
		`"inputSchema":{"type":"object","properties":{"server":{"type":"string","description":"Only this server"}},"additionalProperties":false},` +
		`"annotations":{"readOnlyHint":true,"openWorldHint":false}}`),
	[]byte(`{"name":"` + toolRestart + `","description":"Restart one MCP server behind this gateway, to load changed code or to recover it.\n\n` +
		`The connection stays, and so do calls in flight: the new process takes over when it is ready. If it does not come up,\n` +
		`the old one goes on. Ask ` + toolStatus + ` afterwards.",` +
		`"inputSchema":{"type":"object","properties":{"server":{"type":"string","description":"Name of the server"},` +
		`"reason":{"type":"string","description":"Why, for the audit log"}},"required":["server"],"additionalProperties":false},` +
		`"annotations":{"readOnlyHint":false,"destructiveHint":false,"idempotentHint":true,"openWorldHint":false}}`),
}

// withTools adds the gateway's own tools to the end of the first page of tools.
func (s *Session) withTools(result []byte, view *catalog.View) []byte {
	at := jsonrpc.Find(result, "tools")
	if s.gw.viewOf(s.view).noTools || !at.Present() {
		return result
	}
	var free [][]byte
	for i, name := range []string{toolStatus, toolRestart} {
		if _, _, theirs := view.Named(mcp.Tools, name); !theirs {
			free = append(free, ownTools[i])
		}
	}
	return jsonrpc.Replace(nil, result, at, jsonrpc.AppendElements(nil, at.Of(result), free...))
}

// callTool answers a call of one of the gateway's own tools. A server's tool of the same name takes precedence.
func (s *Session) callTool(e *exchange, line []byte) bool {
	g := s.gw
	raw := g.client.Name.Of(line)
	if g.viewOf(s.view).noTools || !jsonrpc.EqualString(raw, toolStatus) && !jsonrpc.EqualString(raw, toolRestart) {
		return false
	}
	name, _ := jsonrpc.Unquote(raw)
	if _, _, theirs := s.shown().Named(mcp.Tools, name); theirs {
		return false
	}
	params := g.client.Params.Of(line)
	var args struct{ Server, Reason string }
	if raw := jsonrpc.Find(params, "arguments").Of(params); raw != nil && json.Unmarshal(raw, &args) != nil {
		e.refuse(jsonrpc.InvalidParams, name+`: arguments are {"server": "name", "reason": "text"}`)
		return true
	}
	names := namesOf(s.servers())
	if args.Server != "" && !slices.Contains(names, args.Server) {
		e.say(fmt.Sprintf("There is no server %q. There are: %s.", args.Server, strings.Join(names, ", ")), true)
		return true
	}
	switch {
	case name == toolStatus:
		e.say(g.world.Stand(s, func(server string) bool {
			return server == args.Server || args.Server == "" && slices.Contains(names, server)
		}), false)
	case args.Server == "":
		e.say("Say which server: "+strings.Join(names, ", ")+".", true)
	default:
		g.world.Renew(s, args.Server, args.Reason)
		e.say("Restart of "+args.Server+" has begun; calls go on meanwhile. "+toolStatus+" tells when the new process serves.", false)
	}
	return true
}

// say answers a call with a text.
func (e *exchange) say(text string, isError bool) {
	if e.session.own == nil {
		e.answer(mcp.ToolText(text, isError, mcp.Modern, e.session.gw.madeHere("")))
		return
	}
	e.answer(mcp.ToolText(text, isError, mcp.Legacy, nil))
}

func namesOf(servers []*server) []string {
	var all []string
	for _, one := range servers {
		all = append(all, one.Catalog.Name)
	}
	return all
}

// Stand implements [World].
func (r *Runner) Stand(to *Session, shown func(server string) bool) string {
	var all []ServerStatus
	for _, s := range r.status(time.Now(), to) {
		if shown(s.Name) {
			all = append(all, s.toldTo(to))
		}
	}
	return jsonrpc.Indented(all)
}

// Renew implements [World]; the result shows in the status.
func (r *Runner) Renew(by *Session, server, reason string) {
	reason = cmp.Or(reason, "tool "+toolRestart)
	for _, k := range r.keptOf(server, by) {
		r.loop.Post(func() { k.host.Backend.Restart(time.Now(), supervise.SourceTool, reason) })
	}
}
