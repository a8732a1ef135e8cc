package backend

import (
	"bytes"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/outlive-mcp/outlive/internal/keep/supervise"
	"github.com/outlive-mcp/outlive/internal/protocol/bridge"
	"github.com/outlive-mcp/outlive/internal/protocol/jsonrpc"
	"github.com/outlive-mcp/outlive/internal/protocol/mcp"
	"github.com/outlive-mcp/outlive/internal/protocol/session"
	"github.com/outlive-mcp/outlive/internal/record/event"
)

// A server that comes back can be a new version of its program, which speaks the other era only. Its client keeps its
// own: from then on it is bridged, or, if it was, not any more. A process that was greeted in an era it does not speak
// must not be used (it may have settled on that era), so the next one is the one that is spoken to.

// turnsMost is how often a server may change its era, one process after the other, before one of them has served. One that
// refuses the words of both eras is broken, and has failed to start.
const turnsMost = 2

// modernOnly reports whether the raw error of a refused initialize says that the server speaks the modern era only.
func modernOnly(raw []byte) bool {
	switch code := jsonrpc.Find(raw, "code").Of(raw); string(code) {
	case codeUnsupportedVersion:
		supported := jsonrpc.FindPath(raw, "data", "supported").Of(raw)
		return supported == nil || bytes.Contains(supported, []byte(`"`+mcp.ModernVersion+`"`))
	case codeNoMethod:
		return true
	}
	return false
}

// legacyOnly reports whether a process's error for server/discover is the one of a server of the legacy era, which does not
// know the method, or the params, or wants to be initialized first. Other errors say nothing: it answers.
func (e *eras) legacyOnly(line []byte) bool {
	if e.env.Kind != jsonrpc.ErrorResponse || e.unheard(line) {
		return false
	}
	switch code := jsonrpc.FindPath(line, "error", "code").Of(line); string(code) {
	case codeNoMethod, "-32600", "-32602":
		return true
	case codeUnsupportedVersion:
		return namesLegacyOnly(line)
	}
	return false
}

// otherEra deals with a new process that speaks another era only than the one before it. It reports false where nothing
// is translated: then the process cannot be used, or says so itself.
func (e *eras) otherEra(p *process, speaks mcp.Era) bool {
	reason := "it speaks the " + speaks.String() + " era only"
	switch off := e.opts.Bridge == bridge.Off && e.bridging() == bridge.None; {
	case off && p.role == serving:
		e.history.estranged = speaks
		return false
	case off:
		e.spares.spareFailed(p, reason+", and nothing is translated (--bridge off)")
		return true
	}
	if p.role == serving {
		if e.turns++; e.turns > turnsMost {
			e.turns = 0
			p.mark(mustDrain)
			e.replay.handshakeRefused(p, "")
			return true
		}
	}
	known := e.memory.known
	e.memory.known.Lists = nil // and whatever else it has shown: it is another version of the program
	known.Asked, known.Initialize = "", nil
	if speaks == mcp.Modern {
		known.Discover = nil
		known.Era, known.Probe, known.NoInitialize = mcp.Modern, "", true
	} else {
		known.Era, known.Probe, known.Discover, known.NoInitialize = mcp.Legacy, "error", nil, false
	}
	e.memory.learn(known)
	switch {
	case p.role == serving:
		p.mark(mustDrain)
		e.life.step(supervise.Restart{Cause: supervise.Replace, Reason: reason})
	case p.reload && p.wish != supervise.SourceLimit:
		// The old process cannot go on beside one that has to be spoken to otherwise.
		e.life.step(supervise.Restart{Cause: supervise.Requested, Source: p.wish, Reason: reason})
	default:
		e.spares.spareFailed(p, reason)
	}
	return true
}

// turnedLegacy deals with a new process whose answer to server/discover says that it is of the legacy era now.
func (e *eras) turnedLegacy(p *process, line []byte) bool {
	return e.legacyOnly(line) && e.otherEra(p, mcp.Legacy)
}

// turnedModern deals with a new process whose raw error for initialize says that it is of the modern era now.
func (e *eras) turnedModern(p *process, raw []byte) bool {
	return modernOnly(raw) && e.otherEra(p, mcp.Modern)
}

// turnedBack deals with a server that a legacy client was moved to because it was modern, and is not any more.
func (e *eras) turnedBack(p *process, line []byte) bool {
	return e.translating(bridge.LegacyClient) && e.seam.past != nil && e.turnedLegacy(p, line)
}

// served notes that a process serves: client and server understand each other.
func (e *eras) served() { e.history.estranged, e.turns = mcp.Virgin, 0 }

// bridging is what is translated now.
func (e *eras) bridging() bridge.Mode {
	if e.seam == nil || e.seam.bridge == nil {
		return bridge.None
	}
	return e.seam.bridge.Mode()
}

// meetEra looks, before a new process is greeted, whether it has turned out that the server speaks another era than
// the conversation so far.
func (e *eras) meetEra() {
	era, mode := e.session.Era, e.bridging()
	switch {
	case mode != bridge.None:
		era = mode.ServerEra()
	case era == mcp.Legacy && !e.session.Answered():
		return // it may refuse the client's own initialize
	}
	switch need := bridge.Need(bridge.Auto, era, e.memory.known.speaks()); {
	case need == bridge.None || e.opts.Bridge == bridge.Off && mode == bridge.None:
	case mode != bridge.None:
		e.disengage()
	default:
		e.engageAnew(need)
	}
}

