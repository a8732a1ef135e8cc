package sessions

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/outlive-mcp/outlive/internal/fleet/engine"
	"github.com/outlive-mcp/outlive/internal/fleet/lease"
	"github.com/outlive-mcp/outlive/internal/testing/enginemem"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// line is a core's way to the registry.
type line struct {
	Registry
	mu    sync.Mutex
	fails error         // of everything
	late  time.Duration // how much later a write arrives, whose sender has heard nothing meanwhile
}

func (l *line) set(fails error, late time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.fails, l.late = fails, late
}

func (l *line) now() (late time.Duration, fails error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.late, l.fails
}

func (l *line) Get(ctx context.Context, key string) (engine.Entry, error) {
	if _, err := l.now(); err != nil {
		return engine.Entry{}, err
	}
	return l.Registry.Get(ctx, key)
}

func (l *line) CAS(ctx context.Context, key string, value []byte, before engine.Revision) (engine.Revision, error) {
	late, err := l.now()
	if late > 0 {
		value = bytes.Clone(value)
		time.AfterFunc(late, func() { _, _ = l.Registry.CAS(context.Background(), key, value, before) })
		err = engine.ErrUnknown
	}
	if err != nil {
		return 0, err
	}
	return l.Registry.CAS(ctx, key, value, before)
}

// Delete implements Registry.
func (l *line) Delete(ctx context.Context, key string) error {
	if _, err := l.now(); err != nil {
		return err
	}
	return l.Registry.Delete(ctx, key)
}

// full is a registry that has no room for records, and has for leases.
type full struct {
	Registry
	is atomic.Bool
}

func (f *full) CAS(ctx context.Context, key string, value []byte, before engine.Revision) (engine.Revision, error) {
	if f.is.Load() && strings.HasPrefix(key, Table+".") {
		return 0, engine.ErrUnknown
	}
	return f.Registry.CAS(ctx, key, value, before)
}

// A registry that has no room does not hold up a core for ever, and one session's record no other's for long.
func TestNoRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := &full{Registry: enginemem.New()}
		c := begin(t, e, "a")
		c.save(t, "one", `1`)
		e.is.Store(true)
		begun := time.Now()
		if err := c.Save("one", []byte(`2`), time.Now().Add(time.Hour)); !errors.Is(err, engine.ErrUnknown) || time.Since(begun) > writeLimit+answerLimit {
			t.Errorf("without room: %v after %v", err, time.Since(begun))
		}
		begun = time.Now()
		if err := c.Save("two", []byte(`2`), time.Now().Add(time.Hour)); err == nil || time.Since(begun) > answerLimit {
			t.Errorf("once more: %v after %v", err, time.Since(begun))
		}
		e.is.Store(false)
		c.save(t, "one", `2`)
		c.wants(t, "one", `2`)
		if err := c.Save("large", []byte(`"`+strings.Repeat("x", engine.MaxValue)+`"`), time.Now().Add(time.Hour)); !errors.Is(err, engine.ErrTooLarge) {
			t.Errorf("too large: %v", err)
		}
		_ = c.held.Release(t.Context())
	})
}

// A session that was ended while the registry did not answer stays ended.
func TestDropIsTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := begin(t, enginemem.New(), "a")
		c.save(t, "one", `1`)
		c.line.set(engine.ErrUnknown, 0)
		time.AfterFunc(9*time.Second, func() { c.line.set(nil, 0) })
		if err := c.Drop("one"); err != nil {
			t.Error(err)
		}
		if got, err := c.Load("one"); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%q %v", got, err)
		}
		_ = c.held.Release(t.Context())
	})
}

// core is one that has the sessions.
type core struct {
	*Store
	line *line
	held *lease.Held
}

// begin waits for the lease, and opens the store.
func begin(t *testing.T, from Registry, name string) *core {
	t.Helper()
	c := &core{line: &line{Registry: from}}
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	var err error
	if c.held, err = lease.Acquire(ctx, c.line, Lease("g"), name, LeaseOptions()); err != nil {
		t.Fatal(err)
	}
	if c.Store, err = New(c.line, Options{Gateway: "g", Key: make([]byte, 32), Turn: c.held}); err != nil {
		t.Fatal(err)
	}
	return c
}

func (c *core) save(t *testing.T, key, text string) {
	t.Helper()
	if err := c.Save(key, []byte(text), time.Now().Add(time.Hour)); err != nil {
		t.Fatalf("save %s: %v", key, err)
	}
}

func (c *core) wants(t *testing.T, key, text string) {
	t.Helper()
	if got, err := c.Load(key); err != nil || string(got) != text {
		t.Fatalf("load %s: %q, %v; want %q", key, got, err, text)
	}
}

