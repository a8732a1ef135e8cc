package main

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/outlive-mcp/outlive/internal/fleet/engine"
	"github.com/outlive-mcp/outlive/internal/fleet/judge"
	"github.com/outlive-mcp/outlive/internal/fleet/seen"
	"github.com/outlive-mcp/outlive/internal/record/event"
	"github.com/outlive-mcp/outlive/internal/testing/enginemem"
	"github.com/outlive-mcp/outlive/internal/view/fleetsocket"
	"github.com/outlive-mcp/outlive/internal/view/overview"
)

// watched is a view of machines a (which looks), b and c, and time goes on for it.
type watched struct {
	*view
	beats map[string]uint64
}

func newWatched() *watched {
	one := &member{membership: membership{Host: "a"}}
	one.publisher = newPublisher(one)
	one.publisher.have = true
	return &watched{newView(one), map[string]uint64{}}
}

func (w *watched) beat(t *testing.T, names ...string) {
	for _, name := range names {
		w.beats[name]++
		text, _ := json.Marshal(judge.Digest{Format: formatKnown, Incarnation: name, Beat: w.beats[name], At: time.Now()})
		w.take(t.Context(), engine.Change{Entry: engine.Entry{Key: engine.Key(digestTable, name), Value: text}})
	}
}

// pass lets time go by; answers says that our own beats come back when they are asked for.
func (w *watched) pass(t *testing.T, d time.Duration, answers bool) {
	for end := time.Now().Add(d); time.Now().Before(end); time.Sleep(lookEach) {
		w.mu.Lock()
		w.notice(true, time.Time{}, time.Now())
		w.mu.Unlock()
		p := w.m.publisher
		if p.mu.Lock(); p.beatDue && answers {
			p.beatDue = false
			p.mu.Unlock()
			w.beat(t, "a")
			continue
		}
		p.mu.Unlock()
	}
}

func (w *watched) silent(name string) bool { return w.hosts[name].silent }

// A machine that says nothing is shown as silent within two beats and a second. Where the registry tells nothing at all nobody is, and
// what was not told is not held against anybody afterwards.
func TestNotice(t *testing.T) {
	t.Run("a machine", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			w := newWatched()
			w.beat(t, "a", "b", "c")
			w.pass(t, beatEvery, true)
			w.beat(t, "a", "c")
			w.pass(t, beatEvery-lookEach, true)
			w.beat(t, "a", "c")
			if w.silent("b") {
				t.Error("one lost beat is enough")
			}
			w.pass(t, time.Second+lookEach, true)
			if !w.silent("b") || w.silent("c") || w.silent("a") {
				t.Errorf("two beats and a second after its last word: %v; %v, %v", w.silent("b"), w.silent("a"), w.silent("c"))
			}
		})
	})
	t.Run("the registry", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			w := newWatched()
			w.beat(t, "a", "b")
			w.pass(t, 8*time.Second, true) // of b nothing comes any more
			w.beat(t, "a")
			w.pass(t, 4*beatEvery, false)
			if w.silent("b") {
				t.Error("b is silent while nothing comes at all")
			}
			w.beat(t, "a")
			w.pass(t, 2*time.Second, true)
			if w.silent("b") {
				t.Error("b had no time to say something after nothing came at all")
			}
			w.pass(t, 2*beatEvery, true)
			if !w.silent("b") {
				t.Error("b is never silent")
			}
		})
	})
	t.Run("a machine that writes nothing itself", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			w := newWatched()
			w.m.publisher.have = false
			w.beat(t, "b")
			w.pass(t, 2*beatEvery+time.Second, false)
			if !w.silent("b") {
				t.Error("b is not silent")
			}
		})
	})
	t.Run("who follows one machine is not woken by another", func(t *testing.T) {
		w := newWatched()
		w.beat(t, "b", "c")
		w.m.link.connected = true
		b, c := w.at("b").changed, w.at("c").changed
		w.beat(t, "b")
		select {
		case <-b:
		default:
			t.Error("b has changed")
		}
		select {
		case <-c:
			t.Error("c has not changed")
		default:
		}
	})
}

