package main

import (
	"encoding/json"
	"testing"
	"testing/synctest"
	"time"

	"github.com/outlive-mcp/outlive/internal/fleet/engine"
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
		text, _ := json.Marshal(digest{Format: formatKnown, Incarnation: name, Beat: w.beats[name], At: time.Now()})
		w.take(t.Context(), digestTable, engine.Change{Entry: engine.Entry{Key: engine.Key(digestTable, name), Value: text}})
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
