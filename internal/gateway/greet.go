package gateway

import (
	"bytes"
	"fmt"
	"log/slog"
	"time"

	"github.com/outlive-mcp/outlive/internal/event"
	"github.com/outlive-mcp/outlive/internal/jsonrpc"
	"github.com/outlive-mcp/outlive/internal/mcp"
)

// A handshake that failed is tried again after greetAgain, doubling to greetRarely: the backend below has its own backoff,
// and answers at once while it is waiting.
const (
	greetAgain  = time.Second
	greetRarely = 30 * time.Second
)

// greet begins the handshake.
func (l *Link) greet() {
	l.phase = greeting
	if l.scope.era == mcp.Modern {
		l.ask(mcp.Discover, func(id []byte) []byte { return mcp.DiscoverLine(id, l.meta()) }, l.greeted)
		return
	}
	params := l.gw.introduction()
	if o := l.scope.owner; o != nil {
		params = o.initParams
	}
	l.ask(mcp.Initialize, func(id []byte) []byte { return mcp.InitializeLine(id, params, "") }, l.greeted)
}

// introduction is what the gateway says of itself to a process that many clients share: it can do nothing for it.
func (g *Gateway) introduction() []byte {
	out := []byte(`{"protocolVersion":"` + mcp.LegacyVersions[len(mcp.LegacyVersions)-1] + `","capabilities":{},"clientInfo":`)
	return append(append(out, g.info()...), '}')
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
	l.trouble, l.fails = nil, 0
	l.server.about = aboutOf(result)
	l.phase = ready
	if l.scope.era == mcp.Modern {
		l.server.modern = speaks
		if !l.server.Lazy && !l.server.Sleeps {
			l.listenForChanges()
		}
	} else {
		l.server.legacy = speaks
		l.gw.post(l, mcp.InitializedLine())
		if o := l.scope.owner; o != nil {
			l.setLevel(o.level)
		}
	}
	l.walkAll()
	waiting := l.waiting
	l.waiting = nil
	for _, e := range waiting {
		e.send()
	}
}

// refused takes the error of a handshake. A server that does not know server/discover is one of the legacy era.
func (l *Link) refused(err []byte) {
	code := string(jsonrpc.Find(err, "code").Of(err))
	if l.scope.era == mcp.Modern && code == fmt.Sprint(jsonrpc.MethodNotFound) {
		l.server.modern = refuses
		l.phase = foreign
		l.trouble = bytes.Clone(err)
		l.refuseWaiting(l.trouble)
		l.drop()
		l.retire()
		l.scope.changed()
		return
	}
	if code == "-32022" && l.scope.era == mcp.Legacy {
		l.server.legacy = refuses
		l.phase = foreign
		l.trouble = errorOf("the server speaks the protocol's version " + mcp.ModernVersion + " only, and this client an earlier one")
		l.refuseWaiting(l.trouble)
		l.scope.changed()
		return
	}
	l.fail(err)
	wait := min(greetAgain<<min(l.fails-1, 10), greetRarely)
	l.retryAt = l.gw.now.Add(wait)
	l.gw.at(l.retryAt)
	l.gw.emit(event.ServerUnusable, slog.LevelWarn, l.Name(), "cannot be used: "+messageOf(err),
		slog.String(event.KeyError, messageOf(err)), slog.Int64(event.KeyDelayMS, wait.Milliseconds()))
	l.scope.changed()
}

// fail answers everything that waits for a server that cannot be reached.
func (l *Link) fail(err []byte) {
	l.trouble = bytes.Clone(err)
	l.fails++
	l.phase = failed
	l.refuseWaiting(err)
	for id, e := range l.calls {
		delete(l.calls, id)
		e.answerError(l.trouble)
	}
}

func (l *Link) refuseWaiting(err []byte) {
	waiting := l.waiting
	l.waiting = nil
	for _, e := range waiting {
		e.answerError(err)
	}
}

// setLevel tells the server which log messages are wanted.
func (l *Link) setLevel(params []byte) {
	if params == nil || bytes.Equal(params, l.level) || !l.capability("logging") {
		return
	}
	l.level = params
	l.ask(mcp.SetLevel, func(id []byte) []byte {
		return jsonrpc.AppendRequest(nil, id, mcp.SetLevel.String(), params)
	}, func(_, _ []byte) {})
}

// emit tells the sink of something about a server.
func (g *Gateway) emit(t event.Type, level slog.Level, server, message string, attrs ...slog.Attr) {
	g.opts.Sink.Emit(event.Event{
		Type: t, Time: g.now, Level: level, Message: "Server " + server + " " + message,
		Attrs: append(attrs, slog.String(event.KeyServer, server)),
	})
}
