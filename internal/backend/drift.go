package backend

import (
	"fmt"
	"log/slog"
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
		if b.session.Seen(l) != nil {
			b.lookAt(l, b.firstLook)
		}
	}
	b.arm(timerLearn, learnAfter)
}

// lookAt reads a list as the client would see it.
func (b *Backend) lookAt(l mcp.List, done func(mcp.List, mcp.Catalog)) {
	if l == mcp.Tools && b.session.Era == mcp.Legacy && !b.process.hasTools {
		done(l, b.ownTools(mcp.Catalog{}))
		return
	}
	b.readList(l, mcp.Catalog{}, nil, 0, done)
}

// firstLook takes a list of a process that has only just become ready.
func (b *Backend) firstLook(l mcp.List, now mcp.Catalog) {
	b.learned(l, now)
	if !now.Equal(b.session.Seen(l)) {
		b.doubtList(l)
	}
}

// learned keeps what a process's list says.
func (b *Backend) learned(l mcp.List, now mcp.Catalog) {
	b.lists[l].now, b.lists[l].gen = now, b.process.gen
	if l == mcp.Tools {
		b.tools.settled = true
		b.settleCalls()
	}
}

// doubtList has a list looked at again in a moment. It reports false for one that the client has never read: then
// nothing it knows can be wrong.
func (b *Backend) doubtList(l mcp.List) bool {
	if b.session.Seen(l) == nil {
		return false
	}
	b.lists[l].doubted = true
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
		if !b.lists[l].doubted {
			continue
		}
		b.lists[l].doubted = false
		if b.process.answered && b.process.up {
			b.lookAt(l, b.verdictOn)
		} // otherwise the next process's lists are compared when it is ready
	}
}

// verdictOn tells the client of a list that is another one than it has seen.
func (b *Backend) verdictOn(l mcp.List, now mcp.Catalog) {
	b.learned(l, now)
	if now.Equal(b.session.Seen(l)) {
		return
	}
	b.session.Told(l, now)
	told := b.tellChanged(l)
	b.emit(event.DriftDetected, slog.LevelInfo, fmt.Sprintf("The server has other %s than the client has seen", l),
		slog.String(event.KeyKind, l.String()), slog.Bool(event.KeyNotified, told))
}

// learnTools reads the tools of a process that nobody has asked for them yet.
func (b *Backend) learnTools() {
	p := &b.process
	known := b.lists[mcp.Tools].now != nil && b.lists[mcp.Tools].gen == p.gen
	if known || !p.answered || !p.up || b.closing || b.session.Era == mcp.Legacy && !p.hasTools {
		return
	}
	if b.session.Era == mcp.Legacy && !b.session.Initialized {
		b.arm(timerLearn, learnAfter)
		return
	}
	b.readList(mcp.Tools, mcp.Catalog{}, nil, 0, b.learned)
}

// sameServer notes that a new process has introduced itself with exactly the words of the old one: until its lists are
// read, they are taken to be the same.
func (b *Backend) sameServer() {
	for l := range b.lists {
		if b.lists[l].now != nil {
			b.lists[l].gen = b.process.gen
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

// introduced notes a modern process's DiscoverResult, nil if it gave none.
func (b *Backend) introduced(line []byte) {
	if b.env.Kind != jsonrpc.Response {
		return
	}
	result := string(b.env.Result.Of(line))
	if b.introduction == result {
		b.sameServer()
	}
	b.introduction = result
}
