package backend

import (
	"flag"
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/outlive-mcp/outlive/internal/keep/backoff"
	"github.com/outlive-mcp/outlive/internal/keep/supervise"
	"github.com/outlive-mcp/outlive/internal/protocol/mcp"
	"github.com/outlive-mcp/outlive/internal/record/event"
)

// model drives a Backend with a simulated client (modelclient_test.go) and simulated server processes
// (modelserver_test.go) through random interleavings, and checks what both may rely on.
type model struct {
	fakeWorld // for what needs no simulation: marker, stderr, events
	rt        *rapid.T
	client    simClient
	servers   []*simServer // in order of their start
	standby   int
	slow      bool // the server does not read: the backlog is long
	counts    bool // the system can tell what the server has not read
	spawnFail bool // the next start fails
	finished  bool
	version   string
	collides  bool    // the server has a tool called server_status itself
	upgrades  bool    // a handover is tried after everything that happens
	only      mcp.Era // the server speaks this era only, and the client the other one; EraUnknown: it speaks both
}

// TestModel lets everything happen in any order. For each request the client made: exactly one answer with its id byte
// for byte, or none if and only if it was cancelled; no call that must not be repeated runs twice, none is lost; progress
// only rises; list_changed comes only for a difference; the end comes; nothing is left over in the tables.
func TestModel(t *testing.T) {
	if checks := flag.Lookup("rapid.checks"); checks.Value.String() == checks.DefValue {
		if err := checks.Value.Set(modelChecks); err != nil {
			t.Fatal(err)
		}
	}
	rapid.Check(t, func(rt *rapid.T) {
		m := newModel(rt)
		m.b.Open(m.now)
		m.settleClient()
		steps := rapid.IntRange(5, 80).Draw(rt, "steps")
		for range steps {
			m.anything()
			if m.finished {
				break
			}
		}
		switch end := rapid.SampledFrom([]string{"calm", "eof", "interrupt"}).Draw(rt, "end"); {
		case m.finished:
		case end == "calm":
			m.calmDown()
			m.nothingLeft()
			m.end(func() { m.b.ClientClosed(m.now) })
		case end == "eof":
			m.end(func() { m.b.ClientClosed(m.now) })
		default:
			m.end(func() { m.b.Interrupted(m.now) })
		}
		m.client.allAnswered()
		m.nothingLeft()
	})
}

// Emit implements event.Sink: a failure is read by its log.
func (m *model) Emit(e event.Event) {
	m.rt.Logf("%s  -- %s", m.now.Format("05.000"), e.Message)
	if e.Type == event.BridgeEngaged && m.client.sending != nil {
		m.client.sending.split = true
	}
}

func newModel(rt *rapid.T) *model {
	m := &model{
		rt:       rt,
		counts:   rapid.Bool().Draw(rt, "counts"),
		version:  rapid.SampledFrom([]string{mcp.BatchVersion, "2025-11-25"}).Draw(rt, "version"),
		collides: rapid.Bool().Draw(rt, "collides"),
		upgrades: rapid.IntRange(0, 3).Draw(rt, "upgrades") == 0,
	}
	m.now = epoch
	opts := Options{Name: "srv", Command: []string{"srv"}, RetryTools: []string{"again"}, QueueMax: 20, CallPatience: tenMinutes}
	era := m.drawEras(&opts)
	m.client.init(m, era)
	if rapid.Bool().Draw(rt, "patient") {
		opts.ListenPatience = time.Hour
	}
	switch rapid.IntRange(0, 2).Draw(rt, "backoff") {
	case 0:
		opts.Supervise.Backoff = backoff.Policy{Tiers: []backoff.Tier{{Delay: 0}}}
	case 1:
		opts.Supervise.Backoff = backoff.Policy{Tiers: []backoff.Tier{{Delay: 10 * time.Millisecond}},
			MaxRestarts: 1, Window: time.Minute, OpenFor: 2 * time.Second}
	}
	if rapid.IntRange(0, 4).Draw(rt, "distrust") == 0 {
		opts.Distrust = true
	}
	if rapid.Bool().Draw(rt, "replace") {
		opts.Reload = ReplaceReload
	} else {
		m.standby = rapid.IntRange(0, 2).Draw(rt, "standby")
		opts.Supervise.Standby = m.standby
	}
	m.b = New(opts, m, m)
	return m
}

// drawEras draws which eras client and server speak, and what is known of that; it returns the client's.
func (m *model) drawEras(opts *Options) mcp.Era {
	opts.BridgeKey = []byte("0123456789abcdef0123456789abcdef")
	switch rapid.IntRange(0, 3).Draw(m.rt, "eras") {
	case 0:
		opts.NoBridge = true
	case 1: // a bridge is not needed, and that has to be found out
	case 2:
		m.only = mcp.Modern
		opts.Known.NoInitialize = rapid.Bool().Draw(m.rt, "known")
		if opts.Known.NoInitialize {
			opts.Known.Era, opts.Known.Discover = mcp.Modern, []byte(modernOffer)
		}
		return mcp.Legacy
	case 3:
		m.only = mcp.Legacy
		if rapid.Bool().Draw(m.rt, "known") {
			opts.Known.Era = mcp.Legacy
		}
		return mcp.Modern
	}
	return rapid.SampledFrom([]mcp.Era{mcp.Legacy, mcp.Legacy, mcp.Modern, mcp.EraUnknown}).Draw(m.rt, "era")
}

