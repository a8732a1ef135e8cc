package judge

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/outlive-mcp/outlive/internal/fleet/engine"
	"github.com/outlive-mcp/outlive/internal/fleet/lease"
	"github.com/outlive-mcp/outlive/internal/testing/enginemem"
)

const limit = "account:claude:limit"

// in runs a test on a world of three machines.
func in(t *testing.T, f func(t *testing.T, w *world)) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 3, 1, 0)
		defer w.end()
		time.Sleep(time.Minute)
		f(t, w)
	})
}

// A machine that has died is told of once, whichever it is, and so is its return.
func TestDeath(t *testing.T) {
	for i := range 3 {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			in(t, func(t *testing.T, w *world) {
				w.wants(t, "at first")
				m := w.machines[i]
				m.die()
				time.Sleep(2 * time.Minute)
				dead := "silent " + m.name + " gone"
				w.wants(t, "after its death", dead)
				time.Sleep(time.Hour)
				w.wants(t, "an hour later", dead)
				m.network.Heal()
				w.begin(t, m)
				time.Sleep(3 * time.Minute)
				w.wants(t, "after its return", dead, "over: silent "+m.name)
			})
		})
	}
}

// A machine speaks for itself alone: its digest is that of the machine whose key it stands under, whatever it says.
func TestDigestUnderAnotherKey(t *testing.T) {
	j := &judge{view: view{}, opts: Options{}.withDefaults()}
	for _, text := range []string{`{"v":1,"inc":"a","beat":1,"host":"build1"}`, `{"v":1,"inc":"a","beat":2,"host":"build1","left":true}`} {
		var c engine.Change
		c.Key, c.Value = engine.Key(Digests, "third"), []byte(text)
		j.beat(c)
	}
	if len(j.view) != 1 || j.view["third"] == nil {
		t.Error("a machine is taken to have said what another wrote")
	}
}

// A machine whose digests cannot be read, such as one of a newer version, lives as long as they come, and is missed then, unless it has left.
func TestDigestThatCannotBeRead(t *testing.T) {
	j := &judge{view: view{}, opts: Options{}.withDefaults()}
	now := time.Now()
	says := func(revision engine.Revision, value string) {
		j.beat(engine.Change{Entry: engine.Entry{Key: engine.Key(Digests, "m"), Value: []byte(value), Revision: revision}})
	}
	says(1, `{"v":99,"inc":"a","beat":7,"reach":2,"troubles":[{"cause":"x"}]}`)
	says(2, `[]`)
	if h := j.view["m"]; h == nil || !h.lives || len(j.view.sharedCases()) > 0 || j.view.reach("a", time.Hour, now) != Nobody {
		t.Errorf("it is seen as %+v", h)
	}
	if list := j.view.suspects(0, now.Add(time.Hour)); !slices.Equal(list, []string{"m"}) {
		t.Errorf("an hour later %q are asked", list)
	}
	says(3, `{"v":99,"inc":"a","beat":8,"left":true}`)
	if list := j.view.suspects(0, now.Add(time.Hour)); len(list) > 0 {
		t.Errorf("after it has left %q are asked", list)
	}
}

// A machine that is cut off is told of as such, and goes on by itself.
func TestPartition(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		m := w.machines[2]
		m.network.Cut()
		time.Sleep(2 * time.Minute)
		w.wants(t, "cut off", "silent m2 cut off")
		if m.relies.Leaves(limit) {
			t.Error("it leaves to others what they cannot know")
		}
		m.set(Trouble{Cause: limit, Agent: "a", Told: true}) // it has told of it by itself
		m.network.Heal()
		time.Sleep(3 * time.Minute)
		w.wants(t, "back", "silent m2 cut off", "over: silent m2")
		if !m.relies.Leaves(limit) {
			t.Error("it does not leave it to the judge")
		}
	})
}

// A machine that leaves is not missed, and the lease goes on at once.
func TestLeaves(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		w.machines[0].leave()
		time.Sleep(10 * time.Second)
		if entry, err := w.registry.Get(t.Context(), lease.Key("judge")); err != nil || !strings.Contains(string(entry.Value), `"holder":"m`) || strings.Contains(string(entry.Value), "m0") {
			t.Errorf("the lease after that: %s, %v", entry.Value, err)
		}
		time.Sleep(10 * time.Minute)
		w.wants(t, "after one has left")
	})
}

