package backend

import (
	"bytes"
	"cmp"
	"log/slog"
	"strings"
	"time"

	"github.com/outlive-mcp/outlive/internal/keep/supervise"
	"github.com/outlive-mcp/outlive/internal/protocol/bridge"
	"github.com/outlive-mcp/outlive/internal/protocol/jsonrpc"
	"github.com/outlive-mcp/outlive/internal/protocol/mcp"
	"github.com/outlive-mcp/outlive/internal/record/event"
)

// replay brings a new process to the state that its client expects: handshake, settings, calls to be repeated.
type replay struct {
	*core

	noted map[string][]byte // arguments of the last calls of the client that are to be repeated, by tool
}

// settingsFor is how long a new process may take to answer the replayed log level and subscriptions, or to acknowledge its
// streams, and how long requests wait for a log level that the client sets.
const settingsFor = time.Second

// greet brings a new process to the state that the client expects; then it can serve. Requests wait meanwhile, or go to
// the process that still serves.
func (rp *replay) greet(p *process) {
	if p.role == serving {
		rp.eras.meetEra()
	}
	switch {
	case rp.session.Answered():
		p.era = mcp.Legacy
		rp.expect(p)
		p.mark(wasAsked)
		rp.questions.ask(p, func(id []byte) []byte {
			return mcp.InitializeLine(id, rp.session.InitParams, rp.session.Version)
		}, func(line []byte) { rp.greeted(p, line) })
	case rp.session.Era == mcp.Modern:
		p.era = mcp.Modern
		rp.expect(p)
		p.mark(wasAsked)
		rp.questions.ask(p, func(id []byte) []byte { return mcp.DiscoverLine(id, rp.privateMeta()) }, func(line []byte) {
			if rp.eras.legacyOnly(line) && rp.eras.otherEra(p, mcp.Legacy) {
				return
			}
			rp.noteDiscover(p, line)
			p.mark(answers) // any answer counts
			rp.restored(p)
		})
	case rp.failedInit != nil:
		rp.handshake.askForNobody(p)
	default:
		// The client has not completed a handshake: its own goes to this process, if one is waiting.
		if rp.session.InitParams != nil {
			p.era = mcp.Legacy
			rp.expect(p)
		}
		rp.flow.flushQueue()
		rp.beginWithout()
		rp.life.closeInputWhenFlushed()
	}
}

// beginWithout sends a process the queue of a client that begins without a handshake and without a version: no handshake
// will come, and some servers need none.
func (rp *replay) beginWithout() {
	p := rp.process
	if p.phase != fresh || rp.calls.waiting == 0 || rp.session.Era != mcp.EraUnknown {
		return
	}
	for c := range rp.calls.all {
		// A notification alone may precede the handshake; after the first process it comes from a client without one.
		if c.state == waiting && (c.isRequest() || p.gen > 0 && c.method != mcp.NoteInitialized) {
			p.mark(goesBare)
			rp.flow.flushQueue()
			return
		}
	}
}

// expect tells the machine that the serving process has been asked to show that it works. The time of a spare runs from
// its start.
func (rp *replay) expect(p *process) {
	if p.role == serving {
		rp.life.step(supervise.Handshake{Gen: p.gen})
	}
}

// greeted takes the answer to the replayed initialize. The client has had that answer before.
func (rp *replay) greeted(p *process, line []byte) {
	if rp.env.Kind != jsonrpc.Response {
		raw := rp.env.Error.Of(line)
		if !modernOnly(raw) || !rp.eras.otherEra(p, mcp.Modern) {
			rp.handshakeRefused(p, jsonrpc.ErrorMessage(raw))
		}
		return
	}
	result := bytes.Clone(rp.env.Result.Of(line))
	p.mark(answers)
	p.offer = result
	rp.emitOf(p, event.InitializeReplayed, slog.LevelInfo, "Initialize handshake replayed",
		slog.String(event.KeyProtocol, rp.session.Version))
	p.assumeLists()
	if !bytes.Equal(result, rp.session.InitResult) {
		rp.tellDrift(rp.session.InitResult, result, p)
		known := rp.memory.known
		known.Initialize = result
		rp.memory.learn(known)
	}
	rp.sayInitialized(p)
	set := func(m mcp.Method, params []byte) {
		p.pendingSettings++
		rp.questions.ask(p, func(id []byte) []byte { return jsonrpc.AppendRequest(nil, id, m.String(), params) },
			func([]byte) { rp.settingAnswered(p, m, params) })
	}
	if rp.session.LogLevel != nil {
		set(mcp.SetLevel, rp.session.LogLevel)
	}
	for _, params := range rp.session.Subscriptions {
		set(mcp.Subscribe, params)
	}
	if p.pendingSettings == 0 {
		rp.restored(p)
		return
	}
	p.settingsBy = rp.now.Add(settingsFor)
}

