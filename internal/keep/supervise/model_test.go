package supervise

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/outlive-mcp/outlive/internal/keep/backoff"
	_ "github.com/outlive-mcp/outlive/internal/testing/tier" // fixes the seed of rapid
)

// never is a process's answer to what it ignores.
const never = time.Duration(-1)

// world is a simulated owner: one process at a time, which obeys or does not, and a clock that jumps.
type world struct {
	*Machine
	rt  *rapid.T
	now time.Time

	alive, swept bool // the process lives; it is dead but not cleared away
	gen          int
	exits, gone  time.Time // when that happens; zero: not yet known
	drains       time.Time
	code         int
	stopped      time.Time // when the first Stop was told
	finished     bool
	needed       time.Time // a process that sleeps, or goes to sleep, was asked for since; zero: no
	atSleep      int       // restarts when the last sleep began
	noteRequest  time.Time // the oldest wish for a restart that no start has followed; zero: none
	spawns       int

	standby int
	beside  map[int]*modelSpare
	comes   time.Time // when the process that took over while it was coming up has come up
}

// longestStop is the sum of the longest ladder to the end: a planned restart is not a part of it, a Stop overtakes that.
const longestStop = 10*time.Second + 1500*time.Millisecond + 500*time.Millisecond

// longestSweep is how long the simulated owner takes to clear a dead process away, at most.
const longestSweep = 500 * time.Millisecond

// longestWish is how long a wished restart may take to its start: drain, grace, sweep, floor, pause.
const longestWish = time.Second + 2*time.Second + longestSweep + time.Second + 500*time.Millisecond

func (w *world) draw(label string, most time.Duration) time.Duration {
	return time.Duration(rapid.Int64Range(0, int64(most)).Draw(w.rt, label))
}

// drawReply draws how long the process takes to obey; it may ignore what it is told.
func (w *world) drawReply(label string) time.Duration {
	if rapid.Bool().Draw(w.rt, label+" ignored") {
		return never
	}
	return w.draw(label, 3*time.Second)
}

func (w *world) tell(ev Event) {
	w.checkedStep(func() []Action { return w.Step(w.now, w.random(), ev) })
}

func (w *world) random() float64 { return rapid.Float64Range(0, 0.999).Draw(w.rt, "rnd") }

func (w *world) checkedStep(step func() []Action) {
	var next []Event
	for _, a := range step() {
		if ev := w.obey(a); ev != nil {
			next = append(next, ev)
		}
	}
	for _, ev := range next {
		w.tell(ev)
	}
	w.check()
}

// obey carries an action out. It returns the event that follows on it at once, if any.
func (w *world) obey(a Action) Event {
	switch a := a.(type) {
	case SpawnSpare, TakeOver, Dismiss, ReloadFailed:
		return w.obeyBeside(a)
	case Report:
		if a.To == Failed {
			w.noteRequest = time.Time{}
		}
		w.checkSleep(a)
	case Spawn:
		if w.alive || w.swept || w.finished || !w.stopped.IsZero() {
			w.rt.Fatalf("start %d: alive %v, swept %v, finished %v, stopped %s", a.Gen, w.alive, w.swept, w.finished, w.stopped)
		}
		if a.Gen != w.spawns {
			w.rt.Fatalf("start %d is called %d", w.spawns, a.Gen)
		}
		w.spawns++
		w.gen, w.noteRequest, w.needed = a.Gen, time.Time{}, time.Time{}
		w.exits, w.gone, w.drains, w.comes = time.Time{}, time.Time{}, time.Time{}, time.Time{}
		if rapid.IntRange(0, 9).Draw(w.rt, "spawn fails") == 0 {
			return SpawnFailed{Gen: w.gen}
		}
		w.alive = true
	case BeginDrain:
		w.owns(a.Gen)
		if d := w.drawReply("drain"); d != never {
			w.drains = w.now.Add(d)
		}
	case CloseStdin:
		w.owns(a.Gen)
		w.exitAfter(w.drawReply("stdin closed"), 0)
	case Terminate:
		w.owns(a.Gen)
		w.exitAfter(w.drawReply("terminated"), 143)
	case Kill:
		w.owns(a.Gen)
		w.exitAfter(0, 137)
	case Finish:
		if w.alive || w.swept || w.finished || len(w.beside) > 0 {
			w.rt.Fatalf("finished: alive %v, swept %v, finished already %v, %d spares", w.alive, w.swept, w.finished, len(w.beside))
		}
		w.finished, w.noteRequest, w.needed = true, time.Time{}, time.Time{}
	}
	return nil
}

