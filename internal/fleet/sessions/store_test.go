package sessions

import (
	"bytes"
	"context"
	"encoding/json"
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

// line is a gateway's way to the registry.
type line struct {
	lease.Registry
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

// full is a registry that has no room for records, and has for leases.
type full struct {
	lease.Registry
	is atomic.Bool
}

func (f *full) CAS(ctx context.Context, key string, value []byte, before engine.Revision) (engine.Revision, error) {
	if f.is.Load() && strings.HasPrefix(key, Table+".") {
		return 0, engine.ErrUnknown
	}
	return f.Registry.CAS(ctx, key, value, before)
}

// gateway is one of several.
type gateway struct {
	*Store
	line *line
	seat *Seat
	told chan error   // what it is told of its lease: nil, it has one
	gone chan string  // the addresses of others whose time is over
	slip atomic.Int64 // by how much its clock is ahead, since its machine has slept
	ends sync.Once
}

// begin starts a gateway at an address, and waits for its lease. last is the holder of the one before it there.
func begin(t *testing.T, from lease.Registry, at, last string) *gateway {
	t.Helper()
	g := &gateway{line: &line{Registry: from}, told: make(chan error, 100), gone: make(chan string, 100)}
	begun := time.Now()
	g.seat = TakeSeat(g.line, SeatOptions{
		Gateway: "g", At: at, Last: last, Tell: func(_ string, why error) { g.told <- why },
		Up: func() time.Duration { return time.Since(begun) + time.Duration(g.slip.Load()) },
	})
	var err error
	g.Store, err = New(g.line, Options{Gateway: "g", Key: make([]byte, 32), Owner: g.seat.Owner, Outlasted: func(at string) { g.gone <- at }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(g.end)
	if why := g.hears(t); why != nil {
		t.Fatalf("%s has no lease: %v", at, why)
	}
	return g
}

// end is that of a process that is stopped as it should be.
func (g *gateway) end() {
	g.ends.Do(func() {
		g.seat.End(context.Background())
		g.Close()
	})
}

// hears is what it is told of its lease next.
func (g *gateway) hears(t *testing.T) error {
	t.Helper()
	select {
	case why := <-g.told:
		return why
	case <-time.After(2 * time.Minute):
		t.Fatal("nothing is told of the lease")
		return nil
	}
}

// regains waits until it has a lease again. Meanwhile it is told nothing: it was told why it has none.
func (g *gateway) regains(t *testing.T) {
	t.Helper()
	if why := g.hears(t); why != nil {
		t.Errorf("it is told again: %v", why)
	}
}

func (g *gateway) save(t *testing.T, key, text string) {
	t.Helper()
	if err := g.Save(key, []byte(text), time.Now().Add(time.Hour)); err != nil {
		t.Fatalf("save %s: %v", key, err)
	}
}

func (g *gateway) wants(t *testing.T, key, text string) {
	t.Helper()
	if got, err := g.Load(key); err != nil || string(got) != text {
		t.Fatalf("load %s: %q, %v; want %q", key, got, err, text)
	}
}

// elsewhere wants a session that the gateway at an address has, and returns what is closed when that one's time is over.
func (g *gateway) elsewhere(t *testing.T, key, at string) <-chan struct{} {
	t.Helper()
	var other *Elsewhere
	if text, err := g.Load(key); !errors.As(err, &other) || other.At != at || other.Time == "" {
		t.Fatalf("load %s: %q, %v; want it at %s, in a time that has a name", key, text, err, at)
	}
	return other.Over
}

// after waits for something, and returns how long that has taken.
func after(t *testing.T, over <-chan struct{}) time.Duration {
	t.Helper()
	begun := time.Now()
	select {
	case <-over:
	case <-time.After(2 * time.Minute):
		t.Fatal("it is not over")
	}
	return time.Since(begun)
}

// A session is its gateway's until that has ended as it should; then whoever is asked for it has it. What was dropped or is over, nobody has.
func TestASessionGoesOnAtAnotherGateway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := enginemem.New()
		a, b := begin(t, e, "a:1", ""), begin(t, e, "b:1", "")
		a.save(t, "one", `1`)
		a.save(t, "one", `11`)
		a.save(t, "two", `2`)
		if err := a.Drop("two"); err != nil {
			t.Error(err)
		}
		if err := a.Save("short", []byte(`3`), time.Now().Add(time.Second)); err != nil {
			t.Error(err)
		}
		over := b.elsewhere(t, "one", "a:1")
		time.Sleep(time.Hour / 2)
		b.elsewhere(t, "one", "a:1") // however long it lives
		a.wants(t, "one", `11`)
		a.end()
		if took := after(t, over); took > leaseOptions().Renew {
			t.Errorf("the end of a is known after %v", took)
		}
		b.wants(t, "one", `11`)
		if at := <-b.gone; at != "a:1" {
			t.Errorf("b is told of the end of %s", at)
		}
		for _, key := range []string{"two", "short", "never"} {
			if _, err := b.Load(key); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("load %s: %v", key, err)
			}
		}
		b.save(t, "one", `111`)
		b.wants(t, "one", `111`)
		if _, err := a.Load("one"); !errors.Is(err, lease.ErrReleased) {
			t.Errorf("load after its end: %v", err)
		}
	})
}