// Who looks for the first time sees at once who lives and who does not, whatever the others' clocks say.
func TestFirstLook(t *testing.T) {
	for _, off := range []time.Duration{0, -4 * time.Minute, 3 * time.Minute} {
		t.Run(off.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w, last := newWatched(), engine.Revision(0)
				digests := map[string]engine.Change{}
				put := func(name string, off time.Duration) engine.Revision {
					last++
					w.beats[name]++
					text, _ := json.Marshal(judge.Digest{Format: formatKnown, Incarnation: name, Beat: w.beats[name], At: time.Now().Add(off)})
					digests[name] = engine.Change{Entry: engine.Entry{Key: engine.Key(digestTable, name), Value: text, Revision: last}}
					return last
				}
				put("c", off) // and then it dies
				for range 5 {
					time.Sleep(beatEvery - time.Second)
					put("b", off)
					time.Sleep(time.Second)
					sent := time.Now()
					w.m.publisher.note(mark{put("a", 0), sent})
				}
				w.m.link.connected = true
				for _, c := range digests {
					w.take(t.Context(), c)
				}
				w.take(t.Context(), engine.Change{Synced: true})
				for name, state := range map[string]string{"a": fleetsocket.Connected, "b": fleetsocket.Connected, "c": fleetsocket.Silent} {
					if g := w.at(name); g.State != state {
						t.Errorf("%s is %q, want %q: %s", name, g.State, state, g.Why)
					}
				}
				heard := time.Now()
				put("b", off)
				w.take(t.Context(), digests["b"])
				if g := w.at("b"); g.ClockMS != off.Milliseconds() {
					t.Errorf("b's clock is said to be %d ms ahead, want %s", g.ClockMS, off)
				}
				found := time.Now().UTC().Round(time.Second)
				w.cases["x"] = judge.Record{Holder: "b", Case: judge.Case{Since: found.Add(off)}}
				if list := w.openCases(); len(list) != 1 || !list[0].Since.Equal(found) {
					t.Errorf("what b has found at %s is said to be since %+v", found, list)
				}
				w.pass(t, 3*beatEvery, false)
				w.m.publisher.have = false
				w.pass(t, time.Second, false)
				if g := w.at("b"); g.ending == nil || !g.ending.From.Equal(heard) {
					t.Errorf("b was heard last at %s, and it is said: %+v", heard, g.ending)
				}
			})
		})
	}
}

// A machine is said to be gone since its last word, also where the machine that found it began to look later.
func TestGoneSinceItsLastWord(t *testing.T) {
	w, last := newWatched(), time.Now().Add(-time.Hour).UTC()
	w.hosts["b"] = newKnownHost()
	for at, want := range map[time.Time]time.Time{last: last, last.Add(time.Hour): last.Add(time.Minute)} {
		w.hosts["b"].digest.At = at
		w.cases["x"] = judge.Record{Case: judge.Case{Kind: judge.Silent, Subject: "b", Since: last.Add(time.Minute)}}
		if list := w.openCases(); len(list) != 1 || !list[0].Since.Equal(want) {
			t.Errorf("heard last at %s: gone since %+v, want %s", at, list, want)
		}
	}
}

// What is told once more after the connection was lost may be long ago: who has died meanwhile does not count as heard, nor its clock as wrong.
func TestToldOnceMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWatched()
		says := func(beat uint64, at time.Time) *knownHost {
			text, _ := json.Marshal(judge.Digest{Format: formatKnown, Incarnation: "b", Beat: beat, At: at}) // texts and numbers
			w.take(t.Context(), engine.Change{Entry: engine.Entry{Key: engine.Key(digestTable, "b"), Value: text}})
			return w.hosts["b"]
		}
		says(1, time.Now())
		w.take(t.Context(), engine.Change{Synced: true})
		heard := says(2, time.Now()).beaten
		last := time.Now().Add(beatEvery)
		time.Sleep(time.Minute) // there is no connection
		w.linked(true)
		if b := says(3, last); !b.beaten.Equal(heard) || b.ahead != 0 || b.digest.Beat != 3 {
			t.Errorf("it was heard %s later, and its clock is said to be %s ahead", b.beaten.Sub(heard), b.ahead)
		}
		w.take(t.Context(), engine.Change{Synced: true})
		if b := says(4, time.Now()); !b.beaten.Equal(time.Now()) {
			t.Errorf("it was heard %s ago", time.Since(b.beaten))
		}
	})
}