// owns checks that an action is for the process that lives.
func (w *world) owns(gen int) {
	if !w.alive || gen != w.gen {
		w.rt.Fatalf("action for generation %d; %d is alive: %v", gen, w.gen, w.alive)
	}
}

func (w *world) exitAfter(d time.Duration, code int) {
	if at := w.now.Add(d); d != never && (w.exits.IsZero() || at.Before(w.exits)) {
		w.exits, w.code = at, code
	}
}

// check holds after every step.
func (w *world) check() {
	if due := w.Deadline(); !due.IsZero() && due.Before(w.now) {
		w.rt.Fatalf("%s wants to be woken in the past", w.State())
	}
	if w.finished != w.Snapshot().Over || w.finished && !w.Deadline().IsZero() {
		w.rt.Fatalf("finished %v, %+v, deadline %s", w.finished, w.Snapshot(), w.Deadline())
	}
	running := map[State]bool{Starting: true, Serving: true, Stopping: true}[w.State()]
	if running != w.alive || (w.State() == Sweeping) != w.swept {
		w.rt.Fatalf("%s, but alive %v, swept %v", w.State(), w.alive, w.swept)
	}
	if !w.stopped.IsZero() && !w.finished && w.now.Sub(w.stopped) > longestStop+longestSweep {
		w.rt.Fatalf("not over %s after the stop", w.now.Sub(w.stopped))
	}
	allowed := longestWish
	if w.reloads() {
		allowed += 30 * time.Second // it was put off once; it comes up or fails, and then it is the next one's turn
	}
	if !w.noteRequest.IsZero() && w.stopped.IsZero() && w.now.Sub(w.noteRequest) > allowed {
		w.rt.Fatalf("no start %s after the wish: %s", w.now.Sub(w.noteRequest), w.State())
	}
	if !w.needed.IsZero() && w.stopped.IsZero() && w.now.Sub(w.needed) > 2*time.Second+longestSweep {
		w.rt.Fatalf("asleep %s after it was needed", w.now.Sub(w.needed))
	}
	w.checkBeside()
}

// checkSleep checks that a sleep counts as nothing.
func (w *world) checkSleep(r Report) {
	switch {
	case r.Cause != Idle:
	case r.To == Stopping:
		w.atSleep = r.Restarts
	case r.Restarts != w.atSleep:
		w.rt.Fatalf("%d restarts before the sleep: %+v", w.atSleep, r)
	}
}

// next returns what the world does next by itself and when; nil: nothing.
func (w *world) next() (when time.Time, what func()) {
	consider := func(t time.Time, do func()) {
		if !t.IsZero() && (when.IsZero() || t.Before(when)) {
			when, what = t, do
		}
	}
	consider(w.gone, func() {
		w.swept, w.gone = false, time.Time{}
		w.tell(TreeGone{w.gen})
	})
	if w.alive {
		consider(w.exits, func() { w.die(w.code, false) })
		consider(w.drains, func() {
			w.drains = time.Time{}
			w.tell(Drained{w.gen})
		})
	}
	w.nextBeside(consider)
	consider(w.Deadline(), func() {
		w.checkedStep(func() []Action { return w.Tick(w.now, w.random()) })
		if due := w.Deadline(); !due.IsZero() && !due.After(w.now) {
			w.rt.Fatalf("%s wants to be woken at once again", w.State())
		}
	})
	return when, what
}

func (w *world) die(code int, probe bool) {
	if !w.alive {
		return
	}
	end := Exited{Gen: w.gen, Code: code, Signalled: code > 128, Probe: probe}
	w.alive, w.swept = false, true
	w.gone = w.now.Add(w.draw("sweep", longestSweep))
	w.tell(end)
}

// pass lets time go by.
func (w *world) pass(d time.Duration) {
	for end := w.now.Add(d); ; {
		when, what := w.next()
		if what == nil || when.After(end) {
			w.now = end
			w.check()
			return
		}
		w.now = when
		what()
	}
}

