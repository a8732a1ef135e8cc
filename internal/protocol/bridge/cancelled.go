package bridge

import (
	"slices"
	"time"

	"github.com/outlive-mcp/outlive/internal/files/deadline"
	"github.com/outlive-mcp/outlive/internal/protocol/jsonrpc"
)

// cancelledCalls are cancelled calls that a shared server has not answered: its questions may belong to them.
type cancelledCalls struct {
	*core

	Calls []cancelledCall
}

// cancelledCall is one of them.
type cancelledCall struct {
	Wire  string // raw id at the server
	Party party
	At    time.Time // when it was withdrawn
	Until time.Time // when it is assumed to have ended
}

// full reports whether there is no room for another one, after removing those that no question can belong to.
func (cs *cancelledCalls) full() bool {
	cs.Calls = slices.DeleteFunc(cs.Calls, func(c cancelledCall) bool { return cs.due(c.Until.Add(unclearFor)) })
	return len(cs.Calls) >= queueMost
}

// merge replaces all calls, too many to be distinguished, by one that no answer clears. Forgetting the oldest instead
// would let a client that cancels many calls see another client's questions.
func (cs *cancelledCalls) merge() {
	cs.Calls = []cancelledCall{{At: cs.now, Until: cs.now.Add(cancelledFor)}}
}

// add notes a call that the server may still work on for so long.
func (cs *cancelledCalls) add(t *task, stays time.Duration) {
	cs.Calls = append(cs.Calls, cancelledCall{Wire: t.Wire, Party: t.Party, At: cs.now, Until: cs.now.Add(stays)})
}

// asked notes that a call has asked and was refused: it ends soon.
func (cs *cancelledCalls) asked(wire string) {
	i := slices.IndexFunc(cs.Calls, func(c cancelledCall) bool { return c.Wire == wire })
	if i < 0 {
		return
	}
	cs.Calls = slices.Clone(cs.Calls)
	cs.Calls[i].Until = deadline.Earliest(cs.Calls[i].Until, cs.now.Add(crossFor))
}

// answered forgets the call with this raw id at the server. It reports whether there was one.
func (cs *cancelledCalls) answered(id []byte) bool {
	was := len(cs.Calls)
	cs.Calls = slices.DeleteFunc(cs.Calls, func(c cancelledCall) bool { return jsonrpc.SameID([]byte(c.Wire), id) })
	return len(cs.Calls) < was
}

// has reports whether the call with this id at the server is one of them.
func (cs *cancelledCalls) has(wire string) bool {
	return slices.ContainsFunc(cs.Calls, func(c cancelledCall) bool { return c.Wire == wire })
}

// candidates are the cancelled calls that this message of the server may belong to, besides the given open calls. Calls
// of a client are left out if all of the given calls are its own, which leaves a doubt: at once if it is authenticated,
// otherwise once the question can no longer have crossed with the cancellation.
func (cs *cancelledCalls) candidates(calls []*task) (out []cancelledCall, doubt bool) {
	for _, c := range cs.Calls {
		own := !slices.ContainsFunc(calls, func(t *task) bool { return !t.Party.alike(c.Party) })
		switch {
		case cs.due(c.Until):
		case own && (c.Party.Principal != "" || cs.due(c.At.Add(crossFor))):
			doubt = true
		default:
			out = append(out, c)
		}
	}
	return out, doubt
}
