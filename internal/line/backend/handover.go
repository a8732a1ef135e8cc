package backend

import (
	"slices"
	"time"

	"github.com/outlive-mcp/outlive/internal/keep/restart"
	"github.com/outlive-mcp/outlive/internal/keep/supervise"
	"github.com/outlive-mcp/outlive/internal/protocol/mcp"
	"github.com/outlive-mcp/outlive/internal/protocol/session"
	"github.com/outlive-mcp/outlive/internal/record/event"
)

// Saved is all that a [Backend] with one serving process and nothing beside it knows, in a form that can be kept as
// JSON: another image of the same program goes on with it. Raw JSON is kept byte for byte. All times are absolute.
type Saved struct {
	Machine supervise.Saved
	Session session.Saved
	Seam    *savedSeam `json:",omitempty"`
	Process savedProcess
	Calls   []savedCall // in order of arrival
	Batches []savedBatch
	NextSeq uint64
	Asks    savedAsks
	Timers  []time.Time // by timer
	LastID  int
	Asked   bool // outlive had questions open, whose answers will come to nobody

	Known        Knowledge
	Told         bool
	Introduction string
	Probe        savedProbe
	Tools        savedTools
	Doubted      [mcp.Lists]bool
	Noise        savedBabble
	Watched      bool // the process's health
	Deaf         bool
	Used         savedUsage
	Replays      [][]byte
	First        savedFirst
	FailedInit   []byte       `json:",omitempty"`
	States       []savedState // the oldest first
	Cut          []savedCut
	TaskTokens   [][]byte
	Tasks        []savedTask
	LastOut      savedExit
	Misfortune   savedMisfortune
	ReadyAt      time.Time
	Begun        time.Time
	Cause        string
}

type (
	savedProbe struct {
		Active, Seen   bool
		Seq            uint64
		SentAt, ReadAt time.Time
	}
	savedTools struct {
		Settled        bool
		Names          []string // in the order of the tools
		Verify, Unsure []uint64 // sequence numbers of the parked calls
		Request        *savedRequest
	}
	savedRequest struct {
		At, Reason string // At as the marker file has it: the clock's time, whatever becomes of the clock
		Newest     int
	}
	savedBabble struct {
		Count, Total int
		ToldAt       time.Time
	}
	savedUsage struct {
		Over    int
		Renewed bool
		RSS     int64
	}
	savedFirst struct {
		Active bool
		Since  time.Time
		Tries  int
	}
	savedState struct {
		Digest uint64
		Gen    int
	}
	savedCut struct {
		ID, Line []byte
		Ends     bool
	}
	savedExit struct {
		Kind        endKind
		Code        int
		Signal, Why string
		At          time.Time
		Ended       string `json:",omitempty"`
		Stderr      []string
	}
	savedMisfortune struct {
		At     time.Time
		Why    string
		Stderr []string
	}
)

// PrepareHandover works towards a moment in which the backend can be saved, and returns why it is not one yet, "" if it
// is. Processes that stand by are sent away, and a server that is asleep is woken. Who gives up waiting calls [Backend.AbandonHandover].
func (b *Backend) PrepareHandover(now time.Time) (why string) {
	b.now = now
	defer b.tellWake()
	p := b.process
	switch {
	case b.closing || b.over || b.stopped:
		return "it is ending"
	case b.asleep():
		b.life.wake()
		return "the server is starting"
	case b.machine.State() == supervise.Starting && p.phase == fresh:
		// It waits for its client's first word, and is told nothing before that.
	case b.machine.State() != supervise.Serving:
		return "the server is " + b.machine.State().String()
	case b.eras.seam != nil && b.eras.seam.changing():
		return "the server speaks another era now, and is being introduced to its client"
	case b.machine.Reloading():
		return "a restart is under way"
	}
	switch {
	case !p.stays() || p.phase.oneOf(proven, checked, standby) || p.shut || p.closed:
		return "the server is ending"
	case p.hearing != unheard && p.hearing != hears:
		return "a stream of the client is being opened"
	}
	if len(b.machine.Snapshot().Spares) > 0 {
		b.spares.told = false
		b.life.step(supervise.Introduced{Possible: false})
	}
	for _, one := range b.beside {
		if b.flow.busy(one) {
			return "a server that was replaced still works on something"
		}
	}
	if len(b.beside) > 0 {
		return "servers beside the serving one are ending"
	}
	if _, ok := b.machine.Save(); !ok {
		return "a restart is under way"
	}
	return ""
}

