//go:build !linux

package process

import (
	"sync"
	"time"
)

// askEvery is the polling interval where no event reports the end.
const askEvery = time.Second

// NewExits starts a watcher. The caller closes it.
func NewExits() (*Exits, error) {
	e := &Exits{ended: make(chan struct{}, 1), done: make(chan struct{}), poke: func() {}}
	e.C = e.ended
	quit := make(chan struct{})
	e.close = sync.OnceFunc(func() { close(quit) })
	go func() {
		defer close(e.done)
		told := map[Identity]bool{}
		ticker := time.NewTicker(askEvery)
		defer ticker.Stop()
		for {
			select {
			case <-quit:
				return
			case <-ticker.C:
			}
			now := map[Identity]bool{}
			for _, id := range e.watched() {
				p, err := System{}.Look(id.PID)
				if err == nil && p.Identity == id {
					continue
				}
				if now[id] = true; !told[id] {
					e.tell()
				}
			}
			told = now
		}
	}()
	return e, nil
}
