package bridge

import (
	"slices"
	"time"

	"github.com/outlive-mcp/outlive/internal/protocol/jsonrpc"
	"github.com/outlive-mcp/outlive/internal/protocol/mcp"
)

// What is different where many clients share a legacy server: nothing that it asks or logs may reach another client than
// the one it is meant for, and the server does not say which call a question belongs to. What is certain is this: the call
// was at the server when the question came, and does not end before the question is answered. So a question has suspects,
// the calls at the server when it came, and is held until one of them is left; what stays unclear is refused.
//
// So that this is seldom needed, calls of tools that have asked before go one at a time. Calls of other tools do not take
// turns, because one client's long call is no other client's business. A tool that asks for the first time is known only
// when it has become clear that it was the one.
//
// A call that its client has withdrawn stays a suspect, because the server may not have heard, or not care: only the
// server's answer clears it, or time. The server is told in its handshake that it may ask anything, so that it is not
// started anew for the first client that can be asked; what the client of a call cannot be asked is refused.

const (
	// gatherFor is how long questions are collected before it is looked whose they are: a server may ask several things
	// at once, and then they belong into one answer to the client. It is too short to be noticed.
	gatherFor = 100 * time.Millisecond
	// crossFor is how long a cancellation and a question may be under way towards each other.
	crossFor = 2 * time.Second
	// turnFor is how long a call of what is known to ask waits for its turn: until the one before has ended, or asked.
	turnFor = 25 * time.Second
	// knownMost is how much is known to ask.
	knownMost = 1024
	// cancelledFor is how long a server may work on a call that was withdrawn, and ask for it, without ever answering it, as
	// many do that were made with the TypeScript SDK. That long is for what has asked before; anything else gets unclearFor.
	cancelledFor = answerFor
)

// everyAbility is what a shared server is told that its clients can be asked for; not canSampleContext, by which it would
// ask for what other servers have said.
const everyAbility = canRoots | canSample | canSampleTools | canForm | canURL

// party is who is behind a call, as far as that is known.
type party struct {
	Principal string // whom the transport has authenticated; "" for nobody
	Info      string // raw clientInfo; "" for none
}

// alike reports whether two calls may well be of one client.
func (p party) alike(other party) bool { return p == other && p.Info != "" }

// newCrowd returns the side of many clients.
func newCrowd(c *core, seal sealer) *modernSide {
	s := newModernSide(c, seal)
	s.Can = everyAbility
	s.Questions.Shared, s.Questions.Known = true, map[string]bool{}
	return s
}

// target is what a request, of which qs.env is, calls, where that matters.
func (qs *questions) target(line []byte) string {
	if !qs.Shared {
		return ""
	}
	return string(qs.env.Method.Of(line)) + string(qs.env.Name.Of(line))
}

// inTurn reports whether a call of target, which came at some time, need not wait for another one any more.
func (qs *questions) inTurn(target string, came time.Time) bool {
	if !qs.Known[target] || qs.due(came.Add(turnFor)) {
		return true
	}
	for _, t := range qs.calls {
		if qs.Known[t.Target] && !t.suspended() {
			return false
		}
	}
	return true
}

// partyOf reads who is behind a request from its raw _meta.
func (qs *questions) partyOf(meta []byte) party {
	if !qs.Shared {
		return party{}
	}
	principal, _ := jsonrpc.Unquote(member(meta, mcp.MetaPrincipal))
	return party{Principal: principal, Info: string(member(meta, mcp.MetaClientInfo))}
}

// cancelled notes a call that the server may still be working on. One that has asked was told that nobody waits for it, and so
// it ends soon.
func (qs *questions) cancelled(t *task) {
	if qs.Cancelled.full() {
		for _, q := range qs.Open {
			qs.decline(q, undecided)
		}
		qs.Open = nil
		qs.Cancelled.merge()
	}
	stays := unclearFor
	switch {
	case t.blocked():
		stays = crossFor
	case qs.Known[t.Target]:
		stays = cancelledFor
	}
	qs.Cancelled.add(t, stays)
}

// suspects are the calls, by their ids on the wire, that what the server asks now may belong to. One that waits for an
// answer of its client is none, unless the server works on nothing else: a tool asks again when it has its answer. If the
// server has withdrawn what it asked, or died and begins the call once more, the call waits for no answer.
func (qs *questions) suspects() (wires []string, doubt bool) {
	var running, blocked []*task
	for _, t := range qs.calls.byAge() {
		switch {
		case t.Afresh || t.Finished != nil:
		case t.blocked():
			blocked = append(blocked, t)
		default:
			running = append(running, t)
		}
	}
	cancelled, doubt := qs.Cancelled.candidates(running)
	if len(running) == 0 {
		if cancelled, doubt = qs.Cancelled.candidates(blocked); len(cancelled) == 0 {
			running = blocked
		}
	}
	for _, t := range running {
		wires = append(wires, t.Wire)
	}
	for _, g := range cancelled {
		wires = append(wires, g.Wire)
	}
	return wires, doubt
}