// A gateway that is cut off gives its sessions up by its own clock, before anybody else has one; and of several that want one, one has it.
func TestASessionIsTakenOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := enginemem.New()
		a, b, c := begin(t, e, "a:1", ""), begin(t, e, "b:1", ""), begin(t, e, "c:1", "")
		a.save(t, "one", `1`)
		overForB, overForC := b.elsewhere(t, "one", "a:1"), c.elsewhere(t, "one", "a:1")
		a.line.set(engine.ErrUnknown, 0)
		cut := time.Now()
		if why := a.hears(t); !errors.Is(why, lease.ErrUnanswered) {
			t.Errorf("a is told %v", why)
		}
		gaveUp := time.Since(cut)
		if _, err := a.Load("one"); !errors.Is(err, lease.ErrLost) {
			t.Errorf("a still loads: %v", err)
		}
		after(t, overForB)
		after(t, overForC)
		if took := time.Since(cut); took > leaseOptions().TTL+2*leaseOptions().Renew || took < gaveUp+leaseOptions().Skew/2 {
			t.Errorf("a has given up after %v, and others may have its sessions after %v", gaveUp, took)
		}
		outcomes := make(chan error, 2)
		for _, g := range []*gateway{b, c} {
			go func() {
				_, err := g.Load("one")
				outcomes <- err
			}()
		}
		first, second := <-outcomes, <-outcomes
		if first != nil {
			first, second = second, first
		}
		var other *Elsewhere
		if first != nil || !errors.As(second, &other) || other.At != "b:1" && other.At != "c:1" {
			t.Errorf("both want it: %v, %v", first, second)
		}
		a.line.set(nil, 0)
		a.regains(t)
		a.elsewhere(t, "one", other.At)
	})
}

// What a gateway has sent that was cut off arrives when another one has the session: it changes nothing, also where it was the session's end,
// and the first has given up before.
func TestLateWrite(t *testing.T) {
	for name, late := range map[string]func(a *gateway) error{
		"a record": func(a *gateway) error { return a.Save("one", []byte(`"late"`), time.Now().Add(time.Hour)) },
		"the end":  func(a *gateway) error { return a.Drop("one") },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := enginemem.New()
				a, b := begin(t, e, "a:1", ""), begin(t, e, "b:1", "")
				a.save(t, "one", `1`)
				over := b.elsewhere(t, "one", "a:1")
				a.line.set(nil, time.Hour)
				failed := make(chan error, 1)
				go func() { failed <- late(a) }()
				after(t, over)
				select {
				case err := <-failed:
					if !errors.Is(err, lease.ErrLost) {
						t.Errorf("the write of who was cut off: %v", err)
					}
				default:
					t.Fatal("who was cut off has not given up when the next one begins")
				}
				b.wants(t, "one", `1`)
				time.Sleep(2 * time.Hour)
				if r, _, err := b.read(b.key("one")); err != nil || string(r.Record) != `1` {
					t.Errorf("after the late write: %s, %v", r.Record, err)
				}
			})
		})
	}
}