// A cause that machines share is one message, until it is over.
func TestSharedCause(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		w.machines[1].set(Trouble{Cause: limit, Agent: "a"})
		w.machines[2].set(Trouble{Cause: limit, Agent: "b"})
		time.Sleep(20 * time.Second)
		told := "shared " + limit + " m1/a m2/b"
		w.wants(t, "on two machines", told)
		w.machines[0].set(Trouble{Cause: limit, Agent: "c"})
		w.machines[1].set()
		time.Sleep(10 * time.Minute)
		w.wants(t, "it moves", told)
		w.machines[0].set()
		w.machines[2].die() // what it had stays, as far as anybody knows
		time.Sleep(10 * time.Minute)
		w.wants(t, "its machine dies", told, "silent m2 gone")
		w.machines[2].set()
		w.machines[2].network.Heal()
		w.begin(t, w.machines[2])
		time.Sleep(10 * time.Minute)
		heard := w.all()
		if len(heard) != 4 || !slices.Contains(heard, "over: shared "+limit) || !slices.Contains(heard, "over: silent m2") {
			t.Errorf("people have heard %q", heard)
		}
		w.machines[1].set(Trouble{Cause: limit, Agent: "a"})
		time.Sleep(20 * time.Second)
		if heard := w.all(); len(heard) != 5 || heard[4] != "shared "+limit+" m1/a" {
			t.Errorf("the next time people have heard %q", heard)
		}
	})
}

// While one machine does not answer, for which the judge waits at each look, what the others say is taken: none of them is asked.
func TestOneThatDoesNotAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 12, 1, 0)
		defer w.end()
		time.Sleep(time.Minute)
		w.machines[11].network.Stop()
		time.Sleep(10 * time.Minute)
		w.wants(t, "one does not answer", "silent m11 cut off")
		for _, m := range w.machines[:11] {
			if n := m.asked.Load(); n > 0 {
				t.Errorf("%s is asked %d times", m.name, n)
			}
		}
	})
}

// A judge that is lost while it sends: another sends it again, and says so.
func TestLostWhileSending(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		w.mu.Lock()
		w.slow["m0"] = 10 * time.Second
		w.mu.Unlock()
		w.machines[1].set(Trouble{Cause: limit, Agent: "a"})
		for len(w.all()) == 0 {
			time.Sleep(time.Second)
		}
		w.machines[0].network.Cut()
		time.Sleep(3 * time.Minute)
		told := "shared " + limit + " m1/a"
		w.wants(t, "after that", told, told+" (repeated)", "silent m0 cut off")
	})
}

// A judge that takes over a message that may have been sent says so, even when the answers to its own writes are lost.
func TestTheAnswerOfATakeoverIsLost(t *testing.T) {
	to := channel{&people{}, "m"}
	registry := &lossy{Engine: enginemem.New()}
	judges := []*book{}
	for epoch, holder := range []string{"m0/a", "m1/b"} {
		judges = append(judges, &book{
			registry: registry, reach: func() Reach { return People }, done: map[episode]done{},
			term: func() (lease.Term, error) { return lease.Term{Holder: holder, Epoch: uint64(epoch + 1)}, nil },
		})
	}
	c := Case{Kind: Shared, Subject: limit, Agents: []string{"m/a"}}
	registry.loses = Sent // it has told, and does not hear that this is written: nor is it
	if err := judges[0].tell(t.Context(), c, to); err == nil {
		t.Fatal("the answer came")
	}
	registry.loses = Sending
	if err := judges[1].tell(t.Context(), c, to); err == nil {
		t.Fatal("the answer came")
	}
	registry.loses = ""
	if err := judges[1].tell(t.Context(), c, to); err != nil {
		t.Fatal(err)
	}
	told := "shared " + limit + " m/a"
	if diff := cmp.Diff([]string{told, told + " (repeated)"}, to.all()); diff != "" {
		t.Errorf("people have heard (-want +got):\n%s", diff)
	}
}

// lossy loses the answers to the writes of one state, and those of [Sent] before they arrive.
type lossy struct {
	*enginemem.Engine
	loses State
}

