package backend

import (
	"bytes"
	"iter"
	"time"

	"github.com/outlive-mcp/outlive/internal/line/lineloop"
	"github.com/outlive-mcp/outlive/internal/protocol/bridge"
	"github.com/outlive-mcp/outlive/internal/protocol/jsonrpc"
	"github.com/outlive-mcp/outlive/internal/protocol/mcp"
	"github.com/outlive-mcp/outlive/internal/protocol/session"
	"github.com/outlive-mcp/outlive/internal/protocol/tracecontext"
)

// callState is where a client's message is.
type callState uint8

const (
	waiting   callState = iota // in the queue: no living process has it
	sent                       // handed to process call.gen, not answered
	parked                     // held for an answer that outlive gives itself
	verifying                  // likewise: it asks about a restart, and waits for its end
	unsure                     // it is not known yet whose tool it calls, or whether there are tools to list
	held                       // a stream waiting until the server may be asked for it
	kept                       // a stream that the server is not asked for; outlive sends its notifications
	joined                     // an initialize that gets the answer of the one before it
)

// call is one unfinished message of the client: a request until it is answered, a notification until it is forwarded.
// Calls and their buffers are reused, so that relaying allocates nothing.
type call struct {
	id     []byte       // raw, as the client wrote it; empty for a notification
	wire   []byte       // the id the server sees when it is another one; empty otherwise
	of     *bridge.Call // what a bridge asks for with it, and takes its answer for; nil: no bridge does
	method mcp.Method
	state  callState

	line              []byte         // the message; memory of ours
	big               *lineloop.Hold // the buffer that line is in, when it is too long to copy
	tool              jsonrpc.Span   // in line: params.name of a tools/call
	param             jsonrpc.Span   // in line: params
	called, uri, meta jsonrpc.Span   // in line: method, params.uri, params._meta
	first             bool           // a list request without cursor
	task              bool           // asks for a task (2025-11-25)
	acked             []byte         // of a stream: raw notifications of the acknowledgement that the client got; nil before it
	retry             jsonrpc.Span   // in line: params.requestState

	seq     uint64    // order of arrival
	gen     int       // process it was handed to last
	given   time.Time // handed to it
	touched time.Time // likewise, or last sign of progress
	end     uint64    // stream offset behind its last byte
	resent  int       // times it was sent again after a process may have begun it
	crashes int       // consecutive processes that died while they had it
	until   time.Time // in the queue: when it is given up

	came     time.Time  // when the request came; zero: outlive asks for it by itself
	done     conclusion // how it ends, where outlive answers it
	told     time.Time  // when the client last heard of it; set only with a token
	token    []byte     // raw progress token; empty without
	again    bool       // another call already had this token
	progress []byte     // raw progress value the client saw last

	shown  bool          // somebody who watches has seen it
	sends  int           // times it was handed to a process
	waited time.Duration // until the first time
	reason string        // of outlive's own answer

	spans tracecontext.Spans

	next, prev *call // in order of arrival
}

// calls holds every unfinished call: by id, by progress token, and in order of arrival. The keys are hashes
// ([jsonrpc.HashID]), which need no allocation.
type calls struct {
	byID    map[uint64]*call
	byToken map[uint64]*call
	head    *call // oldest
	tail    *call
	free    *call
	spare   int // bytes in the buffers of free calls

	nextSeq  uint64
	waiting  int // calls in the queue
	bytes    int // their bytes
	inFlight int // requests handed to a process
	held     int // streams that wait to be opened
}

const (
	keptBuffer  = 128 << 10 // a recycled call keeps a line buffer up to this many bytes
	keptBuffers = 4 << 20   // and all of them together up to this many
)

func (t *calls) init() {
	t.byID = map[uint64]*call{}
	t.byToken = map[uint64]*call{}
}

// add makes a call of the client's line, from which env was scanned. keep saves a line that is too long to copy.
func (t *calls) add(env *jsonrpc.Envelope, line []byte, m mcp.Method, keep func([]byte) (*lineloop.Hold, []byte)) *call {
	c := t.free
	if c != nil {
		t.free = c.next
		c.next = nil
		t.spare -= cap(c.line)
	} else {
		c = &call{}
	}
	t.nextSeq++
	c.seq = t.nextSeq
	c.method = m
	c.state = parked
	if len(line) > lineloop.ShareLimit {
		c.big, c.line = keep(line)
	} else {
		c.line = append(c.line[:0], line...)
	}
	c.tool, c.param, c.retry = env.Name, env.Params, env.RequestState
	c.called, c.uri, c.meta = env.Method, env.URI, env.Meta
	c.first = !env.Cursor.Present()
	c.task = env.Task.Present()
	if id := env.ID.Of(line); id != nil {
		c.id = append(c.id, id...)
		t.byID[jsonrpc.HashID(id)] = c
	}
	if c.prev = t.tail; c.prev != nil {
		c.prev.next = c
	} else {
		t.head = c
	}
	t.tail = c
	return c
}

// setToken stores the raw progress token of a request.
func (t *calls) setToken(c *call, token []byte) {
	c.token = append(c.token, token...)
	hash := jsonrpc.HashID(token)
	c.again = t.byToken[hash] != nil
	t.byToken[hash] = c
}

