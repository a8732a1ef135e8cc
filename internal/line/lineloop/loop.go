package lineloop

import (
	"context"
	"os"
	"sync"
	"time"
)

// Loop waits for descriptors, timers and posted work, and runs every callback on the goroutine that calls [Loop.Run].
type Loop struct {
	// Deadline returns when OnTick is to be called next; the zero time means never. It is called before each wait.
	Deadline func() time.Time
	// OnTick is called when the deadline has passed.
	OnTick func(now time.Time)

	driver

	now     time.Time // when the loop last woke up
	alarm   *time.Timer
	alarmAt time.Time // when the alarm is set for; zero: it has fired
	current *Source   // the source whose lines are being passed on
	dirty   []*Sink   // sinks with an unwritten batch
	stopped bool

	pieces   freeList // of queues: rests of short writes
	resting  freeList // resting buffers
	long     freeList // buffers of long lines
	longSeen bool     // there was a long line since the last call of fade
	fading   *time.Timer
	keepLong time.Duration

	mu     sync.Mutex
	posted []func()
	awake  bool // a wake-up is already on its way
}

// NewLoop returns a loop without descriptors.
func NewLoop() (*Loop, error) {
	l := &Loop{
		pieces: freeList{most: piecesMost}, resting: freeList{most: restingMost}, long: freeList{most: longMost}, keepLong: keepLong,
	}
	l.long.moved = l.longMoved
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

// Post runs fn on the loop's goroutine, soon. It may be called from any goroutine, also before and after Run; after
// the loop has ended fn is never run.
func (l *Loop) Post(fn func()) {
	l.mu.Lock()
	l.posted = append(l.posted, fn)
	if !l.awake {
		l.awake = true
		l.wake()
	}
	l.mu.Unlock()
}

// Ask returns what fn returns on the loop's goroutine. It returns gone once over is closed, and the context's error once that has
// ended. Any goroutine but the loop's.
func Ask[T any](ctx context.Context, l *Loop, over <-chan struct{}, gone error, fn func() T) (T, error) {
	return AskLater(ctx, l, over, gone, func(answer func(T)) { answer(fn()) })
}

// AskLater is Ask of what may be answered later: fn gets the function that does, once.
func AskLater[T any](ctx context.Context, l *Loop, over <-chan struct{}, gone error, fn func(answer func(T))) (T, error) {
	got := make(chan T, 1)
	l.Post(func() { fn(func(one T) { got <- one }) })
	var none T
	select {
	case one := <-got:
		return one, nil
	case <-over:
		return none, gone
	case <-ctx.Done():
		return none, ctx.Err()
	}
}

// Quiet writes the output of this callback, and reports whether no posted work waits. Loop goroutine only.
func (l *Loop) Quiet() bool {
	l.Flush()
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.posted) == 0
}

// Stop ends Run after the callback that calls it. Loop goroutine only.
func (l *Loop) Stop() { l.stopped = true }

// Now is when the loop last woke up. It is precise enough for every deadline, and costs nothing.
func (l *Loop) Now() time.Time { return l.now }

// Keep makes line outlast its callback, and returns the buffer that it is in. That is the buffer that it was read
// into, or a copy if that buffer is much larger than the line, or line is not in it. The caller releases it.
func (l *Loop) Keep(line []byte) (*Hold, []byte) {
	if s := l.current; s != nil && s.hold != nil && len(line) > len(s.hold.Bytes)/growth && within(line, s.hold.Bytes) {
		return s.hold.Retain(), line
	}
	h := HoldCopy(line)
	return h, h.Bytes
}

// Run serves until Stop and then closes every descriptor it owns.
func (l *Loop) Run() {
	l.now = time.Now()
	l.alarm = time.AfterFunc(time.Hour, func() { l.Post(l.rang) })
	defer l.alarm.Stop()
	l.runPosted()
	for !l.stopped {
		l.doWhatIsDue()
		if !l.stopped && l.wait() {
			l.runPosted()
		}
	}
	l.closeDriver()
	if l.fading != nil {
		l.fading.Stop()
	}
}

// doWhatIsDue calls OnTick if it is due, and sets the alarm if the next deadline has changed. A sleep has no timeout
// of its own, because computing the next deadline for every message would cost more than handling the message.
func (l *Loop) doWhatIsDue() {
	for l.Deadline != nil && !l.stopped {
		at := l.Deadline()
		if at.IsZero() {
			return // an alarm that still fires has no effect
		}
		if l.now.Before(at) {
			if !at.Equal(l.alarmAt) {
				l.alarmAt = at
				l.alarm.Reset(at.Sub(l.now))
			}
			return
		}
		l.alarmAt = time.Time{}
		l.OnTick(l.now)
		l.Flush()
	}
}

// rang records that the alarm is no longer set. It may have come with other posted work, to a loop that woke up
// before the alarm's time: then the deadline is still in the future, and the alarm has to be set again.
func (l *Loop) rang() { l.alarmAt = time.Time{} }

func (l *Loop) runPosted() {
	l.mu.Lock()
	work := l.posted
	l.posted, l.awake = nil, false
	l.mu.Unlock()
	for _, fn := range work {
		if l.stopped {
			return
		}
		fn()
		l.Flush()
	}
}

// Flush writes what was put into the sinks. The loop does so after each callback; a callback that takes long calls it
// before. Loop goroutine only.
func (l *Loop) Flush() {
	for len(l.dirty) > 0 {
		k := l.dirty[len(l.dirty)-1]
		l.dirty = l.dirty[:len(l.dirty)-1]
		k.flush()
	}
}
