//go:build !outlive_stream

package wire

import (
	"bytes"
	"time"
)

// goAhead reads from the only descriptor that is ready and writes the line at once to where it may go. It reports
// whether the loop may go back to sleep: the line is on its way, and nothing else is to be done. Whatever wakes the
// loop next, at the latest the end of its lingering sleep ([dozeFor]), makes it catch up.
func (l *Loop) goAhead() bool {
	s, at := l.onlyReady()
	if s == nil || s.aheadTo == nil || !s.canLead() || !s.aheadTo.free() {
		return false
	}
	if len(l.leading) == 0 && l.rhythm.patience() > 0 {
		return false // traffic is dense, everything is in the cache
	}
	room := s.room()
	n, err := sysRead(s.fd, room, true)
	if err != nil || n <= 0 {
		return false // an end or an error is met again by whoever reads next
	}
	s.unseen = n
	l.leading = append(l.leading, s)
	l.fds[at].Revents = 0
	line := room[:n]
	if n > aheadLimit || bytes.IndexByte(line, '\n') != n-1 || !s.mayGo(line[:n-1]) {
		return false
	}
	k := s.aheadTo
	took, err := sysWrite(k.fd, line, true)
	if err != nil {
		return false // met again by the flush
	}
	k.ahead, k.aheadBy = line, took
	k.written += uint64(took)
	l.learn(at)
	return took == n
}

// learn keeps the rhythm of a descriptor that was served on the way.
func (l *Loop) learn(at int) {
	now := time.Now()
	l.rhythm.woke(now.Sub(l.now), true)
	l.rhythm.served, l.now = at, now
}

// onlyReady returns the source that is ready, nil if it is something else, and its place.
func (l *Loop) onlyReady() (*Source, int) {
	for i := 1; i < len(l.fds); i++ {
		if l.fds[i].Revents != 0 {
			return l.owners[i].source, i
		}
	}
	return nil, 0
}

// canLead reports whether the next line of s would begin at the beginning of what is read.
func (s *Source) canLead() bool {
	return s.private && s.unseen == 0 && s.r == s.w && s.over == nil
}

// free reports whether a line written to k now stands behind everything before it.
func (k *Sink) free() bool {
	return k.private && k.ahead == nil && !k.dead && !k.closing && !k.dirty && len(k.queue) == 0
}
