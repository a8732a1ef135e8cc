package lineloop

import (
	"runtime/debug"
	"time"
)

// freeList keeps a few buffers for reuse, so that a busy loop does not allocate.
type freeList struct {
	free  []*Hold
	most  int    // maximum number of buffers kept
	out   int    // number of buffers that are taken
	moved func() // called whenever a buffer is taken or put back; may be nil
}

const (
	piecesMost  = 8 // number of buffers of queues kept
	restingMost = 3 // number of resting buffers kept
	longMost    = 2 // number of buffers of long lines kept: a request and its answer
)

// keepLong is the minimum time for which unused buffers of long lines are kept; the maximum is twice that.
const keepLong = 10 * time.Second

// take returns a buffer of at least size bytes, the smallest available, with one owner.
func (s *freeList) take(size int) *Hold {
	best := -1
	for i, h := range s.free {
		if len(h.Bytes) >= size && (best < 0 || len(h.Bytes) < len(s.free[best].Bytes)) {
			best = i
		}
	}
	s.tell()
	s.out++
	if best < 0 {
		return &Hold{Bytes: make([]byte, size), owners: 1, home: s}
	}
	h, last := s.free[best], len(s.free)-1
	s.free[best], s.free[last] = s.free[last], nil
	s.free = s.free[:last]
	h.owners = 1
	return h
}

// put keeps h. If there are too many buffers, the largest ones are kept.
func (s *freeList) put(h *Hold) {
	s.tell()
	s.out--
	if len(s.free) < s.most {
		s.free = append(s.free, h)
		return
	}
	for i, other := range s.free {
		if len(other.Bytes) < len(h.Bytes) {
			s.free[i], h = h, other
		}
	}
}

func (s *freeList) tell() {
	if s.moved != nil {
		s.moved()
	}
}

// bigger returns a buffer of at least size bytes.
func (l *Loop) bigger(size int) *Hold {
	if size <= readBuffer {
		return l.resting.take(readBuffer)
	}
	return l.long.take(size)
}

// piece returns a buffer of at least size bytes for a queue.
func (l *Loop) piece(size int) *Hold {
	if size <= copyLimit {
		return l.pieces.take(copyLimit)
	}
	return &Hold{Bytes: make([]byte, size), owners: 1}
}

// longMoved records that there are long lines, and schedules fade.
func (l *Loop) longMoved() {
	l.longSeen = true
	if l.fading == nil {
		l.fading = time.AfterFunc(l.keepLong, func() { l.Post(l.fade) })
	}
}

// fade returns the buffers of long lines to the system if there was no long line since its last call.
func (l *Loop) fade() {
	if l.longSeen {
		l.longSeen = false
		l.fading.Reset(l.keepLong)
		return
	}
	l.fading, l.long.free = nil, nil
	go debug.FreeOSMemory()
}
