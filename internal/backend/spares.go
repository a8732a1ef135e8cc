package backend

import (
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/outlive-mcp/outlive/internal/event"
	"github.com/outlive-mcp/outlive/internal/jsonrpc"
	"github.com/outlive-mcp/outlive/internal/mcp"
	"github.com/outlive-mcp/outlive/internal/supervise"
)

// introduce tells the machine whether processes can be brought up without the client: once it has been through its
// handshake, and until it begins another.
func (b *Backend) introduce() {
	can := b.session.Answered() && b.session.Initialized || b.session.Era == mcp.Modern
	if can != b.told {
		b.told = can
		b.step(supervise.Introduced{Possible: can})
	}
}

// mayOverlap reports whether a planned restart can bring up the new process beside the old one.
func (b *Backend) mayOverlap() bool { return b.told && b.opts.Reload == OverlapReload }

// refillPause is how long a spare that nobody waits for is put off after a takeover: a process that starts takes a processor
// for itself, and just then the client's request is to be answered.
const refillPause = 100 * time.Millisecond

// wantSpare starts a process beside the serving one, or soon.
func (b *Backend) wantSpare(a supervise.SpawnSpare) {
	if (a.Reload && !a.Silent) || b.now.Sub(b.tookOver) >= refillPause {
		b.spawnLater() // generations begin in their order
		b.spawnSpare(a)
		return
	}
	b.later = append(b.later, a)
	b.arm(timerLater, refillPause)
}

// spawnLater starts the spares that were put off.
func (b *Backend) spawnLater() {
	wanted := b.later
	b.later = nil
	for _, a := range wanted {
		b.spawnSpare(a)
	}
}

// takeLater takes the wish for a spare out of those that were put off.
func (b *Backend) takeLater(gen int) (a supervise.SpawnSpare, found bool) {
	i := slices.IndexFunc(b.later, func(a supervise.SpawnSpare) bool { return a.Gen == gen })
	if i < 0 {
		return a, false
	}
	a = b.later[i]
	b.later = slices.Delete(b.later, i, i+1)
	return a, true
}

// spawnSpare starts a process beside the serving one.
func (b *Backend) spawnSpare(a supervise.SpawnSpare) {
	if a.Reload {
		b.begun, b.cause = b.now, a.Cause.String()
		b.misfortune = reloadFailure{}
	}
	a.Tell(b.emit)
	p, err := b.start(Launch{Gen: a.Gen, Why: a.Reason, Anew: anew(a.Cause, a.Source), Beside: true}, spare)
	if err != nil {
		b.step(supervise.SpareFailed{Gen: a.Gen, Reason: err.Error()})
		return
	}
	p.reload, p.wish = a.Reload, a.Source
	b.greet(p)
}

// checked is what is looked at before a spare may serve: the lists the client has read.
func (b *Backend) check(p *process) {
	for l := range mcp.Lists {
		if b.session.Seen(l) == nil || l == mcp.Tools && p.era == mcp.Legacy && !p.hasTools {
			continue
		}
		p.unchecked++
		b.readList(p, l, func(l mcp.List, now mcp.Catalog) {
			if now != nil {
				p.shows[l], p.read[l] = now, true
			}
			p.unchecked--
			b.checkedAll(p)
		})
	}
	b.checkedAll(p)
}

func (b *Backend) checkedAll(p *process) {
	if p.unchecked > 0 || p.role != spare || p.fit {
		return
	}
	p.fit, p.startup = true, b.now.Sub(p.started)
	if !p.reload { // one that takes over at once is told of then
		b.emitOf(p, event.SpareReady, slog.LevelInfo, fmt.Sprintf("Spare server ready (startup: %dms)", p.startup.Milliseconds()),
			slog.Int64(event.KeyStartupMS, p.startup.Milliseconds()))
	}
	b.step(supervise.SpareReady{Gen: p.gen})
}

// mirror tells the spares of a wish that the serving process has granted the client.
func (b *Backend) mirror(c *call) {
	params := c.param.Of(c.line)
	for _, p := range b.beside {
		if p.role == spare && p.greeted {
			b.ask(p, func(id []byte) []byte { return jsonrpc.AppendRequest(nil, id, c.method.String(), params) }, func([]byte) {})
		}
	}
}

// tellSpares hands a notification of the client, such as that its roots have changed, to the spares too: they have asked
// for the same things.
func (b *Backend) tellSpares(line []byte) {
	for _, p := range b.beside {
		if p.role == spare && p.greeted {
			p.send(line)
		}
	}
}

