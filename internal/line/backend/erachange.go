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

// A restarted server may be a new version of its program that speaks only the other era. Its client stays in its own: it
// is bridged from then on, or, if it was, no longer. A process that got a handshake in the wrong era must not be used,
// since it may have settled on that era; the next process gets the right one.

// eraFlipsMost is how many processes in a row may change the era before one of them has served. A server that refuses both
// eras is broken and has failed to start.
const eraFlipsMost = 2

// modernOnly reports whether the raw error of a refused initialize says that the server speaks the modern era only. Over
// HTTP that may be an error about the headers, which legacy requests lack.
func modernOnly(raw []byte) bool {
	switch code := jsonrpc.Find(raw, "code").Of(raw); string(code) {
	case codeUnsupportedVersion:
		supported := jsonrpc.FindPath(raw, "data", "supported").Of(raw)
		return supported == nil || bytes.Contains(supported, []byte(`"`+mcp.ModernVersion+`"`))
	case codeNoMethod, codeHeaderMismatch:
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
	switch code := jsonrpc.FindPath(line, "error", "code").Of(line); string(code) {
	case codeNoMethod, "-32600", "-32602":
		return true
	case codeUnsupportedVersion:
		return namesLegacyOnly(line)
	}
	return false
}

// otherEra handles a new process that speaks only another era than its predecessor. It returns false if nothing is
// translated: the process is unusable then, or says so itself.
func (e *eras) otherEra(p *process, speaks mcp.Era) bool {
	reason := "it speaks the " + speaks.String() + " era only"
	switch off := e.opts.Bridge == bridge.Off && e.bridging() == bridge.None; {
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
	known := e.memory.known
	e.memory.known.Lists = nil
	known.Asked, known.Initialize, known.Discover = "", nil, nil
	if speaks == mcp.Modern {
		known.Era, known.Probe, known.NoInitialize = mcp.Modern, "", true
	} else {
		known.Era, known.Probe, known.NoInitialize = mcp.Legacy, "error", false
	}
	e.memory.learn(known)
}

// turnedLegacy handles a new process whose answer to server/discover shows that it is legacy now.
func (e *eras) turnedLegacy(p *process, line []byte) bool {
	return e.legacyOnly(line) && e.otherEra(p, mcp.Legacy)
}

// turnedModern handles a new process whose raw error for initialize shows that it is modern now.
func (e *eras) turnedModern(p *process, raw []byte) bool {
	return modernOnly(raw) && e.otherEra(p, mcp.Modern)
}

// turnedBack handles a server that a legacy client was bridged to because it was modern, and is no longer.
func (e *eras) turnedBack(p *process, line []byte) bool {
	return e.translating(bridge.LegacyClient) && e.adapter.past != nil && e.turnedLegacy(p, line)
}

// served notes that a process serves: client and server understand each other.
func (e *eras) served() {
	e.history.eraMismatch, e.eraFlips, e.resumed = mcp.EraUnknown, 0, false
}

// bridging is the present translation.
func (e *eras) bridging() bridge.Mode {
	if e.adapter == nil || e.adapter.bridge == nil {
		return bridge.None
	}
	return e.adapter.bridge.Mode()
}

// meetEra checks, before a new process gets its handshake, whether the server is now known to speak another era than the
// conversation.
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
		e.detach()
	default:
		e.attachLate(need)
	}
}

