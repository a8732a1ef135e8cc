package lineloop

import "bytes"

// SavedSource is a [Source] in a form that can be kept as JSON: another image of the same program goes on reading.
type SavedSource struct {
	FD     int    // the descriptor
	Unread []byte // read already: the beginning of a line
	// The ends and the length so far of a line over the limit that has not ended yet. Size 0: there is none.
	Head, Tail []byte
	Size       int64
}

// SavedSink is a [Sink] in a form that can be kept as JSON.
type SavedSink struct {
	FD      int    // the descriptor
	Queue   []byte // refused by the kernel so far
	Written uint64
	Dead    bool // nobody reads any more
	Pending int  // bytes that were to be written
}

// Quiet writes what is still to be written of this callback, and reports whether no posted work waits. Loop goroutine
// only.
func (l *Loop) Quiet() bool {
	l.Flush()
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.posted) == 0
}

// Save returns what is to be known of s. It shares no memory with s.
func (s *Source) Save() SavedSource {
	out := SavedSource{FD: s.fd}
	if s.hold != nil {
		out.Unread = bytes.Clone(s.hold.Bytes[s.r:s.w])
	}
	if o := s.over; o != nil {
		out.Head, out.Tail, out.Size = bytes.Clone(o.head), bytes.Clone(o.tail), o.size
	}
	return out
}

// Resume lets a new source go on where the saved one stood. Before [Loop.Run] only.
func (s *Source) Resume(saved SavedSource) {
	if saved.Size > 0 {
		s.over = &oversize{head: saved.Head, tail: saved.Tail, size: saved.Size}
	}
	n := len(saved.Unread)
	if n == 0 {
		return
	}
	s.hold = s.loop.bigger(withRoom(n))
	s.w = copy(s.hold.Bytes, saved.Unread)
}

// Save returns what is to be known of k. Everything of the running callback must have been written: see [Loop.Quiet].
func (k *Sink) Save() SavedSink {
	out := SavedSink{FD: k.fd, Written: k.written, Dead: k.dead, Pending: k.pending}
	for _, c := range k.queue {
		out.Queue = append(out.Queue, c.data...)
	}
	return out
}

// Resume lets a new sink go on where the saved one stood. Before [Loop.Run] only.
func (k *Sink) Resume(saved SavedSink) {
	k.written, k.dead, k.pending = saved.Written, saved.Dead, saved.Pending
	if len(saved.Queue) > 0 {
		k.queue = []chunk{{data: saved.Queue}}
	}
}