// A machine has left when all machines are known and it is not among them.
func TestMachineThatIsNotThere(t *testing.T) {
	w := newWatched()
	w.m.link.connected = true
	if g := w.at("b"); g.State != fleetsocket.Unknown {
		t.Errorf("before anything was read it is %q: %s", g.State, g.Why)
	}
	w.take(t.Context(), engine.Change{Synced: true})
	if g := w.at("b"); g.State != fleetsocket.Left {
		t.Errorf("when all was read it is %q: %s", g.State, g.Why)
	}
}

// Of a machine that writes what cannot be read that is said, and not that it is silent, or as before.
func TestMachineThatCannotBeRead(t *testing.T) {
	w := newWatched()
	w.m.link.connected = true
	says := func(table, value string) {
		w.take(t.Context(), engine.Change{Entry: engine.Entry{Key: engine.Key(table, "b"), Value: []byte(value)}})
	}
	says(digestTable, `[]`)
	if g := w.at("b"); g.State != fleetsocket.Unknown || !strings.Contains(g.Why, "cannot be read") {
		t.Errorf("it is %q: %s", g.State, g.Why)
	}
	w.beat(t, "b")
	says(stateTable, "no state")
	switch g := w.at("b"); {
	case g.State != fleetsocket.Connected:
		t.Errorf("when it can be read it is %q: %s", g.State, g.Why)
	case g.state == nil || len(g.state.Trouble) != 1 || !strings.Contains(g.state.Trouble[0], "cannot be read"):
		t.Errorf("a state that cannot be read is %+v", g.state)
	}
}

// People were told of a case by the machine whose monitor did, whoever judges since; by none in particular where its machines told by themselves.
func TestWhoHasTold(t *testing.T) {
	w := newWatched()
	for want, n := range map[string]judge.Record{
		"a": {State: judge.Sent, Holder: "b", Message: "a"},
		"":  {State: judge.Sent, Holder: "b"},
		"b": {State: judge.Sending, Holder: "b"},
	} {
		w.cases["x"] = n
		if list := w.openCases(); len(list) != 1 || list[0].By != want {
			t.Errorf("%+v: %+v, want %q", n, list, want)
		}
	}
}

// Who follows a machine is told how far that is, so that it goes on from there when this machine's member is started anew.
func TestFollowTellsThePosition(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, e := memberIn(enginemem.New(), "a", "")
		defer m.view.close()
		for table, value := range map[string]any{
			digestTable: judge.Digest{Format: formatKnown, Incarnation: "x", Beat: 1, At: time.Now()},
			newsTable:   seen.Log{Format: formatKnown, Run: "x", Began: 1, First: 1, Lines: []json.RawMessage{json.RawMessage(crashed)}},
		} {
			text, _ := json.Marshal(value) // texts and numbers
			if _, err := e.Put(t.Context(), engine.Key(table, "b"), text); err != nil {
				t.Fatal(err)
			}
		}
		ctx, cancel := context.WithCancel(t.Context())
		var told []string
		over := make(chan struct{})
		go func() {
			defer close(over)
			m.view.follow(ctx, "b", "x:1", func(line []byte) error { told = append(told, string(line)); return nil })
		}()
		synctest.Wait()
		cancel()
		<-over
		if want := []string{crashed, string(fleetsocket.PositionLine("x:2"))}; len(told) < 2 || !slices.Equal(told[len(told)-2:], want) {
			t.Errorf("told %q, want at last %q", told, want)
		}
	})
}

// Who was told that a machine cannot be known, since there is no connection, is told when it is silent in truth.
func TestAnotherEnding(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, e := memberIn(enginemem.New(), "a", "")
		defer m.view.close()
		text, _ := json.Marshal(judge.Digest{Format: formatKnown, Incarnation: "b", Beat: 1, At: time.Now()}) // texts and numbers
		if _, err := e.Put(t.Context(), engine.Key(digestTable, "b"), text); err != nil {
			t.Fatal(err)
		}
		ending := func(after string) *fleetsocket.Ending {
			return m.view.follow(t.Context(), "b", after, func([]byte) error { return nil })
		}
		m.linkChanged("", errors.New("the hub is away"))
		first := ending("")
		if first == nil || first.Word != fleetsocket.Unknown {
			t.Fatalf("without a connection: %+v", first)
		}
		next := make(chan *fleetsocket.Ending, 1)
		go func() { next <- ending(first.Position) }()
		time.Sleep(time.Minute)
		if len(next) > 0 {
			t.Fatalf("nothing has changed: %+v", <-next)
		}
		m.linkChanged("hub", nil)
		time.Sleep(2 * silentAfter)
		if len(next) == 0 {
			t.Fatal("with a connection nothing is told of it")
		}
		if got := <-next; got == nil || got.Word != fleetsocket.Silent {
			t.Errorf("with a connection: %+v", got)
		}
	})
}

