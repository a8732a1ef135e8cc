//go:build !linux

package process

import "time"

// askEvery is the polling interval where no event reports the end.
const askEvery = time.Second

// watchEnd calls ended when a process has ended. stop ends the goroutine that asks for it.
func watchEnd(id Identity, ended func()) (stop func()) {
	quit, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		ticker := time.NewTicker(askEvery)
		defer ticker.Stop()
		for {
			select {
			case <-quit:
				return
			case <-ticker.C:
			}
			if p, err := (System{}).Look(id.PID); err != nil || p.Identity != id {
				ended()
				return
			}
		}
	}()
	return func() {
		close(quit)
		<-done
	}
}
