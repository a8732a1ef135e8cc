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

// wishesFor is how long a new process may take to answer the replayed log level and subscriptions, or to acknowledge the
// streams it is asked for.
const wishesFor = time.Second

// greet brings a new process to where the client believes its server is. It can serve once that is done; what the
// client asks meanwhile waits, or goes to the process that still serves.
func (b *Backend) greet(p *process) {
	if p.role == serving {
		b.meetEra()
	}
	switch {
	case b.session.Answered():
		p.era = mcp.Legacy
		b.expect(p)
		b.ask(p, func(id []byte) []byte {
			return mcp.InitializeLine(id, b.session.InitParams, b.session.Version)
		}, func(line []byte) { b.greeted(p, line) })
	case b.session.Era == mcp.Modern:
		p.era = mcp.Modern
		b.expect(p)
		b.ask(p, func(id []byte) []byte { return mcp.DiscoverLine(id, b.privateMeta()) }, func(line []byte) {
			if b.legacyOnly(line) && b.otherEra(p, mcp.Legacy) {
				return
			}
			b.introduces(p, line)
			p.greeted = true // whatever it answered: it answers
			b.reopenStreams(p)
		})
	default:
		// The client has not been through a handshake with anyone: what it says goes to this process as it is.
		p.accepting = true
		if b.session.InitParams != nil {
			p.era = mcp.Legacy
			b.expect(p)
		} else {
			b.step(supervise.Ready{Gen: p.gen}) // as ready as it can be: nobody asks it anything
		}
		b.flushQueue()
		b.closeInputWhenFlushed()
	}
}

// expect tells the machine that the serving process is being asked to show that it is up. The time of a spare runs
// from its start.
func (b *Backend) expect(p *process) {
	if p.role == serving {
		b.step(supervise.Handshake{Gen: p.gen})
	}
}

// greeted takes a new process's answer to the replayed initialize. The client has had that answer long ago.
func (b *Backend) greeted(p *process, line []byte) {
	if b.env.Kind != jsonrpc.Response {
		if !modernOnly(b.env.Error.Of(line)) || !b.otherEra(p, mcp.Modern) {
			b.handshakeRefused(p)
		}
		return
	}
	result := bytes.Clone(b.env.Result.Of(line))
	p.greeted = true
	p.hasTools = jsonrpc.FindPath(result, "capabilities", "tools").Present()
	b.emitOf(p, event.InitializeReplayed, slog.LevelInfo, "Initialize handshake replayed",
		slog.String(event.KeyProtocol, b.session.Version))
	if bytes.Equal(result, b.session.InitResult) {
		p.sameServer()
	} else {
		b.tellDrift(b.session.InitResult, result, p)
		known := b.opts.Known
		known.Initialize = result
		b.learn(known)
	}
	b.sayInitialized(p)
	for _, wish := range b.session.Wishes() {
		p.wishes++
		b.ask(p, func(id []byte) []byte {
			return jsonrpc.AppendRequest(nil, id, wish.Method.String(), wish.Params)
		}, func([]byte) { b.wishAnswered(p, wish.Method, wish.Params) })
	}
	if p.wishes == 0 {
		b.restored(p)
		return
	}
	p.wishesBy = b.now.Add(wishesFor)
}

// sayInitialized tells a process that has answered initialize what the client told an earlier one.
func (b *Backend) sayInitialized(p *process) {
	if b.session.Initialized && !p.said(mcp.NoteInitialized) {
		p.send(mcp.InitializedLine())
	}
}

// wishAnswered counts the answers to the replay; a subscription that the new process refuses is forgotten.
func (b *Backend) wishAnswered(p *process, m mcp.Method, params []byte) {
	if b.env.Kind != jsonrpc.Response && m == mcp.Subscribe && p.role == serving {
		b.session.Unsubscribe(params)
	}
	p.wishes--
	if p.wishes == 0 {
		b.restored(p)
	}
}

// handshakeRefused ends a process that does not take the handshake.
func (b *Backend) handshakeRefused(p *process) {
	if p.role == serving {
		b.step(supervise.Refused{Gen: p.gen})
	} else {
		b.spareFailed(p, "it refused the handshake")
	}
}

// tellDrift tells what of the server's identity is another one now, given the raw results of both handshakes. The client
// negotiated without it, so it is not shown; status and the audit log say it.
func (b *Backend) tellDrift(before, now []byte, p *process) {
	for _, key := range []string{"protocolVersion", "serverInfo", "instructions"} {
		was, is := jsonrpc.Find(before, key).Of(before), jsonrpc.Find(now, key).Of(now)
		if !bytes.Equal(was, is) {
			b.emitOf(p, event.DriftDetected, slog.LevelWarn, fmt.Sprintf("The restarted server has another %s: %s", key, excerpt(is)),
				slog.String(event.KeyKind, key), slog.Bool(event.KeyNotified, false))
		}
	}
}

// firstAnswer notes that a modern process works: its first answer is all the handshake there is.
func (b *Backend) firstAnswer(p *process) {
	if p.era == mcp.Modern {
		b.cameUp(p)
	}
}

// cameUp notes that a process has been through its handshake: the serving one serves, a spare is looked at first.
func (b *Backend) cameUp(p *process) {
	if p.answered || !p.up {
		return
	}
	p.wishesBy = time.Time{}
	p.answered = true
	if p.role == spare {
		b.check(p)
		return
	}
	b.becomeReady(p)
}

// becomeReady lets a process serve that has come up.
func (b *Backend) becomeReady(p *process) {
	replayed := !p.accepting
	p.accepting, b.estranged, b.turns = true, mcp.Virgin, 0
	b.readyAt = b.now
	p.startup = b.now.Sub(p.started)
	b.tellReady(p)
	b.step(supervise.Ready{Gen: p.gen})
	b.nowServes(p, replayed)
	b.introduce()
}

func (b *Backend) tellReady(p *process) {
	b.emitOf(p, event.ServerReady, slog.LevelInfo, fmt.Sprintf("Server ready (startup: %dms)", p.startup.Milliseconds()),
		slog.Int64(event.KeyStartupMS, p.startup.Milliseconds()))
}

// nowServes hands a process that serves from now on what was held back for it; replayed says that the client has been
// served before.
func (b *Backend) nowServes(p *process, replayed bool) {
	b.watchHealth(p)
	b.watchLimits()
	b.wakeSeam()
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
	b.world.Flush()
	b.closeInputWhenFlushed()
	b.compareLists()
	b.answerVerify(false)
}
