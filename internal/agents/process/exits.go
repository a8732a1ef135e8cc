package process

import (
	"slices"
	"sync"
)

// Exits reports the end of watched processes: at once where the system tells of it, else within a second.
type Exits struct {
	// C has an element when a process has ended since the last receive.
	C <-chan struct{}

	ended   chan struct{}
	mu      sync.Mutex
	watched map[Identity]func() // what ends the watch of each
	closed  bool
}

// NewExits watches nothing yet. The caller closes it.
func NewExits() *Exits {
	ended := make(chan struct{}, 1)
	return &Exits{C: ended, ended: ended, watched: map[Identity]func(){}}
}

// Watch sets the processes to watch. The end of each is reported once; nothing is watched after [Exits.Close].
func (e *Exits) Watch(ids []Identity) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return
	}
	for id, stop := range e.watched {
		if !slices.Contains(ids, id) {
			stop()
			delete(e.watched, id)
		}
	}
	for _, id := range ids {
		if e.watched[id] == nil {
			e.watched[id] = watchEnd(id, e.tell)
		}
	}
}

// Close ends the watching.
func (e *Exits) Close() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.closed = true
	for _, stop := range e.watched {
		stop()
	}
	clear(e.watched)
}

func (e *Exits) tell() {
	select {
	case e.ended <- struct{}{}:
	default:
	}
}
