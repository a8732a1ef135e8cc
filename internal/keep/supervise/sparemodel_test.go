package supervise

import (
	"maps"
	"slices"
	"time"

	"pgregory.net/rapid"
)

// modelSpare is a process that the simulated owner brings up beside the serving one.
type modelSpare struct {
	reload bool
	ready  bool
	comes  time.Time // when it is ready; zero: never
	fails  time.Time // when it is known not to come up; zero: never
	by     time.Time // it must be settled or ready by then
}

// obeyBeside carries out what concerns a second process. Each spare is in w.beside from its SpawnSpare to the one
// action or event that ends it.
func (w *world) obeyBeside(a Action) Event {
	switch a := a.(type) {
	case SpawnSpare:
		return w.spawnSpare(a)
	case TakeOver:
		w.takeOver(a)
	case Dismiss:
		if w.beside[a.Gen] == nil {
			w.rt.Fatalf("dismissed %d, which is not a spare", a.Gen)
		}
		delete(w.beside, a.Gen)
	case ReloadFailed:
		if w.beside[a.Gen] != nil {
			w.rt.Fatalf("the reload by %d failed, and it is a spare still", a.Gen)
		}
		w.noteRequest = time.Time{} // whoever wished it is told
	}
	return nil
}

func (w *world) spawnSpare(a SpawnSpare) Event {
	if w.State() != Serving || !w.alive || w.finished || !w.stopped.IsZero() {
		w.rt.Fatalf("spare %d beside nothing: %s, alive %v, stopped %s", a.Gen, w.State(), w.alive, w.stopped)
	}
	if a.Gen != w.spawns {
		w.rt.Fatalf("start %d is called %d", w.spawns, a.Gen)
	}
	w.spawns++
	s := &modelSpare{reload: a.Reload, by: w.now.Add(30 * time.Second)}
	if a.Reload {
		w.noteRequest = time.Time{}
	}
	switch rapid.IntRange(0, 4).Draw(w.rt, "spare") {
	case 0:
		return SpareFailed{a.Gen, "no such file"}
	case 1: // says nothing
	case 2:
		s.fails = w.now.Add(w.draw("fails", 29*time.Second))
	default:
		s.comes = w.now.Add(w.draw("comes", 29*time.Second))
	}
	w.beside[a.Gen] = s
	return nil
}

func (w *world) takeOver(a TakeOver) {
	s := w.beside[a.Gen]
	if s == nil || s.ready != a.Ready {
		w.rt.Fatalf("%+v, of %+v", a, s)
	}
	if lives := a.Old >= 0; lives != w.alive || w.swept || lives && a.Old != w.gen || lives && !a.Ready {
		w.rt.Fatalf("%+v: %d is alive %v, swept %v", a, w.gen, w.alive, w.swept)
	}
	if !w.stopped.IsZero() {
		w.rt.Fatalf("%+v after the stop", a)
	}
	delete(w.beside, a.Gen)
	w.gen, w.alive = a.Gen, true
	w.exits, w.gone, w.drains, w.comes = time.Time{}, time.Time{}, time.Time{}, time.Time{}
	if !a.Ready {
		w.comes = s.comes
		w.noteRequest = time.Time{} // what is wished begins when this one is up, which is its own matter
		if !s.fails.IsZero() {
			w.exits, w.code = s.fails, 1
		}
	}
}

// nextBeside considers what happens to spares by themselves.
func (w *world) nextBeside(consider func(time.Time, func())) {
	for _, gen := range slices.Sorted(maps.Keys(w.beside)) {
		s := w.beside[gen]
		consider(s.comes, func() {
			s.ready, s.comes = true, time.Time{}
			w.tell(SpareReady{gen})
		})
		consider(s.fails, func() {
			delete(w.beside, gen)
			w.tell(SpareFailed{gen, "it died"})
		})
	}
	if w.alive {
		consider(w.comes, func() {
			w.comes = time.Time{}
			w.tell(Ready{w.gen})
		})
	}
}

// reloads reports whether a process comes up that is to take over.
func (w *world) reloads() bool {
	for _, s := range w.beside {
		if s.reload {
			return true
		}
	}
	return false
}

// spareDies ends one of the spares that are ready.
func (w *world) spareDies() {
	for _, gen := range slices.Sorted(maps.Keys(w.beside)) {
		if w.beside[gen].ready {
			delete(w.beside, gen)
			w.tell(SpareFailed{gen, "it died"})
			return
		}
	}
}

// checkBeside holds after every step: the machine and its owner agree about the spares, and there are not too many.
func (w *world) checkBeside() {
	var fresh, stale, reloads int
	shown := w.Snapshot().Spares
	for _, s := range shown {
		own := w.beside[s.Gen]
		if own == nil || own.ready != s.Ready || own.reload != s.Reload || s.Gen == w.gen {
			w.rt.Fatalf("%+v is shown, the owner has %+v", s, own)
		}
		if !s.Ready && w.now.After(own.by) {
			w.rt.Fatalf("%+v has not come up since %s", s, own.by)
		}
		switch {
		case s.Reload:
			reloads++
		case s.Stale:
			stale++
		default:
			fresh++
		}
	}
	if len(shown) != len(w.beside) {
		w.rt.Fatalf("%d spares are shown of %d", len(shown), len(w.beside))
	}
	// One more may become stale while nothing is serving; it goes when something is.
	if fresh > w.standby || reloads > 1 || stale > w.standby+1 || w.State() == Serving && stale > w.standby {
		w.rt.Fatalf("%d fresh, %d stale, %d to take over: %+v", fresh, stale, reloads, shown)
	}
	if s := w.State(); len(shown) > 0 && (s == Backoff || s == Failed || s == Stopped) {
		w.rt.Fatalf("spares in %s: %+v", s, shown)
	}
	if !w.stopped.IsZero() && len(shown) > 0 {
		w.rt.Fatalf("spares after the stop: %+v", shown)
	}
}