// engageAnew puts a bridge into a conversation that has gone on without one. What waits for the new process goes through
// it; a client of the legacy era has told the old one things that the bridge must know first.
func (e *eras) engageAnew(mode bridge.Mode) {
	e.asks.cancelAll(nil, "server restarted")
	said := e.takeBack()
	past := e.session
	e.session.Reset()
	e.history.introduction = ""
	e.spares.introduce()
	e.engage(mode, said...)
	s := e.seam
	s.past = &past
	if mode == bridge.LegacyClient {
		s.retell()
		return
	}
	s.awaitAcks()
	for _, l := range past.Listens() {
		if l.Acked != nil {
			s.acked[string(l.ID)] = l
		}
	}
	s.streamsMoved()
}

// awaitAcks makes room for what is known of streams that are opened again. From a move that is not over there may be some.
func (s *seam) awaitAcks() {
	if s.acked == nil {
		s.acked = map[string]*session.Listen{}
	}
}

// streamsMoved ends the move of a client once each of its streams is open again, or has ended; a legacy client has none, and
// is moved when its bridge knows it.
func (s *seam) streamsMoved() {
	if (s.bridge == nil || s.bridge.Mode() == bridge.ModernClient) && len(s.acked) == 0 {
		s.past = nil
	}
}

// takeBack takes all out of the table of calls that the client has said and no server has been told. What a process beside
// the serving one still works on is given up: its answer would be of the other era.
func (e *eras) takeBack() (lines [][]byte) {
	for c := range e.calls.all {
		if c.state == sent {
			e.flow.answerUnknown(c, reasonRestarted, "The tool server was replaced by one of another era of the protocol while "+c.what()+
				" was running. "+mcp.OutcomeUnknown)
			continue
		}
		if c.method != mcp.NoteInitialized {
			lines = append(lines, bytes.Clone(c.line))
		}
		if c.batch != nil {
			e.flow.closeBatch(c.batch)
		}
		e.flow.finish(c)
	}
	return lines
}

// disengage takes the bridge away: the server speaks the client's own era again. What waits for the new process is said to
// it as the client said it; a legacy client's handshake and wishes are replayed.
func (e *eras) disengage() {
	s := e.seam
	told, ok := s.bridge.Told()
	mode, past, inner := s.bridge.Mode(), s.past, e.session
	said := s.untranslated()
	s.awaitAcks()
	for _, one := range s.bridge.Streams() {
		said = append(said, one.Line)
		if one.Granted != nil {
			s.acked[string(one.ID)] = &session.Listen{ID: one.ID, Acked: one.Granted, Filter: one.Granted}
		}
	}
	s.give(s.bridge.Close("the server was replaced by one of another era of the protocol; whether the request took effect is unknown", e.now))
	s.client = slices.DeleteFunc(append(said, s.client...), s.retold)
	s.bridge, s.decided, s.inner, s.at, s.past, s.echo = nil, true, nil, time.Time{}, &inner, nil
	e.session.Reset()
	switch {
	case mode == bridge.ModernClient && ok: // the next process is asked whether it speaks that era
		e.session.Era = mcp.Modern
		e.session.KeepMeta(told.Meta)
	case mode == bridge.ModernClient:
	case past != nil:
		e.session = *past
	case ok:
		e.session = sessionOf(told)
	}
	if e.session.Answered() {
		s.tellLists(func(mcp.List) []byte { return nil }, func(mcp.List) bool { return true })
	}
	s.streamsMoved()
	e.history.introduction = ""
	e.spares.introduce()
	e.emit(event.BridgeReleased, slog.LevelInfo, "The server speaks its client's era again: nothing is translated any more",
		slog.String(event.KeyReason, mode.String()))
}

// untranslated takes all out of the table of calls, and returns what of it the client has said, in the client's words.
func (s *seam) untranslated() (said [][]byte) {
	for c := range s.eras.calls.all {
		if c.state != sent {
			if line, ok := s.bridge.Back(c.line); ok {
				said = append(said, bytes.Clone(line))
			}
		}
		s.eras.flow.finish(c)
	}
	return append(said, s.bridge.Unsaid()...)
}

// sessionOf is the session of a legacy client that was bridged.
func sessionOf(told bridge.Told) session.Session {
	s := session.Session{
		Era: mcp.Legacy, InitParams: told.Params, Version: told.Version, InitResult: told.Result, Initialized: told.Initialized,
	}
	if told.Level != nil {
		s.SetLogLevel(append(append([]byte(`{"level":`), told.Level...), '}'))
	}
	for _, uri := range told.URIs {
		s.Subscribe(append(jsonrpc.AppendQuoted([]byte(`{"uri":`), uri), '}'))
	}
	return s
}

