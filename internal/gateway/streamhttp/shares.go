package streamhttp

import (
	"fmt"
	"io"
	"sync"
)

// shares divides what there is a limited number of between the subjects of tokens. Whoever is not alone may have half of what
// the others leave, so that there is always some left for one more.
type shares struct {
	most int64

	mu    sync.Mutex // leaf
	total int64
	by    map[string]int64
}

func newShares(most int64) *shares { return &shares{most: most, by: make(map[string]int64)} }

// take takes n for a subject, if that is within its share. alone: there can be no other subject.
func (s *shares) take(subject string, n int64, alone bool) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	own := s.by[subject]
	room := s.most - (s.total - own)
	if !alone {
		room = (room + 1) / 2
	}
	if own+n > room {
		return false
	}
	s.by[subject] = own + n
	s.total += n
	return true
}

// give takes n back.
func (s *shares) give(subject string, n int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.total -= n
	if s.by[subject] -= n; s.by[subject] == 0 {
		delete(s.by, subject)
	}
}

// alone reports whether there can be no other subject than this one: no token is needed, or there is only one.
func (f *Front) alone(subject string) bool {
	return subject == "" || f.opts.OAuth == nil && len(f.guard.rights.Load().tokens) == 1
}

// load is the bytes of a request under way: from when its body is read until it is answered or has been given up.
type load struct {
	of      *shares
	subject string
	alone   bool
	bytes   int64
	kept    bool // by the stream of its answer
}

// add adds n bytes, if that is within the share.
func (l *load) add(n int64) bool {
	if !l.of.take(l.subject, n, l.alone) {
		return false
	}
	l.bytes += n
	return true
}

// end gives the bytes back.
func (l *load) end() {
	l.of.give(l.subject, l.bytes)
	l.bytes = 0
}

// left is end for a request that no stream answers.
func (l *load) left() {
	if !l.kept {
		l.end()
	}
}

// metered reads a body of unknown length.
type metered struct {
	from io.Reader
	load *load
}

func (m metered) Read(p []byte) (int, error) {
	n, err := m.from.Read(p)
	if !m.load.add(int64(n)) {
		return 0, errBusy
	}
	return n, err
}

// noRoom says why there is no room for a request, and what to do.
func (f *Front) noRoom(subject string) string {
	whose := "the requests"
	if !f.alone(subject) {
		whose = "this token's share of the requests"
	}
	return fmt.Sprintf("%s under way are too large together (%d bytes for all): wait for answers, or end sessions whose requests are never answered", whose, f.underWay.most)
}

// noPlace says why there is no room for another session, and what to do.
func (f *Front) noPlace(subject string) string {
	if f.alone(subject) {
		return fmt.Sprintf("no room for another session: there may be %d (limits.sessions); end some by DELETE, or try again when unused ones have ended", f.places.most)
	}
	return fmt.Sprintf("no room for another session: one token may have half of those of %d that the others leave (limits.sessions); end some by DELETE, or try again when unused ones have ended", f.places.most)
}
