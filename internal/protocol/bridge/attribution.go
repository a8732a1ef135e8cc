package bridge

import (
	"slices"
	"time"

	"github.com/outlive-mcp/outlive/internal/files/deadline"
	"github.com/outlive-mcp/outlive/internal/protocol/jsonrpc"
	"github.com/outlive-mcp/outlive/internal/protocol/mcp"
)

// Rules for a legacy server that many clients share: its questions and logs must reach only the client they are for, and
// the server does not say which call a question belongs to. One thing is certain: the asking call was at the server when
// the question came, and does not end before the question is answered. So a question has suspects, the calls at the
// server when it came, and is held until one of them is left; if it stays ambiguous, it is refused.
//
// To make this rare, calls of tools that have asked before run one at a time. Calls of other tools do not take turns,
// because clients must not wait for each other's long calls. A tool that asks for the first time is known only once it
// is identified.
//
// A cancelled call stays a suspect, because the server may not have seen the cancellation, or ignore it: only the
// server's answer, or time, clears it. The handshake tells the server that it may ask anything, so that no restart is
// needed for the first client that can be asked; questions that the call's client cannot be asked are refused.

const (
	// gatherFor is how long questions are collected before their calls are determined: a server may ask several at once,
	// which belong into one answer to the client. It is too short to be noticed.
	gatherFor = 100 * time.Millisecond
	// crossFor is how long a cancellation and a question may cross each other.
	crossFor = 2 * time.Second
	// turnFor is how long a call of an asking tool waits for its turn: until the previous one has ended, or asked. With one client
	// it is how long answers wait.
	turnFor = 25 * time.Second
	// knownMost is how many asking tools are remembered.
	knownMost = 1024
	// cancelledFor is how long a server may work on a cancelled call, and ask for it, without ever answering it, as many
	// TypeScript SDK servers do. It is for tools that have asked before; others get unclearFor.
	cancelledFor = answerFor
)

// everyAbility is what the handshake declares to a shared server. It lacks canSampleContext, by which it would ask for
// context of other servers.
const everyAbility = canRoots | canSample | canSampleTools | canForm | canURL

// party identifies the client of a call, as far as it is known.
type party struct {
	Principal string // authenticated by the transport; "": none
	Info      string // raw clientInfo; "" for none
}

// alike reports whether two calls may be of one client.
func (p party) alike(other party) bool { return p == other && p.Info != "" }

// target is what the request in qs.env calls, if it may ask questions.
func (qs *questions) target(line []byte) string {
	if !qs.Shared {
		return ""
	}
	return string(qs.env.Method.Of(line)) + string(qs.env.Name.Of(line))
}

// partyOf tells the client of a request by its raw id and _meta.
func (qs *questions) partyOf(id, meta []byte) party {
	if !qs.Shared {
		return party{}
	}
	return party{Principal: qs.principal(id), Info: string(member(meta, mcp.MetaClientInfo))}
}

// cancel keeps a call that the server may still work on though its client has given it up. One whose question was refused ends soon.
func (qs *questions) cancel(c *Call) {
	qs.makeRoom()
	stays := unclearFor
	switch {
	case c.blocked():
		stays = crossFor
	case qs.Known[c.Target]:
		stays = cancelledFor
	}
	c.ID, c.Line, c.Token, c.Level = nil, nil, nil, -1
	c.Cancelled, c.Ends = qs.now, qs.now.Add(stays)
}

// makeRoom forgets cancelled calls that no question can belong to. One that no answer clears replaces the rest if it is too many to be
// distinguished. Forgetting the oldest instead would let a client that cancels many calls see another client's questions.
func (qs *questions) makeRoom() {
	left := 0
	_, cancelled := qs.Calls.apart()
	for _, c := range cancelled {
		if qs.due(c.Ends.Add(unclearFor)) {
			qs.Calls.remove(c)
		} else {
			left++
		}
	}
	if left < queueMost {
		return
	}
	for _, q := range qs.Open {
		qs.decline(q, undecided)
	}
	qs.Open = nil
	qs.Calls.dropCancelled()
	qs.Calls.add(&Call{Level: -1, Cancelled: qs.now, Ends: qs.now.Add(cancelledFor)})
}

// candidates are those of the cancelled calls that a message of the server may belong to, besides the given other calls. Calls of a
// client are left out if all of the others are its own, which leaves a doubt: at once if it is authenticated, otherwise once
// the question can no longer have crossed with the cancellation.
func (qs *questions) candidates(cancelled, others []*Call) (out []*Call, doubt bool) {
	for _, c := range cancelled {
		own := !slices.ContainsFunc(others, func(other *Call) bool { return !other.Party.alike(c.Party) })
		switch {
		case qs.due(c.Ends):
		case own && (c.Party.Principal != "" || qs.due(c.Cancelled.Add(crossFor))):
			doubt = true
		default:
			out = append(out, c)
		}
	}
	return out, doubt
}

