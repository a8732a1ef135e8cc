package backend

import (
	"bytes"
	"fmt"
	"log/slog"
	"time"

	"github.com/outlive-mcp/outlive/internal/keep/supervise"
	"github.com/outlive-mcp/outlive/internal/protocol/jsonrpc"
	"github.com/outlive-mcp/outlive/internal/protocol/mcp"
	"github.com/outlive-mcp/outlive/internal/record/event"
)

// handshake is the client's handshake: answered from memory or by the server, or refused when the server cannot start.
type handshake struct {
	*core

	first firstStart
}

// initialize is answered with the error after so many first starts that failed, or so long after the client has asked.
const (
	firstTries    = 3
	firstPatience = 10 * time.Second
)

// firstStart watches the time from the client's initialize to its answer. Clients wait only briefly for it, and its
// error is all they show their user.
type firstStart struct {
	since time.Time // zero: nobody waits for it
	tries int       // processes that died or could not be started meanwhile
}

// beginning reports whether the client waits for the answer to its initialize.
func (o *handshake) beginning() bool { return !o.first.since.IsZero() }

func (o *handshake) endFirstStart() {
	o.first = firstStart{}
	o.disarm(timerFirst)
}

// firstTryFailed counts a process that ended before it answered initialize.
func (o *handshake) firstTryFailed() {
	if !o.beginning() {
		return
	}
	o.first.tries++
	if o.first.tries >= firstTries || o.now.Sub(o.first.since) >= firstPatience || o.hopeless() {
		o.giveUpFirst()
	}
}

// giveUpFirst answers initialize with the reason of the failure. outlive stays: once the cause is fixed, a restart and
// another initialize work.
func (o *handshake) giveUpFirst() {
	if !o.beginning() || o.first.tries == 0 {
		return // nothing has failed: the client decides how long it waits for a slow start
	}
	for c := range o.calls.all {
		if c.method != mcp.Initialize || c.state != waiting {
			continue
		}
		tries := o.first.tries
		o.handshakeFailed()
		text := o.firstFailure(tries) + o.history.stderrText()
		data := outcome{Reason: reasonUnavailable, Delivered: "no", Retryable: true, Generation: o.process.gen}
		c.done, c.reason = doneRefused, reasonUnavailable
		o.flow.answer(c, jsonrpc.AppendError(nil, c.id, jsonrpc.InternalError, text, data.raw()))
		o.flow.refuseWaiting()
		return
	}
}

// handshakeFailed notes that the client's initialize was answered with an error. The next process is asked the same on
// outlive's own account, since only an answer shows that it works; the client's requests are refused until it sends
// another initialize.
func (o *handshake) handshakeFailed() {
	o.endFirstStart()
	o.failedInit, o.session.InitParams = o.session.InitParams, nil
}

// newSession is what requests of the client's earlier handshake are told.
var newSession = refusal{reason: reasonRestarted, text: "the client began a new session", code: jsonrpc.InvalidRequest}

// askForNobody sends a process the handshake on outlive's own account, because the client's own has failed and only an
// answer shows that the server works. A client that starts again gets another process.
func (o *handshake) askForNobody(p *process) {
	p.era = mcp.Legacy
	p.mark(wasAsked)
	o.replay.expect(p)
	o.questions.ask(p, func(id []byte) []byte { return mcp.InitializeLine(id, o.failedInit, "") }, func(line []byte) {
		if o.env.Kind != jsonrpc.Response {
			o.replay.handshakeRefused(p, jsonrpc.ErrorMessage(o.env.Error.Of(line)))
			return
		}
		p.mark(showsUp)
		p.startup = o.now.Sub(p.started)
		o.history.tellReady(p)
		o.life.step(supervise.Ready{Gen: p.gen})
		o.history.completed()
	})
}

// firstFailure says why so many first starts have failed.
func (o *handshake) firstFailure(tries int) string {
	last, what := o.history.lastOut, "start"
	if last.kind == connectionEnded {
		what = "connection"
	}
	tried := fmt.Sprintf("%d %ss tried", tries, what)
	if tries == 1 {
		tried = "1 " + what + " tried"
	}
	switch last.kind {
	case connectionEnded: // it says which server, and what of it
		return o.history.describeExit() + "; " + tried
	case neverStarted:
		return fmt.Sprintf("the server cannot be started (%s; %s)", o.history.describeExit(), tried)
	}
	return fmt.Sprintf("the server failed to start (%s; %s)", o.history.describeExit(), tried)
}

