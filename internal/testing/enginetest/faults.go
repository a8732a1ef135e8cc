package enginetest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/outlive-mcp/outlive/internal/fleet/engine"
)

// Faults is a member of a fleet whose network and process fail: reads are old, writes and requests are lost, answers are lost, what was
// sent arrives late. It can be cut off, and stopped as by SIGSTOP. For tests under synctest; nothing of it outlasts [Faults.Close].
type Faults struct {
	engine.Engine

	ctx    context.Context
	cancel context.CancelFunc
	late   sync.WaitGroup // what is still on its way

	mu      sync.Mutex
	rnd     *rand.Rand
	rate    float64 // of each kind of fault
	cut     chan struct{}
	stopped chan struct{} // closed when the process goes on
	past    map[string][]engine.Entry
}

// NewFaults returns a member of the engine's fleet, with faults that depend on seed. Each kind of fault has this rate.
func NewFaults(e engine.Engine, seed uint64, rate float64) *Faults {
	ctx, cancel := context.WithCancel(context.Background())
	return &Faults{Engine: e, ctx: ctx, cancel: cancel, rnd: rand.New(rand.NewPCG(seed, 1)), rate: rate, past: map[string][]engine.Entry{}}
}

// Close drops what is still on its way.
func (f *Faults) Close() {
	f.Heal()
	f.cancel()
	f.late.Wait()
}

// Cut cuts the member off from all others.
func (f *Faults) Cut() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.cut == nil {
		f.cut = make(chan struct{})
	}
}

// Stop stops the process at its next call of the engine.
func (f *Faults) Stop() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.stopped == nil {
		f.stopped = make(chan struct{})
	}
}

// Heal ends Cut and Stop.
func (f *Faults) Heal() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, c := range []*chan struct{}{&f.cut, &f.stopped} {
		if *c != nil {
			close(*c)
			*c = nil
		}
	}
}

// Calm ends all faults for good.
func (f *Faults) Calm() {
	f.Heal()
	f.mu.Lock()
	defer f.mu.Unlock()
	f.rate = 0
}

// upTo is a time up to d.
func (f *Faults) upTo(d time.Duration) time.Duration {
	f.mu.Lock()
	defer f.mu.Unlock()
	return time.Duration(f.rnd.Int64N(int64(d)))
}

func (f *Faults) happens() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.rnd.Float64() < f.rate
}

// running waits while the process is stopped.
func (f *Faults) running() {
	for {
		f.mu.Lock()
		stopped := f.stopped
		f.mu.Unlock()
		if stopped == nil {
			return
		}
		<-stopped
	}
}

func (f *Faults) isCut() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.cut != nil
}

// errLost is what a member gets that waits for an answer in vain.
func errLost(ctx context.Context, what string) error {
	<-ctx.Done()
	return fmt.Errorf("%s: %w", what, engine.ErrUnknown)
}

// sleep waits, unless ctx or the test ends first.
func (f *Faults) sleep(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-f.ctx.Done():
	case <-time.After(d):
	}
}

// send brings something to the engine and its answer back, or loses one of them, or is late. Every caller has a deadline.
func send[T any](ctx context.Context, f *Faults, what string, do func(ctx context.Context) (T, error)) (answer T, err error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	f.running()
	f.sleep(ctx, f.upTo(100*time.Millisecond))
	switch {
	case f.isCut(), f.happens():
		return answer, errLost(ctx, what)
	case f.happens(): // it arrives, but nobody waits for it any more
		on := f.upTo(time.Minute)
		f.late.Go(func() {
			f.sleep(f.ctx, on)
			_, _ = do(f.ctx)
		})
		return answer, errLost(ctx, what)
	}
	got, err := do(ctx)
	if f.isCut() || f.happens() {
		return answer, errLost(ctx, what)
	}
	f.running()
	return got, err
}

// Get may return an old value.
func (f *Faults) Get(ctx context.Context, key string) (engine.Entry, error) {
	entry, err := send(ctx, f, "get", func(ctx context.Context) (engine.Entry, error) { return f.Engine.Get(ctx, key) })
	old := f.happens()
	f.mu.Lock()
	defer f.mu.Unlock()
	past := f.past[key]
	if old && len(past) > 0 && !errors.Is(err, engine.ErrUnknown) {
		return past[f.rnd.IntN(len(past))], nil
	}
	if err == nil {
		f.past[key] = append(past[max(0, len(past)-5):], entry)
	}
	return entry, err
}

// Put may be lost, or late.
func (f *Faults) Put(ctx context.Context, key string, value []byte) (engine.Revision, error) {
	return send(ctx, f, "write", func(ctx context.Context) (engine.Revision, error) { return f.Engine.Put(ctx, key, value) })
}

// CAS may be lost, or late.
func (f *Faults) CAS(ctx context.Context, key string, value []byte, before engine.Revision) (engine.Revision, error) {
	return send(ctx, f, "write", func(ctx context.Context) (engine.Revision, error) { return f.Engine.CAS(ctx, key, value, before) })
}

// Request may be lost, or late.
func (f *Faults) Request(ctx context.Context, address string, request []byte) ([]byte, error) {
	return send(ctx, f, "ask", func(ctx context.Context) ([]byte, error) { return f.Engine.Request(ctx, address, request) })
}

// Serve loses what comes while the member is cut off.
func (f *Faults) Serve(address string, h engine.Handler) (func(), error) {
	return f.Engine.Serve(address, func(ctx context.Context, asker string, request []byte) []byte {
		f.running()
		if f.isCut() {
			<-ctx.Done()
			return nil
		}
		return h(ctx, asker, request)
	})
}

// Watch tells nothing while the member is cut off or stopped, and everything afterwards.
func (f *Faults) Watch(ctx context.Context, prefixes ...string) (<-chan engine.Change, error) {
	in, err := f.Engine.Watch(ctx, prefixes...)
	if err != nil {
		return nil, err
	}
	out := make(chan engine.Change)
	f.late.Go(func() {
		defer close(out)
		for c := range in {
			f.mu.Lock()
			cut := f.cut
			f.mu.Unlock()
			if cut != nil {
				select {
				case <-cut:
				case <-ctx.Done():
				}
			}
			f.running()
			select {
			case out <- c:
			case <-ctx.Done():
			}
		}
	})
	return out, nil
}