// find returns the unfinished request with this raw id as the client wrote it.
func (t *calls) find(id []byte) *call {
	if len(id) == 0 {
		return nil // such as of a cancellation that names none
	}
	if c := t.tail; c != nil && bytes.Equal(c.id, id) {
		return c // mostly the newest is wanted
	}
	if c := t.byID[jsonrpc.HashID(id)]; c != nil && jsonrpc.SameID(c.id, id) {
		return c
	}
	return nil
}

// onWire finds the call by the raw id that the server sees.
func (t *calls) onWire(id []byte) *call {
	if !ours(id) {
		return t.find(id)
	}
	for c := range t.all {
		if jsonrpc.SameID(c.wire, id) {
			return c
		}
	}
	return nil
}

// withToken returns the request that reports progress under this raw token, the newest one if several do.
func (t *calls) withToken(token []byte) *call {
	if c := t.byToken[jsonrpc.HashID(token)]; c != nil && jsonrpc.SameID(c.token, token) {
		return c
	}
	return nil
}

// enqueue puts c into the queue.
func (t *calls) enqueue(c *call, until time.Time) {
	t.leaveState(c)
	c.state, c.until = waiting, until
	t.waiting++
	t.bytes += len(c.line)
}

// hold makes stream c wait until the serving process may be asked for it.
func (t *calls) hold(c *call, until time.Time) {
	t.leaveState(c)
	c.state, c.until = held, until
	t.held++
}

// hand notes that c was given to process gen; end is the stream offset behind it.
func (t *calls) hand(c *call, now time.Time, gen int, end uint64) {
	t.leaveState(c)
	c.state, c.given, c.touched, c.gen, c.end = sent, now, now, gen, end
	t.inFlight++
	if c.sends++; c.sends == 1 {
		c.waited = now.Sub(c.came)
	}
}

// set takes c out of the queue or from its process, into a state in which neither has it.
func (t *calls) set(c *call, state callState) {
	t.leaveState(c)
	c.state = state
}

func (t *calls) leaveState(c *call) {
	switch c.state {
	case waiting:
		t.waiting--
		t.bytes -= len(c.line)
	case sent:
		t.inFlight--
	case held:
		t.held--
	}
}

// remove forgets c. Its buffers are reused.
func (t *calls) remove(c *call) {
	t.leaveState(c)
	if hash := jsonrpc.HashID(c.id); t.byID[hash] == c {
		delete(t.byID, hash)
	}
	if len(c.token) > 0 {
		t.dropToken(c)
	}
	if c.prev != nil {
		c.prev.next = c.next
	} else {
		t.head = c.next
	}
	if c.next != nil {
		c.next.prev = c.prev
	} else {
		t.tail = c.prev
	}
	t.recycle(c)
}

// dropToken removes c's token. If several requests share it, the newest one left has it.
func (t *calls) dropToken(c *call) {
	hash := jsonrpc.HashID(c.token)
	if t.byToken[hash] != c {
		return
	}
	delete(t.byToken, hash)
	for o := t.tail; c.again && o != nil; o = o.prev {
		if o != c && jsonrpc.SameID(o.token, c.token) {
			t.byToken[hash] = o
			return
		}
	}
}

func (t *calls) recycle(c *call) {
	line := c.line
	if c.big != nil {
		c.big.Release()
		line = nil
	}
	if cap(line) > keptBuffer || t.spare+cap(line) > keptBuffers {
		line = nil
	}
	*c = call{
		line: line[:0], id: c.id[:0], wire: c.wire[:0], token: c.token[:0], progress: c.progress[:0],
		next: t.free,
	}
	t.spare += cap(line)
	t.free = c
}

// all yields the calls in order of arrival. Any call may be removed while one is yielded.
func (t *calls) all(yield func(*call) bool) {
	for c := t.head; c != nil; {
		at, next, after := c.seq, c.next, uint64(0)
		if next != nil {
			after = next.seq
		}
		if !yield(c) {
			return
		}
		if next != nil && next.seq != after { // it was removed, too
			for next = t.head; next != nil && next.seq <= at; {
				next = next.next
			}
		}
		c = next
	}
}

// in yields the calls in a state, as all does.
func (t *calls) in(state callState) iter.Seq[*call] {
	return func(yield func(*call) bool) {
		t.all(func(c *call) bool { return c.state != state || yield(c) })
	}
}

// at yields the requests that process gen has, as all does.
func (t *calls) at(gen int) iter.Seq[*call] {
	return func(yield func(*call) bool) {
		t.all(func(c *call) bool { return c.state != sent || c.gen != gen || yield(c) })
	}
}

// onWire is the raw id under which the server knows c.
func (c *call) onWire() []byte {
	if len(c.wire) > 0 {
		return c.wire
	}
	return c.id
}

// filter is what stream c asks for: raw params.notifications.
func (c *call) filter() []byte {
	return jsonrpc.Find(c.param.Of(c.line), "notifications").Of(c.param.Of(c.line))
}

// lasting is stream c as it is kept beyond its server.
func (c *call) lasting() *session.Listen {
	return &session.Listen{ID: bytes.Clone(c.id), Line: bytes.Clone(c.line), Acked: c.acked}
}

// isRequest reports whether c is a request, which needs exactly one answer.
func (c *call) isRequest() bool { return len(c.id) > 0 }
