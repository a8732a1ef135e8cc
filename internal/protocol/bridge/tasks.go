package bridge

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/outlive-mcp/outlive/internal/protocol/jsonrpc"
	"github.com/outlive-mcp/outlive/internal/protocol/mcp"
)

// tasks are a modern client's calls in flight, by their raw ids at the server.
type tasks map[string]*task

// task is one request of the client in flight.
type task struct {
	ID        []byte // raw, the client's; nil while it waits for no answer
	Wire      string // raw, the server's
	Method    mcp.Method
	Open      bool      // it may be answered with questions
	Private   bool      // id and progress token at the server are the bridge's
	Can       abilities // that the request declares
	Params    []byte    // raw, as the server gets them
	Meta      []byte    // raw, of the request that the client waits for
	Token     []byte    // raw progress token of the client, nil for none
	Level     int       // log level asked for, -1 for none
	Round     int
	State     string      // requestState of that round, while the call is suspended
	Asks      []*question // that the client has been shown
	Next      []*question // that it will be shown in the next round
	Behind    []byte      // the last progress while the call was suspended
	Finished  []byte      // the server's answer, if it came while the call was suspended
	Afresh    bool        // the server has ended it: the next round is a new request to it
	Expires   time.Time   // while the call is suspended
	Party     party       // its client, if several share the server
	Since     time.Time   // when it went to the server
	Target    string      // what it calls
	Cancelled time.Time   // when its client gave it up, though a shared server may go on with it; zero: it has not
	Ends      time.Time   // when a cancelled one is assumed to have ended
}

// awaited reports whether the client waits for an answer.
func (t *task) awaited() bool { return t.ID != nil }

// suspended reports whether the call waits at the server without a request of the client.
func (t *task) suspended() bool { return t.ID == nil && !t.cancelled() }

// cancelled reports whether the client has given the call up. Of nil: no.
func (t *task) cancelled() bool { return t != nil && !t.Cancelled.IsZero() }

// mark puts the call's progress token into its params.
func (t *task) mark() {
	if t.Token != nil {
		t.Params = set(t.Params, []byte(t.Wire), "_meta", "progressToken")
	}
}

// blocked reports whether the call certainly has an unanswered question.
func (t *task) blocked() bool {
	return t.suspended() && slices.ContainsFunc(slices.Concat(t.Asks, t.Next), func(q *question) bool { return !q.Doubt })
}

// hasRoom reports whether the call may be given one more question.
func (t *task) hasRoom() bool {
	return (t.Round < roundsMost || t.suspended()) && len(t.Next) < queueMost
}

// find returns the call that the client waits for under a raw id.
func (ts tasks) find(id []byte) *task {
	for _, t := range ts {
		if t.ID != nil && jsonrpc.SameID(t.ID, id) {
			return t
		}
	}
	return nil
}

// running counts the calls at the server that may be asked something and are not suspended.
func (ts tasks) running() int {
	n := 0
	for _, t := range ts {
		if t.Open && t.awaited() {
			n++
		}
	}
	return n
}

// mostVerbose is the least severe of the log levels that the requests in flight ask for, -1 if none does.
func (ts tasks) mostVerbose() int {
	least := -1
	for _, t := range ts {
		if t.awaited() && t.Level >= 0 && (least < 0 || t.Level < least) {
			least = t.Level
		}
	}
	return least
}

// byAge returns the calls in the order in which they went to the server, and apart from them those that are cancelled.
func (ts tasks) byAge() (calls, cancelled []*task) {
	all := inOrder(ts)
	slices.SortStableFunc(all, func(a, b *task) int { return cmp.Or(a.Since.Compare(b.Since), cmp.Compare(len(a.Wire), len(b.Wire))) })
	for _, t := range all {
		if t.cancelled() {
			cancelled = append(cancelled, t)
		} else {
			calls = append(calls, t)
		}
	}
	return calls, cancelled
}

// dropCancelled forgets the cancelled calls.
func (ts tasks) dropCancelled() {
	maps.DeleteFunc(ts, func(_ string, t *task) bool { return t.cancelled() })
}

// onWire returns what the server knows under a raw id, from a table by such ids; nil: nothing.
func onWire[T any](table map[string]*T, id []byte) *T {
	if one := table[string(id)]; one != nil {
		return one
	}
	for wire, one := range table {
		if jsonrpc.SameID([]byte(wire), id) {
			return one
		}
	}
	return nil
}

// inOrder returns what is in such a table by the ids at the server, for a deterministic order.
func inOrder[T any](table map[string]*T) []*T {
	out := make([]*T, 0, len(table))
	for _, wire := range slices.Sorted(maps.Keys(table)) {
		out = append(out, table[wire])
	}
	return out
}