// Who follows a machine is told what happens from then on: nothing of before, and all of after, also the first that the machine tells at all.
func TestFollowing(t *testing.T) {
	lines := func(texts ...string) (list []json.RawMessage) {
		for _, text := range texts {
			list = append(list, json.RawMessage(text))
		}
		return list
	}
	said := func(run string, first uint64, texts ...string) glance {
		return glance{ready: true, news: seen.Log{Run: run, Began: first, First: first, Lines: lines(texts...)}}
	}
	for name, c := range map[string]struct {
		after string
		sees  []glance
		told  string
		at    string // where it is at the end
	}{
		"from now on":                      {sees: []glance{said("x", 1, "1", "2"), said("x", 1, "1", "2", "3")}, told: "3", at: "x:4"},
		"nothing was told yet":             {sees: []glance{said("", 0), said("x", 1, "1")}, told: "1", at: "x:2"},
		"nothing is known yet":             {sees: []glance{{}, {news: said("x", 1, "1").news}, said("x", 1, "1"), said("x", 1, "1", "2")}, told: "2", at: "x:3"},
		"some are kept no more":            {sees: []glance{said("x", 1, "1"), said("x", 4, "4", "5")}, told: "(2 events of this machine were not kept for the fleet; its audit logs have them) 4 5", at: "x:6"},
		"it was started anew":              {sees: []glance{said("x", 1, "1"), said("y", 2, "2")}, told: "2", at: "y:3"},
		"anew, and some are kept no more":  {sees: []glance{said("x", 1, "1"), {ready: true, news: seen.Log{Run: "y", Began: 4, First: 6, Lines: lines("6")}}}, told: "(4 events of this machine were not kept for the fleet; its audit logs have them) 6", at: "y:7"},
		"what it has told is lost":         {sees: []glance{said("x", 1, "1"), said("", 0), said("x", 1, "1", "2")}, told: "2", at: "x:3"},
		"what it has told comes back old":  {sees: []glance{said("x", 1, "1", "2"), said("x", 1, "1"), said("x", 1, "1", "2", "3")}, told: "3", at: "x:4"},
		"from a position on":               {after: "x:2", sees: []glance{said("x", 1, "1", "2")}, told: "2", at: "x:3"},
		"from the position before all":     {after: "none:1", sees: []glance{said("x", 1, "1", "2")}, told: "1 2", at: "x:3"},
		"the position of who saw nothing":  {sees: []glance{said("", 0)}, at: "none:1"},
		"the position of who knew nothing": {sees: []glance{{}}, at: ":0"},
		"from the position of nothing":     {after: ":0", sees: []glance{{}, said("x", 1, "1", "2"), said("x", 1, "1", "2", "3")}, told: "3", at: "x:4"},
	} {
		t.Run(name, func(t *testing.T) {
			var told []string
			f := following{each: func(line []byte) error {
				text := string(line)
				if e, err := overview.ParseEvent(line); err == nil && e.Type == event.ServerLogLost {
					text = "(" + e.Message + ")"
				}
				told = append(told, text)
				return nil
			}}
			f.read, _ = seen.ReaderAt(c.after)
			for _, g := range c.sees {
				if err := f.tell(g, c.after == ""); err != nil {
					t.Fatal(err)
				}
			}
			if got := strings.Join(told, " "); got != c.told || f.read.String() != c.at {
				t.Errorf("told %q up to %s, want %q up to %s", got, f.read, c.told, c.at)
			}
		})
	}
}

