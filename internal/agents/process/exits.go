package process

import "sync"

// Exits tells at once when one of many processes has ended, so that nobody has to ask them all again and again.
type Exits struct {
	// C has an element when somebody has ended since it was last received from.
	C <-chan struct{}

	ended chan struct{}
	mu    sync.Mutex
	ids   []Identity
	poke  func() // the watcher looks at ids anew
	close func()
	done  chan struct{}
}

// Watch says whose ends are told of from now on.
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