// anything lets one random thing happen.
func (m *model) anything() {
	m.rt.Helper()
	things := []func(){
		m.client.asks, m.client.asks, m.client.asks, m.client.notifies, m.client.cancels, m.client.answersServer,
		m.client.sendsRubbish, m.tickAWhile, m.client.sendsBatch,
		func() { m.b.Restart(m.now, supervise.SourceControl, "asked") },
		func() { m.slow = true },
		m.unstall,
		func() { m.spawnFail = true },
		m.handsOver,
		m.sparesComeUp, m.sparesComeUp, m.sparesComeUp, m.sparesComeUp,
	}
	for s := range m.running {
		if s.starting {
			things = append(things, s.begins, s.begins, s.isNotBorn)
			continue
		}
		for range 3 {
			things = append(things, s.answers)
		}
		things = append(things, s.progresses, s.asksClient, s.printsNoise, s.dies, func() { m.b.MarkerSeen(m.now, s.gen) })
		if s.exited {
			things = append(things, s.outputEnds)
		} else {
			things = append(things, s.reads, s.reads, s.reads)
		}
	}
	things[rapid.IntRange(0, len(things)-1).Draw(m.rt, "what")]()
	m.obeyed()
	m.invariants()
	if m.upgrades && !m.finished {
		m.handsOver()
		m.invariants()
	}
}

// settleClient brings the client through its handshake, if it has one, with a server that works.
func (m *model) settleClient() {
	if m.client.era != mcp.Legacy {
		return
	}
	m.client.initialize(m.version)
	if rapid.IntRange(0, 3).Draw(m.rt, "hasty") == 0 {
		m.client.sendsInitialized()
	}
	for i := 0; !m.client.ready; i++ {
		if len(m.client.open) == 0 {
			m.client.initialize(m.version) // the last one was answered with an error
		}
		m.oneStart(i > 20)
		m.obeyed()
		m.invariants()
	}
	if rapid.IntRange(0, 3).Draw(m.rt, "dies at once") == 0 {
		if s := m.main(); s != nil { // the next one may not have come up
			s.dies()
		}
	}
	if !m.client.said || m.only == mcp.Modern { // a handshake that failed has taken it along
		m.client.sendsInitialized()
	}
}

// oneStart lets one thing happen to a server that is starting.
func (m *model) oneStart(calm bool) {
	s := m.main()
	what := rapid.IntRange(0, 9).Draw(m.rt, "start")
	switch {
	case s == nil || s.closed:
		m.tickAWhile()
	case s.exited:
		s.outputEnds()
	case !calm && what == 0:
		s.dies()
	case !calm && what == 1:
		m.spawnFail = true
	case !calm && what == 2:
		s.reads()
	case !calm && what == 3:
		m.tickAWhile()
	case s.termed || s.inputClosed:
		s.exit(0)
	default:
		s.readAll()
		s.answerAll()
	}
}

func (m *model) tickAWhile() {
	m.tick(time.Duration(rapid.SampledFrom([]int{1, 100, 600, 1100, 5000, 30000}).Draw(m.rt, "ms")) * time.Millisecond)
}

// sparesComeUp lets all processes work for as long as a spare needs, and then the one that serves may die. Left to
// chance alone, hardly any spare would ever be ready when it is needed.
func (m *model) sparesComeUp() {
	for range 3 {
		for s := range m.running {
			if !s.exited {
				s.readAll()
				s.answerAll()
			}
		}
		m.tick(200 * time.Millisecond)
		m.obeyed()
	}
	if s := m.main(); s != nil && !s.closed && rapid.IntRange(0, 3).Draw(m.rt, "dies") > 0 {
		s.dies()
	}
}

func (m *model) unstall() {
	m.slow = false
	m.b.Drained(m.now, m.b.process.gen)
}

// behaves lets a process do what a healthy one would.
func (s *simServer) behaves() {
	switch {
	case s.exited:
		s.outputEnds()
	case s.termed || s.inputClosed:
		s.readAll()
		s.answerAll()
		s.exit(0)
		s.outputEnds()
	default:
		s.readAll()
		s.answerAll()
	}
}

// obeyed lets a process that was killed die.
func (m *model) obeyed() {
	for s := range m.running {
		if s.killed && !s.exited {
			s.exit(137)
			s.outputEnds()
		}
	}
}