// retell has the bridge told, before anything else, what a client of the legacy era has told its server so far.
func (s *seam) retell() {
	var lines [][]byte
	s.echo = map[string]string{}
	id := func(about string) []byte {
		raw := fmt.Appendf(nil, `"b~again.%d"`, len(s.echo))
		s.echo[string(raw)] = about
		return raw
	}
	lines = append(lines, mcp.InitializeLine(id(echoHello), s.past.InitParams, s.past.Version))
	if s.past.Initialized {
		lines = append(lines, mcp.InitializedLine())
	}
	for _, wish := range s.past.Wishes() {
		about := ""
		if wish.Method == mcp.Subscribe {
			about = string(jsonrpc.Find(wish.Params, "uri").Of(wish.Params))
		}
		lines = append(lines, jsonrpc.AppendRequest(nil, id(about), wish.Method.String(), wish.Params))
	}
	s.client = append(lines, s.client...)
}

// retold reports whether a line of the client is one that was said on its behalf.
func (s *seam) retold(line []byte) bool {
	_, mine := s.echo[string(jsonrpc.Find(line, "id").Of(line))]
	return mine
}

// echoHello marks the answer to a retold initialize; the raw URI of a resource is never that.
const echoHello = "initialize"

// untold reports whether the client's story has still to be told, because the bridge could not be used when it was.
func (s *seam) untold() bool {
	return s.past != nil && s.bridge.Mode() == bridge.LegacyClient && len(s.echo) == 0
}

// changing reports whether a client is being moved to a server of another era.
func (s *seam) changing() bool { return s.past != nil || len(s.echo)+len(s.acked) > 0 }

// swallows reports whether the client must not see a line of the bridge: it has asked nothing of the kind just now.
func (s *seam) swallows(line []byte) bool {
	var env jsonrpc.Envelope
	if !s.changing() || env.Scan(line) != nil {
		return false
	}
	switch env.Kind {
	case jsonrpc.Response, jsonrpc.ErrorResponse:
		id := string(env.ID.Of(line))
		about, retold := s.echo[id]
		if retold {
			delete(s.echo, id)
			s.echoed(about, env.Kind == jsonrpc.Response, env.Result.Of(line))
		}
		s.streamEnded(id)
		return retold
	case jsonrpc.Notification:
		if mcp.Lookup(env.Method.Of(line)) == mcp.NoteAcknowledged {
			return s.acknowledged(line, env.Meta.Of(line))
		}
	}
	return false
}

// echoed takes the answer to something that was retold. What a client was subscribed to may have changed meanwhile.
func (s *seam) echoed(about string, granted bool, result []byte) {
	switch {
	case !granted:
	case about == echoHello:
		s.eras.replay.tellDrift(s.past.InitResult, result, s.eras.process)
		s.tellLists(func(mcp.List) []byte { return nil }, func(mcp.List) bool { return true })
		s.past = nil
	case about != "":
		s.Client.SendToClient(mcp.UpdatedLine([]byte(about)))
	}
}

// tellLists has the client read the lists again that it has read: a server of another era describes things otherwise.
func (s *seam) tellLists(stream func(mcp.List) []byte, wanted func(mcp.List) bool) {
	for l := range mcp.Lists {
		if s.past != nil && s.past.Seen(l) != nil && wanted(l) {
			s.Client.SendToClient(mcp.ChangedLine(l, stream(l)))
		}
	}
}

// acknowledged takes the bridge's acknowledgement of a stream that the client believes to be open. If that grants less than
// the client was granted before, the stream is ended honestly.
func (s *seam) acknowledged(line, meta []byte) bool {
	id := jsonrpc.Find(meta, mcp.MetaSubscriptionID).Of(meta)
	l := s.acked[string(id)]
	if l == nil {
		return false
	}
	delete(s.acked, string(id))
	if l.Covers(jsonrpc.FindPath(line, "params", "notifications").Of(line)) {
		s.tellLists(func(mcp.List) []byte { return l.ID }, l.Wants)
	} else {
		s.client = append(s.client, mcp.CancelledLine(l.ID, "subscription ended"))
		s.Client.SendToClient(mcp.CancelledLine(l.ID, "the restarted server does not offer all of this subscription"))
		result := append([]byte(`{"resultType":"complete","_meta":{"`+mcp.MetaSubscriptionID+`":`), l.ID...)
		s.Client.SendToClient(jsonrpc.AppendResult(nil, l.ID, append(result, "}}"...)))
	}
	s.streamsMoved()
	return true
}

// streamEnded notes that a stream need not be opened again: it could not be, or the client does not want it any more.
func (s *seam) streamEnded(id string) {
	delete(s.acked, id)
	s.streamsMoved()
}

// withoutOldState is a modern client's next round of a call that a server of its own era began, as a new call: the server
// that is bridged has not begun it.
func (s *seam) withoutOldState(line []byte) []byte {
	state := s.env.RequestState.Of(line)
	if state == nil {
		return line
	}
	if !s.eras.states.native(state) {
		return line
	}
	params := s.env.Params.Of(line)
	fresh := jsonrpc.Delete(nil, jsonrpc.Delete(nil, params, "requestState"), "inputResponses")
	return jsonrpc.Replace(nil, line, s.env.Params, fresh)
}
