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
	// doubtFor is how long a list that looks different is left alone before the client is told: servers add their tools
	// one by one while they start, and say list_changed for each.
	doubtFor = 300 * time.Millisecond
	// learnAfter is when outlive reads a server's tools for itself, unless the client has done so meanwhile: it must
	// know which of them may be called twice before one of them is interrupted.
	learnAfter = 200 * time.Millisecond
)

// compareLists reads again, from a new process, each list that the client has read. One that is the same is never
// announced: the client would read it again for nothing.
func (ls *lists) compareLists() {
	for l := range mcp.Lists {
		if ls.session.Seen(l) == nil {
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

// lookAt reads a list of the serving process. A list that cannot be read says nothing.
func (ls *lists) lookAt(l mcp.List, done func(mcp.List, mcp.Catalog)) {
	p := ls.process
	if l == mcp.Tools && ls.session.Era == mcp.Legacy && !p.hasTools {
		done(l, mcp.Catalog{})
		return
	}
	ls.readList(p, l, func(l mcp.List, now mcp.Catalog) {
		if now != nil && p.role == serving {
			done(l, now)
		} else if l == mcp.Tools {
			ls.names.settleCalls() // there will be no list
		}
	})
}

// firstLook takes a list of a process that has only just become ready.
func (ls *lists) firstLook(l mcp.List, now mcp.Catalog) {
	ls.learned(l, now)
	if !ls.asShown(l, now).Equal(ls.session.Seen(l)) {
		ls.doubtList(l)
	}
}

// learned keeps what the serving process's list says.
func (ls *lists) learned(l mcp.List, now mcp.Catalog) {
	ls.process.shows[l] = now
	if l == mcp.Tools {
		ls.names.settle(now)
		ls.names.settleCalls()
	}
}

// asShown is a server's list as the client sees it: the tools with outlive's own.
func (ls *lists) asShown(l mcp.List, now mcp.Catalog) mcp.Catalog {
	if l == mcp.Tools {
		return ls.tools.ownTools(maps.Clone(now))
	}
	return now
}

// doubtList has a list looked at again in a moment. It reports false for one that the client has never read: then
// nothing it knows can be wrong.
func (ls *lists) doubtList(l mcp.List) bool {
	if ls.session.Seen(l) == nil {
		return false
	}
	ls.doubted[l] = true
	if ls.timers[timerDoubt].IsZero() {
		ls.arm(timerDoubt, doubtFor)
	}
	return true
}

// serverChanged handles a server's own list_changed. It reports whether the client must not see it: outlive looks for
// itself whether there is anything new, and says so then.
func (ls *lists) serverChanged(m mcp.Method) bool {
	held := false
	for l := range mcp.Lists {
		if l.Changed() == m && ls.doubtList(l) {
			held = true
		}
	}
	return held
}

// settleDoubts looks at the doubted lists and tells the client of those that are different.
func (ls *lists) settleDoubts() {
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

// verdictOn tells the client of a list that is another one than it has seen.
func (ls *lists) verdictOn(l mcp.List, now mcp.Catalog) {
	ls.learned(l, now)
	shown := ls.asShown(l, now)
	if shown.Equal(ls.session.Seen(l)) {
		return
	}
	told := ls.tellChanged(l)
	if told {
		ls.session.Told(l, shown)
	}
	ls.emit(event.DriftDetected, slog.LevelInfo, fmt.Sprintf("The server has other %s than the client has seen", l),
		slog.String(event.KeyKind, l.String()), slog.Bool(event.KeyNotified, told))
}

// learnTools reads the tools of a process that nobody has asked for them yet.
func (ls *lists) learnTools() {
	p := ls.process
	if p.shows[mcp.Tools] != nil || !p.answered() || ls.closing || ls.session.Era == mcp.Legacy && !p.hasTools {
		return
	}
	if ls.session.Era == mcp.Legacy && !ls.session.Initialized {
		ls.arm(timerLearn, learnAfter)
		return
	}
	ls.lookAt(mcp.Tools, ls.learned)
}

// sameServer notes that p has introduced itself with exactly the words of the process before it: until its lists are
// read, they are taken to be the same.
func (p *process) sameServer() {
	for l, was := range p.before {
		if p.shows[l] == nil {
			p.shows[l] = was
		}
	}
}

// follow notes the lists of the process that p comes after.
func (p *process) follow(old *process) {
	p.before = old.before
	for l, shown := range old.shows {
		if shown != nil {
			p.before[l] = shown
		}
	}
}

// tellChanged sends list_changed: once to a legacy client, on each stream that asked for it to a modern one.
func (ls *lists) tellChanged(l mcp.List) bool {
	if ls.session.Era != mcp.Modern {
		ls.client.SendToClient(mcp.ChangedLine(l, nil))
		return true
	}
	told := false
	for _, listen := range ls.session.Listens() {
		if listen.Wants(l) {
			ls.client.SendToClient(mcp.ChangedLine(l, listen.ID))
			told = true
		}
	}
	return told
}

// tellMissed has the lists looked at again that a client which has just begun to listen may not know the latest of.
func (ls *lists) tellMissed() {
	for l := range mcp.Lists {
		now, seen := ls.process.shows[l], ls.session.Seen(l)
		if now != nil && seen != nil && !ls.asShown(l, now).Equal(seen) {
			ls.doubtList(l)
		}
	}
}