// What a registry that was behind tells again is passed over. Who has died does not live again by it.
func TestToldByARegistryThatWasBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWatched()
		says := func(table string, value []byte) {
			w.take(t.Context(), engine.Change{Entry: engine.Entry{Key: engine.Key(table, "b"), Value: value}})
		}
		states := func(beat uint64, version string) {
			text, err := packed(stated{Incarnation: "b", Beat: beat, Snapshot: overview.Snapshot{Version: version}})
			if err != nil {
				t.Fatal(err)
			}
			says(stateTable, text)
		}
		old, _ := json.Marshal(judge.Digest{Format: formatKnown, Incarnation: "b", Beat: 1, At: time.Now()}) // texts and numbers
		says(digestTable, old)
		states(1, "old")
		w.take(t.Context(), engine.Change{Synced: true})
		time.Sleep(beatEvery)
		w.beats["b"] = 1
		w.beat(t, "b")
		states(2, "new")
		time.Sleep(time.Minute)
		heard := w.hosts["b"].beaten
		says(digestTable, old)
		states(1, "old")
		if b := w.hosts["b"]; !b.beaten.Equal(heard) || b.digest.Beat != 2 || b.state.Version != "new" {
			t.Errorf("heard %s later, by digest %d, and stands as %s", b.beaten.Sub(heard), b.digest.Beat, b.state.Version)
		}
	})
}

// The registry counts anew when it has lost everything: what was written before says nothing any more.
func TestMarks(t *testing.T) {
	p, now := newPublisher(nil), time.Now()
	if _, known := p.young(7, now); known {
		t.Error("without a digest of ours the age of another's is known")
	}
	p.note(mark{5, now.Add(-beatEvery)})
	if _, known := p.young(4, now); known {
		t.Error("one written before our first digest may be young")
	}
	if young, known := p.young(6, now); !young || !known {
		t.Error("one written after a young digest of ours is not young")
	}
	p.note(mark{9, now})
	if young, known := p.young(4, now.Add(beatEvery)); young || !known {
		t.Error("one written before a digest of ours that is not young any more is young")
	}
	p.note(mark{3, now.Add(2 * beatEvery)})
	if young, known := p.young(4, now.Add(2*beatEvery)); !young || !known || len(p.marks) != 1 {
		t.Errorf("the registry counts anew: %t %t %v", young, known, p.marks)
	}
	for n := range 100 {
		p.note(mark{engine.Revision(10 + n), now.Add(time.Duration(n) * time.Second)})
	}
	if len(p.marks) > 12 {
		t.Errorf("%d digests are remembered", len(p.marks))
	}
}

// What happens before it is known how everything stands is told as soon as that is known.
func TestEventBeforeTheFirstState(t *testing.T) {
	p := newPublisher(nil)
	p.line([]byte(`{"instance":"one@1","timestamp":"2026-05-04T12:00:00Z","level":"ERROR","message":"Server crashed","event_type":"server_crashed"}`))
	p.write(t.Context())
	if len(p.ring.Lines) != 1 || !p.newsDue {
		t.Errorf("%d events are kept, to be written: %v", len(p.ring.Lines), p.newsDue)
	}
}

// Machines that have joined the same NATS servers with an older outlive are told of until they are seen, and hear of this one.
func TestOlderMachines(t *testing.T) {
	publishing(t, func(t *testing.T, m *member, _ *inMemory) {
		defer m.view.close()
		var word judge.Digest
		m.release = "v2"
		m.meets = func(_ context.Context, text []byte) ([]string, error) {
			return []string{"a", "b"}, json.Unmarshal(text, &word)
		}
		m.meetOlder(t.Context())
		m.publisher.line(stateOf1("ready", 0))
		synctest.Wait()
		s := m.view.status(t.Context())
		if len(s.Hosts) != 2 || s.Hosts[0].State != fleetsocket.Connected || s.Hosts[1].Name != "b" || s.Hosts[1].State != fleetsocket.Unknown || !strings.Contains(s.Hosts[1].Why, "upgrade it") {
			t.Errorf("got %+v", s.Hosts)
		}
		if !strings.HasPrefix(word.Version, "v2, ") || !strings.Contains(word.Version, "upgrade it") || word.Format != formatKnown || word.Incarnation == "" {
			t.Errorf("they are told %+v", word)
		}
	})
}
