package backend

import (
	"bytes"
	"cmp"
	"fmt"
	"log/slog"
	"strings"
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
		p.handshake = asked
		b.ask(p, func(id []byte) []byte {
			return mcp.InitializeLine(id, b.session.InitParams, b.session.Version)
		}, func(line []byte) { b.greeted(p, line) })
	case b.session.Era == mcp.Modern:
		p.era = mcp.Modern
		b.expect(p)
		p.handshake = asked
		b.ask(p, func(id []byte) []byte { return mcp.DiscoverLine(id, b.privateMeta()) }, func(line []byte) {
			if b.legacyOnly(line) && b.otherEra(p, mcp.Legacy) {
				return
			}
			b.introduces(p, line)
			p.greeted = true // whatever it answered: it answers
			b.restored(p)
		})
	case b.failedInit != nil:
		b.askForNobody(p)
	default:
		// The client has not been through a handshake with anyone: its own goes to this process, if it waits for one.
		if b.session.InitParams != nil {
			p.era = mcp.Legacy
			b.expect(p)
		}
		b.flushQueue()
		b.beginWithout()
		b.closeInputWhenFlushed()
	}
}

// beginWithout has a process told what waits for it, of a client whose first request is no handshake and says no version: no
// other handshake will come, and servers that do without exist.
func (b *Backend) beginWithout() {
	p := b.process
	if p.handshake != unasked || !p.up || p.draining || b.calls.waiting == 0 || b.session.Era != mcp.Virgin {
		return
	}
	for c := range b.calls.all {
		// A notification alone may come before the handshake; after the first process it comes from a client that does without.
		if c.state == waiting && (c.isRequest() || p.gen > 0 && c.method != mcp.NoteInitialized) {
			p.handshake, p.accepting = skipped, true
			b.flushQueue()
			return
		}
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
		refusal := messageIn(b.env.Error.Of(line))
		if !modernOnly(b.env.Error.Of(line)) || !b.otherEra(p, mcp.Modern) {
			b.handshakeRefused(p, refusal)
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

// messageIn is the message of a raw error.
func messageIn(err []byte) string {
	text, _ := jsonrpc.Unquote(jsonrpc.Find(err, "message").Of(err))
	return strings.TrimSpace(text)
}

// handshakeRefused ends a process that does not take the handshake.
func (b *Backend) handshakeRefused(p *process, said string) {
	p.refusal = cmp.Or(said, "it refused the handshake")
	if p.role == serving {
		b.step(supervise.Refused{Gen: p.gen, Reason: p.refusal})
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

// firstAnswer notes that a process works whose client does without a handshake.
func (b *Backend) firstAnswer(p *process) {
	if p.handshake == skipped && b.machine.State() == supervise.Starting {
		b.step(supervise.Ready{Gen: p.gen})
	}
}

// cameUp notes that a process has been through its handshake: the serving one serves, a spare is looked at first.
func (b *Backend) cameUp(p *process) {
	if p.answered || !p.up || p.role == retired {
		return
	}
	p.wishesBy = time.Time{}
	p.answered, p.handshake = true, settled
	if p.role == spare {
		b.check(p)
		return
	}
	b.becomeReady(p)
}

// becomeReady lets a process serve that has come up.
func (b *Backend) becomeReady(p *process) {
	p.accepting, b.estranged, b.turns = true, mcp.Virgin, 0
	b.readyAt = b.now
	p.startup = b.now.Sub(p.started)
	b.startup = p.startup
	b.tellReady(p)
	b.step(supervise.Ready{Gen: p.gen})
	b.nowServes(p)
	b.introduce()
}

func (b *Backend) tellReady(p *process) {
	b.emitOf(p, event.ServerReady, slog.LevelInfo, fmt.Sprintf("Server ready (startup: %dms)", p.startup.Milliseconds()),
		slog.Int64(event.KeyStartupMS, p.startup.Milliseconds()))
}

// completed tells that the running restart, if one runs, has come to its end.
func (b *Backend) completed() {
	if b.begun.IsZero() {
		return
	}
	took := b.now.Sub(b.begun)
	b.begun = time.Time{}
	b.emit(event.RestartCompleted, slog.LevelInfo, fmt.Sprintf("Restart completed in %dms", took.Milliseconds()),
		slog.Int64(event.KeyRestartMS, took.Milliseconds()), slog.String(event.KeyCause, b.cause))
}

// nowServes hands a process that serves from now on what was held back for it.
func (b *Backend) nowServes(p *process) {
	b.watchHealth(p)
	b.watchLimits()
	b.wakeSeam()
	b.completed()
	for _, uri := range b.session.Subscribed() {
		b.world.SendToClient(mcp.UpdatedLine(uri)) // what changed meanwhile, nobody heard
	}
	if b.streamsBroken() {
		p.hearing = reopening
	}
	b.flushQueue()
	b.world.Flush()
	b.closeInputWhenFlushed()
	b.compareLists()
	b.openStreams()
	b.answerVerify(false)
}
