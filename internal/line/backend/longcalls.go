package backend

import (
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/outlive-mcp/outlive/internal/files/deadline"
	"github.com/outlive-mcp/outlive/internal/protocol/jsonrpc"
	"github.com/outlive-mcp/outlive/internal/protocol/mcp"
)

// longCalls reports progress of calls that nothing is heard of, while there is proof that their server works or outlive
// itself still has them to send. Many clients give a call up after a minute without progress.
type longCalls struct {
	*core
}

const (
	// quietFor is how long a client has heard nothing of its call when it is told that the call goes on. Many clients wait
	// for 60 s, some for 30 s.
	quietFor = 20 * time.Second
	// proveAfter is when a server that says nothing is asked whether it is there, so that its answer comes in time.
	proveAfter = 15 * time.Second
	// proveEvery is how often it is looked whether a silent server has answered.
	proveEvery = 5 * time.Second
	// proofFor is how long something that a server has said proves that it works.
	proofFor = 10 * time.Second
	// workFor is how long processor time that a server has used proves it: it is measured every 15 s.
	workFor = 20 * time.Second
	// silentFor is how long a call counts as worked on without proof: many a server waits for somebody else, and does nothing meanwhile.
	silentFor = 5 * time.Minute
)

// begun notes that request c, which wants progress, has come.
func (l *longCalls) begun(c *call) {
	c.told = l.now
	if l.timers[timerLong].IsZero() && l.opts.CallPatience > 0 {
		l.arm(timerLong, proveAfter)
	}
}

// look reports on every call whose client has heard nothing for too long.
func (l *longCalls) look() {
	var next time.Time
	for c := range l.calls.all {
		if !l.concerned(c) {
			continue
		}
		next = deadline.Earliest(next, l.attend(c))
	}
	l.timers[timerLong] = next
}

// concerned reports whether progress of c is still reported. Before its handshake a client is told nothing, and streams
// are silent by nature. Of several calls with one token the newest is meant.
func (l *longCalls) concerned(c *call) bool {
	switch c.method {
	case mcp.Initialize, mcp.Discover, mcp.Listen:
		return false
	}
	return len(c.token) > 0 && !jsonrpc.IsNull(c.token) && l.calls.withToken(c.token) == c &&
		l.now.Sub(c.came) < l.opts.CallPatience
}

// attend does what is due for c and returns when it is to be looked at again.
func (l *longCalls) attend(c *call) time.Time {
	switch quiet := l.now.Sub(c.told); {
	case quiet < proveAfter:
		return c.told.Add(proveAfter)
	case quiet >= quietFor && l.goesOn(c):
		l.report(c)
		return l.now.Add(proveAfter)
	case quiet < quietFor:
		l.prove(c)
		return c.told.Add(quietFor)
	}
	l.prove(c)
	return l.now.Add(proveEvery)
}

// goesOn reports whether c counts as worked on: it is new, or its server has said something lately, or used processor time. What no
// server has, outlive sends on, or refuses in time.
func (l *longCalls) goesOn(c *call) bool {
	if c.state != sent {
		return true
	}
	p := l.byGen(c.gen)
	switch {
	case p == nil || !p.up():
		return false
	case p.heardSince(l.now.Add(-proofFor)), l.now.Sub(l.health.worked(p)) < workFor:
		return true
	}
	return l.now.Sub(c.given) <= silentFor && p.server.Vitals().Trouble == ""
}

// silent reports whether nothing has been heard of c for long, and its client is not told any more that it goes on.
func (l *longCalls) silent(c *call) bool {
	over := l.opts.CallPatience > 0 && l.now.Sub(c.came) >= l.opts.CallPatience
	return c.state == sent && l.now.Sub(c.touched) > silentFor && (over || !l.goesOn(c))
}

// prove asks the server that has c for a sign of life, unless it has just given one.
func (l *longCalls) prove(c *call) {
	if c.state != sent {
		return
	}
	if p := l.byGen(c.gen); p != nil && !p.heardSince(l.now.Add(-proveEvery)) {
		l.health.probeLiveness(p)
	}
}

// report tells the client that c goes on.
func (l *longCalls) report(c *call) {
	value := c.nextProgress(l.opts.CallPatience - l.now.Sub(c.came))
	if value == nil {
		return
	}
	message := ""
	if l.session.Era == mcp.Modern || l.session.Version >= mcp.ProgressMessageVersion {
		message = fmt.Sprintf("still running (%s)", l.now.Sub(c.came).Round(time.Second))
		if c.state == waiting {
			message = fmt.Sprintf("waiting for the server to start (%s)", l.now.Sub(c.came).Round(time.Second))
		}
	}
	c.told = l.now
	l.tell(mcp.ProgressLine(c.token, value, message))
}

// slightly is by how much more is reported each time, or by the least step that a large number can take: thousands of them
// stay below whatever a server reports next.
const slightly = 1.0 / (1 << 40)

// nextProgress is a progress value above all that the client has seen of c and below all that the server will report;
// nil: there is none. Servers count from 0 or more upwards. So as long as the server has reported nothing the value is
// negative: the seconds of patience that are left. After that it is the last one and a very small step.
func (c *call) nextProgress(left time.Duration) []byte {
	if len(c.progress) == 0 {
		return strconv.AppendInt(nil, -int64(math.Ceil(left.Seconds())), 10)
	}
	last, err := strconv.ParseFloat(string(c.progress), 64)
	if err != nil {
		return nil
	}
	value, err := json.Marshal(last + max(slightly, math.Nextafter(last, math.Inf(1))-last))
	if err != nil {
		return nil // the server's value was at the end of what there is
	}
	c.progress = append(c.progress[:0], value...)
	return value
}