func (l *lossy) CAS(ctx context.Context, key string, value []byte, before engine.Revision) (engine.Revision, error) {
	if lost := l.loses != "" && strings.Contains(string(value), fmt.Sprintf(`"state":"%s"`, l.loses)); lost {
		if l.loses != Sent {
			_, _ = l.Engine.CAS(ctx, key, value, before)
		}
		return 0, engine.ErrUnknown
	}
	return l.Engine.CAS(ctx, key, value, before)
}

// A judge whose channel does not work leaves it to another; one whose answer is unknown does not say it twice without saying so.
func TestBrokenChannel(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		w.mu.Lock()
		w.broken["m0"] = true
		w.mu.Unlock()
		w.machines[1].set(Trouble{Cause: limit, Agent: "a"})
		time.Sleep(3 * time.Minute)
		w.wants(t, "by another", "shared "+limit+" m1/a")
	})
}

// Machines that fall silent at the same time are one message, which goes on until all are back; one that follows later is another.
func TestGroup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 6, 1, 0)
		defer w.end()
		time.Sleep(time.Minute)
		for _, m := range w.machines[1:5] {
			m.network.Cut()
		}
		time.Sleep(time.Minute)
		told := "machines m1 cut offm1 m2 m3 m4"
		w.wants(t, "four are cut off", told)
		w.machines[5].network.Cut()
		time.Sleep(time.Minute)
		w.wants(t, "another one", told, "silent m5 cut off")
		w.machines[1].network.Heal()
		w.machines[5].network.Heal()
		time.Sleep(3 * time.Minute)
		w.wants(t, "two are back", told, "silent m5 cut off", "over: silent m5")
		key := Case{Kind: Machines, Subject: "m1"}.Key()
		entry, err := w.registry.Get(t.Context(), key)
		if err != nil {
			t.Fatal(err)
		}
		n, err := ReadRecord(key, entry.Value)
		if err != nil || !slices.Equal(n.Agents, []string{"m2", "m3", "m4"}) || n.State != Sent || n.Shown || n.Message != "m0" {
			t.Errorf("written down is %+v", n)
		}
		w.machines[1].network.Cut() // again: it is a case of its own
		time.Sleep(time.Minute)
		w.wants(t, "one is cut off again", told, "silent m5 cut off", "over: silent m5", "silent m1 cut off")
		for _, m := range w.machines {
			m.network.Heal()
		}
		time.Sleep(3 * time.Minute)
		heard := w.all()
		if len(heard) != 6 || !slices.Contains(heard, "over: machines m1") || !slices.Contains(heard, "over: silent m1") {
			t.Errorf("people have heard %q", heard)
		}
	})
}

// A case is written down where nobody can be told, and told of by the machine that can, once there is one.
func TestReach(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		for _, m := range w.machines {
			m.reach.Store(int32(Nobody))
		}
		w.machines[2].die()
		time.Sleep(3 * time.Minute)
		w.wants(t, "by nobody")
		key := Case{Kind: Silent, Subject: "m2"}.Key()
		entry, err := w.registry.Get(t.Context(), key)
		if err != nil {
			t.Fatal(err)
		}
		if n, err := ReadRecord(key, entry.Value); err != nil || n.State != Pending || n.Standing != Gone || n.Subject != "m2" || n.Since.IsZero() {
			t.Errorf("written down is %+v", n)
		}
		w.machines[1].reach.Store(int32(Views))
		time.Sleep(4 * time.Minute)
		told := "silent m2 gone"
		w.wants(t, "by a monitor", told)
		if entry, err = w.registry.Get(t.Context(), key); err != nil {
			t.Fatal(err)
		}
		if n, err := ReadRecord(key, entry.Value); err != nil || n.State != Sent || !n.Shown {
			t.Errorf("what a monitor without a channel shows is written down as %+v", n)
		}
		w.machines[0].reach.Store(int32(People))
		time.Sleep(4 * time.Minute)
		w.wants(t, "it was told", told)
		if entry, err := w.registry.Get(t.Context(), lease.Key("judge")); err != nil || !strings.Contains(string(entry.Value), `"holder":"m0/`) {
			t.Errorf("the lease after that: %s, %v", entry.Value, err)
		}
	})
}

