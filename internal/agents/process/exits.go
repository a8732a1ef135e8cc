package process

import "sync"

// Exits reports the end of watched processes at once, without polling them.
type Exits struct {
	// C has an element when a process has ended since the last receive.
	C <-chan struct{}

	ended chan struct{}
	mu    sync.Mutex
	ids   []Identity
	poke  func() // the watcher looks at ids anew
	close func()
	done  chan struct{}
}

// Watch sets the processes to watch.
func (e *Exits) Watch(ids []Identity) {
	e.mu.Lock()
	e.ids = append(e.ids[:0], ids...)
	e.mu.Unlock()
	e.poke()
}

// Close ends the watching.
func (e *Exits) Close() {
	e.close()
	<-e.done
}

func (e *Exits) watched() []Identity {
	e.mu.Lock()
	defer e.mu.Unlock()
	return append([]Identity(nil), e.ids...)
}

func (e *Exits) tell() {
	select {
	case e.ended <- struct{}{}:
	default:
	}
}
