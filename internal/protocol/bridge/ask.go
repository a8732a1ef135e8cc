package bridge

import (
	"slices"
	"time"

	"github.com/outlive-mcp/outlive/internal/protocol/jsonrpc"
)

// A legacy server does not say which call its question belongs to; a modern client must be asked within a call. So a
// question belongs to the one call that runs and can be asked it. While several run it waits until one is left. A server
// that has asked once gets such calls one after the other from then on, so that this does not happen again; servers that
// never ask are not slowed down. A question that comes while nothing runs waits for the next call. All this is so for one
// client; for many see crowd.go.

// question is a request of the server to the client.
type question struct {
	ID     []byte // raw, the server's
	Method string
	Params []byte // raw, nil for none
	Key    string // under which the client was shown it
	Need   abilities
	Until  time.Time // while it belongs to no call

	Came     time.Time // of many clients' server, see crowd.go
	Suspects []string  // calls that may have asked it, by their raw ids at the server
	Doubt    bool      // a call that its client has withdrawn may have asked it, too
}

// questions owns what a legacy server has asked and what belongs to no call yet, and finds the call.
type questions struct {
	*core `json:"-"`
	calls tasks // the side's
	side  suspender

	Open  []*question
	Asker bool // the server has asked something during a call: calls take turns

	Shared    bool            // many clients' requests come this way, see crowd.go
	Known     map[string]bool // what has asked something, by its target
	Ruling    time.Time       // when it is looked whose the questions in Open are; zero: whenever something has happened
	Cancelled cancelledCalls
}

// suspender lets a call wait at the server, and tells its client what is asked.
type suspender interface{ suspend(t *task) }

// add takes a question of one client's server.
func (qs *questions) add(q *question) {
	if q.Method != askRoots {
		qs.Asker = true
	}
	qs.Open = append(qs.Open, q)
	qs.assign()
}

// busy reports whether a call of target, which came at some time, has to wait for its turn.
func (qs *questions) busy(target string, came time.Time) bool {
	if qs.Shared {
		return !qs.inTurn(target, came)
	}
	return qs.Asker && qs.calls.running() > 0
}

// inLine reports whether a call of target comes after those that wait for their turn.
func (qs *questions) inLine(target string) bool { return !qs.Shared || qs.Known[target] }

// assign gives the questions that belong to no call to the call they can only belong to.
func (qs *questions) assign() {
	if qs.Shared {
		qs.rule()
		return
	}
	for _, q := range slices.Clone(qs.Open) {
		t, hopeless := qs.owner(q)
		if t == nil && !hopeless {
			continue
		}
		qs.Open = slices.DeleteFunc(qs.Open, func(one *question) bool { return one == q })
		if hopeless {
			qs.toServer(notFound(q.ID))
			continue
		}
		qs.put(t, q)
	}
}

// put gives a call a question of the server. If the client waits, that is its answer; the call waits at the server.
func (qs *questions) put(t *task, q *question) {
	if !t.hasRoom() {
		qs.decline(q, tooOften)
		return
	}
	t.Next = append(t.Next, q)
	if !t.suspended() {
		qs.side.suspend(t)
	}
}

// owner returns the call that a question belongs to, nil if that cannot be told. A server may ask several things at
// once: if no call runs, and one is suspended, it is that one. It is hopeless if calls run, and the client can be asked in
// none of them.
func (qs *questions) owner(q *question) (t *task, hopeless bool) {
	var runs, waits []*task
	others := 0
	for _, t := range qs.calls {
		switch {
		case !mayAsk(t.Method) || t.Afresh || t.Finished != nil:
		case !t.Open || q.Need&^t.Can != 0:
			others++
		case t.suspended():
			waits = append(waits, t)
		default:
			runs = append(runs, t)
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

// withdrawn forgets a question that the server does not want to be answered any more.
func (qs *questions) withdrawn(id []byte) {
	same := func(q *question) bool { return jsonrpc.SameID(q.ID, id) }
	qs.Open = slices.DeleteFunc(qs.Open, same)
	for _, t := range qs.calls {
		t.Asks, t.Next = slices.DeleteFunc(t.Asks, same), slices.DeleteFunc(t.Next, same)
	}
}

// expire refuses what has belonged to no call for too long.
func (qs *questions) expire() {
	for _, q := range slices.Clone(qs.Open) {
		if qs.due(q.Until) {
			qs.Open = slices.DeleteFunc(qs.Open, func(one *question) bool { return one == q })
			qs.toServer(jsonrpc.AppendError(nil, q.ID, jsonrpc.MethodNotFound,
				"the client cannot be asked: it is not clear which of its calls this is for", nil))
		}
	}
}

// deadline is when something is to be done about the questions; zero: never.
func (qs *questions) deadline() time.Time {
	at := qs.Ruling
	for _, q := range qs.Open {
		at = earlier(at, q.Until)
	}
	return at
}
