package gateway

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/outlive-mcp/outlive/internal/protocol/jsonrpc"
	"github.com/outlive-mcp/outlive/internal/protocol/mcp"
	"github.com/outlive-mcp/outlive/internal/record/event"
)

// A failed handshake is retried after greetAgain, doubling to greetRarely: the backend below has its own backoff, and
// answers at once while it is waiting.
const (
	greetAgain  = time.Second
	greetRarely = 30 * time.Second
)

// greet begins the handshake.
func (l *Link) greet() {
	if !l.connect() {
		l.full()
		return
	}
	l.phase = greeting
	switch sc := l.scope; {
	case sc.era == mcp.Modern:
		l.ask(mcp.Discover, []byte("{}"), l.greeted)
	case sc.owner != nil:
		l.ask(mcp.Initialize, sc.owner.initParams, l.greeted)
	default:
		l.ask(mcp.Initialize, sc.pool.params, l.greeted)
	}
}

// greeted takes the answer to the handshake.
func (l *Link) greeted(result, err []byte) {
	if l.phase != greeting {
		return
	}
	if err != nil {
		l.refused(err)
		return
	}
	l.result = bytes.Clone(result)
	l.trouble, l.fails, l.twice = nil, 0, false
	l.server.about, _ = jsonrpc.Unquote(jsonrpc.Find(result, "instructions").Of(result))
	l.phase = ready
	if l.scope.era == mcp.Modern {
		l.server.modern = speaks
		l.server.bridged = l.up.Translates()
	} else {
		l.server.legacy = speaks
		l.gw.post(l, mcp.InitializedLine())
		l.setLevel()
		l.resubscribe()
	}
	l.sendWaiting()
	l.lists.readAll()
	l.scope.release()
}

// refused takes the error of a handshake. A server without server/discover is legacy.
func (l *Link) refused(err []byte) {
	code := jsonrpc.ErrorCode(err)
	switch {
	case l.scope.era == mcp.Modern && code == jsonrpc.MethodNotFound && l.server.Bridge && !l.needed:
		l.seenBridged()
	case l.scope.era == mcp.Modern && code == jsonrpc.MethodNotFound:
		l.server.modern = refuses
		l.markUnsupported("the server speaks earlier versions of the protocol only than this request; they begin with initialize")
		l.drop()
		l.retire()
		l.gw.openShared(l.server)
	case l.scope.era == mcp.Modern && code == mcp.CodeVersion && l.fails == 0 && !l.twice && mcp.NamesModern(jsonrpc.FindPath(err, "data", "supported").Of(err)):
		l.twice = true // some refuse a client's first request, with the right version in the error
		l.greet()
		return
	case l.scope.era == mcp.Legacy && code == mcp.CodeVersion:
		l.server.legacy = refuses
		l.markUnsupported("the server speaks the protocol's version " + mcp.ModernVersion + " only, and this client an earlier one")
	default:
		l.server.fails(l.gw.now, messageOf(err))
		l.failed(bytes.Clone(err))
	}
	l.scope.changed()
}

// failed records a failed handshake, with the raw error, and when it is retried.
func (l *Link) failed(err []byte) {
	l.phase, l.failAt = failed, l.gw.now
	l.trouble = err
	l.fails++
	wait, why, level := l.again(l.fails), messageOf(err), slog.LevelDebug
	if l.server.isNews(l.gw.now, why) {
		level = slog.LevelWarn
	}
	l.gw.emit(event.ServerUnusable, level, l.Name(), "cannot be used: "+strings.ReplaceAll(why, "\n", " / "),
		slog.String(event.KeyError, why), slog.Int64(event.KeyDelayMS, wait.Milliseconds()))
	l.abandon(l.unusable())
}

// full refuses a process to a session, because the limit is reached. The server is not at fault.
func (l *Link) full() {
	l.failed(jsonrpc.ErrorObject(nil, jsonrpc.InternalError, fmt.Sprintf("the gateway keeps %d processes for its sessions, the maximum "+
		"(limits.processes): end sessions that are not needed, or let clients share the server with \"shared: true\"", l.gw.own), nil))
	l.scope.changed()
}

// seenBridged ends a link that tested whether its server is modern. It is not; clients get it translated.
func (l *Link) seenBridged() {
	waiting := l.waiting
	l.waiting = nil
	l.server.bridged = true
	l.drop()
	l.retire()
	if l.scope.needs(l.server) {
		l.scope.open(l.server)
	} else {
		l.gw.openShared(l.server)
	}
	for _, e := range waiting {
		l.scope.resend(e)
	}
}

// markUnsupported marks the link's server as unusable in the link's era.
func (l *Link) markUnsupported(why string) {
	l.phase = unsupported
	l.trouble = jsonrpc.ErrorObject(nil, jsonrpc.InternalError, why, nil)
	l.abandon(l.trouble)
}

// emit emits an event about a server.
func (g *Gateway) emit(t event.Type, level slog.Level, server, message string, attrs ...slog.Attr) {
	g.opts.Sink.Emit(event.Event{
		Type: t, Time: g.now, Level: level, Message: "Server " + server + " " + message,
		Attrs: append(attrs, slog.String(event.KeyServer, server)),
	})
}