// settingAnswered counts the answers to the replay; a subscription that the new process refuses is dropped.
func (rp *replay) settingAnswered(p *process, m mcp.Method, params []byte) {
	if rp.env.Kind != jsonrpc.Response && m == mcp.Subscribe && p.role == serving {
		rp.session.Unsubscribe(params)
	}
	p.pendingSettings--
	if p.pendingSettings == 0 {
		rp.restored(p)
	}
}

// handshakeRefused ends a process that refuses the handshake.
func (rp *replay) handshakeRefused(p *process, said string) {
	p.refusal = cmp.Or(strings.TrimSpace(said), "it refused the handshake")
	if p.role == serving {
		rp.life.step(supervise.Refused{Gen: p.gen, Reason: p.refusal})
	} else {
		rp.spares.spareFailed(p, "it refused the handshake")
	}
}

// tellDrift reports differences in the server's identity, given the raw results of both handshakes. They go to the
// status and the audit log, not to the client, which negotiated without them.
func (rp *replay) tellDrift(before, now []byte, p *process) {
	for _, key := range []string{"protocolVersion", "serverInfo", "instructions"} {
		was, is := jsonrpc.Find(before, key).Of(before), jsonrpc.Find(now, key).Of(now)
		if !bytes.Equal(was, is) {
			rp.emitOf(p, event.DriftDetected, slog.LevelWarn, driftText(key, is),
				slog.String(event.KeyKind, key), slog.Bool(event.KeyNotified, false))
		}
	}
}

// driftText says what is other than before; is nil if the server does not say it any more.
func driftText(key string, is []byte) string {
	text := "The restarted server says another " + key
	if key == "instructions" {
		text = "The restarted server gives other instructions"
	}
	if len(is) == 0 {
		return text + ": none any more"
	}
	return text + ": " + excerpt(is)
}

// cameUp notes that a process has completed its handshake: the serving one serves now, a spare is checked first.
func (rp *replay) cameUp(p *process) {
	if p.through() || !p.up() || p.role == retired {
		return
	}
	p.settingsBy = time.Time{}
	if p.role == spare {
		p.mark(isSpare)
		rp.spares.check(p)
		return
	}
	p.mark(cameThrough)
	rp.eras.served()
	rp.history.readyAt = rp.now
	p.startup = rp.now.Sub(p.started)
	rp.history.startup = p.startup
	rp.history.tellReady(p)
	rp.life.step(supervise.Ready{Gen: p.gen})
	rp.nowServes(p)
	rp.spares.tellReplayable()
}

// nowServes sends a process that has begun to serve what was held back for it.
func (rp *replay) nowServes(p *process) {
	rp.health.watchHealth(p)
	rp.limits.watchLimits()
	rp.eras.tellBridge((*bridge.Bridge).Wake)
	rp.history.nowServes(p)
	rp.history.completed()
	for _, uri := range rp.session.Subscribed() {
		rp.tell(mcp.UpdatedLine(uri, nil)) // changes meanwhile were not seen
	}
	if rp.streams.streamsBroken() {
		p.hearing = reopening
	}
	rp.flow.flushQueue()
	rp.client.Flush()
	rp.life.closeInputWhenFlushed()
	rp.lists.compareLists()
	rp.streams.openStreams()
	rp.tools.answerVerify(false)
}

// noteDiscover stores a modern process's DiscoverResult.
func (rp *replay) noteDiscover(p *process, line []byte) {
	if rp.env.Kind != jsonrpc.Response {
		return
	}
	p.offer = bytes.Clone(rp.env.Result.Of(line))
	if known := rp.memory.known; known.Era == mcp.Modern && !bytes.Equal(known.Discover, p.offer) {
		silent := known.Listen == ListenSilent && len(known.Discover) > 0 && !sameVersion(known.Discover, p.offer)
		if silent {
			known.Listen = ListenUnknown // another version may take subscriptions
		}
		known.Discover = p.offer // clients of later runs are answered with it
		rp.memory.learn(known)
		if silent {
			for c := range rp.calls.in(kept) {
				rp.streams.holdStream(c)
			}
		}
	}
	p.assumeLists()
}