// A gateway whose session was taken from it all the same, such as after a restored backup of the registry, finds that out when it saves it.
func TestASessionThatWasTaken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := enginemem.New()
		a, b := begin(t, e, "a:1", ""), begin(t, e, "b:1", "")
		a.save(t, "one", `1`)
		if err := e.Delete(t.Context(), a.key("one")); err != nil {
			t.Fatal(err)
		}
		b.save(t, "one", `2`)
		var other *Elsewhere
		if err := a.Save("one", []byte(`3`), time.Now().Add(time.Hour)); !errors.As(err, &other) || other.At != "b:1" {
			t.Errorf("%v", err)
		}
		b.wants(t, "one", `2`)
	})
}

// A gateway that was stopped for longer than its lease has it anew: whoever is asked for one of its sessions first has that at once, and does
// not pass the request on to it.
func TestAGatewayThatHasItsLeaseAnew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := enginemem.New()
		a, b := begin(t, e, "a:1", ""), begin(t, e, "b:1", "")
		a.save(t, "one", `1`)
		a.line.set(engine.ErrUnknown, 0)
		if why := a.hears(t); !errors.Is(why, lease.ErrUnanswered) {
			t.Errorf("a is told %v", why)
		}
		a.line.set(nil, 0)
		a.regains(t)
		b.wants(t, "one", `1`)
	})
}

// A gateway that loses its lease again and again remembers nothing of the sessions that it had before.
func TestSessionsOfAnEarlierTimeAreForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := begin(t, enginemem.New(), "a:1", "")
		for _, key := range []string{"one", "two", "three"} {
			a.save(t, key, `1`)
			a.line.set(engine.ErrUnknown, 0)
			for a.hears(t) == nil {
			}
			a.line.set(nil, 0)
			a.regains(t)
		}
		a.save(t, "four", `1`)
		a.wants(t, "one", `1`)
		a.mu.Lock()
		defer a.mu.Unlock()
		if n := len(a.revisions); n != 2 {
			t.Errorf("%d records are remembered", n)
		}
	})
}

// A process that was killed and is started again at its address does not let others wait for the end of its own lease.
func TestAGatewayThatStartsAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := enginemem.New()
		a, b := begin(t, e, "a:1", ""), begin(t, e, "b:1", "")
		a.save(t, "one", `1`)
		a.save(t, "two", `2`)
		was, err := a.seat.Owner()
		if err != nil {
			t.Fatal(err)
		}
		over := b.elsewhere(t, "one", "a:1")
		a.line.set(engine.ErrUnknown, 0) // killed
		begun := time.Now()
		again := begin(t, e, "a:1", was.Holder)
		if took := time.Since(begun); took > 0 {
			t.Errorf("it has its lease after %v", took)
		}
		again.wants(t, "two", `2`)
		if took := after(t, over); took > leaseOptions().Renew {
			t.Errorf("another one knows after %v", took)
		}
		b.wants(t, "one", `1`)
	})
}

// Who has met a gateway before learns that it has begun another time as soon as it asks for a session, and not at its next look.
func TestATimeThatHasEndedAMomentAgo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := enginemem.New()
		a, b := begin(t, e, "a:1", ""), begin(t, e, "b:1", "")
		a.save(t, "one", `1`)
		was, err := a.seat.Owner()
		if err != nil {
			t.Fatal(err)
		}
		b.elsewhere(t, "one", "a:1")
		a.line.set(engine.ErrUnknown, 0) // killed
		begin(t, e, "a:1", was.Holder)
		begun := time.Now()
		b.wants(t, "one", `1`)
		if took := time.Since(begun); took > 0 {
			t.Errorf("it is known after %v", took)
		}
		if at := <-b.gone; at != "a:1" {
			t.Errorf("b is told of the end of %s", at)
		}
	})
}

// Another process at the same address, such as one whose file was copied to another machine, waits, and says so.
func TestTwoAtOneAddress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := enginemem.New()
		a := begin(t, e, "a:1", "")
		told := make(chan error, 100)
		other := TakeSeat(e, SeatOptions{Gateway: "g", At: "a:1", Tell: func(_ string, why error) { told <- why }})
		if why := <-told; why == nil || !strings.Contains(why.Error(), "another process has the lease of a:1") {
			t.Errorf("it is told %v", why)
		}
		if owner, err := other.Owner(); err == nil {
			t.Errorf("it has %v", owner)
		}
		a.end()
		if why := <-told; why != nil {
			t.Errorf("then it is told %v", why)
		}
		other.End(t.Context())
	})
}

