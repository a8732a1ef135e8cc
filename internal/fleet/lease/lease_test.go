package lease

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/outlive-mcp/outlive/internal/fleet/engine"
	"github.com/outlive-mcp/outlive/internal/testing/enginemem"
	"github.com/outlive-mcp/outlive/internal/testing/enginetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// acquire wants the lease within a time.
func acquire(t *testing.T, from Registry, owner string, within time.Duration) *Held {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	timer := time.AfterFunc(within, cancel)
	h, err := Acquire(ctx, from, "judge", owner, Options{})
	if err != nil || !timer.Stop() {
		t.Fatalf("%s has no lease after %s: %v", owner, within, err)
	}
	t.Cleanup(cancel)
	return h
}

func epoch(t *testing.T, h *Held) uint64 {
	t.Helper()
	term, err := h.Term()
	if err != nil {
		t.Fatal(err)
	}
	return term.Epoch
}

// A lease is held for as long as its holder renews it, whoever waits, and goes to another when it is released.
func TestHeldAndReleased(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := enginemem.New()
		first := acquire(t, e, "one", time.Second)
		if n := epoch(t, first); n != 1 {
			t.Errorf("the first epoch is %d", n)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
		defer cancel()
		if _, err := Acquire(ctx, e, "judge", "two", Options{}); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("the second one gets it beside the first: %v", err)
		}
		if n := epoch(t, first); n != 1 {
			t.Errorf("its renewals made it epoch %d", n)
		}
		if err := first.Release(t.Context()); err != nil {
			t.Error(err)
		}
		if _, err := first.Term(); !errors.Is(err, ErrReleased) || first.Context().Err() == nil {
			t.Errorf("after its release: %v", err)
		}
		first.Raise(7) // after its release that has no effect
		second := acquire(t, e, "two", time.Second)
		time.Sleep(time.Minute)
		if n := epoch(t, second); n != 2 {
			t.Errorf("the next holder has epoch %d", n)
		}
	})
}

// The next holder comes only after the last one has given up by itself.
func TestCutOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := enginemem.New()
		network := enginetest.NewFaults(e, 1, 0)
		defer network.Close()
		first := acquire(t, network, "one", time.Second)
		time.Sleep(5*time.Second + time.Minute) // half-way between two renewals
		network.Cut()
		begin := time.Now()
		var gaveUp time.Duration
		var told sync.WaitGroup
		told.Go(func() {
			<-first.Context().Done()
			gaveUp = time.Since(begin)
		})
		second := acquire(t, e, "two", 40*time.Second)
		took := time.Since(begin)
		told.Wait()
		if gaveUp > 27*time.Second || gaveUp < 15*time.Second || took < gaveUp+3*time.Second {
			t.Errorf("the first gave up after %s, the second had it after %s", gaveUp, took)
		}
		if n := epoch(t, second); n != 2 {
			t.Errorf("the second has epoch %d", n)
		}
		if _, err := first.Term(); !errors.Is(err, ErrLost) {
			t.Errorf("the first says %v", err)
		}
		network.Heal()
		first.Raise(9)
		time.Sleep(time.Minute)
		if _, err := first.Term(); !errors.Is(err, ErrLost) || epoch(t, second) != 2 {
			t.Errorf("it can be raised: %v", err)
		}
	})
}

// A registry that does not answer for a while (a new leader is elected) costs no lease.
func TestShortCut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := enginetest.NewFaults(enginemem.New(), 1, 0)
		defer network.Close()
		h := acquire(t, network, "one", time.Second)
		for range 10 {
			network.Cut()
			time.Sleep(12 * time.Second)
			network.Heal()
			time.Sleep(15 * time.Second)
		}
		if n := epoch(t, h); n != 1 {
			t.Errorf("epoch %d", n)
		}
	})
}

// A registry that has lost everything: the holder writes its lease again, with its epoch. If another was faster, that one's epoch is
// 1, and it can be raised.
func TestLostContent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := enginemem.New()
		first := acquire(t, e, "one", time.Second)
		raise := func(h *Held, floor uint64) {
			h.Raise(floor)
			time.Sleep(11 * time.Second) // its next renewal
		}
		if raise(first, 41); epoch(t, first) != 42 {
			t.Fatalf("raised to %d", epoch(t, first))
		}
		lose := func() {
			if err := e.Delete(t.Context(), Key("judge")); err != nil {
				t.Fatal(err)
			}
		}
		lose()
		time.Sleep(12 * time.Second)
		if n := epoch(t, first); n != 42 {
			t.Errorf("epoch %d after the loss", n)
		}
		lose()
		second := acquire(t, e, "two", time.Second)
		if n := epoch(t, second); n != 1 {
			t.Errorf("the second has epoch %d", n)
		}
		time.Sleep(30 * time.Second)
		if _, err := first.Term(); !errors.Is(err, ErrLost) {
			t.Errorf("the first says %v", err)
		}
		if raise(second, 42); epoch(t, second) != 43 {
			t.Errorf("raised to %d", epoch(t, second))
		}
		if raise(second, 5); epoch(t, second) != 43 {
			t.Errorf("the epoch falls to %d", epoch(t, second))
		}
	})
}