// suspects are the calls that may have asked the present question. A call that waits for
// its client's answer is none, unless the server works on nothing else: a tool asks again only after its answer. If the
// server has cancelled the question, or died and starts the call again, the call waits for no answer.
func (qs *questions) suspects() (all []*Call, doubt bool) {
	var running, blocked []*Call
	living, cancelled := qs.Calls.apart()
	for _, c := range living {
		switch {
		case c.Afresh || c.Finished != nil:
		case c.blocked():
			blocked = append(blocked, c)
		default:
			running = append(running, c)
		}
	}
	maybe, doubt := qs.candidates(cancelled, running)
	if len(running) == 0 {
		if maybe, doubt = qs.candidates(cancelled, blocked); len(maybe) == 0 {
			running = blocked
		}
	}
	return append(running, maybe...), doubt
}

// gather keeps a question until its call is determined.
func (qs *questions) gather(q *question) {
	q.Came = qs.now
	q.Suspects, q.Doubt = qs.suspects()
	qs.Open = append(qs.Open, q)
	if qs.Ruling.IsZero() {
		qs.Ruling = qs.now.Add(gatherFor)
	}
}

// rule gives questions to their calls where that is certain, unless more may come at once.
func (qs *questions) rule() {
	if !qs.Ruling.IsZero() && !qs.due(qs.Ruling) {
		return
	}
	qs.Ruling = time.Time{}
	var given []*Call
	for i := qs.decidable(); i >= 0; i = qs.decidable() {
		q := qs.Open[i]
		qs.Open = slices.Delete(slices.Clone(qs.Open), i, i+1)
		if c := qs.give(q); c != nil && !slices.Contains(given, c) {
			given = append(given, c)
		}
	}
	for _, c := range given {
		if !c.suspended() {
			qs.side.suspend(c)
		}
	}
	for _, q := range qs.Open {
		if living := slices.DeleteFunc(slices.Clone(q.Suspects), (*Call).cancelled); len(living) < 2 {
			q.Until = deadline.Earliest(q.Until, qs.now.Add(crossFor)) // the answer to a cancelled call comes at once or never
		}
	}
}

// decidable returns the index of a question that can be decided, -1 for none: it has at most one suspect, or it is the
// latest of as many questions as there are possible calls, none of which would end otherwise.
func (qs *questions) decidable() int {
	for i, q := range qs.Open {
		q.Suspects = slices.DeleteFunc(slices.Clone(q.Suspects), func(c *Call) bool { return !qs.atServer(c) })
		if len(q.Suspects) < 2 {
			return i
		}
	}
	for _, q := range qs.Open {
		last, count := -1, 0
		for i, other := range qs.Open {
			if !slices.ContainsFunc(other.Suspects, func(c *Call) bool { return !slices.Contains(q.Suspects, c) }) {
				last, count = i, count+1
			}
		}
		if count >= len(q.Suspects) {
			return last
		}
	}
	return -1
}

// atServer reports whether the server may still work on a call.
func (qs *questions) atServer(c *Call) bool {
	return slices.Contains(qs.Calls, c) && !c.Afresh && c.Finished == nil
}

const (
	undecided  = "the client cannot be asked now: several calls wait for questions, and which is whose is not clear"
	noLonger   = "the client does not wait for this any more"
	duringCall = "many clients share this server: they can be asked during their calls only"
)

// give assigns a question to its call and returns the call; nil if the question is refused.
func (qs *questions) give(q *question) *Call {
	switch len(q.Suspects) {
	case 0:
		qs.toServer(jsonrpc.AppendError(nil, q.ID, jsonrpc.MethodNotFound, duringCall, nil))
		return nil
	case 1:
	default:
		qs.decline(q, undecided)
		return nil
	}
	c := q.Suspects[0]
	switch {
	case c.cancelled():
		c.Ends = deadline.Earliest(c.Ends, qs.now.Add(crossFor)) // it was refused
		qs.decline(q, noLonger)
	case !c.Open || q.Need&^c.Can != 0:
		qs.toServer(notFound(q.ID))
	case !c.hasRoom():
		qs.decline(q, tooOften)
	default:
		c.Next = append(c.Next, q)
		qs.learn(q, c)
		return c
	}
	return nil
}

// learn concludes from c having asked q: its tool asks, and while it waits it has asked nothing else than what came
// together with q.
func (qs *questions) learn(q *question, c *Call) {
	if q.Doubt {
		return
	}
	for _, other := range qs.Open {
		if other.Came.Sub(q.Came).Abs() > gatherFor {
			other.Suspects = slices.DeleteFunc(slices.Clone(other.Suspects), func(one *Call) bool { return one == c })
		}
	}
	if len(qs.Known) < knownMost {
		qs.Known[c.Target] = true
	}
}
