package backend

import (
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/outlive-mcp/outlive/internal/keep/supervise"
	"github.com/outlive-mcp/outlive/internal/protocol/jsonrpc"
	"github.com/outlive-mcp/outlive/internal/protocol/mcp"
	"github.com/outlive-mcp/outlive/internal/record/event"
)

// spares is the processes beside the serving one: started to take over, on request or after a crash, and retired after
// that.
type spares struct {
	*core

	later    []supervise.SpawnSpare // delayed for a moment
	tookOver time.Time              // when a spare last took over
	told     bool                   // the machine knows that processes can be started without the client
}

// tellReplayable tells the machine whether processes can be started without the client: from the end of its handshake until
// it begins another.
func (s *spares) tellReplayable() {
	can := s.session.Answered() && s.session.Initialized || s.session.Era == mcp.Modern
	if can != s.told {
		s.told = can
		s.life.step(supervise.Replayable{Possible: can})
	}
}

// mayOverlap reports whether a planned restart can start the new process beside the old one.
func (s *spares) mayOverlap() bool { return s.told && s.opts.Reload == OverlapReload }

// refillPause is how long the next spare is delayed after a takeover: a starting process needs a CPU, just when the
// client's request is to be answered.
const refillPause = 100 * time.Millisecond

// wantSpare starts a process beside the serving one, now or soon.
func (s *spares) wantSpare(a supervise.SpawnSpare) {
	if (a.Reload && !a.Silent) || s.now.Sub(s.tookOver) >= refillPause {
		s.spawnLater()
		s.spawnSpare(a)
		return
	}
	s.later = append(s.later, a)
	s.arm(timerLater, refillPause)
}

// spawnLater starts the delayed spares, all of them before any other: generations must start in order, since verify_restart takes a later
// one for a process that was started later.
func (s *spares) spawnLater() {
	for len(s.later) > 0 { // one that fails may have others dismissed
		next := s.later[0]
		s.later = s.later[1:]
		s.spawnSpare(next)
	}
}

// spawnSpare starts a process beside the serving one.
func (s *spares) spawnSpare(a supervise.SpawnSpare) {
	if a.Reload {
		s.history.begun, s.history.cause = s.now, a.Cause.String()
		s.history.lastReloadFailure = reloadFailure{}
	}
	a.Tell(s.emit)
	p, err := s.life.start(Launch{Gen: a.Gen, Why: a.Reason, Anew: anew(a.Cause, a.Source), Beside: true}, spare)
	if err != nil {
		s.life.step(supervise.SpareFailed{Gen: a.Gen, Reason: err.Error()})
		return
	}
	p.reload, p.requestedBy = a.Reload, a.Source
	s.replay.greet(p)
}

// check reads what a spare must show before it may serve: the lists that the client has read.
func (s *spares) check(p *process) {
	for l := range mcp.Lists {
		if s.session.Seen[l] == nil || l == mcp.Tools && p.era == mcp.Legacy && !s.hasTools(p) {
			continue
		}
		p.unchecked++
		s.lists.readList(p, l, func(l mcp.List, now mcp.Catalog) {
			if now != nil {
				p.shows[l], p.read[l] = now, true
			}
			p.unchecked--
			s.checkedAll(p)
		})
	}
	s.checkedAll(p)
}

func (s *spares) checkedAll(p *process) {
	if p.unchecked > 0 || p.role != spare || p.phase != checked {
		return
	}
	p.mark(fits)
	p.startup = s.now.Sub(p.started)
	if !p.reload { // one that takes over at once reports it then
		s.emitOf(p, event.SpareReady, slog.LevelInfo, fmt.Sprintf("Spare server ready (startup: %dms)", p.startup.Milliseconds()),
			slog.Int64(event.KeyStartupMS, p.startup.Milliseconds()))
	}
	s.life.step(supervise.SpareReady{Gen: p.gen})
}

// mirror sends the spares a setting that a process has granted the client, and the serving one, if an earlier one has.
func (s *spares) mirror(c *call) {
	params := c.param.Of(c.line)
	for _, p := range s.without(c, (*process).familiar) {
		s.questions.ask(p, func(id []byte) []byte { return jsonrpc.AppendRequest(nil, id, c.method.String(), params) }, func([]byte) {})
	}
}

// without are the processes that miss an answered call: such spares, and the serving one if an earlier one answered.
func (s *spares) without(c *call, such func(*process) bool) (all []*process) {
	for _, p := range s.beside {
		if p.role == spare && such(p) {
			all = append(all, p)
		}
	}
	if c.gen < s.process.gen && s.process.answered() {
		all = append(all, s.process)
	}
	return all
}

// tellSpares forwards a notification of the client, such as changed roots, to the spares too.
func (s *spares) tellSpares(line []byte) {
	for _, p := range s.beside {
		if p.role == spare && p.familiar() {
			p.send(line)
		}
	}
}