// clientInitialize takes the legacy handshake. One after a probe gets a new process: a process that has seen a modern
// request may refuse it. So does a second one on the same connection that the process is not asked, see again. One that comes
// while the process is starting and asks the same does not set it back: see joins and toldAlready.
func (o *handshake) clientInitialize(c *call, line []byte) {
	if o.joins(c) {
		o.calls.set(c, joined)
		return
	}
	again, told := o.again(c), o.toldAlready(c)
	fresh := !again && told == nil && (o.session.InitParams != nil || o.session.Era == mcp.Modern || o.process.era == mcp.Modern || o.prober.probed() || o.failedInit != nil)
	if o.session.Answered() || o.session.Era == mcp.Modern {
		o.forgetSession(c)
	} else {
		for old := range o.calls.all { // earlier handshakes that were not answered
			if old != c && old.method == mcp.Initialize {
				o.flow.refuse(old, newSession)
			}
		}
	}
	o.session.Era, o.failedInit = mcp.Legacy, nil
	o.session.InitParams = bytes.Clone(c.param.Of(c.line))
	version, _ := jsonrpc.Unquote(jsonrpc.Find(o.session.InitParams, "protocolVersion").Of(o.session.InitParams))
	o.emit(event.InitializeCaptured, slog.LevelInfo, "Initialize request captured", slog.String(event.KeyProtocol, version))
	if told != nil {
		o.settled(told)
		o.flow.answer(c, jsonrpc.AppendResult(nil, c.id, mcp.AdvertiseListChanged(told, !o.opts.NoTools)))
		return
	}
	if !fresh && !again && o.initializeFromMemory(c) {
		return
	}
	o.first = firstStart{since: o.now}
	o.arm(timerFirst, firstPatience)
	if fresh && o.process.stays() {
		o.flow.queue(c)
		o.life.step(supervise.Restart{Cause: supervise.Replace, Reason: "new handshake"})
		return
	}
	if p := o.process; p.stays() {
		p.era = mcp.Legacy
		p.again, p.initialized = again, false
		p.mark(beginsAnew)
		o.life.step(supervise.Handshake{Gen: p.gen})
	}
	o.flow.submit(c, line)
	if o.hopeless() {
		o.first.tries++ // the one that opened the breaker
		o.giveUpFirst()
	}
}

// again reports whether the process is asked the second initialize of its client, as it would be without outlive: it may go
// on with what it has in memory. It is not where it has calls of the handshake before, whose answers could come under ids
// that are used again, where the client wants another version, or where it is a connection, whose session the handshake
// begins.
func (o *handshake) again(c *call) bool {
	p := o.process
	if !o.session.Answered() || o.opts.Remote || p.phase != active || p.era != mcp.Legacy || o.prober.probed() {
		return false
	}
	for range o.calls.at(p.gen) {
		return false
	}
	asked := jsonrpc.FindPath(c.line, "params", "protocolVersion").Of(c.line)
	return bytes.Equal(asked, jsonrpc.Find(o.session.InitParams, "protocolVersion").Of(o.session.InitParams))
}

// asksAlike reports whether initialize c asks what one with these raw params asks.
func (c *call) asksAlike(params []byte) bool {
	return AskedDigest(c.param.Of(c.line)) == AskedDigest(params)
}

// joins reports whether an earlier initialize asks what c asks, and is not answered yet: the answer is for both.
func (o *handshake) joins(c *call) bool {
	if o.session.Answered() {
		return false
	}
	for old := range o.calls.all {
		if old.method == mcp.Initialize && (old.state == waiting || old.state == sent) && old.asksAlike(c.param.Of(c.line)) {
			return true
		}
	}
	return false
}

// repeated reports whether a line is initialize old once more, under its id: one answer is enough then. env was scanned from it.
func (o *handshake) repeated(old *call, line []byte) bool {
	return old.method == mcp.Initialize && mcp.Lookup(o.env.Method.Of(line)) == mcp.Initialize && !o.session.Answered() &&
		old.asksAlike(o.env.Params.Of(line))
}