// takeOver makes a spare the serving process, between two messages. The old one, if it lives, finishes what it has.
func (b *Backend) takeOver(a supervise.TakeOver) {
	if wish, late := b.takeLater(a.Gen); late {
		b.spawnSpare(wish) // now it is needed
	}
	p, old := b.byGen(a.Gen), b.process
	if p == nil {
		p = &process{gen: a.Gen} // it could not be started, which the machine is about to hear
		p.follow(old)
	}
	b.leave(p)
	b.tookOver = b.now
	p.role = serving
	b.process = p
	b.introduction = p.introduction
	if a.Old >= 0 {
		old.accepting, old.draining = false, true
		b.beside = append(b.beside, old)
		b.moveListens(old)
		b.retire(old)
	}
	if p.answered {
		p.accepting = true
		b.readyAt = b.now
		b.tellReady(p)
		if !a.Ready {
			b.step(supervise.Ready{Gen: p.gen}) // its lists are read once more, if it comes to that
		}
		b.nowServes(p)
	}
}

// moveListens asks the new process for the streams that the old one still keeps open.
func (b *Backend) moveListens(old *process) {
	for c := range b.calls.all {
		if c.state == sent && c.gen == old.gen && c.method == mcp.Listen {
			b.holdStream(c)
		}
	}
}

// retire lets a process finish what it has and then go.
func (b *Backend) retire(p *process) {
	p.role = retired
	p.draining, p.trial = true, trial{}
	p.retirement = supervise.NewRetirement(p.gen, b.opts.Supervise, b.now, b.busy(p))
	b.carryOutFor(p, p.retirement.Begin())
}

// busy reports whether a request of the client is in flight at p, or one of p's at the client. A stream never ends by
// itself and does not count.
func (b *Backend) busy(p *process) bool {
	for c := range b.calls.all {
		if c.state == sent && c.gen == p.gen && (c.method != mcp.Listen || p.era != mcp.Modern) {
			return true
		}
	}
	return b.asks.of(p.gen)
}

// dismiss ends a spare that is not wanted any more.
func (b *Backend) dismiss(gen int) {
	if _, late := b.takeLater(gen); late {
		return
	}
	if p := b.byGen(gen); p != nil && p.role == spare {
		b.retire(p)
	}
}

// spareFailed gives up a spare that has not come up.
func (b *Backend) spareFailed(p *process, reason string) {
	if p.role != spare {
		return
	}
	b.retire(p)
	b.step(supervise.SpareFailed{Gen: p.gen, Reason: reason})
}

// carryOutFor does what the ladder of one retired process asks.
func (b *Backend) carryOutFor(p *process, actions []supervise.Action) {
	for _, a := range actions {
		switch a.(type) {
		case supervise.CloseStdin:
			p.shutInput()
		case supervise.Terminate:
			p.server.Terminate()
		case supervise.Kill:
			p.server.Kill()
		}
	}
}

// reloadFailure is a planned restart that came to nothing.
type reloadFailure struct {
	at     time.Time
	why    string
	stderr []string
}

// exclusiveWords are what servers say that cannot run twice.
var exclusiveWords = []string{"EADDRINUSE", "ddress already in use", "lock", "already running", "in use"}

// hint is advice for a failure that looks as if the two processes were in each other's way.
func (f reloadFailure) hint() string {
	for _, line := range f.stderr {
		for _, word := range exclusiveWords {
			if strings.Contains(line, word) {
				return "the new process seems to need something the old one holds: try --reload replace"
			}
		}
	}
	return ""
}

func (f reloadFailure) text() string {
	text := f.why
	if len(f.stderr) > 0 {
		text += "\nlast stderr lines:\n" + strings.Join(f.stderr, "\n")
	}
	if h := f.hint(); h != "" {
		text += "\n" + h
	}
	return text
}

// reloadFailed tells that the new process did not come up; the old one goes on serving.
func (b *Backend) reloadFailed(a supervise.ReloadFailed) {
	b.begun = time.Time{}
	b.misfortune = reloadFailure{at: b.now, why: a.Why, stderr: b.lastWords(a.Gen)}
	attrs := []slog.Attr{slog.String(event.KeyReason, a.Reason), slog.String(event.KeyError, a.Why),
		slog.String(event.KeySource, a.Source.String()), slog.Any(event.KeyStderr, b.misfortune.stderr)}
	if h := b.misfortune.hint(); h != "" {
		attrs = append(attrs, slog.String(event.KeyHint, h))
	}
	about := b.process
	if p := b.byGen(a.Gen); p != nil {
		about = p
	}
	b.emitOf(about, event.ReloadFailed, slog.LevelError, "The new server did not come up, the old one goes on serving: "+b.misfortune.text(), attrs...)
	b.answerVerify(false)
}

// lastWords is the end of a process's stderr, that of one which is just being settled included.
func (b *Backend) lastWords(gen int) []string {
	if p := b.byGen(gen); p != nil && p.server != nil {
		return p.server.LastStderr(stderrShown)
	}
	return nil
}