// A session that its gateway gives back is whose is asked for it next.
func TestReleasedSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := enginemem.New()
		a, b := begin(t, e, "a:1", ""), begin(t, e, "b:1", "")
		a.save(t, "one", `1`)
		b.elsewhere(t, "one", "a:1")
		if err := a.Release("one"); err != nil {
			t.Fatal(err)
		}
		b.wants(t, "one", `1`)
		a.elsewhere(t, "one", "b:1")
		b.save(t, "one", `2`)
	})
}

// While the engine is away for less than the lease a gateway has its sessions; for longer, nobody has any, and nobody takes one. Then they go on.
func TestEngineThatIsAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := enginemem.New()
		a, b := begin(t, e, "a:1", ""), begin(t, e, "b:1", "")
		a.save(t, "one", `1`)
		both := func(fails error) { a.line.set(fails, 0); b.line.set(fails, 0) }
		both(engine.ErrUnknown)
		begun := time.Now()
		time.AfterFunc(5*time.Second, func() { both(nil) })
		if text, err := a.Load("one"); err != nil || string(text) != `1` || time.Since(begun) < 5*time.Second {
			t.Errorf("loaded while the engine elects a leader: %q, %v, after %v", text, err, time.Since(begun))
		}
		time.Sleep(10 * time.Second) // the leases are renewed
		both(engine.ErrUnknown)
		begun = time.Now()
		if _, err := a.Load("one"); !errors.Is(err, engine.ErrUnknown) || time.Since(begun) > loadLimit+answerLimit {
			t.Errorf("load from an engine that does not answer: %v, after %v", err, time.Since(begun))
		}
		both(nil)
		time.Sleep(10 * time.Second) // the leases are renewed
		both(engine.ErrUnknown)
		time.AfterFunc(10*time.Second, func() { both(nil) })
		begun = time.Now()
		a.save(t, "one", `2`)
		if took := time.Since(begun); took < 10*time.Second {
			t.Errorf("saved after %v", took)
		}
		if owner, err := a.seat.Owner(); err != nil || owner.Epoch != 1 {
			t.Errorf("after a short absence: %+v, %v", owner, err)
		}
		both(engine.ErrUnknown)
		for _, g := range []*gateway{a, b} {
			if why := g.hears(t); !errors.Is(why, lease.ErrUnanswered) {
				t.Errorf("it is told %v", why)
			}
			if _, err := g.Load("one"); !errors.Is(err, lease.ErrLost) {
				t.Errorf("load: %v", err)
			}
		}
		time.Sleep(time.Minute)
		both(nil)
		a.regains(t)
		b.regains(t)
		var other *Elsewhere
		for {
			text, err := b.Load("one")
			if !errors.As(err, &other) {
				if err != nil || string(text) != `2` {
					t.Errorf("in the end %q, %v", text, err)
				}
				return
			}
			after(t, other.Over)
		}
	})
}

// A machine that has slept knows before anything else that its time is over.
func TestMachineThatHasSlept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := begin(t, enginemem.New(), "a:1", "")
		if _, err := a.seat.Owner(); err != nil {
			t.Fatal(err)
		}
		a.slip.Store(int64(time.Minute))
		if owner, err := a.seat.Owner(); !errors.Is(err, lease.ErrLost) {
			t.Errorf("after a minute's sleep: %+v, %v", owner, err)
		}
	})
}

// A write that was carried out, and whose answer was lost, is written again.
func TestLostAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := begin(t, enginemem.New(), "a:1", "")
		a.line.set(nil, time.Nanosecond) // it arrives all the same
		time.AfterFunc(time.Second, func() { a.line.set(nil, 0) })
		a.save(t, "one", `1`)
		a.save(t, "one", `2`)
		a.wants(t, "one", `2`)
	})
}

// A registry that has lost the lease and not the records: its holder writes it again, and nobody takes a session meanwhile.
func TestLeaseThatWasForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := enginemem.New()
		a, b := begin(t, e, "a:1", ""), begin(t, e, "b:1", "")
		a.save(t, "one", `1`)
		b.elsewhere(t, "one", "a:1")
		if err := e.Delete(t.Context(), lease.Key(leaseOf("g", "a:1"))); err != nil {
			t.Fatal(err)
		}
		time.Sleep(5 * time.Minute)
		b.elsewhere(t, "one", "a:1")
		a.save(t, "one", `2`)
	})
}

