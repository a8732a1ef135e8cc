package backend

import (
	"bytes"
	"log/slog"

	"github.com/outlive-mcp/outlive/internal/keep/supervise"
	"github.com/outlive-mcp/outlive/internal/protocol/bridge"
	"github.com/outlive-mcp/outlive/internal/protocol/jsonrpc"
	"github.com/outlive-mcp/outlive/internal/protocol/mcp"
	"github.com/outlive-mcp/outlive/internal/protocol/session"
	"github.com/outlive-mcp/outlive/internal/record/event"
)

// A restarted server may be a new version of its program that speaks only the other era. Its client stays in its own: it
// is bridged from then on, or, if it was, no longer. A process that got a handshake in the wrong era must not be used,
// since it may have settled on that era; the next process gets the right one.

// eraFlipsMost is how many processes in a row may change the era before one of them has served. A server that refuses both
// eras is broken and has failed to start.
const eraFlipsMost = 2

// modernOnly reports whether the raw error of a refused initialize says that the server speaks the modern era only. Over
// HTTP that may be an error about the headers, which legacy requests lack.
func modernOnly(raw []byte) bool {
	switch jsonrpc.ErrorCode(raw) {
	case mcp.CodeVersion:
		supported := jsonrpc.FindPath(raw, "data", "supported").Of(raw)
		return supported == nil || bytes.Contains(supported, []byte(`"`+mcp.ModernVersion+`"`))
	case jsonrpc.MethodNotFound, mcp.CodeHeaders:
		return true
	}
	return false
}

// legacyOnly reports whether an error for server/discover is that of a legacy server: unknown method or params, or not
// initialized. Other errors say nothing about the era.
func (e *eras) legacyOnly(line []byte) bool {
	if e.env.Kind != jsonrpc.ErrorResponse || e.unheard(line) {
		return false
	}
	switch jsonrpc.ErrorCode(jsonrpc.Find(line, "error").Of(line)) {
	case jsonrpc.MethodNotFound, jsonrpc.InvalidRequest, jsonrpc.InvalidParams:
		return true
	case mcp.CodeVersion:
		return namesLegacyOnly(line)
	}
	return false
}

// otherEra handles a new process that speaks only another era than its predecessor. It returns false if nothing is
// translated: the process is unusable then, or says so itself.
func (e *eras) otherEra(p *process, speaks mcp.Era) bool {
	reason := "it speaks the " + speaks.String() + " era only"
	switch off := e.opts.NoBridge && e.bridge == nil; {
	case off && p.role == serving:
		e.history.eraMismatch = speaks
		return false
	case off:
		e.spares.spareFailed(p, reason+", and nothing is translated (--bridge off)")
		return true
	}
	if p.role == serving {
		if e.eraFlips++; e.eraFlips > eraFlipsMost {
			e.eraFlips = 0
			p.mark(mustDrain)
			e.replay.handshakeRefused(p, "")
			return true
		}
	}
	e.learnEra(speaks)
	switch {
	case p.role == serving:
		p.mark(mustDrain)
		e.life.step(supervise.Restart{Cause: supervise.Replace, Reason: reason})
	case p.reload && p.requestedBy != supervise.SourceLimit:
		// The old process cannot continue beside one of another era.
		e.life.step(supervise.Restart{Cause: supervise.Requested, Source: p.requestedBy, Reason: reason})
	default:
		e.spares.spareFailed(p, reason)
	}
	return true
}

// learnEra notes that the server speaks another era only, and forgets what it has shown: it is another version of the
// program, or was mistaken for a server of the other era.
func (e *eras) learnEra(speaks mcp.Era) {
	e.memory.known.Lists = nil
	e.memory.learn(Knowledge{Era: speaks, NoInitialize: speaks == mcp.Modern, Listen: e.memory.known.Listen})
}

// turnedBack handles a server that a legacy client was bridged to because it was modern, and is no longer.
func (e *eras) turnedBack(p *process, line []byte) bool {
	return e.translating(mcp.Legacy) && e.past != nil && e.legacyOnly(line) && e.otherEra(p, mcp.Legacy)
}

// served notes that a process serves: client and server understand each other.
func (e *eras) served() {
	e.history.eraMismatch, e.eraFlips, e.resumed = mcp.EraUnknown, 0, false
}

// meetEra checks, before a new process gets its handshake, whether the server is now known to speak another era than the
// conversation.
func (e *eras) meetEra() {
	era, translated := e.session.Era, e.bridge != nil
	switch {
	case translated:
		era = e.bridge.Client().Other()
	case era == mcp.Legacy && !e.session.Answered():
		return // it may refuse the client's own initialize
	}
	switch only := e.memory.known.only(); {
	case era == mcp.EraUnknown || only != era.Other() || e.opts.NoBridge && !translated:
	case translated:
		e.detach()
	default:
		e.attachLate(era)
	}
}