// A judge whose monitor has just lost its channel does not give way to itself: its last digest still says that it reaches people.
func TestJudgeDoesNotGiveWayToItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fleet := enginemem.New()
		j := &judge{fleet: fleet, machine: "m", opts: Options{Reach: func() Reach { return Views }}.withDefaults(), view: view{}}
		ctx, cancel := context.WithTimeout(t.Context(), 2*Beat+time.Second)
		defer cancel()
		says := func(count uint64) {
			if _, err := fleet.Put(t.Context(), engine.Key(Digests, "m"), jsonOf(Digest{Format: Format, Incarnation: "m", Beat: count, Reach: People})); err != nil {
				t.Error(err)
			}
		}
		says(1)
		time.AfterFunc(time.Second, func() { says(2) })
		if err := j.watch(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("it ends with: %v", err)
		}
	})
}

// When the registry is heard again after a gap, nobody counts as silent for what was said meanwhile.
func TestGap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := &judge{opts: Options{}.withDefaults(), view: view{}}
		digest := func(count uint64) engine.Change {
			return engine.Change{Entry: engine.Entry{Key: engine.Key(Digests, "m"), Value: jsonOf(Digest{Format: Format, Incarnation: "m", Beat: count}), Revision: 1}}
		}
		j.beat(digest(1))
		j.take(engine.Change{Synced: true})
		time.Sleep(29 * time.Second) // the hub is away
		j.beat(digest(1))
		j.take(engine.Change{Synced: true})
		time.Sleep(2 * time.Second)
		if list := j.view.suspects(silence, time.Now()); len(list) != 1 {
			t.Fatalf("%q are silent", list)
		}
		if time.Since(j.begin) >= silence {
			t.Error("it is judged at once")
		}
	})
}

// What was left to the judge stays so for a while when the machine is cut off.
func TestLeft(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		m := w.machines[2]
		m.set(Trouble{Cause: limit, Agent: "a"})
		time.Sleep(10 * time.Second)
		m.network.Cut()
		for _, step := range []struct {
			after      time.Duration
			this, that bool
		}{{20 * time.Second, true, true}, {time.Minute, true, false}, {10 * time.Minute, false, false}} {
			time.Sleep(step.after)
			if this, that := m.relies.Leaves(limit), m.relies.Leaves("another"); this != step.this || that != step.that {
				t.Errorf("after another %s: leaves it %t, another one %t", step.after, this, that)
			}
		}
	})
}

// Whatever the network does: each episode of a cause is told of, and a second time only as a repetition.
func TestOncePerEpisode(t *testing.T) {
	repeated, told := 0, 0
	for seed := range uint64(8) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, 3, seed, 0.03)
				defer w.end()
				chance := rand.New(rand.NewPCG(seed, 5))
				for range 8 {
					before := len(w.all())
					first := chance.IntN(3)
					w.machines[first].set(Trouble{Cause: limit, Agent: "a"})
					w.machines[(first+1)%3].set(Trouble{Cause: limit, Agent: "b"})
					for range 240 {
						time.Sleep(time.Second)
						w.disturb(t, chance)
					}
					for _, m := range w.machines {
						m.network.Heal()
					}
					time.Sleep(4 * time.Minute)
					clear, again := 0, 0
					for _, text := range w.all()[before:] {
						switch {
						case !strings.HasPrefix(text, "shared"):
						case strings.HasSuffix(text, "(repeated)"):
							again++ // also when an earlier judge was lost just before it would have sent it
						default:
							clear++
						}
					}
					told, repeated = told+clear, repeated+again
					if clear > 1 || clear+again == 0 {
						t.Errorf("told %d times, repeated %d times: %q", clear, again, w.all()[before:])
					}
					for _, m := range w.machines {
						m.set()
					}
					time.Sleep(5 * time.Minute) // until it is over
				}
			})
		})
	}
	if t.Logf("%d told, %d repeated", told, repeated); told < 50 || repeated > told/5 {
		t.Error("most of these should be told once")
	}
}

// disturb lets something happen, now and then.
func (w *world) disturb(t *testing.T, chance *rand.Rand) {
	m := w.machines[chance.IntN(len(w.machines))]
	switch n := chance.IntN(200); {
	case n < 3:
		m.network.Cut()
		time.AfterFunc(time.Duration(chance.IntN(60))*time.Second, m.network.Heal)
	case n < 6:
		m.network.Stop()
		time.AfterFunc(time.Duration(chance.IntN(60))*time.Second, m.network.Heal)
	case n < 7: // the registry loses its leases
		if err := w.registry.Delete(t.Context(), lease.Key("judge")); err != nil {
			t.Error(err)
		}
	}
}