// A registry that has no room does not hold up a gateway for ever, and one session's record no other's for long.
func TestNoRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := &full{Registry: enginemem.New()}
		a := begin(t, e, "a:1", "")
		a.save(t, "one", `1`)
		e.is.Store(true)
		begun := time.Now()
		if err := a.Save("one", []byte(`2`), time.Now().Add(time.Hour)); !errors.Is(err, engine.ErrUnknown) || time.Since(begun) > writeLimit+answerLimit {
			t.Errorf("without room: %v after %v", err, time.Since(begun))
		}
		begun = time.Now()
		if err := a.Save("two", []byte(`2`), time.Now().Add(time.Hour)); err == nil || time.Since(begun) > answerLimit {
			t.Errorf("once more: %v after %v", err, time.Since(begun))
		}
		e.is.Store(false)
		a.save(t, "one", `2`)
		a.wants(t, "one", `2`)
		if err := a.Save("large", []byte(`"`+strings.Repeat("x", engine.MaxValue)+`"`), time.Now().Add(time.Hour)); !errors.Is(err, engine.ErrTooLarge) {
			t.Errorf("too large: %v", err)
		}
	})
}

// A session that was ended while the registry did not answer stays ended.
func TestDropIsTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := begin(t, enginemem.New(), "a:1", "")
		a.save(t, "one", `1`)
		a.line.set(engine.ErrUnknown, 0)
		time.AfterFunc(9*time.Second, func() { a.line.set(nil, 0) })
		if err := a.Drop("one"); err != nil {
			t.Error(err)
		}
		if got, err := a.Load("one"); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%q %v", got, err)
		}
	})
}

// Nobody without the key reads a record, makes one, or puts one in another's place.
func TestSealed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := enginemem.New()
		a := begin(t, e, "a:1", "")
		a.save(t, "one", `"secret"`)
		got, err := e.Get(t.Context(), a.key("one"))
		if err != nil || bytes.Contains(got.Value, []byte("secret")) {
			t.Errorf("the registry has %q, %v", got.Value, err)
		}
		for key, value := range map[string][]byte{"moved": got.Value, "made": []byte(`{"owner":{},"until":"2999-01-01T00:00:00Z","record":1}`), "empty": nil} {
			if _, err := e.Put(t.Context(), a.key(key), value); err != nil {
				t.Fatal(err)
			}
			if _, err := a.Load(key); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("a record that was %s: %v", key, err)
			}
		}
		a.save(t, "made", `1`) // in the place of what nobody can read
		a.wants(t, "made", `1`)
	})
}

// The sessions of a core of an older outlive are its own while it lives, and go on here when it has ended. It cannot read ours.
func TestRecordsOfAnOlderOutlive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := enginemem.New()
		core, err := lease.Acquire(t.Context(), e, "gateway/g", "m", leaseOptions())
		if err != nil {
			t.Fatal(err)
		}
		a := begin(t, e, "a:1", "")
		text, err := json.Marshal(map[string]any{"epoch": 7, "until": time.Now().Add(time.Hour), "record": 1})
		if err != nil {
			t.Fatal(err)
		}
		at, nonce := a.key("one"), make([]byte, a.seal.NonceSize())
		if _, err := e.Put(t.Context(), at, a.seal.Seal(nonce, nonce, text, []byte(at))); err != nil {
			t.Fatal(err)
		}
		if _, err := a.Load("one"); !errors.Is(err, errOlder) {
			t.Errorf("while the core lives: %v", err)
		}
		time.Sleep(time.Minute)
		if _, err := a.Load("one"); !errors.Is(err, errOlder) {
			t.Errorf("while the core lives on: %v", err)
		}
		if err := core.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(leaseOptions().Renew)
		a.wants(t, "one", `1`)
		a.save(t, "one", `2`)
		a.wants(t, "one", `2`)
		ours, err := e.Get(t.Context(), at)
		if err != nil {
			t.Fatal(err)
		}
		size := a.seal.NonceSize()
		if text, err := a.seal.Open(nil, ours.Value[:size], ours.Value[size:], []byte(at)); err == nil {
			t.Errorf("a core of an older outlive reads %s", text)
		}
	})
}
