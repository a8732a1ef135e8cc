package gateway

// sessionList holds the open sessions in the order in which they came: what is done for all of them is done in that order, and
// one that comes or goes costs the same however many there are.
type sessionList struct{ first, last *Session }

func (r *sessionList) add(s *Session) {
	if s.prev = r.last; s.prev == nil {
		r.first = s
	} else {
		s.prev.next = s
	}
	r.last = s
}

// remove takes s out. Its next stays, for those who are just walking by.
func (r *sessionList) remove(s *Session) {
	if s.prev == nil {
		r.first = s.next
	} else {
		s.prev.next = s.next
	}
	if s.next == nil {
		r.last = s.prev
	} else {
		s.next.prev = s.prev
	}
}

// all yields the open sessions; any of them may end on the way.
func (r *sessionList) all(yield func(*Session) bool) {
	for s := r.first; s != nil; s = s.next {
		if !s.ended && !yield(s) {
			return
		}
	}
}