// attachLate inserts a bridge into an existing conversation, with what the client has told the old process. Queued messages go
// through it.
func (e *eras) attachLate(client mcp.Era) {
	e.asks.cancelAll(nil, "server restarted")
	said, streams := e.drainUnsent()
	past := e.session
	past.Listens = streams
	e.session.Reset()
	if e.resumed { // it was bridged before, and has read the lists as the server shows them
		past.MoveLists(&e.session)
	}
	e.spares.tellReplayable()
	e.attach(client, said...)
	e.past = &past
	e.pass(e.bridge.Resume(&past, e.now))
}

// moved tells the client what is different now, once a bridge that has come in the middle has greeted the server.
func (e *eras) moved() {
	if e.past == nil || !e.bridge.Ready() {
		return
	}
	past := e.past
	e.past = nil
	now := e.bridge.Session()
	if now.InitResult != nil {
		e.replay.tellDrift(past.InitResult, now.InitResult, e.process)
	}
	e.tellLists(past, e.bridge.Client(), now.Listens)
}

// tellLists makes the client read the lists again that it has read: a server of another era describes things differently. seen is the
// session in which it has read them.
func (e *eras) tellLists(seen *session.Session, client mcp.Era, streams []*session.Listen) {
	for l := range mcp.Lists {
		if seen.Seen[l] == nil {
			continue
		}
		if client == mcp.Legacy {
			e.arrays.SendToClient(mcp.ChangedLine(l, nil))
		}
		for _, one := range streams {
			if l.In(one.Acked) {
				e.arrays.SendToClient(mcp.ChangedLine(l, one.ID))
			}
		}
	}
}

// drainUnsent removes all calls that no server has got from the table, and returns their lines, and the streams that the client believes
// to be open. Calls in flight at another process are given up, since their answers would be of the other era.
func (e *eras) drainUnsent() (lines [][]byte, streams []*session.Listen) {
	for c := range e.calls.all {
		switch {
		case c.state == sent:
			e.flow.answerUnknown(c, reasonRestarted, "The tool server was replaced by one of another era of the protocol while "+c.what()+
				" was running. "+mcp.OutcomeUnknown)
			continue
		case c.acked != nil:
			streams = append(streams, c.lasting())
		case c.method != mcp.NoteInitialized:
			lines = append(lines, bytes.Clone(c.line))
		}
		e.flow.finish(c)
	}
	return lines, streams
}

// detach removes the bridge: the server speaks the client's era again. Queued messages are sent as the client wrote
// them; a legacy client's handshake and settings are replayed, and a modern one's streams opened again.
func (e *eras) detach() {
	outer := e.bridge.Session() // of a modern client, the next process is asked whether it speaks that era
	client, past, inner := e.bridge.Client(), e.past, e.session
	said := e.untranslated()
	e.pass(e.bridge.Close("the server was replaced by one of another era of the protocol; whether the request took effect is unknown", e.now))
	e.held = append(said, e.held...)
	e.bridge, e.stands, e.toCore, e.past = nil, needless, nil, nil
	e.session = outer
	if client == mcp.Legacy && past != nil {
		e.session = *past
	}
	streams := e.session.Listens
	e.session.Listens = nil
	for _, l := range streams {
		if l.Acked != nil { // else its request is among what is said once more
			e.streams.takeOver(l)
		}
	}
	e.tellLists(&inner, client, streams)
	e.spares.tellReplayable()
	e.emit(event.BridgeReleased, slog.LevelInfo, "The server speaks its client's era again: nothing is translated any more",
		slog.String(event.KeyReason, bridge.Name(client)))
}

// untranslated removes all calls from the table and returns the client's own lines.
func (e *eras) untranslated() (said [][]byte) {
	for c := range e.calls.all {
		if c.state != sent {
			if line := e.bridge.Back(c.of); line != nil {
				said = append(said, line)
			}
		}
		e.flow.finish(c)
	}
	return append(said, e.bridge.Unsaid()...)
}

// withoutOldState turns a modern client's next round of a call into a new call: the bridged server does not know the
// earlier rounds. e.line was scanned from it.
func (e *eras) withoutOldState(line []byte) []byte {
	state := e.line.RequestState.Of(line)
	if state == nil || !e.states.native(state) {
		return line
	}
	params := e.line.Params.Of(line)
	fresh := jsonrpc.Delete(nil, jsonrpc.Delete(nil, params, "requestState"), "inputResponses")
	return jsonrpc.Replace(nil, line, e.line.Params, fresh)
}