// takeOver makes a spare the serving process, between two messages. The old one, if alive, finishes its requests.
func (s *spares) takeOver(a supervise.TakeOver) {
	if slices.ContainsFunc(s.later, func(l supervise.SpawnSpare) bool { return l.Gen == a.Gen }) {
		s.spawnLater() // it is needed now
	}
	p, old := s.byGen(a.Gen), s.process
	if p == nil {
		p = &process{gen: a.Gen} // it could not be started; the machine is told next
		p.follow(old)
	}
	s.leave(p)
	s.tookOver = s.now
	p.role = serving
	s.process = p
	if a.Old >= 0 {
		old.mark(mustDrain)
		s.beside = append(s.beside, old)
		s.streams.moveListens(old)
		s.retire(old)
	}
	if p.through() {
		p.mark(takesOver)
		s.history.readyAt = s.now
		s.history.tellReady(p)
		if !a.Ready {
			s.life.step(supervise.Ready{Gen: p.gen}) // its lists are read once more, if it comes to that
		}
		s.replay.nowServes(p)
	}
}

// stalledFor is how long a replaced process may finish its requests if one of them is known not to go on.
const stalledFor = 5 * time.Second

// retire lets a process finish its requests and then ends it.
func (s *spares) retire(p *process) {
	up := p.through()
	p.role = retired
	p.mark(mustDrain)
	p.trial = trial{}
	opts := s.opts.Supervise
	if p.stalled && (opts.RetireFor == 0 || opts.RetireFor > stalledFor) {
		opts.RetireFor = stalledFor
	}
	p.retirement = supervise.NewRetirement(p.gen, opts, s.now, up, s.flow.busy(p))
	s.health.watchCalls(p)
	s.carryOutFor(p, p.retirement.Begin())
}

// dismiss ends a spare that is not needed.
func (s *spares) dismiss(gen int) {
	s.later = slices.DeleteFunc(s.later, func(a supervise.SpawnSpare) bool { return a.Gen == gen })
	if p := s.byGen(gen); p != nil && p.role == spare {
		s.retire(p)
	}
}

// spareFailed gives up a spare that failed to start.
func (s *spares) spareFailed(p *process, reason string) {
	if p.role != spare {
		return
	}
	s.retire(p)
	s.life.step(supervise.SpareFailed{Gen: p.gen, Reason: reason})
}

// carryOutFor performs the stop steps of one retired process.
func (s *spares) carryOutFor(p *process, actions []supervise.Action) {
	for _, a := range actions {
		switch a.(type) {
		case supervise.CloseStdin:
			p.shutInput()
		case supervise.Terminate:
			p.server.Terminate()
		case supervise.Kill:
			s.life.kill(p)
		}
	}
}

// reloadFailed reports that the new process failed to start; the old one continues.
func (s *spares) reloadFailed(a supervise.ReloadFailed) {
	s.process.stalled = false
	s.limits.notRenewed()
	s.history.begun = time.Time{}
	about, failed := s.process, reloadFailure{at: s.now, gen: a.Gen, why: a.Why}
	if p := s.byGen(a.Gen); p != nil {
		about = p
		if p.server != nil {
			failed.stderr = p.server.LastStderr(stderrShown)
		}
	}
	if a.Gen < 0 { // it was not even started
		failed.gen = s.machine.Newest()
	}
	s.history.lastReloadFailure = failed
	attrs := []slog.Attr{slog.String(event.KeyReason, a.Reason), slog.String(event.KeyError, a.Why),
		slog.String(event.KeySource, a.Source.String()), slog.Any(event.KeyStderr, s.history.lastReloadFailure.stderr)}
	if h := s.history.lastReloadFailure.hint(); h != "" {
		attrs = append(attrs, slog.String(event.KeyHint, h))
	}
	s.emitOf(about, event.ReloadFailed, slog.LevelError, "The new server did not come up, the old one goes on serving: "+s.history.lastReloadFailure.text(), attrs...)
	s.tools.answerVerify(false)
}

// checkRetired ends the retired processes that have finished their requests.
func (s *spares) checkRetired() {
	for i := 0; i < len(s.beside); i++ {
		if p := s.beside[i]; p.role == retired && p.up() && !s.flow.busy(p) {
			s.carryOutFor(p, p.retirement.Drained(s.now))
		}
	}
}

// working reports whether a retired process has requests of the client yet.
func (s *spares) working() bool {
	return slices.ContainsFunc(s.beside, func(p *process) bool { return p.role == retired && p.up() && s.flow.busy(p) })
}

// hurry ends all processes beside the serving one at once. Those that install have their time to undo it, unless outlive
// itself was told to end.
func (s *spares) hurry() {
	s.later = nil
	profile := supervise.ClientEOF
	if s.signalled {
		profile = supervise.Signal
	}
	for _, p := range s.beside {
		if p.role == spare {
			s.retire(p)
		}
		if p.up() {
			s.carryOutFor(p, p.retirement.Hurry(s.now, profile, lastGrace))
		}
	}
}
