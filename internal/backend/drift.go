package backend

import (
	"fmt"
	"log/slog"
	"maps"
	"time"

	"github.com/outlive-mcp/outlive/internal/event"
	"github.com/outlive-mcp/outlive/internal/jsonrpc"
	"github.com/outlive-mcp/outlive/internal/mcp"
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
func (b *Backend) compareLists() {
	for l := range mcp.Lists {
		if b.session.Seen(l) == nil {
			continue
		}
		if b.process.read[l] {
			b.firstLook(l, b.process.shows[l]) // it was read before the process took over
		} else {
			b.lookAt(l, b.firstLook)
		}
	}
	b.arm(timerLearn, learnAfter)
}

// lookAt reads a list of the serving process. A list that cannot be read says nothing.
func (b *Backend) lookAt(l mcp.List, done func(mcp.List, mcp.Catalog)) {
	p := b.process
	if l == mcp.Tools && b.session.Era == mcp.Legacy && !p.hasTools {
		done(l, mcp.Catalog{})
		return
	}
	b.readList(p, l, func(l mcp.List, now mcp.Catalog) {
		if now != nil && p.role == serving {
			done(l, now)
		} else if l == mcp.Tools {
			b.settleCalls() // there will be no list
		}
	})
}

// firstLook takes a list of a process that has only just become ready.
func (b *Backend) firstLook(l mcp.List, now mcp.Catalog) {
	b.learned(l, now)
	if !b.asShown(l, now).Equal(b.session.Seen(l)) {
		b.doubtList(l)
	}
}

// learned keeps what the serving process's list says.
func (b *Backend) learned(l mcp.List, now mcp.Catalog) {
	b.process.shows[l] = now
	if l == mcp.Tools {
		b.tools.avoid(now)
		b.tools.settled = true
		b.settleCalls()
	}
}

// asShown is a server's list as the client sees it: the tools with outlive's own.
func (b *Backend) asShown(l mcp.List, now mcp.Catalog) mcp.Catalog {
	if l == mcp.Tools {
		return b.ownTools(maps.Clone(now))
	}
	return now
}

// doubtList has a list looked at again in a moment. It reports false for one that the client has never read: then
// nothing it knows can be wrong.
func (b *Backend) doubtList(l mcp.List) bool {
	if b.session.Seen(l) == nil {
		return false
	}
	b.doubted[l] = true
	if b.timers[timerDoubt].IsZero() {
		b.arm(timerDoubt, doubtFor)
	}
	return true
}

// serverChanged handles a server's own list_changed. It reports whether the client must not see it: outlive looks for
// itself whether there is anything new, and says so then.
func (b *Backend) serverChanged(m mcp.Method) bool {
	held := false
	for l := range mcp.Lists {
		if l.Changed() == m && b.doubtList(l) {
			held = true
		}
	}
	return held
}

// settleDoubts looks at the doubted lists and tells the client of those that are different.
func (b *Backend) settleDoubts() {
	for l := range mcp.Lists {
		if !b.doubted[l] {
			continue
		}
		b.doubted[l] = false
		if b.process.answered && b.process.up {
			b.lookAt(l, b.verdictOn)
		} // otherwise the next process's lists are compared when it is ready
	}
}

// verdictOn tells the client of a list that is another one than it has seen.
func (b *Backend) verdictOn(l mcp.List, now mcp.Catalog) {
	b.learned(l, now)
	shown := b.asShown(l, now)
	if shown.Equal(b.session.Seen(l)) {
		return
	}
	told := b.tellChanged(l)
	if told {
		b.session.Told(l, shown)
	}
	b.emit(event.DriftDetected, slog.LevelInfo, fmt.Sprintf("The server has other %s than the client has seen", l),
		slog.String(event.KeyKind, l.String()), slog.Bool(event.KeyNotified, told))
}

// learnTools reads the tools of a process that nobody has asked for them yet.
func (b *Backend) learnTools() {
	p := b.process
	if p.shows[mcp.Tools] != nil || !p.answered || !p.up || b.closing || b.session.Era == mcp.Legacy && !p.hasTools {
		return
	}
	if b.session.Era == mcp.Legacy && !b.session.Initialized {
		b.arm(timerLearn, learnAfter)
		return
	}
	b.lookAt(mcp.Tools, b.learned)
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
func (b *Backend) tellChanged(l mcp.List) bool {
	if b.session.Era != mcp.Modern {
		b.world.SendToClient(mcp.ChangedLine(l, nil))
		return true
	}
	told := false
	for _, listen := range b.session.Listens() {
		if listen.Wants(l) {
			b.world.SendToClient(mcp.ChangedLine(l, listen.ID))
			told = true
		}
	}
	return told
}

// tellMissed has the lists looked at again that a client which has just begun to listen may not know the latest of.
func (b *Backend) tellMissed() {
	for l := range mcp.Lists {
		now, seen := b.process.shows[l], b.session.Seen(l)
		if now != nil && seen != nil && !b.asShown(l, now).Equal(seen) {
			b.doubtList(l)
		}
	}
}

// introduces notes a modern process's DiscoverResult, if it gave one.
func (b *Backend) introduces(p *process, line []byte) {
	if b.env.Kind != jsonrpc.Response {
		return
	}
	p.introduction = string(b.env.Result.Of(line))
	if known := b.opts.Known; known.Listen == ListenSilent && len(known.Discover) > 0 && !sameVersion(known.Discover, []byte(p.introduction)) {
		known.Listen, known.Discover = ListenUnknown, []byte(p.introduction)
		b.learn(known)
		b.releaseStreams()
	}
	if p.introduction == b.introduction {
		p.sameServer()
	}
	if p.role == serving {
		b.introduction = p.introduction
	}
}