// gather keeps a question of the server until it is looked whose it is.
func (qs *questions) gather(q *question) {
	q.Came = qs.now
	q.Suspects, q.Doubt = qs.suspects()
	qs.Open = append(qs.Open, q)
	if qs.Ruling.IsZero() {
		qs.Ruling = qs.now.Add(gatherFor)
	}
}

// rule gives questions to the calls they belong to, as far as that is certain, unless more may come at once.
func (qs *questions) rule() {
	if !qs.Ruling.IsZero() && !qs.due(qs.Ruling) {
		return
	}
	qs.Ruling = time.Time{}
	var given []*task
	for i := qs.decidable(); i >= 0; i = qs.decidable() {
		q := qs.Open[i]
		qs.Open = slices.Delete(slices.Clone(qs.Open), i, i+1)
		if t := qs.give(q); t != nil && !slices.Contains(given, t) {
			given = append(given, t)
		}
	}
	for _, t := range given {
		if !t.suspended() {
			qs.side.suspend(t)
		}
	}
	for _, q := range qs.Open {
		if living := slices.DeleteFunc(slices.Clone(q.Suspects), func(wire string) bool { return qs.calls[wire] == nil }); len(living) < 2 {
			q.Until = earlier(q.Until, qs.now.Add(crossFor)) // the answer to a withdrawn call comes at once or never
		}
	}
}

// decidable returns the place of a question of which is clear what becomes of it, -1 for none: it has one suspect at most,
// or it is the latest of as many questions as there are calls that can have asked them, so that none of those calls would
// ever end.
func (qs *questions) decidable() int {
	for i, q := range qs.Open {
		q.Suspects = slices.DeleteFunc(slices.Clone(q.Suspects), func(wire string) bool { return !qs.atServer(wire) })
		if len(q.Suspects) < 2 {
			return i
		}
	}
	for _, q := range qs.Open {
		last, count := -1, 0
		for i, other := range qs.Open {
			if !slices.ContainsFunc(other.Suspects, func(wire string) bool { return !slices.Contains(q.Suspects, wire) }) {
				last, count = i, count+1
			}
		}
		if count >= len(q.Suspects) {
			return last
		}
	}
	return -1
}

// atServer reports whether the server may still work on the call with this id there.
func (qs *questions) atServer(wire string) bool {
	if t := qs.calls[wire]; t != nil {
		return !t.Afresh && t.Finished == nil
	}
	return qs.Cancelled.has(wire)
}

const (
	undecided  = "the client cannot be asked now: several calls wait for questions, and which is whose is not clear"
	noLonger   = "the client does not wait for this any more"
	duringCall = "many clients share this server: they can be asked during their calls only"
)

// give notes a question at the call that has asked it, and returns that; nil if the question is refused.
func (qs *questions) give(q *question) *task {
	switch len(q.Suspects) {
	case 0:
		qs.toServer(jsonrpc.AppendError(nil, q.ID, jsonrpc.MethodNotFound, duringCall, nil))
		return nil
	case 1:
	default:
		qs.decline(q, undecided)
		return nil
	}
	t := qs.calls[q.Suspects[0]]
	switch {
	case t == nil:
		qs.Cancelled.asked(q.Suspects[0])
		qs.decline(q, noLonger)
	case !t.Open || q.Need&^t.Can != 0:
		qs.toServer(notFound(q.ID))
	case !t.hasRoom():
		qs.decline(q, tooOften)
	default:
		t.Next = append(t.Next, q)
		qs.learn(q, t)
		return t
	}
	return nil
}

// learn notes what it means that t has asked q: its tool asks, and while it waits it has asked nothing else than what came
// together with q.
func (qs *questions) learn(q *question, t *task) {
	if q.Doubt {
		return
	}
	for _, other := range qs.Open {
		if other.Came.Sub(q.Came).Abs() > gatherFor {
			other.Suspects = slices.DeleteFunc(slices.Clone(other.Suspects), func(wire string) bool { return wire == t.Wire })
		}
	}
	if len(qs.Known) < knownMost {
		qs.Known[t.Target] = true
	}
}

// certain is the one call that what the server says now must belong to; empty if there may be others.
func (qs *questions) certain() tasks {
	if cancelled, _ := qs.Cancelled.candidates(qs.calls.inOrder()); len(qs.calls) == 1 && len(cancelled) == 0 {
		return qs.calls
	}
	return nil
}
