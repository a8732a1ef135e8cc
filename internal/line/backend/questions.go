package backend

import (
	"bytes"
	"fmt"
)

// questions are the requests of outlive's own that a server has not answered yet. Whoever asks hears the answer, and the
// client nothing of it. The ids are outlive's, too, which no client uses.
type questions struct {
	open   map[string]*question // by raw id
	lastID int
}

// question is a request outlive itself asked the server.
type question struct {
	of       *process // whom it was asked
	answered func(line []byte)
}

// ask sends p a request of outlive's own and calls answered with the whole answer; core.env is scanned from it. If the
// process dies first, nobody is told: whoever asks again asks the next one.
func (q *questions) ask(p *process, build func(id []byte) []byte, answered func(line []byte)) {
	if !p.takes() {
		return
	}
	id := q.newID("~p", p.gen)
	q.open[string(id)] = &question{of: p, answered: answered}
	p.send(build(id))
}

// expect takes the answer to request id of p as one to a question of outlive's own.
func (q *questions) expect(p *process, id []byte, answered func(line []byte)) {
	q.open[string(id)] = &question{of: p, answered: answered}
}

// take returns who waits for p's answer to id, nil if outlive did not ask, and forgets the question.
func (q *questions) take(p *process, id []byte) func(line []byte) {
	one := q.open[string(id)]
	if one == nil || one.of != p {
		return nil
	}
	delete(q.open, string(id))
	return one.answered
}

// of reports whether p has a question that it has not answered.
func (q *questions) of(p *process) bool {
	for _, one := range q.open {
		if one.of == p {
			return true
		}
	}
	return false
}

// forget drops what p will never answer.
func (q *questions) forget(p *process) {
	for id, one := range q.open {
		if one.of == p {
			delete(q.open, id)
		}
	}
}

// newID makes up a raw request id that no client uses: prefix, generation, number.
func (q *questions) newID(prefix string, gen int) []byte {
	q.lastID++
	return fmt.Appendf(nil, `"%s%d.%d"`, prefix, gen, q.lastID)
}

// ours reports whether a client's id looks like one outlive makes up.
func ours(id []byte) bool { return bytes.HasPrefix(id, []byte(`"~`)) && len(id) > 2 }
