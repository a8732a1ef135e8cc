package bridge

import (
	"slices"
	"time"

	"github.com/outlive-mcp/outlive/internal/protocol/jsonrpc"
	"github.com/outlive-mcp/outlive/internal/protocol/mcp"
)

// calls are requests of the client, each in its words, in the order in which the server gets them.
type calls []*Call

// Call is one request of the client on its way, or one of the bridge's own. The server may get several requests for it, one after the
// other: see the package's comment.
type Call struct {
	ID     []byte // raw, the client's; nil while it waits for no answer
	Line   []byte // as the client has said it, of the request that it waits for
	Wire   string // raw id, the server's; "" if it gets no such request
	Method mcp.Method
	Token  []byte // raw progress token of the client, nil for none
	Rounds int    // of questions to the client

	then func(line []byte) // of the bridge's own, which has nothing else but Wire: what takes the answer

	// Of a legacy client:

	Progress []byte   // raw progress that it had been told when the server last answered
	Round    *round   // of questions that it is asked; nil while the server works
	URLs     [][]byte // raw ids of elicitations by URL that have not been declared complete
	URI      string   // of a resources/subscribe: what it wants to hear of
	Stream   string   // likewise: raw id of the listen that covers it; "" until that is opened

	// Of a modern client:

	Open      bool        // it may be answered with questions
	Can       abilities   // that the request declares
	Level     int         // log level asked for, -1 for none
	State     []byte      // raw requestState: that a request brings, or that the client goes on with while the call is suspended
	Came      time.Time   // when the request came
	Asks      []*question // that the client has been shown
	Next      []*question // that it will be shown in the next round
	Behind    []byte      // the last progress while the call was suspended
	Finished  []byte      // the server's answer, if it came while the call was suspended
	Afresh    bool        // the server has ended it: the next round is a new request to it
	Expires   time.Time   // while the call is suspended
	Party     party       // its client, if several share the server
	Target    string      // what it calls
	Cancelled time.Time   // when its client gave it up, though a shared server may go on with it; zero: it has not
	Ends      time.Time   // when a cancelled one is assumed to have ended
}

// awaited reports whether the client waits for an answer.
func (c *Call) awaited() bool { return c.ID != nil }

// suspended reports whether the call waits at the server without a request of the client.
func (c *Call) suspended() bool { return c.ID == nil && !c.cancelled() }

// cancelled reports whether the client has given the call up. Of nil: no.
func (c *Call) cancelled() bool { return c != nil && !c.Cancelled.IsZero() }

// blocked reports whether the call certainly has an unanswered question.
func (c *Call) blocked() bool {
	return c.suspended() && slices.ContainsFunc(slices.Concat(c.Asks, c.Next), func(q *question) bool { return !q.Doubt })
}

// hasRoom reports whether the call may be given one more question.
func (c *Call) hasRoom() bool {
	return (c.Rounds < roundsMost || c.suspended()) && len(c.Next) < queueMost
}

func (cs *calls) add(c *Call) { *cs = append(*cs, c) }

func (cs *calls) remove(c *Call) {
	*cs = slices.DeleteFunc(*cs, func(one *Call) bool { return one == c })
}

// first returns the first call of which is says so; nil: there is none.
func (cs calls) first(is func(*Call) bool) *Call {
	if i := slices.IndexFunc(cs, is); i >= 0 {
		return cs[i]
	}
	return nil
}

// has reports whether there is a call of which is says so.
func (cs calls) has(is func(*Call) bool) bool { return slices.ContainsFunc(cs, is) }

// find returns the call that the client waits for under a raw id.
func (cs calls) find(id []byte) *Call {
	return cs.first(func(c *Call) bool { return jsonrpc.SameID(c.ID, id) })
}

// onWire returns the call that the server knows under a raw id.
func (cs calls) onWire(id []byte) *Call {
	return cs.first(func(c *Call) bool { return jsonrpc.SameID([]byte(c.Wire), id) })
}

// mostVerbose is the least severe of the log levels that the requests in flight ask for, -1 if none does.
func (cs calls) mostVerbose() int {
	least := -1
	for _, c := range cs {
		if c.awaited() && c.Level >= 0 && (least < 0 || c.Level < least) {
			least = c.Level
		}
	}
	return least
}

// apart returns the calls without those that are cancelled, and these.
func (cs calls) apart() (living, cancelled calls) {
	for _, c := range cs {
		if c.cancelled() {
			cancelled = append(cancelled, c)
		} else {
			living = append(living, c)
		}
	}
	return living, cancelled
}

// dropCancelled forgets the cancelled calls.
func (cs *calls) dropCancelled() { *cs = slices.DeleteFunc(*cs, (*Call).cancelled) }