// answerJoined gives the answer of an initialize to those that have waited for it.
func (o *handshake) answerJoined(line []byte, end conclusion) {
	at := jsonrpc.Find(line, "id")
	for c := range o.calls.in(joined) {
		c.done = end
		o.flow.answer(c, jsonrpc.Replace(nil, line, at, c.id))
	}
}

// toldAlready is the result that the client has had before for what c asks; nil: there is none. A process is being asked the same
// just now, on outlive's account.
func (o *handshake) toldAlready(c *call) []byte {
	p := o.process
	if !o.session.Answered() || o.opts.NoFastStart || p.phase != asked || p.era != mcp.Legacy || o.prober.probed() ||
		!c.asksAlike(o.session.InitParams) {
		return nil
	}
	return o.session.InitResult
}

// forgetSession ends everything of the client's earlier handshake except c, the new one.
func (o *handshake) forgetSession(c *call) {
	o.session.Reset()
	o.spares.tellReplayable()
	for old := range o.calls.all {
		if old != c && old.isRequest() {
			o.flow.refuse(old, newSession)
		}
	}
	o.asks.cancelAll(nil, "new session")
}

// noteEra recognises a modern client by a request's _meta. A probe does not count.
func (o *handshake) noteEra(m mcp.Method, meta []byte) {
	if o.session.Meta != nil && o.session.Era == mcp.Modern {
		return
	}
	o.session.KeepMeta(meta)
	if m != mcp.Discover && o.session.Meta != nil && jsonrpc.Find(meta, mcp.MetaProtocolVersion).Present() {
		o.session.Era = mcp.Modern
		p := o.process
		if p.era == mcp.EraUnknown {
			p.era = mcp.Modern
		}
		if p.phase.oneOf(fresh, skipped) {
			o.replay.greet(p)
		}
	}
}

// initializeAnswered stores what the handshake negotiated. The client sees a server whose lists can change.
func (o *handshake) initializeAnswered(c *call, line []byte) []byte {
	again := o.process.again
	o.process.again = false
	if o.env.Kind != jsonrpc.Response {
		if again {
			o.flow.queue(c)
			o.life.step(supervise.Restart{Cause: supervise.Replace, Reason: "new handshake"})
			return nil
		}
		if o.eras.initializeRefused(line) {
			return nil
		}
		if o.opts.Remote { // a connection can take the next handshake itself
			o.session.InitParams, o.process.era = nil, mcp.EraUnknown
			o.process.mark(declined)
			o.endFirstStart()
			o.life.step(supervise.Ready{Gen: o.process.gen})
			return line
		}
		o.handshakeFailed()
		o.replay.handshakeRefused(o.process, jsonrpc.ErrorMessage(o.env.Error.Of(line)))
		return line
	}
	result := bytes.Clone(o.env.Result.Of(line))
	o.settled(result)
	o.process.era, o.process.offer = mcp.Legacy, result
	o.sayInitialized(o.process)
	o.endFirstStart()
	known := o.memory.known // initialize says nothing about how the server reacts to a probe
	known.Asked, known.Initialize, known.NoInitialize = AskedDigest(o.session.InitParams), result, false
	o.memory.learn(known)
	o.replay.cameUp(o.process)
	o.spares.tellReplayable()
	shown := mcp.AdvertiseListChanged(result, !o.opts.NoTools)
	return o.withResult(line, shown)
}

// initializeFromMemory answers the handshake with an earlier run's answer while the server is starting or asleep. The
// server gets its handshake when it is up; differences are announced then.
func (o *handshake) initializeFromMemory(c *call) bool {
	known := o.memory.known
	if o.opts.NoFastStart || known.Initialize == nil || known.Asked != AskedDigest(o.session.InitParams) ||
		o.process.through() || o.prober.probed() || o.hopeless() {
		return false
	}
	result := bytes.Clone(known.Initialize)
	o.settled(result)
	o.history.remembered("initialize")
	o.flow.answer(c, jsonrpc.AppendResult(nil, c.id, mcp.AdvertiseListChanged(result, !o.opts.NoTools)))
	if p := o.process; p.up() {
		o.replay.greet(p)
	}
	return true
}
