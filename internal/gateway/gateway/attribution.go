package gateway

import (
	"bytes"
	"fmt"
	"slices"
	"time"

	"github.com/outlive-mcp/outlive/internal/protocol/jsonrpc"
	"github.com/outlive-mcp/outlive/internal/protocol/mcp"
)

// Several clients of the legacy era may share a process, whose requests (here: questions) do not say which client
// they are for. What is certain: the call during which the server asks had reached the server when the question came,
// and does not end before the question is answered. So each question has suspects: the calls at the server when it
// came. It is held until all remaining suspects belong to one client; if that does not happen in time, it is refused.
// Calls of tools that have asked before are sent one at a time, so that this is seldom necessary. Package bridge does
// the same for clients of the modern era.

const (
	// askedFor is how long a question is held. It is also how long a cancelled call remains a suspect if its tool has
	// asked before.
	askedFor = 30 * time.Second
	// crossFor is how long a cancelled call remains a suspect if its tool has never asked: cancellation and question
	// may cross on the way.
	crossFor = 2 * time.Second
	// turnFor is how long a call of a tool that asks waits for the previous one.
	turnFor = 25 * time.Second
	// askersMost is how many tools that ask are remembered.
	askersMost = 1024
)

// attribution is the part of a shared link that finds out which client a question of the server is for.
type attribution struct {
	link      *Link
	open      []*question
	cancelled map[uint64]*exchange // cancelled calls, by number, that the server may still work on
}

// question is a request of the server that is held until its client is known.
type question struct {
	line     []byte
	env      jsonrpc.Envelope // of line
	suspects []*exchange
	until    time.Time
	roots    bool // it is roots/list: its answer is what its clients have said already
}

// mustAttribute reports whether the link has to find out which client a question is for.
func (l *Link) mustAttribute() bool {
	return l.scope.owner == nil && l.scope.era == mcp.Legacy
}

// asked handles a request of the server, whose envelope is in the gateway's scratch space.
func (c *attribution) asked(line []byte) {
	l := c.link
	env := &l.gw.up
	roots := jsonrpc.EqualString(env.Method.Of(line), rootsList)
	if roots && !l.scope.rootsAsked(l, env.ID.Of(line)) {
		return
	}
	q := &question{line: bytes.Clone(line), env: *env, until: l.gw.now.Add(askedFor), roots: roots}
	if len(c.open) >= asksMost {
		c.refuse(q, fmt.Sprintf("%d questions wait already: this one is not passed on", asksMost))
		return
	}
	for _, e := range inOrder(l.calls) {
		if e.counts() {
			q.suspects = append(q.suspects, e)
		}
	}
	q.suspects = append(q.suspects, inOrder(c.cancelled)...)
	c.open = append(c.open, q)
	l.gw.at(q.until)
	c.rule()
}

// note remembers a cancelled call.
func (c *attribution) note(e *exchange) {
	if !c.link.mustAttribute() || !e.counts() {
		return
	}
	stays := crossFor
	if c.link.server.askers[e.target] {
		stays = askedFor
	}
	if c.cancelled == nil {
		c.cancelled = map[uint64]*exchange{}
	}
	e.suspectBy = c.link.gw.now.Add(stays)
	c.cancelled[e.num] = e
	c.link.gw.at(e.suspectBy)
}

// tick decides about open questions again, drops expired cancelled calls, and sends waiting calls whose turn it is. A cancelled call
// that may have asked an open question does not expire: the question would go to the client of another call.
func (c *attribution) tick() {
	l := c.link
	c.rule()
	for num, e := range c.cancelled {
		switch {
		case l.gw.now.Before(e.suspectBy):
			l.gw.at(e.suspectBy)
		case !slices.ContainsFunc(c.open, func(q *question) bool { return slices.Contains(q.suspects, e) }):
			delete(c.cancelled, num)
		}
	}
	for _, q := range c.open {
		l.gw.at(q.until)
	}
	if l.phase == ready && l.mustAttribute() && len(l.waiting) > 0 {
		l.sendWaiting()
	}
}

// whose returns the clients, each once, whose calls may have asked q, and the latest of those calls that was not
// cancelled. nil among the clients stands for cancelled calls.
func (c *attribution) whose(q *question) (clients []*Session, during *exchange) {
	q.suspects = slices.DeleteFunc(q.suspects, func(e *exchange) bool { return c.link.calls[e.num] != e && c.cancelled[e.num] != e })
	for _, e := range q.suspects {
		var s *Session
		if c.link.calls[e.num] == e {
			s, during = e.session, e
		}
		if !slices.Contains(clients, s) {
			clients = append(clients, s)
		}
	}
	return clients, during
}

