package health

import "time"

// manner is how a simulated server is at the moment.
type manner struct {
	state byte
	cpu   float64 // cores in use
	deaf  bool    // does not read its stdin
}

var (
	asleep   = manner{state: 'S'}
	spinning = manner{state: 'R', cpu: 1, deaf: true}
	blocked  = manner{state: 'S', deaf: true}
	stopped  = manner{state: 'T', deaf: true}
	debugged = manner{state: 't', deaf: true}
)

// habits are what a simulated server does as long as it is well.
type habits struct {
	ignoresPing, ignoresLists bool          // these questions are read and never answered
	delay                     time.Duration // of every answer
	noise                     time.Duration // between two lines on stderr; 0: none
	noSIGCONT                 bool
	unknown                   bool // nothing can be learned of the process
}

type call struct {
	sign, ends time.Time
	answers    bool          // at the end; otherwise the client cancels the call
	progress   time.Duration // between two signs; 0: none
}

// sim is a simulated server, its owner, and a clock that jumps from one thing that happens to the next.
type sim struct {
	t fataler
	*Watch
	opts Options
	habits
	manner
	before manner // it was stopped

	start, now time.Time
	slept      time.Duration // what the wall clock is ahead
	frozen     time.Time     // outlive does not run until then
	tickFirst  bool          // after that it finds its timer before what the server wrote
	held       bool

	cpuTime   time.Duration
	stdin     []Probe
	replies   []reply
	calls     []call
	script    []step
	heard     time.Time
	nextNoise time.Time

	lastPing  time.Time
	sends     []Probe
	overdue   int
	conts     int
	suspects  int
	cleared   int
	ticks     int
	verdict   string
	verdictAt time.Duration
	again     int // ticks at one and the same moment
	standing  int // turns of run at one and the same moment
}

type reply struct {
	at time.Time
	p  Probe
}

type step struct {
	at time.Duration // after the start
	do func(*sim)
}

const probeBytes = 48

// fataler is a test, or a rapid one.
type fataler interface{ Fatalf(string, ...any) }

func simulate(t fataler, opts Options, h habits, script ...step) *sim {
	start := time.Date(2026, 11, 21, 9, 0, 0, 0, time.UTC)
	s := &sim{t: t, opts: opts, habits: h, manner: asleep, start: start, now: start, heard: start, script: script}
	s.Watch = New(opts, start)
	if h.noise > 0 {
		s.nextNoise = start.Add(h.noise)
	}
	return s
}

// run lets time pass until the server is condemned or the end has come.
func (s *sim) run(end time.Duration) *sim {
	for until := s.start.Add(end); s.verdict == "" && s.now.Before(until); {
		next := until
		consider := func(at time.Time) {
			if !at.IsZero() && at.Before(next) {
				next = later(at, s.now)
			}
		}
		if d := s.Deadline(); !d.IsZero() {
			consider(later(d, s.frozen))
		}
		if len(s.script) > 0 {
			consider(s.start.Add(s.script[0].at))
		}
		for _, r := range s.replies {
			consider(later(r.at, s.frozen))
		}
		for _, c := range s.calls {
			consider(later(c.ends, s.frozen))
			if c.progress > 0 {
				consider(later(c.sign.Add(c.progress), s.frozen))
			}
		}
		if s.noise > 0 && !s.deaf {
			consider(later(s.nextNoise, s.frozen))
		}
		if s.pass(next.Sub(s.now)); s.standing > 1000 {
			s.t.Fatalf("the simulation stands still at %s", s.now.Sub(s.start))
		}
		if s.tickFirst && s.now.Equal(s.frozen) && s.Deadline().Before(s.now) {
			s.tickNow()
		}
		s.happen()
		if d := s.Deadline(); !d.IsZero() && !d.After(s.now) && !s.now.Before(s.frozen) {
			s.tickNow()
		}
	}
	return s
}

func (s *sim) pass(d time.Duration) {
	s.standing++
	if d > 0 {
		s.standing, s.again = 0, 0
	}
	s.now = s.now.Add(d)
	s.cpuTime += time.Duration(s.cpu * float64(d))
}

func (s *sim) happen() {
	for len(s.script) > 0 && !s.start.Add(s.script[0].at).After(s.now) {
		do := s.script[0].do
		s.script = s.script[1:]
		do(s)
	}
	if !s.deaf {
		for _, p := range s.stdin {
			if p == Ping && !s.ignoresPing || p == Lists && !s.ignoresLists {
				s.replies = append(s.replies, reply{s.now.Add(s.delay), p})
			}
		}
		s.stdin = nil
	}
	if s.now.Before(s.frozen) {
		return
	}
	s.happenCalls()
	rest := s.replies[:0]
	for _, r := range s.replies {
		if r.at.After(s.now) {
			rest = append(rest, r)
			continue
		}
		s.heard = s.now
		s.obey(s.ProbeAnswered(s.now, r.p))
	}
	s.replies = rest
	if s.noise > 0 && !s.deaf && !s.nextNoise.After(s.now) {
		s.heard, s.nextNoise = s.now, s.now.Add(s.noise)
	}
}

