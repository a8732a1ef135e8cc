package backend

import (
	"bytes"
	"log/slog"
	"slices"
	"time"

	"github.com/outlive-mcp/outlive/internal/keep/supervise"
	"github.com/outlive-mcp/outlive/internal/protocol/jsonrpc"
	"github.com/outlive-mcp/outlive/internal/protocol/mcp"
	"github.com/outlive-mcp/outlive/internal/protocol/session"
	"github.com/outlive-mcp/outlive/internal/record/event"
)

// streams is what a modern client listens to: opened when the server is ready for it, kept across processes.
type streams struct {
	*core

	cut []cutShort // ends held back until it is clear whether the server died
}

// Some servers answer nothing any more after a stream was requested: rmcp 3.1.4 if subscriptions/listen is its first
// request, mcp-go 1.1.0 always, after it has acknowledged the stream. So a stream is opened only after the process has
// answered a list request, followed by one question of outlive's own, and the process gets nothing else until that is
// answered. A process that does not answer is replaced, and its command is not asked for streams again.

// Listening is how the server of a command takes subscriptions/listen.
type Listening string

// The two ways.
const (
	// ListenUnknown: it was not asked yet, or it works.
	ListenUnknown Listening = ""
	// ListenSilent: it answered nothing any more after that. It is not asked for streams.
	ListenSilent Listening = "silent"
)

// hearing is the progress of a process with its client's streams.
type hearing uint8

const (
	unheard   hearing = iota // it was not asked for a stream
	listing                  // a list request is in flight, because a stream is wanted
	reopening                // the same, and requests wait: the client believes that its streams are open
	tried                    // streams were requested, and the question after them is not answered; requests wait
	doubted                  // that takes long while earlier requests are in flight; requests are sent
	hears                    // it has answered
)

// waits reports whether requests of the client must wait.
func (h hearing) waits() bool { return h == reopening || h == tried }

// trial is a process's first streams, until it is known whether it still answers.
type trial struct {
	end  uint64    // stream offset behind the question: earlier requests may keep the process busy
	by   time.Time // deadline of the process; zero: no trial
	acks time.Time // until when requests wait for acknowledgements
}

// wantStream takes a subscriptions/listen of the client, whose line is kept in c.
func (s *streams) wantStream(c *call, line []byte) {
	if s.session.Era != mcp.Modern {
		s.flow.submit(c, line) // the server will answer it itself
		return
	}
	if s.hopeless() {
		s.flow.turnAway(c)
		return
	}
	s.holdStream(c)
	if s.keepStreams() {
		return
	}
	s.life.wake()
	s.openStreams()
}

// holdStream makes a stream wait until the serving process can be asked for it.
func (s *streams) holdStream(c *call) {
	s.calls.hold(c, s.now.Add(s.opts.QueueFor))
	s.flow.awaitQueue()
}

// streamsBroken reports whether a waiting stream is believed to be open by the client.
func (s *streams) streamsBroken() bool {
	for c := range s.calls.in(held) {
		if !s.flow.unopened(c) && s.memory.known.Listen != ListenSilent {
			return true
		}
	}
	return false
}

// listedBy notes that p has answered a list request.
func (s *streams) listedBy(p *process) {
	p.listed = true
	if p.hearing == listing {
		p.hearing = unheard
	}
}

// openStreams requests the waiting streams once the serving process has answered for its lists. It is called whenever
// that may have changed.
func (s *streams) openStreams() {
	p := s.process
	if s.calls.held == 0 || s.closing || p.phase != active || !p.takes() || s.keepStreams() {
		return
	}
	switch p.hearing {
	case unheard, reopening:
		if s.listsReady(p) {
			s.tryStreams(p)
		}
	case hears:
		s.sendStreams(p)
	}
}

// listsReady reports whether p has answered for its lists, with none in flight. It asks if nobody has.
func (s *streams) listsReady(p *process) bool {
	if s.questions.of(p) {
		return false
	}
	for c := range s.calls.at(p.gen) {
		if _, list := mcp.ListOf(c.method); list {
			return false
		}
	}
	l, has := p.firstList()
	if p.listed || !has {
		return true
	}
	if p.hearing == unheard {
		p.hearing = listing
	}
	s.lists.readList(p, l, func(l mcp.List, now mcp.Catalog) {
		s.listedBy(p) // an error counts, too
		if now != nil && p.role == serving {
			s.lists.learned(l, now)
		}
	})
	return false
}

// firstList is a list that the process has declared; false: it has none.
func (p *process) firstList() (mcp.List, bool) {
	declared := func(name string) bool {
		return jsonrpc.FindPath(p.offer, "capabilities", name).Present()
	}
	switch {
	case declared("tools"), p.offer == nil:
		return mcp.Tools, true
	case declared("prompts"):
		return mcp.Prompts, true
	}
	return mcp.Resources, declared("resources")
}

