package backend

import (
	"maps"
	"strconv"

	"github.com/outlive-mcp/outlive/internal/protocol/jsonrpc"
)

// questions are outlive's own requests that a server has not answered yet. The client does not see them. Their ids are
// outlive's: a client's request that has such an id gets another one towards the server.
type questions struct {
	open   map[string]*question // by raw id
	lastID int
}

// question is a request outlive itself asked the server.
type question struct {
	of       *process // the process that was asked
	method   []byte   // raw; known only while somebody watches
	answered func(line []byte)
}

// ask sends p a request of outlive's own and calls answered with the answer; core.env is scanned from it. If the process
// dies first, answered is not called; the next process is asked anew.
func (q *questions) ask(p *process, build func(id []byte) []byte, answered func(line []byte)) {
	if !p.takes() {
		return
	}
	id := q.newID()
	one := &question{of: p, answered: answered}
	q.open[string(id)] = one
	line := build(id)
	p.showing.asked(p, one, line)
	p.send(line)
}

// expect makes answered take the answer to request id of p.
func (q *questions) expect(p *process, id []byte, answered func(line []byte)) {
	q.open[string(id)] = &question{of: p, answered: answered}
}

// take returns the handler of p's answer to id and forgets the question; nil if outlive did not ask.
func (q *questions) take(p *process, id []byte) func(line []byte) {
	one := q.open[string(id)]
	if n, whole := jsonrpc.Integer(id); one == nil && whole { // 7.0
		id = strconv.AppendInt(nil, n, 10)
		one = q.open[string(id)]
	}
	if one == nil || one.of != p {
		return nil
	}
	delete(q.open, string(id))
	return one.answered
}

// of reports whether p has an unanswered question.
func (q *questions) of(p *process) bool {
	for _, one := range q.open {
		if one.of == p {
			return true
		}
	}
	return false
}

// forget drops the questions of p.
func (q *questions) forget(p *process) {
	maps.DeleteFunc(q.open, func(_ string, one *question) bool { return one.of == p })
}

// Outlive's own ids are between these: whole numbers, since some servers and clients read no other, of 31 bits, and far from those by
// which clients, servers and the bridge count, or tell the time.
const (
	ownFrom = 1_500_000_000
	ownTo   = 1_600_000_000
)

// newID makes a raw request id of outlive's own.
func (q *questions) newID() []byte {
	q.lastID++
	return strconv.AppendInt(nil, ownFrom+int64(q.lastID)%(ownTo-ownFrom), 10)
}

// ours reports whether a raw id is one of outlive's, or the text of one, as which some servers return it.
func ours(id []byte) bool {
	if text := jsonrpc.IntegerText(id); text != nil {
		id = text
	}
	n, whole := jsonrpc.Integer(id)
	return whole && ownFrom <= n && n < ownTo
}