func (s *sim) happenCalls() {
	rest := s.calls[:0]
	for _, c := range s.calls {
		if c.progress > 0 && !c.sign.Add(c.progress).After(s.now) {
			c.sign, s.heard = s.now, s.now
		}
		if c.ends.After(s.now) {
			rest = append(rest, c)
		} else if c.answers {
			s.heard = s.now
		}
	}
	s.calls = rest
}

func (s *sim) tickNow() {
	if s.again++; s.again > 3 {
		s.t.Fatalf("wants a Tick again and again at %s", s.now.Sub(s.start))
	}
	s.ticks++
	v := View{InFlight: len(s.calls), Heard: s.heard, Held: s.held}
	v.Look = Look{CPU: s.cpuTime.Truncate(10 * time.Millisecond), Known: true, State: s.state, Unread: probeBytes * len(s.stdin)}
	if s.unknown {
		v.Look = Look{}
	}
	for i, c := range s.calls {
		if i == 0 || c.sign.Before(v.Oldest) {
			v.Oldest = c.sign
		}
	}
	s.obey(s.tick(reading{s.now, s.now.Add(s.slept)}, v))
	if d := s.Deadline(); d.Before(s.now) && s.verdict == "" && !s.opts.Off {
		s.t.Fatalf("deadline %s before the Tick", s.now.Sub(d))
	}
}

// obey carries actions out and checks what holds of each.
func (s *sim) obey(acts []Action) {
	for _, a := range acts {
		_, good := a.(Cleared)
		if !good && s.state == 't' && !s.unknown || s.verdict != "" {
			s.t.Fatalf("%T in a debugger, or after the verdict", a)
		}
		switch a := a.(type) {
		case Send:
			if len(s.calls) > 0 || s.held || s.state == 'T' && !s.unknown {
				s.t.Fatalf("%v sent with %d calls in flight, held %v, state %c", a.Probe, len(s.calls), s.held, s.state)
			}
			if a.Probe == Ping {
				if !s.lastPing.IsZero() && s.now.Sub(s.lastPing) < every {
					s.t.Fatalf("a ping %s after the one before", s.now.Sub(s.lastPing))
				}
				s.lastPing = s.now
			}
			s.sends = append(s.sends, a.Probe)
			s.stdin = append(s.stdin, a.Probe)
			s.happen()
		case Continue:
			s.conts++
			if s.state == 'T' && !s.noSIGCONT {
				s.manner = s.before
				s.happen()
			}
		case Overdue:
			rest := s.calls[:0]
			for _, c := range s.calls {
				if c.sign.After(a.Until) {
					rest = append(rest, c)
				}
			}
			if len(rest) == len(s.calls) {
				s.t.Fatalf("no call is overdue since %s", a.Until)
			}
			s.overdue += len(s.calls) - len(rest)
			s.calls = rest
		case Suspect:
			s.suspects++
		case Cleared:
			s.cleared++
		case Condemn:
			if len(s.calls) > 0 || s.held || s.now.Sub(s.heard) < patience {
				s.t.Fatalf("condemned with %d calls in flight, held %v, heard %s ago", len(s.calls), s.held, s.now.Sub(s.heard))
			}
			s.verdict, s.verdictAt = a.Reason, s.now.Sub(s.start)
		}
	}
}

// The steps of a script.

func becomes(m manner) func(*sim) {
	return func(s *sim) {
		if m.state == 'T' && s.state != 'T' {
			s.before = s.manner
		}
		s.manner = m
	}
}

// calls lets the client send a request.
func calls(lasts time.Duration, answers bool, progress time.Duration) func(*sim) {
	return func(s *sim) {
		s.calls = append(s.calls, call{s.now, s.now.Add(lasts), answers, progress})
		s.Called(s.now)
	}
}

// suspend makes the machine sleep: the monotonic clock stops.
func suspend(d time.Duration) func(*sim) { return func(s *sim) { s.slept += d } }

// freeze keeps outlive alone from running.
func freeze(d time.Duration) func(*sim) {
	return func(s *sim) { s.frozen = later(s.frozen, s.now.Add(d)) }
}

func hold(yes bool) func(*sim) { return func(s *sim) { s.held = yes } }
