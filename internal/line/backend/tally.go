package backend

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/outlive-mcp/outlive/internal/protocol/jsonrpc"
	"github.com/outlive-mcp/outlive/internal/protocol/mcp"
	"github.com/outlive-mcp/outlive/internal/record/event"
	"github.com/outlive-mcp/outlive/internal/record/latency"
)

// conclusion is how a request of the client ended.
type conclusion uint8

const (
	doneWell      conclusion = iota // by the server with a result, or by outlive in its place
	doneError                       // with a JSON-RPC error
	doneToolError                   // with a result that says isError
	doneRefused                     // by outlive: no server has begun it
	doneUnknown                     // the process ended while it had it
	doneTimedOut                    // by the time limit of calls
	doneCancelled                   // by the client
	conclusions
)

// toolsCounted is how many tools are counted each by itself: their names come from the client. The calls of all others are
// counted together, under the empty name.
const toolsCounted = 256

// Counters are what has been counted since outlive started. They only grow.
type Counters struct {
	Calls    []Calls          `json:"calls,omitempty"`             // by method, tools/call by tool; ordered by both
	Restarts map[string]int64 `json:"restarts_by_cause,omitempty"` // that were begun, by supervise.Cause
	Events   map[string]int64 `json:"events,omitempty"`            // by event.Type
	// Gaps are restarts from their beginning to the new process's answer, Lives are processes from their start to their end.
	// nil: none.
	Gaps  *latency.Histogram `json:"restart_durations,omitempty"`
	Lives *latency.Histogram `json:"process_lives,omitempty"`
}

// Calls are the finished requests of one method, or of one tool.
type Calls struct {
	Method    string `json:"method"`         // "": one that outlive does not know
	Tool      string `json:"tool,omitempty"` // of tools/call; "" there: tools beyond the first 256
	OK        int64  `json:"ok"`
	Errors    int64  `json:"errors,omitempty"`      // JSON-RPC errors
	ToolError int64  `json:"tool_errors,omitempty"` // results that say isError
	Refused   int64  `json:"refused,omitempty"`     // by outlive: no server has begun it
	Unknown   int64  `json:"unknown,omitempty"`     // outcome unknown: the process ended while it had the call
	TimedOut  int64  `json:"timed_out,omitempty"`
	Cancelled int64  `json:"cancelled,omitempty"` // by the client
	// Latency is from the request's arrival to its answer, of those that were answered.
	Latency latency.Histogram `json:"latency"`
	// The parts of Latency that ended with a JSON-RPC error, and with a result that says isError. nil: none.
	LatencyErrors     *latency.Histogram `json:"latency_errors,omitempty"`
	LatencyToolErrors *latency.Histogram `json:"latency_tool_errors,omitempty"`
	// The same from when a server was given the request last, of those that a server has answered. nil: none.
	Served           *latency.Histogram `json:"served,omitempty"`
	ServedErrors     *latency.Histogram `json:"served_errors,omitempty"`
	ServedToolErrors *latency.Histogram `json:"served_tool_errors,omitempty"`
}

// Total is how many requests there were.
func (c *Calls) Total() int64 { return c.OK + c.Bad() + c.Cancelled }

// Bad is how many of them did not end as the client wanted.
func (c *Calls) Bad() int64 { return c.Errors + c.ToolError + c.Refused + c.Unknown + c.TimedOut }

// measure counts the requests of one tool or method.
type measure struct {
	ends [conclusions]int64
	took latency.Histogram
	// By conclusion, doneToolError at most: the parts of took that failed, and the time from handing over to the answer.
	failed, served [doneToolError + 1]*latency.Histogram
}

// tally counts; the zero value is empty. It belongs to the loop's goroutine; counting allocates only for a tool's first call.
type tally struct {
	tools    map[string]*measure // by raw name, with its quotes
	methods  [mcp.Methods]*measure
	restarts map[string]int64
	events   map[event.Type]int64
	gaps     *latency.Histogram
	lives    *latency.Histogram
}

// ended counts a request of the client's that is over.
func (t *tally) ended(c *call, end conclusion, now time.Time) {
	if c.came.IsZero() {
		return // outlive's own
	}
	m := t.of(c)
	m.ends[end]++
	if end <= doneToolError && c.method != mcp.Listen { // a stream lasts as long as its client wants
		m.took.Add(now.Sub(c.came))
		if end != doneWell {
			add(&m.failed[end], now.Sub(c.came))
		}
		if c.state == sent {
			add(&m.served[end], now.Sub(c.given))
		}
	}
}

// add counts a duration in a histogram that is made for the first one.
func add(to **latency.Histogram, d time.Duration) {
	if *to == nil {
		*to = &latency.Histogram{}
	}
	(*to).Add(d)
}

func (t *tally) of(c *call) *measure {
	if c.method != mcp.ToolsCall {
		if t.methods[c.method] == nil {
			t.methods[c.method] = &measure{}
		}
		return t.methods[c.method]
	}
	name := c.tool.Of(c.line)
	if m := t.tools[string(name)]; m != nil {
		return m
	}
	if len(t.tools) >= toolsCounted {
		name = nil
	}
	m := t.tools[string(name)]
	if m == nil {
		m = &measure{}
		if t.tools == nil {
			t.tools = map[string]*measure{}
		}
		t.tools[string(name)] = m
	}
	return m
}

