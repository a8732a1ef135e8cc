package wire

import (
	"os"
	"sync"
	"time"
)

// Loop waits for descriptors, timers and posted work, and runs every callback on the goroutine that calls [Loop.Run].
type Loop struct {
	// Deadline returns when OnTick wants to be called next; the zero time means never. Asked before each wait.
	Deadline func() time.Time
	// OnTick is called when the deadline has passed.
	OnTick func(now time.Time)

	driver

	current *Source // whose batch is being dispatched
	dirty   []*Sink // sinks with an unwritten batch
	stopped bool

	mu     sync.Mutex
	posted []func()
	awake  bool // a wake-up is already on its way
}

// NewLoop returns a loop without descriptors.
func NewLoop() (*Loop, error) {
	l := &Loop{}
	if err := l.initDriver(); err != nil {
		return nil, err
	}
	return l, nil
}

// AddSource starts reading lines from f. The loop owns f from here on.
func (l *Loop) AddSource(f *os.File, opts SourceOptions) *Source {
	s := &Source{loop: l, opts: opts, file: f, fd: -1}
	l.watchSource(s)
	return s
}

// AddSink makes f a sink. The loop owns f from here on.
func (l *Loop) AddSink(f *os.File, opts SinkOptions) *Sink {
	k := &Sink{loop: l, opts: opts, file: f, fd: -1}
	l.watchSink(k)
	return k
}

// Post runs fn on the loop's goroutine, soon. It may be called from any goroutine, also before and after Run;
// what is posted after the loop has ended is never run.
func (l *Loop) Post(fn func()) {
	l.mu.Lock()
	l.posted = append(l.posted, fn)
	if !l.awake {
		l.awake = true
		l.wake()
	}
	l.mu.Unlock()
}

// Stop ends Run after the callback that calls it. Loop goroutine only.
func (l *Loop) Stop() { l.stopped = true }

// Run serves until Stop and then closes every descriptor it owns.
func (l *Loop) Run() {
	for !l.stopped {
		l.wait(l.timeout())
		l.runPosted()
		if l.Deadline != nil && l.OnTick != nil {
			if at := l.Deadline(); !at.IsZero() {
				if now := time.Now(); !now.Before(at) {
					l.OnTick(now)
				}
			}
		}
		l.flush()
	}
	l.closeDriver()
}

// timeout returns how long to wait at most; negative means for ever.
func (l *Loop) timeout() time.Duration {
	if l.Deadline == nil {
		return -1
	}
	at := l.Deadline()
	if at.IsZero() {
		return -1
	}
	return max(0, time.Until(at))
}

func (l *Loop) runPosted() {
	l.mu.Lock()
	if len(l.posted) == 0 {
		l.mu.Unlock()
		return
	}
	work := l.posted
	l.posted, l.awake = nil, false
	l.mu.Unlock()
	for _, fn := range work {
		if l.stopped {
			return
		}
		fn()
		l.flush()
	}
}

// flush writes what the last callback put into the sinks.
func (l *Loop) flush() {
	for len(l.dirty) > 0 {
		k := l.dirty[len(l.dirty)-1]
		l.dirty = l.dirty[:len(l.dirty)-1]
		k.flush()
	}
}