// calmDown lets the world behave until the client has all its answers and the server is up.
func (m *model) calmDown() {
	m.unstall()
	m.spawnFail = false
	for i := 0; ; i++ {
		for s := range m.running {
			s.behaves()
		}
		m.spawnFail = false
		if m.b.Asleep() { // since a handover that came to nothing
			m.b.Wake(m.now)
		}
		m.client.goesOn()
		if len(m.client.open) == 0 && m.isUp() && m.quiet() {
			break
		}
		if i > 400 {
			m.rt.Fatalf("no calm: state %s, open %v, private %d", m.b.machine.State(), m.client.openIDs(), len(m.b.questions.open))
		}
		m.tick(10 * time.Second)
		m.obeyed()
	}
	m.client.upToDate()
	if m.client.said && m.only != mcp.Modern && m.main().initialized != 1 {
		m.rt.Fatalf("process %d was told %d times that the client is initialized", m.main().gen, m.main().initialized)
	}
}

// isUp reports whether the server is up: it is no sooner than it has answered something.
func (m *model) isUp() bool {
	switch p := m.b.process; m.b.machine.State() {
	case supervise.Serving:
		if !p.through() && !p.phase.oneOf(proven, skipped, drainsBare) {
			m.rt.Fatalf("process %d is up before it has answered", p.gen)
		}
		return true
	case supervise.Starting:
		return p.phase.oneOf(fresh, skipped)
	}
	return false
}

// quiet reports whether a running server has nothing to do and outlive has nothing left to ask it.
func (m *model) quiet() bool {
	for s := range m.running {
		if len(s.pipe)+len(s.running) > 0 {
			return false
		}
	}
	return m.b.process.up() && len(m.b.questions.open) == 0 && m.b.eras.deadline().IsZero() && // a bridge may still open its stream again
		m.b.timers[timerDoubt].IsZero() && m.b.timers[timerLearn].IsZero()
}

// end tells the backend that it is over and waits for Finish; the server obeys or does not.
func (m *model) end(begin func()) {
	begin()
	m.unstall()
	for i := 0; !m.finished; i++ {
		if i > 60 {
			m.rt.Fatalf("no end: state %s", m.b.machine.State())
		}
		for s := range m.running {
			switch rapid.IntRange(0, 3).Draw(m.rt, "at the end") {
			case 0:
				if !s.exited {
					s.readAll()
					s.answerAll()
				}
			case 1:
				if s.inputClosed || s.termed {
					s.exit(0)
				}
			}
			if s.exited {
				s.outputEnds()
			}
		}
		m.obeyed()
		m.tick(500 * time.Millisecond)
		m.obeyed()
	}
}

// invariants hold after every event.
func (m *model) invariants() {
	m.rt.Helper()
	if at := m.b.deadline(); at != m.wakeAt {
		m.rt.Fatalf("something is due at %v, and the world was told %v", at, m.wakeAt)
	}
	waiting, bytes, inFlight := 0, 0, 0
	for c := range m.b.calls.all {
		switch c.state {
		case inQueue:
			waiting++
			bytes += len(c.line)
		case sent:
			inFlight++
		}
	}
	if m.b.hopeless() {
		for c := range m.b.calls.all {
			if c.isRequest() && c.state == inQueue {
				m.rt.Fatalf("the breaker is open and %s waits", c.line)
			}
		}
	}
	if waiting != m.b.calls.waiting || bytes != m.b.calls.bytes || inFlight != m.b.calls.inFlight {
		m.rt.Fatalf("counted %d waiting (%d bytes), %d in flight; the table says %d (%d), %d",
			waiting, bytes, inFlight, m.b.calls.waiting, m.b.calls.bytes, m.b.calls.inFlight)
	}
}

// inQueue is the state waiting, under a name that no counter shadows.
const inQueue = waiting

// nothingLeft checks that the tables are empty when every request has its answer.
func (m *model) nothingLeft() {
	m.rt.Helper()
	c := &m.b.calls
	if listens := m.listening(); listens > 0 { // for a bridged client; that goes on
		if len(c.byID) != listens || c.inFlight+m.kept() != listens || len(c.byToken)+c.waiting != 0 {
			m.rt.Fatalf("left over beside %d streams: %d ids, %d tokens, %d waiting, %d in flight", listens, len(c.byID), len(c.byToken), c.waiting, c.inFlight)
		}
		return
	}
	if len(c.byID)+len(c.byToken)+c.waiting+c.bytes+c.inFlight != 0 || c.head != nil || c.tail != nil {
		m.rt.Fatalf("left over: %d ids, %d tokens, %d waiting, %d bytes, %d in flight, first %s",
			len(c.byID), len(c.byToken), c.waiting, c.bytes, c.inFlight, leftOver(c))
	}
}

// listening counts the streams that are open; once all is over there is none.
func (m *model) listening() (n int) {
	for c := range m.b.calls.all {
		if c.method == mcp.Listen && (c.state == sent || c.state == kept) {
			n++
		}
	}
	return n
}

// kept is how many of them the server is not asked for, because one was silent after such a request for longer than it may.
func (m *model) kept() (n int) {
	for c := range m.b.calls.all {
		if c.state == kept {
			n++
		}
	}
	return n
}

func leftOver(c *calls) string {
	if c.head == nil {
		return "none"
	}
	return fmt.Sprintf("%s (state %d)", c.head.line, c.head.state)
}
