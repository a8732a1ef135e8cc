package lineloop

import (
	"runtime/debug"
	"time"
)

// freeList keeps a few buffers for reuse, so that a busy loop makes no garbage.
type freeList struct {
	free  []*Hold
	most  int    // buffers kept
	moved func() // if set, called whenever a buffer is taken or put back
}

const (
	restingMost = 3 // resting buffers kept
	longMost    = 2 // buffers of long lines kept: a request and its answer
)

// keepLong is how long the buffers of long lines are kept unused: at least that long, and less than twice that.
const keepLong = 10 * time.Second

// take returns a buffer of at least size bytes, the smallest that is there, with one owner.
func (s *freeList) take(size int) *Hold {
	best := -1
	for i, h := range s.free {
		if len(h.Bytes) >= size && (best < 0 || len(h.Bytes) < len(s.free[best].Bytes)) {
			best = i
		}
	}
	s.tell()
	if best < 0 {
		return &Hold{Bytes: make([]byte, size), owners: 1, home: s}
	}
	h, last := s.free[best], len(s.free)-1
	s.free[best], s.free[last] = s.free[last], nil
	s.free = s.free[:last]
	h.owners = 1
	return h
}

// put keeps h, or the largest ones if there are too many.
func (s *freeList) put(h *Hold) {
	s.tell()
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

// longMoved notes that long lines come, and has it looked later whether they still do.
func (l *Loop) longMoved() {
	l.longSeen = true
	if l.fading == nil {
		l.fading = time.AfterFunc(l.keepLong, func() { l.Post(l.fade) })
	}
}

// fade gives the buffers of long lines back to the system when none has come since it was called last.
func (l *Loop) fade() {
	if l.longSeen {
		l.longSeen = false
		l.fading.Reset(l.keepLong)
		return
	}
	l.fading, l.long.free = nil, nil
	go debug.FreeOSMemory() // a collection takes milliseconds
}