// rule passes each question on if its client is certain, and refuses it if that cannot become certain any more.
func (c *attribution) rule() {
	open := c.open
	c.open = nil
	for i, q := range open {
		clients, during := c.whose(q)
		switch {
		case q.roots:
			c.ruleRoots(open[:i], q)
		case len(clients) == 1 && during != nil:
			c.give(q, during)
		case len(clients) == 1:
			c.refuse(q, "the client does not wait for this any more")
		case len(clients) == 0 && c.link.scope.only() != nil:
			c.link.pass(&q.env, q.line, c.link.scope.only(), nil)
		case len(clients) == 0:
			c.refuse(q, "many clients share this server: they can be asked during their calls only")
		case c.late(q), c.stuck(open[:i], q, len(q.suspects)):
			c.refuse(q, "the client cannot be asked now: several calls wait, and which of them asks this is not clear")
		default:
			c.open = append(c.open, q)
		}
	}
}

// late reports whether a question is held no longer: its time is over, or its link finishes its calls, and is not looked at any more.
func (c *attribution) late(q *question) bool {
	return !c.link.gw.now.Before(q.until) || c.link.phase >= retired
}

// stuck reports whether, with q, as many questions wait as there are suspects, so that none of these calls could ever
// end.
func (c *attribution) stuck(earlier []*question, q *question, calls int) bool {
	waiting := 1
	innocent := func(e *exchange) bool { return !slices.Contains(q.suspects, e) }
	for _, other := range earlier {
		if slices.Contains(c.open, other) && other.roots == q.roots && !slices.ContainsFunc(other.suspects, innocent) {
			waiting++
		}
	}
	return waiting >= calls
}

// ruleRoots answers a question for roots, or refuses it if the clients whose calls may have asked it have different ones.
func (c *attribution) ruleRoots(earlier []*question, q *question) {
	pool := &c.link.scope.pool
	roots, differ := c.rootsFor(q)
	switch {
	case roots.key != "":
		c.link.gw.post(c.link, jsonrpc.AppendResult(nil, q.id(), roots.said))
		if pool.rootsKey == "" {
			pool.rootsKey, pool.roots = roots.key, roots.said
		}
	case c.late(q), differ && c.stuck(earlier, q, len(q.suspects)):
		c.refuse(q, "several clients with different roots wait, and which of their calls asks this is not clear")
	default:
		c.open = append(c.open, q)
		return
	}
	c.link.gw.at(c.link.gw.now) // others may have waited for that
}

// rootsFor are the roots that all clients have said whose calls may have asked q. If no call has, they are those of the process: the
// first that a client of it says.
func (c *attribution) rootsFor(q *question) (roots rooted, differ bool) {
	sc := c.link.scope
	roots = rooted{key: sc.pool.rootsKey, said: sc.pool.roots}
	for s := range sc.members {
		if roots.key == "" {
			roots = s.roots
		}
	}
	known := true
	for i, e := range q.suspects {
		known = known && e.session.roots.key != ""
		differ = differ || i > 0 && e.session.roots.key != roots.key
		roots = e.session.roots
	}
	if !known || differ {
		roots = rooted{}
	}
	return roots, known && differ
}

// give passes a question on to its client.
func (c *attribution) give(q *question, during *exchange) {
	if askers := c.link.server.askers; len(q.suspects) == 1 && len(askers) < askersMost {
		askers[during.target] = true
	}
	c.link.pass(&q.env, q.line, during.session, during)
}

func (c *attribution) refuse(q *question, why string) {
	c.link.gw.post(c.link, jsonrpc.AppendError(nil, q.id(), jsonrpc.InternalError, why, nil))
}

// id is the raw one of the server.
func (q *question) id() []byte { return q.env.ID.Of(q.line) }

// drop forgets a question: the server's process has ended, or has cancelled it.
func (c *attribution) drop(id []byte) bool {
	before := len(c.open)
	c.open = slices.DeleteFunc(c.open, func(q *question) bool { return id == nil || jsonrpc.SameID(q.id(), id) })
	return len(c.open) < before
}

// awaitsTurn reports whether a call has to wait because another client's call of a tool that asks is at the server.
func (l *Link) awaitsTurn(e *exchange) bool {
	if !l.mustAttribute() || !l.server.askers[e.target] || !e.counts() {
		return false
	}
	if e.turnBy.IsZero() {
		e.turnBy = l.gw.now.Add(turnFor)
	}
	if !l.gw.now.Before(e.turnBy) {
		return false
	}
	for _, other := range l.calls {
		if other.session != nil && other.session != e.session && l.server.askers[other.target] {
			l.gw.at(e.turnBy)
			return true
		}
	}
	return false
}
