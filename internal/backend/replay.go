package backend

import (
	"bytes"
	"fmt"
	"log/slog"
	"time"

	"github.com/outlive-mcp/outlive/internal/event"
	"github.com/outlive-mcp/outlive/internal/jsonrpc"
	"github.com/outlive-mcp/outlive/internal/mcp"
	"github.com/outlive-mcp/outlive/internal/supervise"
)

// wishesFor is how long a new process may take to answer the replayed log level and subscriptions.
const wishesFor = time.Second

// greet brings a new process to where the client believes its server is. It serves once that is done; what the client
// asks meanwhile waits.
func (b *Backend) greet() {
	switch {
	case b.session.Answered():
		b.process.era = mcp.Legacy
		b.step(supervise.Handshake{Gen: b.process.gen})
		b.ask(func(id []byte) []byte {
			return mcp.InitializeLine(id, b.session.InitParams, b.session.Version)
		}, b.greeted)
	case b.session.Era == mcp.Modern:
		b.process.era = mcp.Modern
		b.step(supervise.Handshake{Gen: b.process.gen})
		b.ask(func(id []byte) []byte { return mcp.DiscoverLine(id, b.privateMeta()) }, func(line []byte) {
			b.introduced(line)
			b.becomeReady() // whatever it answered: it answers
		})
	default:
		// The client has not been through a handshake with anyone: what it says goes to this process as it is.
		b.process.accepting = true
		if b.session.InitParams != nil {
			b.process.era = mcp.Legacy
			b.step(supervise.Handshake{Gen: b.process.gen})
		} else {
			b.step(supervise.Ready{Gen: b.process.gen}) // as ready as it can be: nobody asks it anything
		}
		b.flushQueue()
		b.closeInputWhenFlushed()
	}
}

// greeted takes a new process's answer to the replayed initialize. The client has had that answer long ago.
func (b *Backend) greeted(line []byte) {
	if b.env.Kind != jsonrpc.Response {
		b.handshakeRefused()
		return
	}
	result := bytes.Clone(b.env.Result.Of(line))
	b.process.hasTools = jsonrpc.FindPath(result, "capabilities", "tools").Present()
	b.emit(event.InitializeReplayed, slog.LevelInfo, "Initialize handshake replayed",
		slog.String(event.KeyProtocol, b.session.Version))
	if bytes.Equal(result, b.session.InitResult) {
		b.sameServer()
	} else {
		b.noteDrift(result)
	}
	b.sayInitialized()
	for _, wish := range b.session.Wishes() {
		b.process.wishes++
		b.ask(func(id []byte) []byte {
			return jsonrpc.AppendRequest(nil, id, wish.Method.String(), wish.Params)
		}, func([]byte) { b.wishAnswered(wish.Method, wish.Params) })
	}
	if b.process.wishes == 0 {
		b.becomeReady()
		return
	}
	b.arm(timerWishes, wishesFor)
}

// sayInitialized tells a process that has answered initialize what the client told an earlier one.
func (b *Backend) sayInitialized() {
	if b.session.Initialized && !b.said(mcp.NoteInitialized) {
		b.send(mcp.InitializedLine())
	}
}

// wishAnswered counts the answers to the replay; a subscription that the new process refuses is forgotten.
func (b *Backend) wishAnswered(m mcp.Method, params []byte) {
	if b.env.Kind != jsonrpc.Response && m == mcp.Subscribe {
		b.session.Unsubscribe(params)
	}
	b.process.wishes--
	if b.process.wishes == 0 {
		b.becomeReady()
	}
}

// handshakeRefused ends a process that does not take the handshake.
func (b *Backend) handshakeRefused() {
	b.step(supervise.Refused{Gen: b.process.gen})
}

// noteDrift tells what of the server's identity is another one now. The client negotiated without it, so it is not
// shown; status and the audit log say it.
func (b *Backend) noteDrift(result []byte) {
	for _, key := range []string{"protocolVersion", "serverInfo", "instructions"} {
		was := jsonrpc.Find(b.session.InitResult, key).Of(b.session.InitResult)
		is := jsonrpc.Find(result, key).Of(result)
		if !bytes.Equal(was, is) {
			b.emit(event.DriftDetected, slog.LevelWarn, fmt.Sprintf("The restarted server has another %s: %s", key, excerpt(is)),
				slog.String(event.KeyKind, key), slog.Bool(event.KeyNotified, false))
		}
	}
}

// firstAnswer notes that a modern process works: its first answer is all the handshake there is.
func (b *Backend) firstAnswer() {
	if b.process.era == mcp.Modern {
		b.becomeReady()
	}
}

// becomeReady lets a process serve.
func (b *Backend) becomeReady() {
	if b.process.answered || !b.process.up {
		return
	}
	b.disarm(timerWishes)
	replayed := !b.process.accepting
	b.process.answered, b.process.accepting = true, true
	b.readyAt = b.now
	startup := b.now.Sub(b.process.started)
	b.emit(event.ServerReady, slog.LevelInfo, fmt.Sprintf("Server ready (startup: %dms)", startup.Milliseconds()),
		slog.Int64(event.KeyStartupMS, startup.Milliseconds()))
	b.step(supervise.Ready{Gen: b.process.gen})
	if !b.begun.IsZero() {
		took := b.now.Sub(b.begun)
		b.begun = time.Time{}
		b.emit(event.RestartCompleted, slog.LevelInfo, fmt.Sprintf("Restart completed in %dms", took.Milliseconds()),
			slog.Int64(event.KeyRestartMS, took.Milliseconds()), slog.String(event.KeyCause, b.cause))
	}
	if replayed {
		for _, uri := range b.session.Subscribed() {
			b.world.SendToClient(mcp.UpdatedLine(uri)) // what changed meanwhile, nobody heard
		}
	}
	b.flushQueue()
	b.closeInputWhenFlushed()
	b.compareLists()
	b.answerVerify(false)
}