// Used reports whether a request is among them that makes use of the server.
func (c *Counters) Used() bool {
	return slices.ContainsFunc(c.Calls, func(one Calls) bool { return one.MakesUse() })
}

// MakesUse reports whether they make use of the server, and are no handshake and no look at what it has.
func (c *Calls) MakesUse() bool {
	switch mcp.Lookup([]byte(`"` + c.Method + `"`)) {
	case mcp.Initialize, mcp.Discover, mcp.Ping, mcp.ToolsList, mcp.PromptsList, mcp.ResourcesList, mcp.TemplatesList, mcp.SetLevel, mcp.Listen:
		return false
	}
	return true
}

// happened counts an event.
func (t *tally) happened(e *event.Event) {
	if t.events == nil {
		t.events, t.restarts = map[event.Type]int64{}, map[string]int64{}
	}
	t.events[e.Type]++
	switch e.Type {
	case event.RestartInitiated:
		if cause, ok := e.Attr(event.KeyCause); ok {
			t.restarts[cause.String()]++
		}
	case event.RestartCompleted:
		addAttr(&t.gaps, e, event.KeyRestartMS)
	case event.ServerExited:
		addAttr(&t.lives, e, event.KeyUptimeMS)
	}
}

// addAttr counts the duration that an event has, in milliseconds.
func addAttr(to **latency.Histogram, e *event.Event, key string) {
	if ms, ok := e.Attr(key); ok {
		add(to, time.Duration(ms.Int64())*time.Millisecond)
	}
}

// snapshot is a copy for other goroutines.
func (t *tally) snapshot() Counters {
	s := Counters{Restarts: maps.Clone(t.restarts), Events: make(map[string]int64, len(t.events)), Gaps: clone(t.gaps), Lives: clone(t.lives)}
	for kind, n := range t.events {
		s.Events[string(kind)] = n
	}
	for raw, m := range t.tools {
		name, _ := jsonrpc.Unquote([]byte(raw))
		s.Calls = append(s.Calls, m.calls(mcp.ToolsCall.String(), name))
	}
	for method, m := range t.methods {
		if m != nil {
			s.Calls = append(s.Calls, m.calls(mcp.Method(method).String(), ""))
		}
	}
	slices.SortFunc(s.Calls, compareCalls)
	return s
}

func compareCalls(a, b Calls) int {
	return cmp.Or(cmp.Compare(a.Method, b.Method), cmp.Compare(a.Tool, b.Tool))
}

func (m *measure) calls(method, tool string) Calls {
	return Calls{
		Method: method, Tool: tool, OK: m.ends[doneWell], Errors: m.ends[doneError], ToolError: m.ends[doneToolError], Refused: m.ends[doneRefused],
		Unknown: m.ends[doneUnknown], TimedOut: m.ends[doneTimedOut], Cancelled: m.ends[doneCancelled], Latency: m.took,
		LatencyErrors: clone(m.failed[doneError]), LatencyToolErrors: clone(m.failed[doneToolError]),
		Served: clone(m.served[doneWell]), ServedErrors: clone(m.served[doneError]), ServedToolErrors: clone(m.served[doneToolError]),
	}
}

func clone(h *latency.Histogram) *latency.Histogram {
	if h == nil {
		return nil
	}
	c := *h
	return &c
}

// Merge adds what others have counted.
func (c *Counters) Merge(o Counters) {
	addAll(&c.Restarts, o.Restarts)
	addAll(&c.Events, o.Events)
	merge(&c.Gaps, o.Gaps)
	merge(&c.Lives, o.Lives)
	c.Calls = slices.Clone(c.Calls)
	for _, from := range o.Calls {
		i, found := slices.BinarySearchFunc(c.Calls, from, compareCalls)
		if !found {
			c.Calls = slices.Insert(c.Calls, i, from)
			continue
		}
		to := &c.Calls[i]
		to.OK += from.OK
		to.Errors += from.Errors
		to.ToolError += from.ToolError
		to.Refused += from.Refused
		to.Unknown += from.Unknown
		to.TimedOut += from.TimedOut
		to.Cancelled += from.Cancelled
		to.Latency.Merge(&from.Latency)
		merge(&to.LatencyErrors, from.LatencyErrors)
		merge(&to.LatencyToolErrors, from.LatencyToolErrors)
		merge(&to.Served, from.Served)
		merge(&to.ServedErrors, from.ServedErrors)
		merge(&to.ServedToolErrors, from.ServedToolErrors)
	}
}

// merge makes *to the sum of both. The histogram it was is left alone: others may have it.
func merge(to **latency.Histogram, from *latency.Histogram) {
	switch {
	case from == nil:
	case *to == nil:
		*to = clone(from)
	default:
		*to = clone(*to)
		(*to).Merge(from)
	}
}

func addAll(to *map[string]int64, from map[string]int64) {
	sum := maps.Clone(*to)
	if sum == nil {
		sum = map[string]int64{}
	}
	for name, n := range from {
		sum[name] += n
	}
	*to = sum
}
