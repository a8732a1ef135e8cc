package backend

import (
	"bytes"
	"fmt"
	"strconv"
)

// questions are outlive's own requests that a server has not answered yet. The client does not see them. Their ids are
// outlive's, which no client uses.
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
	id := q.newID("~p", p.gen)
	one := &question{of: p, answered: answered}
	q.open[string(id)] = one
	line := build(id)
	if p.showing.on() {
		p.showing.asked(p, one, line)
	}
	p.send(line)
}

// expect makes answered take the answer to request id of p.
func (q *questions) expect(p *process, id []byte, answered func(line []byte)) {
	q.open[string(id)] = &question{of: p, answered: answered}
}

// take returns the handler of p's answer to id and forgets the question; nil if outlive did not ask.
func (q *questions) take(p *process, id []byte) func(line []byte) {
	one := q.open[string(id)]
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
	for id, one := range q.open {
		if one.of == p {
			delete(q.open, id)
		}
	}
}

// newID makes a raw request id that no client uses: prefix, generation, number.
func (q *questions) newID(prefix string, gen int) []byte {
	q.lastID++
	return fmt.Appendf(nil, `"%s%d.%d"`, prefix, gen, q.lastID)
}

// askedFrom is below the ids that a server's questions get when their own are taken. They are whole numbers, since some clients
// read no other, and far from those by which servers, and the bridge, count.
const askedFrom = 1_500_000_000

// newNumber makes a raw request id for the client.
func (q *questions) newNumber() []byte {
	q.lastID++
	return strconv.AppendInt(nil, int64(askedFrom+q.lastID), 10)
}

// ours reports whether a client's id looks like one of outlive's.
func ours(id []byte) bool { return bytes.HasPrefix(id, []byte(`"~`)) && len(id) > 2 }