// What one core has saved the next one has, however the first has ended; what was dropped or is over, nobody has.
func TestNextCoreHasTheSessions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := enginemem.New()
		first := begin(t, e, "a")
		first.save(t, "one", `1`)
		first.save(t, "one", `11`)
		first.save(t, "two", `2`)
		if err := first.Drop("two"); err != nil {
			t.Error(err)
		}
		if err := first.Save("short", []byte(`3`), time.Now().Add(time.Second)); err != nil {
			t.Error(err)
		}
		if err := first.held.Release(t.Context()); err != nil {
			t.Error(err)
		}
		if _, err := first.Load("one"); !errors.Is(err, lease.ErrReleased) {
			t.Errorf("load after its time: %v", err)
		}
		begun := time.Now()
		second := begin(t, e, "b")
		if took := time.Since(begun); took > LeaseOptions().Renew {
			t.Errorf("a lease that was released is there after %v", took)
		}
		second.wants(t, "one", `11`)
		time.Sleep(time.Second)
		for _, key := range []string{"two", "short", "never"} {
			if _, err := second.Load(key); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("load %s: %v", key, err)
			}
		}
		second.save(t, "one", `111`)
		second.wants(t, "one", `111`)
	})
}

// What a core has sent that was cut off arrives when another one has the sessions: it changes nothing, and the first has given up before.
func TestLateWrite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := enginemem.New()
		first := begin(t, e, "a")
		first.save(t, "one", `1`)
		first.line.set(nil, time.Hour)
		cut := time.Now()
		failed := make(chan error)
		go func() { failed <- first.Save("one", []byte(`"late"`), time.Now().Add(time.Hour)) }()
		second := begin(t, e, "b")
		if took := time.Since(cut); took > LeaseOptions().TTL+LeaseOptions().Renew {
			t.Errorf("the next one has the lease after %v", took)
		}
		select {
		case err := <-failed:
			if !errors.Is(err, lease.ErrLost) {
				t.Errorf("the save of who was cut off: %v", err)
			}
		default:
			t.Fatal("who was cut off has not given up when the next one begins")
		}
		second.wants(t, "one", `1`)
		second.save(t, "one", `2`) // as every session is saved that is gone on with
		time.Sleep(2 * time.Hour)
		if r, _, err := second.read(second.key("one")); err != nil || string(r.Record) != `2` {
			t.Errorf("after the late write: %s, %v", r.Record, err)
		}
	})
}

// An engine that does not answer for less than a lease lasts costs time, and nothing else.
func TestEngineThatIsAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := begin(t, enginemem.New(), "a")
		c.save(t, "one", `1`)
		c.line.set(engine.ErrUnknown, 0)
		if _, err := c.Load("one"); err == nil || errors.Is(err, fs.ErrNotExist) {
			t.Errorf("load from an engine that does not answer: %v", err)
		}
		time.AfterFunc(10*time.Second, func() { c.line.set(nil, 0) })
		begun := time.Now()
		c.save(t, "one", `2`)
		if took := time.Since(begun); took < 10*time.Second {
			t.Errorf("saved after %v", took)
		}
		c.wants(t, "one", `2`)
	})
}

// A write that was carried out, and whose answer was lost, is written again.
func TestLostAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := begin(t, enginemem.New(), "a")
		c.line.set(nil, time.Nanosecond) // it arrives all the same
		time.AfterFunc(time.Second, func() { c.line.set(nil, 0) })
		c.save(t, "one", `1`)
		c.save(t, "one", `2`)
		c.wants(t, "one", `2`)
	})
}

// A registry that has lost the lease and not the records: its holder's epoch rises above theirs.
func TestLeaseThatWasForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := enginemem.New()
		for range 3 {
			c := begin(t, e, "a")
			c.save(t, "one", `1`)
			if err := c.held.Release(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if err := e.Delete(t.Context(), lease.Key(Lease("g"))); err != nil {
			t.Fatal(err)
		}
		c := begin(t, e, "b")
		c.wants(t, "one", `1`)
		c.save(t, "one", `2`)
		if term, err := c.held.Term(); err != nil || term.Epoch <= 3 {
			t.Errorf("its epoch is %d, %v", term.Epoch, err)
		}
	})
}

// Nobody without the key reads a record, makes one, or puts one in another's place.
func TestSealed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := enginemem.New()
		c := begin(t, e, "a")
		c.save(t, "one", `"secret"`)
		got, err := e.Get(t.Context(), c.key("one"))
		if err != nil || bytes.Contains(got.Value, []byte("secret")) {
			t.Errorf("the registry has %q, %v", got.Value, err)
		}
		for key, value := range map[string][]byte{"moved": got.Value, "made": []byte(`{"epoch":1,"until":"2999-01-01T00:00:00Z","record":1}`), "empty": nil} {
			if _, err := e.Put(t.Context(), c.key(key), value); err != nil {
				t.Fatal(err)
			}
			if _, err := c.Load(key); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("a record that was %s: %v", key, err)
			}
		}
		c.save(t, "made", `1`) // in the place of what nobody can read
		c.wants(t, "made", `1`)
	})
}