// sendStreams hands the waiting streams to p.
func (s *streams) sendStreams(p *process) {
	for c := range s.calls.in(held) {
		if c.acked != nil {
			p.streams = append(p.streams, bytes.Clone(c.id))
		}
		s.flow.transmit(c, c.line, true)
	}
}

// tryStreams opens the first streams of a process, followed by a question that shows whether it still answers.
func (s *streams) tryStreams(p *process) {
	s.sendStreams(p)
	p.hearing = tried
	s.questions.ask(p, func(id []byte) []byte { return mcp.DiscoverLine(id, s.privateMeta()) }, func([]byte) {
		p.trial.by = time.Time{}
		s.heardAgain(p)
	})
	p.trial = trial{end: p.sent, by: s.now.Add(s.opts.ListenPatience), acks: s.now.Add(settingsFor)}
}

// heardAgain ends a trial: p answers with its streams open. Acknowledgements of streams that the client believes to be
// open are waited for briefly: the next request may cause a notification on them.
func (s *streams) heardAgain(p *process) {
	if !p.trial.by.IsZero() || p.role != serving || p.hearing != tried && p.hearing != doubted {
		return
	}
	if len(p.streams) > 0 && s.now.Before(p.trial.acks) {
		return
	}
	p.streams, p.trial, p.hearing = nil, trial{}, hears
	s.openStreams()
	s.flow.flushQueue()
}

// trialTick handles what is due in the trial of p.
func (s *streams) trialTick(p *process) {
	t := &p.trial
	if t.by.IsZero() {
		s.heardAgain(p)
		return
	}
	if s.now.Before(t.by) {
		return
	}
	if s.flow.busyBefore(p, t.end) {
		// It may handle one request at a time. Its other requests are answered then, or known to be lost.
		p.hearing, t.by = doubted, s.now.Add(s.opts.ListenPatience)
		s.flow.flushQueue()
		return
	}
	s.giveUpListening(p)
	s.moveListens(p)
	s.keepStreams()
	p.mark(mustDrain)
	p.trial = trial{}
	s.life.step(supervise.Restart{Cause: supervise.Replace, Reason: "it answered nothing after subscriptions/listen"})
}

// deadline is when something is due in the trial.
func (t trial) deadline() time.Time {
	if t.by.IsZero() {
		return t.acks
	}
	return t.by
}

// giveUpListening remembers that the command's server answers nothing after subscriptions/listen.
func (s *streams) giveUpListening(p *process) {
	known := s.memory.known
	known.Listen = ListenSilent
	s.memory.learn(known)
	why := "it answered nothing for " + s.opts.ListenPatience.String() + " after subscriptions/listen"
	s.emitOf(p, event.ListenGivenUp, slog.LevelWarn, "The server is not asked for streams any more: "+why+". Changes of its lists "+
		"are seen when it is restarted only, changes of its resources not at all", slog.String(event.KeyReason, why))
}

// keepStreams takes over the waiting streams if the server must not be asked for them; outlive then sends the list
// changes that it sees itself. It reports whether that is so.
func (s *streams) keepStreams() bool {
	if s.memory.known.Listen != ListenSilent {
		return false
	}
	for c := range s.calls.in(held) {
		s.calls.set(c, kept)
		filter := c.filter()
		switch granted := mcp.ListenFilter(func(l mcp.List) bool { return l.In(filter) }, nil); {
		case c.acked == nil:
			c.acked = granted
			s.tell(mcp.AcknowledgedLine(c.id, granted))
			s.lists.tellMissed()
		case !mcp.Covers(granted, c.acked):
			s.endListen(c)
		}
	}
	return true
}

// takeOver goes on with a stream of the session that a bridge, or another backend, had open.
func (s *streams) takeOver(l *session.Listen) {
	_ = s.env.Scan(l.Line) // it was scanned when it came
	c := s.calls.add(&s.env, l.Line, mcp.Listen, s.client.Keep)
	c.acked = l.Acked
	s.holdStream(c)
}

// sameVersion reports whether two raw DiscoverResults are of the same version of a server, as far as they say.
func sameVersion(one, other []byte) bool {
	info := func(result []byte) []byte { return jsonrpc.FindPath(result, "_meta", mcp.MetaServerInfo).Of(result) }
	return bytes.Equal(info(one), info(other))
}

// reopened notes that the serving process has answered for a stream that was requested again.
func (s *streams) reopened(id []byte) {
	p := s.process
	was := len(p.streams)
	p.streams = slices.DeleteFunc(p.streams, func(one []byte) bool { return jsonrpc.SameID(one, id) })
	if was > 0 && len(p.streams) == 0 {
		s.heardAgain(p)
	}
}

// moveListens makes the streams that are open at old wait for the next process, or for outlive.
func (s *streams) moveListens(old *process) {
	for c := range s.calls.at(old.gen) {
		if c.method == mcp.Listen {
			s.holdStream(c)
		}
	}
}