// A value that is no lease is replaced when nobody has changed it for a while.
func TestUnreadable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := enginemem.New()
		if _, err := e.Put(t.Context(), Key("judge"), []byte("{")); err != nil {
			t.Fatal(err)
		}
		begin := time.Now()
		acquire(t, e, "one", time.Minute)
		if took := time.Since(begin); took < 30*time.Second {
			t.Errorf("it took %s", took)
		}
	})
}

// Who goes on with the time of a holder that has not ended after all, such as a copy of a virtual machine does, takes the lease from it.
func TestHolderThatHasNotEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, opts := enginemem.New(), Options{}
		first, err := Acquire(t.Context(), e, "x", "a", opts)
		if err != nil {
			t.Fatal(err)
		}
		was, _ := first.Term()
		opts.Holder = was.Holder
		begun := time.Now()
		second, err := Acquire(t.Context(), e, "x", "a", opts)
		if err != nil || time.Since(begun) > 0 {
			t.Fatalf("%v after %v", err, time.Since(begun))
		}
		<-first.Context().Done()
		is, err := second.Term()
		if err != nil || is.Epoch != was.Epoch+1 || is.Holder == was.Holder || time.Since(begun) > 10*time.Second {
			t.Errorf("after %v: %+v %v, before it %+v", time.Since(begun), is, err, was)
		}
		_ = second.Release(t.Context())
	})
}

// Whatever the network does: no two have the lease at once, the epoch never falls, each epoch has one holder, and somebody gets the
// lease once the network works.
func TestOneHolder(t *testing.T) {
	had := 0
	for seed := range uint64(20) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { had += oneHolder(t, seed) })
		})
	}
	if had < 60 {
		t.Errorf("only %d holders: the test shows nothing", had)
	}
}

// oneHolder returns how many holders there were.
func oneHolder(t *testing.T, seed uint64) (had int) {
	e := enginemem.New()
	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	var mu sync.Mutex
	holders := map[string]*Held{} // by member: its last one
	var networks []*enginetest.Faults
	for i := range 3 {
		name := fmt.Sprint("member", i)
		network := enginetest.NewFaults(e, seed*10+uint64(i), 0.05)
		networks = append(networks, network)
		all.Go(func() {
			for ctx.Err() == nil {
				h, err := Acquire(ctx, network, "judge", name, Options{})
				if err != nil {
					return
				}
				mu.Lock()
				had++
				holders[name] = h
				n := had
				mu.Unlock()
				if n%3 == 0 {
					h.Raise(uint64(n)) // it may be lost meanwhile
				}
				<-h.Context().Done()
			}
		})
	}
	var last record
	watch := func() {
		mu.Lock()
		defer mu.Unlock()
		var now []string
		for _, h := range holders {
			if term, err := h.Term(); err == nil {
				now = append(now, term.Holder)
			}
		}
		if len(now) > 1 {
			t.Errorf("%s have it at once", strings.Join(now, " and "))
		}
		r, _, err := read(ctx, e, Key("judge"))
		if err != nil || r.Epoch < last.Epoch || r.Epoch == last.Epoch && last.Holder != "" && r.Holder != last.Holder {
			t.Errorf("%+v follows %+v: %v", r, last, err)
		}
		last = r
	}
	random := rand.New(rand.NewPCG(seed, 2))
	for range 1000 {
		time.Sleep(time.Second)
		watch()
		if random.Float64() < 0.02 {
			n := networks[random.IntN(3)]
			if random.IntN(2) == 0 {
				n.Cut()
			} else {
				n.Stop()
			}
			time.AfterFunc(time.Duration(random.IntN(60))*time.Second, n.Heal)
		}
	}
	for _, n := range networks {
		n.Calm()
	}
	time.Sleep(2 * time.Minute)
	watch()
	if last.Holder == "" {
		t.Error("nobody has it in the end")
	}
	cancel()
	for _, n := range networks {
		n.Close()
	}
	all.Wait()
	return had
}

// lateAnswers is a registry that does what it is asked at once and says so late, whatever the asker's patience.
type lateAnswers struct {
	Registry
	from time.Time // from when on
	by   time.Duration
}

func (l *lateAnswers) CAS(ctx context.Context, key string, value []byte, before engine.Revision) (engine.Revision, error) {
	revision, err := l.Registry.CAS(ctx, key, value, before)
	if !time.Now().Before(l.from) {
		time.Sleep(l.by)
	}
	return revision, err
}

