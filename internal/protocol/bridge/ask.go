package bridge

import (
	"slices"
	"time"

	"github.com/outlive-mcp/outlive/internal/files/deadline"
	"github.com/outlive-mcp/outlive/internal/protocol/jsonrpc"
)

// A legacy server does not say which call its question belongs to, but a modern client can be asked only within a call.
// So a question belongs to the only running call that can be asked. While several run, it waits until one is left. After
// a server's first question, such calls run one after the other, so that this does not happen again; servers that never
// ask are not slowed down. A question without a running call waits for the next call. This is for one client; for many
// see attribution.go.

// question is a request of the server to the client.
type question struct {
	ID     []byte // raw, the server's
	Method string
	Params []byte // raw, nil for none
	Key    string // the key that the client was shown
	Need   abilities
	Until  time.Time // while it belongs to no call: its deadline

	Came     time.Time // of a shared server, see attribution.go
	Suspects []*Call   // that may have asked it
	Doubt    bool      // a cancelled call may have asked it, too
}

// questions holds a legacy server's questions that belong to no call yet, and finds their calls.
type questions struct {
	*core
	side *modernSide

	Open  []*question
	Asker bool // the server has asked during a call: calls take turns

	Shared    bool                   // several clients share the server, see attribution.go
	Known     map[string]bool        // targets whose calls have asked
	Ruling    time.Time              // when Open is looked at; zero: on each event
	principal func(id []byte) string // see [Options]
}

// add takes a question of one client's server.
func (qs *questions) add(q *question) {
	if q.Method != askRoots {
		qs.Asker = true
	}
	qs.Open = append(qs.Open, q)
}

// busy reports whether a call has to wait for its turn. Answers do not wait for long: a server that does one thing at a time may not
// have looked at the running call yet.
func (qs *questions) busy(next *Call) bool {
	late := qs.due(next.Came.Add(turnFor))
	if qs.Shared {
		return qs.Known[next.Target] && !late && qs.Calls.has(func(c *Call) bool { return qs.Known[c.Target] && c.awaited() })
	}
	return qs.Asker && !(late && next.State != nil) && qs.Calls.has(func(c *Call) bool { return c.Open && c.awaited() })
}

// inLine reports whether a call of target must queue behind those that wait for their turn.
func (qs *questions) inLine(target string) bool { return !qs.Shared || qs.Known[target] }

// assign gives each question to its call, where only one is possible.
func (qs *questions) assign() {
	if qs.Shared {
		qs.rule()
		return
	}
	waiting := qs.Open
	qs.Open = nil
	for _, q := range waiting {
		switch c, hopeless := qs.owner(q); {
		case hopeless:
			qs.toServer(notFound(q.ID))
		case c == nil:
			qs.Open = append(qs.Open, q)
		default:
			qs.put(c, q)
		}
	}
}

// put gives a call a question. If the client waits, the question is its answer, and the call is suspended at the server.
func (qs *questions) put(c *Call, q *question) {
	if !c.hasRoom() {
		qs.decline(q, tooOften)
		return
	}
	c.Next = append(c.Next, q)
	if !c.suspended() {
		qs.side.suspend(c)
	}
}

// owner returns the call of a question, nil if it is ambiguous. A server may ask several questions at once: if no call
// runs and one is suspended, it is that one. hopeless means that calls run, but none of their clients can be asked.
func (qs *questions) owner(q *question) (c *Call, hopeless bool) {
	var runs, waits []*Call
	others := 0
	for _, c := range qs.Calls {
		switch {
		case !mayAsk(c.Method) || c.Afresh || c.Finished != nil:
		case !c.Open || q.Need&^c.Can != 0:
			others++
		case c.suspended():
			waits = append(waits, c)
		default:
			runs = append(runs, c)
		}
	}
	switch {
	case len(runs) == 1:
		return runs[0], false
	case len(runs) == 0 && len(waits) == 1:
		return waits[0], false
	}
	return nil, len(runs)+len(waits) == 0 && others > 0
}

// withdrawn forgets a question that the server has cancelled.
func (qs *questions) withdrawn(id []byte) {
	same := func(q *question) bool { return jsonrpc.SameID(q.ID, id) }
	qs.Open = slices.DeleteFunc(qs.Open, same)
	for _, c := range qs.Calls {
		c.Asks, c.Next = slices.DeleteFunc(c.Asks, same), slices.DeleteFunc(c.Next, same)
	}
}

// expire refuses questions that have had no call for too long.
func (qs *questions) expire() {
	late := func(q *question) bool { return qs.due(q.Until) }
	for _, q := range qs.Open {
		if late(q) {
			qs.toServer(jsonrpc.AppendError(nil, q.ID, jsonrpc.MethodNotFound,
				"the client cannot be asked: it is not clear which of its calls this is for", nil))
		}
	}
	qs.Open = slices.DeleteFunc(qs.Open, late)
}

// deadline is when something is to be done about the questions; zero: never.
func (qs *questions) deadline() time.Time {
	at := qs.Ruling
	for _, q := range qs.Open {
		at = deadline.Earliest(at, q.Until)
	}
	return at
}