// AbandonHandover takes back what PrepareHandover has done: spares are started again.
func (b *Backend) AbandonHandover(now time.Time) {
	b.now = now
	defer b.tellWake()
	b.spares.introduce()
}

// Save returns all that the backend knows. It shares memory with the backend. Only valid at once after
// [Backend.PrepareHandover] has returned "".
func (b *Backend) Save() Saved {
	machine, _ := b.machine.Save()
	s := Saved{
		Machine: machine, Session: b.session.Save(), Seam: b.eras.saveSeam(), Process: b.process.save(), NextSeq: b.calls.nextSeq, Asks: b.asks.save(),
		Timers: b.timers[:], LastID: b.questions.lastID, Asked: len(b.questions.open) > 0,
		Known: b.memory.known, Told: b.spares.told, Introduction: b.history.introduction,
		Probe:   savedProbe{b.shield.probe.active, b.shield.probe.seen, b.shield.probe.seq, b.shield.probe.sentAt, b.shield.probe.readAt},
		Tools:   b.tools.save(),
		Doubted: b.lists.doubted, Noise: savedBabble{b.babble.count, b.babble.total, b.babble.toldAt},
		Watched: b.health.watch != nil, Deaf: b.health.deaf, Used: savedUsage{b.limits.used.over, b.limits.used.renewed, b.limits.used.rss},
		Replays: b.replay.noted, First: savedFirst{b.handshake.first.active, b.handshake.first.since, b.handshake.first.tries},
		FailedInit: b.failedInit, TaskTokens: b.tasks.tokens, Tasks: saveTasks(b.tasks.open),
		LastOut:    savedExit{b.history.lastOut.kind, b.history.lastOut.code, b.history.lastOut.signal, b.history.lastOut.why, b.history.lastOut.at, b.history.lastOut.ended, b.history.lastOut.stderr},
		Misfortune: savedMisfortune{b.history.misfortune.at, b.history.misfortune.why, b.history.misfortune.stderr},
		ReadyAt:    b.history.readyAt, Begun: b.history.begun, Cause: b.history.cause,
	}
	s.Calls, s.Batches = b.calls.save()
	for _, digest := range b.states.row {
		s.States = append(s.States, savedState{digest, b.states.gens[digest]})
	}
	for _, c := range b.streams.cut {
		s.Cut = append(s.Cut, savedCut{c.id, c.line, c.ends})
	}
	return s
}

// Restore returns a backend that goes on where the one that was saved stood, with server as its process. What outlive
// had asked the server itself is asked again; the old answers are dropped when they come.
func Restore(opts Options, w World, sink event.Sink, s Saved, server Server, now time.Time) *Backend {
	opts.Known = s.Known
	b := New(opts, w, sink)
	b.now = now
	b.machine = supervise.Restore(b.opts.Supervise, s.Machine)
	b.session = session.Restore(s.Session)
	b.eras.restoreSeam(s.Seam)
	b.process = s.Process.restore(server)
	b.failedInit, b.history.startup = s.FailedInit, b.process.startup
	b.asks.restore(s.Asks)
	copy(b.timers[:], s.Timers)
	b.questions.lastID, b.spares.told, b.history.introduction = s.LastID, s.Told, s.Introduction
	b.shield.probe = probe{s.Probe.Active, s.Probe.Seen, s.Probe.Seq, s.Probe.SentAt, s.Probe.ReadAt}
	b.lists.doubted, b.health.deaf, b.replay.noted, b.tasks.tokens = s.Doubted, s.Deaf, s.Replays, s.TaskTokens
	b.tasks.open = restoreTasks(s.Tasks)
	b.babble.count, b.babble.total, b.babble.toldAt = s.Noise.Count, s.Noise.Total, s.Noise.ToldAt
	b.handshake.first = firstStart{s.First.Active, s.First.Since, s.First.Tries}
	for _, one := range s.States {
		b.states.gave(one.Digest, one.Gen)
	}
	for _, c := range s.Cut {
		b.streams.cut = append(b.streams.cut, cutShort{c.ID, c.Line, c.Ends})
	}
	o := s.LastOut
	b.history.lastOut = lastExit{kind: o.Kind, code: o.Code, signal: o.Signal, at: o.At, why: o.Why, ended: o.Ended, stderr: o.Stderr}
	b.history.misfortune = reloadFailure{at: s.Misfortune.At, why: s.Misfortune.Why, stderr: s.Misfortune.Stderr}
	b.history.readyAt, b.history.begun, b.history.cause = s.ReadyAt, s.Begun, s.Cause
	bySeq := b.calls.restore(&b.env, s)
	b.tools.restore(s.Tools, bySeq)
	b.goOn(s)
	b.tellWake()
	return b
}