// attachLate inserts a bridge into an existing conversation. Queued messages go through it; first it must learn what a
// legacy client told the old process.
func (e *eras) attachLate(mode bridge.Mode) {
	e.asks.cancelAll(nil, "server restarted")
	said := e.takeBack()
	past := e.session
	e.session.Reset()
	if e.resumed { // it was bridged before, and has read the lists as the server shows them
		past.MoveLists(&e.session)
	}
	e.spares.tellReplayable()
	e.attach(mode, said...)
	s := e.adapter
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

// awaitAcks prepares for the acknowledgements of streams that are opened again. An unfinished move may have left some.
func (s *eraAdapter) awaitAcks() {
	if s.acked == nil {
		s.acked = map[string]*session.Listen{}
	}
}

// streamsMoved ends the move of a client once each of its streams is open again or has ended. A legacy client has none
// and is moved when its bridge knows it.
func (s *eraAdapter) streamsMoved() {
	if (s.bridge == nil || s.bridge.Mode() == bridge.ModernClient) && len(s.acked) == 0 {
		s.past = nil
	}
}

// takeBack removes all calls that no server has got from the table, and returns their lines. Calls in flight at another
// process are given up, since their answers would be of the other era, and elements of an array are refused.
func (e *eras) takeBack() (lines [][]byte) {
	for c := range e.calls.all {
		if c.state == sent {
			e.flow.answerUnknown(c, reasonRestarted, "The tool server was replaced by one of another era of the protocol while "+c.what()+
				" was running. "+mcp.OutcomeUnknown)
			continue
		}
		if c.batch != nil { // its other elements may be answered already, and all answers belong into one array
			e.flow.refuse(c, refusal{reason: reasonRestarted, retry: true,
				text: "the server speaks another era of the protocol now: " + c.delivery() + ", it is safe to retry"})
			continue
		}
		if c.method != mcp.NoteInitialized {
			lines = append(lines, bytes.Clone(c.line))
		}
		e.flow.finish(c)
	}
	return lines
}

// detach removes the bridge: the server speaks the client's era again. Queued messages are sent as the client wrote
// them; a legacy client's handshake and settings are replayed.
func (e *eras) detach() {
	s := e.adapter
	told, ok := s.bridge.Told()
	mode, past, inner := s.bridge.Mode(), s.past, e.session
	said := s.untranslated()
	s.awaitAcks()
	for _, one := range s.bridge.TakeStreams() {
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
	case mode == bridge.LegacyClient && past != nil:
		e.session = *past
	case ok: // of a modern client, the next process is asked whether it speaks that era
		e.session = sessionOf(mode, told)
	}
	if e.session.Answered() {
		s.tellLists(func(mcp.List) []byte { return nil }, func(mcp.List) bool { return true })
	}
	s.streamsMoved()
	e.spares.tellReplayable()
	e.emit(event.BridgeReleased, slog.LevelInfo, "The server speaks its client's era again: nothing is translated any more",
		slog.String(event.KeyReason, mode.String()))
}

// untranslated removes all calls from the table and returns the client's own lines.
func (s *eraAdapter) untranslated() (said [][]byte) {
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

// sessionOf is the session of a client that was bridged.
func sessionOf(mode bridge.Mode, told bridge.Told) session.Session {
	if mode == bridge.ModernClient {
		s := session.Session{Era: mcp.Modern}
		s.KeepMeta(told.Meta)
		return s
	}
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

// retell replays to the bridge what a legacy client has told its server so far.
func (s *eraAdapter) retell() {
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
	for _, setting := range s.past.Settings() {
		about := ""
		if setting.Method == mcp.Subscribe {
			about = string(jsonrpc.Find(setting.Params, "uri").Of(setting.Params))
		}
		lines = append(lines, jsonrpc.AppendRequest(nil, id(about), setting.Method.String(), setting.Params))
	}
	s.client = append(lines, s.client...)
}

// retold reports whether a line was sent on the client's behalf.
func (s *eraAdapter) retold(line []byte) bool {
	_, mine := s.echo[string(jsonrpc.Find(line, "id").Of(line))]
	return mine
}

// echoHello marks the answer to a replayed initialize. It differs from every raw URI of a resource.
const echoHello = "initialize"

// untold reports whether the replay is still to be done, because the bridge was not usable before.
func (s *eraAdapter) untold() bool {
	return s.past != nil && s.bridge.Mode() == bridge.LegacyClient && len(s.echo) == 0
}

// changing reports whether a client is being moved to a server of another era.
func (s *eraAdapter) changing() bool { return s.past != nil || len(s.echo)+len(s.acked) > 0 }

// swallows reports whether a line of the bridge must not reach the client, which has not asked for it.
func (s *eraAdapter) swallows(line []byte) bool {
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

// echoed takes the answer to a replayed message. Subscribed resources may have changed meanwhile.
func (s *eraAdapter) echoed(about string, granted bool, result []byte) {
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

// tellLists makes the client read its lists again: a server of another era describes things differently.
func (s *eraAdapter) tellLists(stream func(mcp.List) []byte, wanted func(mcp.List) bool) {
	for l := range mcp.Lists {
		if s.past != nil && s.past.Seen(l) != nil && wanted(l) {
			s.Client.SendToClient(mcp.ChangedLine(l, stream(l)))
		}
	}
}

// acknowledged takes the bridge's acknowledgement of a stream that the client believes to be open. If it grants less
// than before, the stream is ended.
func (s *eraAdapter) acknowledged(line, meta []byte) bool {
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

// streamEnded notes that a stream need not be opened again: it failed, or the client has closed it.
func (s *eraAdapter) streamEnded(id string) {
	delete(s.acked, id)
	s.streamsMoved()
}

// withoutOldState turns a modern client's next round of a call into a new call: the bridged server does not know the
// earlier rounds.
func (s *eraAdapter) withoutOldState(line []byte) []byte {
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
