package bridge

import (
	"cmp"
	"slices"
	"time"

	"github.com/outlive-mcp/outlive/internal/protocol/jsonrpc"
	"github.com/outlive-mcp/outlive/internal/protocol/mcp"
)

// tasks are a modern client's calls that are on their way, by their raw ids at the server.
type tasks map[string]*task

// task is one request of the client on its way.
type task struct {
	ID       []byte     // raw, the client's; nil while the client has nothing in flight for it
	Wire     string     // raw, the server's
	Name     string     // of the method
	Method   mcp.Method `json:"-"` // its number is this program's; the name says it
	Open     bool       // it may be answered with questions
	Private  bool       // id and progress token at the server are the bridge's
	Can      abilities  // that the request declares
	Params   []byte     // raw, as the server gets them
	Meta     []byte     // raw, of the request that the client waits for
	Token    []byte     // raw progress token of the client, nil for none
	Level    int        // log level asked for, -1 for none
	Number   uint64     // in handles, 0 before the first
	Round    int
	Asks     []*question // that the client has been shown
	Next     []*question // that it will be shown in the next round
	Behind   []byte      // the last progress that the server told of while nobody waited for it
	Finished []byte      // the server's answer, while nobody waits for it
	Afresh   bool        // the server has ended it: the next round is a new request to it
	Expires  time.Time   // while nobody waits for it
	Party    party       // whose it is, where that matters
	Since    time.Time   // when it went to the server
	Target   string      // what it calls
}

// suspended reports whether the call waits at the server, and no request of the client for it.
func (t *task) suspended() bool { return t.ID == nil }

// mark puts the progress token under which the server speaks of the call into its params.
func (t *task) mark() {
	if t.Token != nil {
		t.Params = set(t.Params, []byte(t.Wire), "_meta", "progressToken")
	}
}

// blocked reports whether the call has certainly asked something that is not answered yet.
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

// onWire returns the call that the server knows under a raw id.
func (ts tasks) onWire(id []byte) *task {
	if t := ts[string(id)]; t != nil {
		return t
	}
	for wire, t := range ts {
		if jsonrpc.SameID([]byte(wire), id) {
			return t
		}
	}
	return nil
}

// numbered returns the call with this number in its handles.
func (ts tasks) numbered(number uint64) *task {
	for _, t := range ts {
		if t.Number == number && number > 0 {
			return t
		}
	}
	return nil
}

// running counts the calls that the server may ask something for, and that it works on.
func (ts tasks) running() int {
	n := 0
	for _, t := range ts {
		if t.Open && !t.suspended() {
			n++
		}
	}
	return n
}

// levels are the log levels that the requests in flight ask for.
func (ts tasks) levels() []int {
	var inUse []int
	for _, t := range ts {
		if !t.suspended() {
			inUse = append(inUse, t.Level)
		}
	}
	return inUse
}

// inOrder returns the calls by their ids on the wire, so that what happens at once happens in one order.
func (ts tasks) inOrder() []*task {
	out := make([]*task, 0, len(ts))
	for _, t := range ts {
		out = append(out, t)
	}
	slices.SortFunc(out, func(a, b *task) int { return cmp.Compare(a.Wire, b.Wire) })
	return out
}

// byAge returns the calls in the order in which they went to the server.
func (ts tasks) byAge() []*task {
	out := ts.inOrder()
	slices.SortStableFunc(out, func(a, b *task) int { return cmp.Or(a.Since.Compare(b.Since), cmp.Compare(len(a.Wire), len(b.Wire))) })
	return out
}