// goOn begins again what was under way and cannot be saved: looking after the process's health and limits, reading its
// lists, bringing up spares.
func (b *Backend) goOn(s Saved) {
	if s.Watched {
		heard := b.process.heard
		b.health.watchHealth(b.process)
		b.process.heard = heard
	}
	b.limits.used, b.limits.lastUse = usage{s.Used.Over, s.Used.Renewed, s.Used.RSS}, b.now
	if l := b.opts.Limits; (l.MaxRSS > 0 || l.MaxAge > 0) && b.timers[timerLimits].IsZero() {
		b.arm(timerLimits, rssEvery)
	}
	if s.Asked && b.process.answered() {
		for l := range mcp.Lists {
			b.lists.doubtList(l)
		}
		b.arm(timerLearn, learnAfter)
		if len(b.tools.unsure) > 0 {
			b.lists.lookAt(mcp.Tools, b.lists.learned)
		}
	}
	b.spares.introduce()
}

func (t *toolbox) save() savedTools {
	s := savedTools{Settled: t.settled, Verify: seqs(t.verify), Unsure: seqs(t.unsure)}
	for _, one := range t.shown {
		s.Names = append(s.Names, one.name)
	}
	if r := t.request; !r.marker.Timestamp.IsZero() {
		s.Request = &savedRequest{restart.FormatTime(r.marker.Timestamp), r.marker.Reason, r.newest}
	}
	return s
}

func seqs(parkedCalls []parkedCall) (all []uint64) {
	for _, c := range parkedCalls {
		all = append(all, c.seq)
	}
	return all
}

// restore takes over the names under which the client knows the tools. A newer program may have more of them.
func (t *toolbox) restore(s savedTools, bySeq map[uint64]*call) {
	t.settled = s.Settled
	for i := range t.shown {
		if i < len(s.Names) {
			t.shown[i].name = s.Names[i]
		}
	}
	if r := s.Request; r != nil {
		if at, err := restart.ParseTime(r.At); err == nil { // it is our own text
			t.request = request{restart.RequestedMarker(at, r.Reason), r.Newest}
		}
	}
	find := func(seqs []uint64) (all []parkedCall) {
		for _, seq := range seqs {
			if c := bySeq[seq]; c != nil {
				all = append(all, parkedCall{c, seq})
			}
		}
		return all
	}
	t.verify, t.unsure = find(s.Verify), find(s.Unsure)
}

// savedAsks are the server's requests to the client.
type savedAsks struct {
	Open []savedAsk
	Dead [][]byte // raw ids, the oldest first
	Mark uint64
}

type savedAsk struct {
	Server, Client []byte // raw ids
	Token, Shown   []byte `json:",omitempty"` // raw progress tokens
	Gen            int
}

func (a *asks) save() savedAsks {
	s := savedAsks{Dead: slices.Clone(a.deadRow), Mark: a.mark}
	for _, one := range a.open {
		s.Open = append(s.Open, savedAsk{one.server, one.client, one.token, one.shown, one.gen})
	}
	return s
}

// savedTask is a task in a handover.
type savedTask struct {
	ID, Raw []byte
	Gen     int
}

func saveTasks(tasks []task) (saved []savedTask) {
	for _, t := range tasks {
		saved = append(saved, savedTask{t.id, t.raw, t.gen})
	}
	return saved
}

func restoreTasks(saved []savedTask) (tasks []task) {
	for _, s := range saved {
		tasks = append(tasks, task{id: s.ID, gen: s.Gen, raw: s.Raw})
	}
	return tasks
}
