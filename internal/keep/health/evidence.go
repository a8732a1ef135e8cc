package health

import (
	"fmt"
	"strings"
	"time"
)

// By these factors of enoughRounds, rounds must fail in a row with the same sign. Work that keeps a core busy for
// minutes is common (such as building an index); so is a server that gets little CPU time on a loaded machine.
const (
	fullFactor    = 3
	blockedFactor = 10
)

// evidence is what the looks of one round have shown.
type evidence struct {
	span    time.Duration // between the first look and the last
	cpu     time.Duration // used in that time
	known   bool          // cpu is valid
	unread  int           // bytes in stdin, at the last look
	blocked bool          // stdin had unread bytes at every look, never fewer than before
	working bool          // stdin was read from between two looks: it works, and came to it
	disk    bool          // seen waiting for a disk
	runs    bool          // seen runnable
}

func gather(first Look) evidence {
	return evidence{known: first.Known, unread: first.Unread, blocked: true}
}

// use records what was used between two looks.
func (e *evidence) use(before, after Look, span time.Duration) {
	used := after.CPU - before.CPU
	// The sum decreases when a descendant's share is lost with it; then it is useless.
	e.known = e.known && before.Known && after.Known && used >= 0
	e.span += span
	e.cpu += used
}

// see records a single look.
func (e *evidence) see(l Look) {
	e.blocked = e.blocked && l.Unread > 0 && l.Unread >= e.unread
	e.working = e.working || l.Unread < e.unread
	e.disk = e.disk || l.State == 'D'
	e.runs = e.runs || l.State == 'R'
	e.unread = l.Unread
}

// flat says that no CPU time was used. One tick of the usual clock, 10 ms, is tolerated in ten seconds.
func (e *evidence) flat() bool { return e.known && e.cpu <= e.span/1000 }

// full says that one core was kept busy. More than one core is parallel work and not an endless loop.
func (e *evidence) full() bool {
	return e.known && e.cpu >= e.span*9/10 && e.cpu <= e.span*11/10
}

// excused says that the machine may cause the silence: the server waits for a disk, or is runnable and gets no CPU
// time.
func (e *evidence) excused() bool { return e.disk || e.working || e.runs && e.flat() }

func (e *evidence) String() string {
	var s []string
	if e.blocked {
		s = append(s, fmt.Sprintf("%d bytes of its stdin stay unread", e.unread))
	}
	switch {
	case !e.known:
	case e.flat():
		s = append(s, "it uses no CPU time")
	default:
		s = append(s, fmt.Sprintf("it uses %.0f %% of a core", 100*e.cpu.Seconds()/e.span.Seconds()))
	}
	return strings.Join(s, ", ")
}

// tally counts failed rounds in a row with the same sign.
type tally struct{ flat, full, blocked int }

// count records a failed round. proven says that the server has answered probes before: the silence of one that never
// did means nothing as long as it reads its stdin.
func (t *tally) count(e *evidence, proven bool) {
	guilty := (e.blocked || proven) && !e.excused()
	t.flat = countIf(t.flat, guilty && e.flat())
	t.full = countIf(t.full, guilty && e.full())
	t.blocked = countIf(t.blocked, guilty && e.blocked)
}

func countIf(n int, also bool) int {
	if !also {
		return 0
	}
	return n + 1
}

// any says that there is a sign against the server besides time.
func (t *tally) any() bool { return t.flat+t.full+t.blocked > 0 }

// enough says that the signs suffice for a verdict.
func (t *tally) enough() bool {
	return t.flat >= enoughRounds || t.full >= fullFactor*enoughRounds || t.blocked >= blockedFactor*enoughRounds
}