// The holder's time begins when a renewal was sent: others may have seen it from then on.
func TestLateAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := acquire(t, &lateAnswers{enginemem.New(), time.Now().Add(5 * time.Second), 15 * time.Second}, "one", time.Second)
		time.Sleep(36 * time.Second)
		if _, err := h.Term(); err != nil {
			t.Errorf("after 36 s, with an answer after 25 s to what was sent after 10 s: %v", err)
		}
		time.Sleep(2 * time.Second)
		if _, err := h.Term(); !errors.Is(err, ErrLost) {
			t.Errorf("after 38 s, 28 s after the last acknowledged renewal was sent: %v", err)
		}
		time.Sleep(time.Minute) // the last answer
	})
}

// outlast waits for the end of somebody's time with the lease, and returns how long that has taken.
func outlast(t *testing.T, from Registry, of Term) time.Duration {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	begun := time.Now()
	if err := Outlast(ctx, from, of, Options{}); err != nil {
		t.Fatal(err)
	}
	return time.Since(begun)
}

// A time with a lease is over when it was released, and not before; and so it is if another time has begun since then.
func TestOutlast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := enginemem.New()
		one := acquire(t, e, "one", time.Second)
		of, err := one.Term()
		if err != nil {
			t.Fatal(err)
		}
		time.AfterFunc(3*time.Minute, func() { _ = one.Release(t.Context()) })
		if took := outlast(t, e, of); took < 3*time.Minute || took > 3*time.Minute+5*time.Second {
			t.Errorf("it is over after %s", took)
		}
		two := acquire(t, e, "two", time.Second)
		if took := outlast(t, e, of); took > 0 {
			t.Errorf("it is over after %s, when another one has the lease", took)
		}
		if _, err := two.Term(); err != nil {
			t.Errorf("who has it now: %v", err)
		}
	})
}

// Nobody waits for ever for a holder that says nothing any more. It has given up before, and finds out that its time was ended.
func TestOutlastASilentHolder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := enginemem.New()
		network := enginetest.NewFaults(e, 1, 0)
		defer network.Close()
		one := acquire(t, network, "one", time.Second)
		of, err := one.Term()
		if err != nil {
			t.Fatal(err)
		}
		network.Cut()
		if took := outlast(t, e, of); took < 30*time.Second || took > 40*time.Second {
			t.Errorf("it is over after %s", took)
		}
		if _, err := one.Term(); !errors.Is(err, ErrLost) {
			t.Errorf("the holder says %v", err)
		}
		begin := time.Now()
		acquire(t, e, "two", time.Second)
		if took := time.Since(begin); took > time.Second {
			t.Errorf("the next one waits for %s", took)
		}
	})
}

// A lease that the registry has lost is not over: its holder writes it again. If that has ended, too, it is over after a while. A lower epoch
// is an old value for as long.
func TestOutlastWhatIsLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := enginemem.New()
		one := acquire(t, e, "one", time.Second)
		of, err := one.Term()
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
		defer cancel()
		time.AfterFunc(time.Minute, func() { _ = e.Delete(t.Context(), Key("judge")) })
		if err := Outlast(ctx, e, of, Options{}); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("of a holder that lives: %v", err)
		}
		if err := one.Release(t.Context()); err != nil {
			t.Error(err)
		}
		if err := e.Delete(t.Context(), Key("judge")); err != nil {
			t.Error(err)
		}
		if took := outlast(t, e, of); took < 30*time.Second || took > 40*time.Second {
			t.Errorf("of one that was lost it is over after %s", took)
		}
		if took := outlast(t, e, Term{Lease: "judge", Holder: "three/x", Epoch: 7}); took < 30*time.Second || took > 40*time.Second {
			t.Errorf("of one with a later epoch it is over after %s", took)
		}
	})
}

// Without a holder the time of whoever has the lease is meant.
func TestOutlastAnybody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := enginemem.New()
		one := acquire(t, e, "one", time.Second)
		time.AfterFunc(time.Minute, func() { _ = one.Release(t.Context()) })
		if took := outlast(t, e, Term{Lease: "judge"}); took < time.Minute || took > time.Minute+5*time.Second {
			t.Errorf("it is over after %s", took)
		}
	})
}

// A holder's time goes on while its machine sleeps, if its clock does.
func TestClockThatDoesNotSleep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		var slept atomic.Int64
		h, err := Acquire(t.Context(), enginemem.New(), "judge", "one", Options{Up: func() time.Duration { return time.Since(begun) + time.Duration(slept.Load()) }})
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(11 * time.Second)
		if _, err := h.Term(); err != nil {
			t.Errorf("awake: %v", err)
		}
		slept.Store(int64(time.Hour))
		if _, err := h.Term(); !errors.Is(err, ErrUnanswered) {
			t.Errorf("after an hour's sleep: %v", err)
		}
	})
}
