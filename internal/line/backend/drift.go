package backend

import (
	"fmt"
	"log/slog"
	"maps"
	"time"

	"github.com/outlive-mcp/outlive/internal/protocol/mcp"
	"github.com/outlive-mcp/outlive/internal/record/event"
)

const (
	// doubtFor is how long a list that looks different is left alone before the client is notified: while servers start,
	// they add tools one by one with a list_changed for each.
	doubtFor = 300 * time.Millisecond
	// doubtMost is what that grows to, doubled with each look that finds nothing new after the first doubtLooks: some servers say
	// with each list that it has changed.
	doubtMost  = 10 * time.Second
	doubtLooks = 3
	// learnAfter is when outlive reads a server's tools itself, unless the client has: it must know which of them may be
	// repeated before one is interrupted.
	learnAfter = 200 * time.Millisecond
)

// compareLists reads each list that the client has read again from a new process. Unchanged lists are not announced.
func (ls *lists) compareLists() {
	ls.looks = 0
	for l := range mcp.Lists {
		if ls.session.Seen[l] == nil {
			continue
		}
		if ls.process.read[l] {
			ls.firstLook(l, ls.process.shows[l]) // it was read before the process took over
		} else {
			ls.lookAt(l, ls.firstLook)
		}
	}
	ls.arm(timerLearn, learnAfter)
}

// lookAt reads a list of the serving process. A list that cannot be read counts as unknown.
func (ls *lists) lookAt(l mcp.List, done func(mcp.List, mcp.Catalog)) {
	p := ls.process
	if l == mcp.Tools && ls.session.Era == mcp.Legacy && !ls.hasTools(p) {
		done(l, mcp.Catalog{})
		return
	}
	ls.readList(p, l, func(l mcp.List, now mcp.Catalog) {
		if now != nil && p.role == serving {
			done(l, now)
		} else if l == mcp.Tools {
			ls.tools.settleCalls() // there will be no list
		}
	})
}

// firstLook takes a list of a process that has just become ready.
func (ls *lists) firstLook(l mcp.List, now mcp.Catalog) {
	ls.learned(l, now)
	if !ls.asShown(l, now).Equal(ls.session.Seen[l]) {
		ls.doubtList(l)
	}
}

// learned stores the serving process's list.
func (ls *lists) learned(l mcp.List, now mcp.Catalog) {
	ls.process.shows[l] = now
	if l == mcp.Tools {
		ls.tools.settle(now)
		ls.tools.settleCalls()
	}
}

// asShown is a server's list as the client sees it: with outlive's tools.
func (ls *lists) asShown(l mcp.List, now mcp.Catalog) mcp.Catalog {
	if l == mcp.Tools {
		now = maps.Clone(now)
		ls.reader.AddPage(now, mcp.Tools, ls.tools.ownToolsResult())
	}
	return now
}

// doubtList schedules another look at a list. It returns false for one that the client has never read.
func (ls *lists) doubtList(l mcp.List) bool {
	if ls.session.Seen[l] == nil {
		return false
	}
	ls.doubted[l] = true
	if ls.timers[timerDoubt].IsZero() {
		ls.arm(timerDoubt, ls.doubtDelay())
	}
	return true
}

// doubtDelay is when a doubted list is looked at.
func (ls *lists) doubtDelay() time.Duration {
	if ls.now.Sub(ls.lookedAt) >= doubtMost {
		ls.looks = 0
	}
	return min(doubtFor<<min(max(ls.looks-doubtLooks+1, 0), 10), doubtMost)
}

// serverChanged handles the server's list_changed. It reports whether to suppress it: outlive compares the list itself,
// and notifies the client of a change.
func (ls *lists) serverChanged(m mcp.Method) bool {
	held := false
	for l := range mcp.Lists {
		if l.Changed() == m && ls.doubtList(l) {
			held = true
		}
	}
	return held
}

// settleDoubts reads the doubted lists and notifies the client of changes.
func (ls *lists) settleDoubts() {
	ls.looks, ls.lookedAt = ls.looks+1, ls.now
	for l := range mcp.Lists {
		if !ls.doubted[l] {
			continue
		}
		ls.doubted[l] = false
		if ls.process.answered() {
			ls.lookAt(l, ls.verdictOn)
		} // otherwise the next process's lists are compared when it is ready
	}
}

// verdictOn notifies the client if a list differs from what it has seen.
func (ls *lists) verdictOn(l mcp.List, now mcp.Catalog) {
	ls.learned(l, now)
	shown := ls.asShown(l, now)
	if shown.Equal(ls.session.Seen[l]) {
		return
	}
	ls.looks = 0
	if !ls.timers[timerDoubt].IsZero() { // it said so once more, and may be right
		ls.arm(timerDoubt, doubtFor)
	}
	told := ls.tellChanged(l)
	if told {
		ls.session.Seen[l] = shown
	}
	ls.emit(event.DriftDetected, slog.LevelInfo, fmt.Sprintf("The server has other %s than the client has seen", l),
		slog.String(event.KeyKind, l.String()), slog.Bool(event.KeyNotified, told))
}

// learnTools reads the tools of a process, if nobody has.
func (ls *lists) learnTools() {
	p := ls.process
	if p.shows[mcp.Tools] != nil || !p.answered() || ls.closing || ls.session.Era == mcp.Legacy && !ls.hasTools(p) {
		return
	}
	if ls.session.Era == mcp.Legacy && !ls.session.Initialized {
		ls.arm(timerLearn, learnAfter)
		return
	}
	ls.lookAt(mcp.Tools, ls.learned)
}

// assumeLists is called when p's handshake result is known. Until its lists are read, they are assumed to be those of the processes
// before it that had exactly the same result.
func (p *process) assumeLists() {
	offer := p.offerDigest()
	for l, was := range p.before {
		if p.shows[l] == nil && was.offer == offer {
			p.shows[l] = was.list
		}
	}
}

// follow stores the lists of p's predecessor.
func (p *process) follow(old *process) {
	p.before = old.before
	for l, shown := range old.shows {
		if shown != nil {
			p.before[l] = shownList{shown, old.offerDigest()}
		}
	}
}

// tellChanged sends list_changed: once to a legacy client, to a modern one on each stream that asked for it.
func (ls *lists) tellChanged(l mcp.List) bool {
	if ls.session.Era != mcp.Modern {
		ls.tell(mcp.ChangedLine(l, nil))
		return true
	}
	told := false
	for c := range ls.calls.all {
		if c.method == mcp.Listen && l.In(c.filter()) {
			ls.tell(mcp.ChangedLine(l, c.id))
			told = true
		}
	}
	return told
}

// tellMissed looks again at the lists that a client may have missed changes of before it began to listen.
func (ls *lists) tellMissed() {
	for l := range mcp.Lists {
		now, seen := ls.process.shows[l], ls.session.Seen[l]
		if now != nil && seen != nil && !ls.asShown(l, now).Equal(seen) {
			ls.doubtList(l)
		}
	}
}
