package gateway

// sessionList holds the open sessions in order of arrival, for a deterministic order and constant costs.
type sessionList struct{ first, last *Session }

func (r *sessionList) add(s *Session) {
	if s.prev = r.last; s.prev == nil {
		r.first = s
	} else {
		s.prev.next = s
	}
	r.last = s
}

// remove removes s. Its next pointer stays, for iterations in progress.
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

// all yields the open sessions; any of them may end meanwhile.
func (r *sessionList) all(yield func(*Session) bool) {
	for s := r.first; s != nil; s = s.next {
		if !s.ended && !yield(s) {
			return
		}
	}
}