// happen lets one thing happen that nobody could foresee.
func (w *world) happen() {
	switch rapid.SampledFrom([]string{
		"start", "up", "up", "up", "handshake", "refused", "exit", "exit", "exit", "stdout", "condemned", "wish", "wish", "limit",
		"replace", "replayable", "replayable", "spare dies", "stale", "stop", "sleep", "needed",
	}).Draw(w.rt, "what") {
	case "start":
		w.tell(Start{})
	case "sleep":
		w.tellAlive(Sleep{w.gen, "idle"})
	case "needed":
		if w.State() != Starting && w.State() != Serving && w.Snapshot().Cause == Idle && w.needed.IsZero() {
			w.needed = w.now
		}
		w.tell(Start{})
	case "up":
		w.tellAlive(Ready{w.gen})
	case "handshake":
		w.tellAlive(Handshake{w.gen})
		if w.State() == Starting {
			w.noteRequest = time.Time{} // what is wished begins when it is up again, which is its own matter
		}
	case "refused":
		w.tellAlive(Refused{Gen: w.gen})
	case "exit":
		code := rapid.SampledFrom([]int{0, 1, 1, 1, 1, 1, 1, 42, 42, 78, 139}).Draw(w.rt, "code")
		w.die(code, rapid.IntRange(0, 9).Draw(w.rt, "probe") == 0)
	case "stdout":
		w.tellAlive(StdoutClosed{w.gen})
	case "condemned":
		w.tellAlive(MarkUnhealthy{w.gen, rapid.SampledFrom([]Cause{Unhealthy, Memory}).Draw(w.rt, "cause"), "no answer"})
	case "wish":
		if w.noteRequest.IsZero() && !w.finished {
			w.noteRequest = w.now
		}
		w.tell(Restart{Cause: Requested, Source: rapid.SampledFrom([]Source{SourceTool, SourceControl}).Draw(w.rt, "source"),
			Overlap: rapid.Bool().Draw(w.rt, "overlap")})
		if w.later != nil {
			w.noteRequest = time.Time{} // it begins when the process that is coming up is up, which is its own matter
		}
	case "limit":
		w.tell(Restart{Cause: Requested, Source: SourceLimit, Overlap: rapid.Bool().Draw(w.rt, "overlap")})
	case "replayable":
		w.tell(Replayable{rapid.IntRange(0, 9).Draw(w.rt, "not") > 0})
	case "spare dies":
		w.spareDies()
	case "replace":
		w.tell(Restart{Cause: rapid.SampledFrom([]Cause{Replace, ProbeExit}).Draw(w.rt, "cause")})
	case "stale":
		w.stale()
	case "stop":
		if rapid.IntRange(0, 9).Draw(w.rt, "really") == 0 {
			w.stop()
		}
	}
}

func (w *world) tellAlive(ev Event) {
	if w.alive {
		w.tell(ev)
	}
}

func (w *world) stop() {
	if w.stopped.IsZero() {
		w.stopped = w.now
	}
	w.tell(Stop{rapid.SampledFrom([]Profile{ClientEOF, Signal}).Draw(w.rt, "profile")})
}

// stale tells of processes other than the last one; nothing may come of it.
func (w *world) stale() {
	gen := rapid.SampledFrom([]int{-2, w.gen - 1, w.spawns}).Draw(w.rt, "generation")
	if w.spawns == 0 || w.beside[gen] != nil {
		gen = -2
	}
	before, due := w.Snapshot(), w.Deadline()
	for _, ev := range []Event{
		SpawnFailed{Gen: gen}, Handshake{gen}, Ready{gen}, Refused{Gen: gen}, Drained{gen}, StdoutClosed{gen},
		Exited{Gen: gen, Code: 1}, TreeGone{gen}, SpareReady{gen}, SpareFailed{Gen: gen}, MarkUnhealthy{gen, Memory, ""}, Sleep{gen, ""},
	} {
		if actions := w.Step(w.now, 0, ev); len(actions) > 0 {
			w.rt.Fatalf("%T of generation %d: %v", ev, gen, actions)
		}
	}
	if diff := cmp.Diff(before, w.Snapshot()); diff != "" || !w.Deadline().Equal(due) {
		w.rt.Fatalf("stale events changed (-before +after):\n%s", diff)
	}
}

func TestModel(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		p, err := backoff.Preset(rapid.SampledFrom(backoff.PresetNames()).Draw(rt, "policy"))
		if err != nil {
			rt.Fatal(err)
		}
		opts := rulesOf78()
		opts.Backoff = p
		opts.Standby = rapid.IntRange(0, 2).Draw(rt, "standby")
		w := &world{Machine: New(opts), rt: rt, now: t0, standby: opts.Standby, beside: map[int]*modelSpare{}}
		if rapid.Bool().Draw(rt, "started") {
			w.tell(Start{})
		}
		for range rapid.IntRange(1, 60).Draw(rt, "events") {
			w.happen()
			w.pass(w.draw("pause", rapid.SampledFrom([]time.Duration{0, time.Second, time.Minute, 24 * time.Hour}).Draw(rt, "scale")))
		}
		w.stop()
		w.pass(longestStop + longestSweep)
		if !w.finished {
			rt.Fatalf("a stop did not end it: %s", w.State())
		}
	})
}
