package recovery

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// What is tried about each class that does not go away, and when a human hears of it.
func TestLadders(t *testing.T) {
	for _, c := range []struct {
		class, stall string
		can          Capabilities
		want         []string
		told         time.Duration
	}{
		{"crashed", stallCrashed, everything, []string{"resume 0s", "restart 5m0s", "restart 10m0s", "restart 15m0s", "restart 20m0s"}, 25 * time.Minute},
		{"crashed", stallCrashed, Capabilities{Restart: true}, []string{"restart 0s", "restart 5m0s", "restart 10m0s", "restart 15m0s", "restart 20m0s"}, 25 * time.Minute},
		{"crashed", stallCrashed, Capabilities{}, nil, 0},
		{"exited_unfinished", stallCrashed, everything, []string{"resume 0s", "restart 5m0s", "restart 10m0s"}, 15 * time.Minute},
		{"startup_blocked", stallWaiting, everything, []string{"restart 0s"}, 5 * time.Minute},
		{"waiting_permission", stallWaiting, everything, []string{"ask_phone 0s"}, 15 * time.Minute},
		{"waiting_permission", stallWaiting, Capabilities{Restart: true}, nil, 0},
		{"waiting_question", stallWaiting, everything, []string{"ask_phone 0s", "nudge 15m0s", "resume 20m0s", "resume 25m0s"}, 30 * time.Minute},
		{"waiting_other", stallWaiting, everything, nil, 0},
		{"auth_expired", stallErrored, everything, nil, 0},
		{"execution_error", stallErrored, everything, nil, 0},
		{"model_silent", stallHung, everything, []string{"observe 0s", "interrupt 1m0s", "resume 4m0s", "restart 9m0s"}, 14 * time.Minute},
		{"tool_hung", stallHung, everything, []string{"kill_tool 0s", "restart 3m0s", "restart 8m0s"}, 13 * time.Minute},
		{"loop", stallHung, everything, []string{"nudge 0s", "fresh 5m0s"}, 10 * time.Minute},
		{"no_progress", stallHung, everything, nil, 0},
		{"context_exhausted", stallErrored, everything, []string{"fresh 0s"}, 5 * time.Minute},
		{"heartbeat_lost", stallHung, everything, []string{"observe 0s", "observe 1m0s", "restart 2m0s", "restart 7m0s"}, 12 * time.Minute},
		{"budget_exceeded", stallErrored, everything, []string{"interrupt 0s"}, 3 * time.Minute},
		{"credit_exhausted", stallErrored, everything, nil, 0},
		{"rate_limited", stallErrored, Capabilities{}, []string{"hold 0s"}, 15 * time.Minute},
		{"api_failed", stallErrored, Capabilities{Nudge: true}, []string{"hold 0s", "nudge 1m0s", "hold 6m0s"}, 8 * time.Minute},
		{"never_heard_of", stallHung, everything, []string{"observe 0s", "observe 1m0s", "restart 2m0s", "restart 7m0s"}, 12 * time.Minute},
		{"never_heard_of", "", everything, []string{"observe 0s"}, time.Minute},
	} {
		t.Run(c.class+" "+strings.Join(c.want, ","), func(t *testing.T) {
			w := newFleet("shop")
			w.agents["shop"].can = c.can
			w.fail("shop", c.class, c.stall)
			w.run(40 * time.Minute)
			if d := cmp.Diff(c.want, w.taken("shop")); d != "" {
				t.Error(d)
			}
			if at, ok := w.told["shop"]; !ok || at.Sub(t0) != c.told {
				t.Errorf("told %v after %s, want %s", ok, at.Sub(t0), c.told)
			}
			w.least(t)
		})
	}
}

// What passes by itself is waited for longer each time, and tried after each wait; a human is told when that is used up. A
// session that has ended and cannot be gone on with is begun anew.
func TestPatience(t *testing.T) {
	for _, c := range []struct {
		class string
		can   Capabilities
		want  []string
		told  time.Duration
	}{
		{"api_failed", everything, []string{
			"hold 0s", "nudge 1m0s", "resume 6m0s", "hold 11m0s", "resume 13m0s", "hold 18m0s", "resume 22m0s", "hold 27m0s", "resume 35m0s",
			"hold 40m0s", "resume 56m0s", "hold 1h1m0s", "resume 1h33m0s", "hold 1h38m0s", "resume 2h38m0s", "hold 2h43m0s", "resume 3h43m0s",
		}, 3*time.Hour + 48*time.Minute},
		{"rate_limited", Capabilities{Ended: true, Restart: true, Nudge: false}, []string{
			"hold 0s", "restart 15m0s", "hold 20m0s", "restart 50m0s", "hold 55m0s", "restart 1h55m0s", "hold 2h0m0s", "restart 3h0m0s",
		}, 3*time.Hour + 5*time.Minute},
	} {
		t.Run(c.class, func(t *testing.T) {
			w := newFleet("shop")
			w.agents["shop"].can = c.can
			w.fail("shop", c.class, stallErrored)
			w.run(5 * time.Hour)
			if d := cmp.Diff(c.want, w.taken("shop")); d != "" {
				t.Error(d)
			}
			if at := w.told["shop"].Sub(t0); at != c.told {
				t.Errorf("told after %s, want %s", at, c.told)
			}
			w.least(t)
		})
	}
}

// Nothing is done to the process of a session in which a person has typed only just, whatever is wrong with it.
func TestAttendedSessionsAreLeftAlone(t *testing.T) {
	for class := range classes {
		w := newFleet("shop")
		a := w.agents["shop"]
		a.problem.Typed = t0.Add(-10 * time.Minute)
		w.fail("shop", class, stallHung)
		w.run(20 * time.Minute)
		for _, act := range w.log {
			if act.Rung.Touches() {
				t.Errorf("%s: %s after %s", class, act.Rung, act.At.Sub(t0))
			}
		}
		if NeedsHuman(class, stallHung) && w.told["shop"].IsZero() {
			t.Errorf("%s: nobody was told", class)
		}
	}
	p := Problem{Agent: "shop", Class: "model_silent", Stall: stallHung, Confidence: "high", Typed: t0}
	pol := Default()
	pol.Ladders = map[string]Ladder{"model_silent": {Resume}}
	for _, c := range []struct {
		after    time.Duration
		can      Capabilities
		attended bool
	}{{0, everything, true}, {30*time.Minute - 1, everything, true}, {30 * time.Minute, everything, false}, {0, Capabilities{Ended: true, Resume: true}, false}} {
		if d := Decide(p, History{}, pol, c.can, Fleet{}, t0.Add(c.after)); d.Attended != c.attended || d.Rung.Touches() == c.attended {
			t.Errorf("after %s: %+v", c.after, d)
		}
	}
}

// What cannot be done is said, with the step that comes instead.
func TestLeftOut(t *testing.T) {
	p := Problem{Agent: "shop", Class: "waiting_question", Stall: stallWaiting, Confidence: "high"}
	asked := History{Acts: []Act{{Agent: "shop", At: t0, Rung: AskPhone, Class: p.Class, Stall: p.Stall, Deadline: t0.Add(15 * time.Minute)}}}
	can := Capabilities{Ask: true, Resume: true}
	first, then := Decide(p, History{}, Default(), can, Fleet{}, t0), Decide(p, asked, Default(), can, Fleet{}, t0.Add(20*time.Minute))
	silent, nudge := "ask_phone has no effect: no channel is set up", "nudge was left out: no nudge command is declared"
	if d := cmp.Diff([]string{silent, nudge, "escalate has no effect: no channel is set up"}, first.LeftOut); d != "" || first.Rung != AskPhone {
		t.Errorf("%s %s", first.Rung, d)
	}
	if d := cmp.Diff([]string{nudge}, then.Skipped); d != "" || then.Rung != Resume {
		t.Errorf("%s %s", then.Rung, d)
	}
}

// The owner's ladder and budget win, for their class alone: "execution_error" is also the name of a type of stalls.
func TestOwnPolicy(t *testing.T) {
	w := newFleet("shop")
	a := w.agents["shop"]
	a.pol.Ladders = map[string]Ladder{"model_silent": {Restart}, "loop": {Nudge}, "execution_error": {Fresh}}
	a.pol.Budgets = map[string]Budget{"model_silent": {Max: 1, Window: time.Hour}, "execution_error": {Max: 9, Window: time.Hour}}
	w.fail("shop", "model_silent", stallHung)
	w.run(10 * time.Minute)
	if d := cmp.Diff([]string{"restart 0s"}, w.taken("shop")); d != "" || w.told["shop"].Sub(t0) != 5*time.Minute {
		t.Errorf("%s, told %s", d, w.told["shop"].Sub(t0))
	}
	if got := a.pol.ladder(Problem{Class: "loop", Stall: stallHung, Confidence: "high"}, everything); cmp.Diff(Ladder{Nudge}, got) != "" {
		t.Errorf("the ladder of the class: %v", got)
	}
	for class, want := range map[string]Rung{"execution_error": Fresh, "auth_expired": Escalate, "credit_exhausted": Escalate, "human_required": Escalate} {
		p := Problem{Class: class, Stall: stallErrored, Confidence: "high"}
		if got := a.pol.ladder(p, everything); got[0] != want {
			t.Errorf("%s: %v", class, got)
		}
		if own := a.pol.budget(p).Max == 9; own != (class == "execution_error") {
			t.Errorf("%s has the budget %+v", class, a.pol.budget(p))
		}
	}
}

// A diagnosis one is not sure of never costs a process its life, nor does a monitor that sees nothing.
func TestUnsureNeverKills(t *testing.T) {
	for class := range classes {
		for _, confidence := range []string{"low", "", "certain"} {
			w := newFleet("shop")
			w.agents["shop"].problem.Confidence = confidence
			w.agents["shop"].pol.Ladders = map[string]Ladder{"no_progress": {Interrupt, KillTool, Resume, Restart, Fresh}}
			w.fail("shop", class, stallHung)
			w.run(2 * time.Hour)
			for _, act := range w.log {
				if act.Rung.Touches() {
					t.Errorf("%s, confidence %q: %s", class, confidence, act.Rung)
				}
			}
			if w.told["shop"].IsZero() {
				t.Errorf("%s, confidence %q: nobody was told", class, confidence)
			}
		}
	}
	for blind := range 6 {
		p := Problem{Agent: "shop", Class: "crashed", Stall: stallBlind, Confidence: "high"}
		d := Decide(p, History{Blind: blind}, Default(), everything, Fleet{}, t0)
		if want := map[bool]Rung{true: Nothing, false: Escalate}[blind < 3]; d.Rung != want {
			t.Errorf("blind for %d looks: %s", blind, d.Rung)
		}
	}
}

// It begins from below only after it was well for long enough, and not because a process could be started.
func TestStableAfter(t *testing.T) {
	for _, c := range []struct {
		name  string
		well  time.Duration // how long it worked after the resume; 0: there was no new evidence
		wants Rung
	}{
		{"no new evidence", 0, Restart},
		{"well for a while", 29 * time.Minute, Restart},
		{"well for long", 30 * time.Minute, Resume},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newFleet("shop")
			w.fail("shop", "crashed", stallCrashed)
			w.tick(w.names())
			w.now = w.now.Add(time.Minute)
			if c.well > 0 {
				w.recover("shop")
			}
			w.now = w.now.Add(max(c.well, 31*time.Minute))
			p := w.agents["shop"].problem
			p.Class, p.Stall, p.Since = "crashed", stallCrashed, t0.Add(time.Minute+max(c.well, 1))
			d := Decide(p, w.agents["shop"].h, Default(), everything, Fleet{}, w.now)
			if d.Rung != c.wants {
				t.Errorf("%s (%s), want %s", d.Rung, d.Reason, c.wants)
			}
		})
	}
}

// A process that dies right after its start is a new trouble: it needs no deadline, only the pace.
func TestCrashRightAfterTheStart(t *testing.T) {
	w := newFleet("shop")
	w.fail("shop", "crashed", stallCrashed)
	w.tick(w.names())
	w.now = w.now.Add(10 * time.Second)
	w.fail("shop", "crashed", stallCrashed)
	d := w.tick(w.names())["shop"]
	if d.Rung != Nothing {
		t.Fatalf("%+v", d)
	}
	w.now = t0.Add(time.Minute)
	if d = w.tick(w.names())["shop"]; d.Rung != Restart {
		t.Errorf("%+v", d)
	}
}

// Five starts in a quarter of an hour end it; then one is tried after each cooldown, which doubles, and a human is told
// once.
func TestCrashLoop(t *testing.T) {
	w := newFleet("shop")
	a := w.agents["shop"]
	a.pol.Budgets = map[string]Budget{"crashed": {Max: 100, Window: time.Hour}}
	why := "" // a human is told
	for w.now.Before(t0.Add(5 * time.Hour)) {
		if a.problem.Since.Before(lastAct(a)) || a.problem.Class == "" {
			w.fail("shop", "crashed", stallCrashed) // it dies at once, again and again
		}
		if d := w.tick(w.names())["shop"]; d.Rung == Escalate && why == "" {
			why = d.Reason
		}
		w.now = w.now.Add(5 * time.Second)
	}
	var gaps []time.Duration
	for i := 1; i < len(a.h.Acts); i++ {
		gaps = append(gaps, a.h.Acts[i].At.Sub(a.h.Acts[i-1].At))
	}
	m := time.Minute
	if d := cmp.Diff([]time.Duration{m, m, m, m, 15 * m, 30 * m, 60 * m, 120 * m}, gaps); d != "" {
		t.Error(d)
	}
	if want := "a crash loop: 5 starts of this agent within 15m, for whatever problem"; why != want {
		t.Errorf("told: %q, want %q", why, want)
	}
	if at := w.told["shop"].Sub(t0); at != 5*time.Minute {
		t.Errorf("told after %s", at)
	}
	// A person gives it another chance.
	a.h.Reset, a.h.Open = w.now, false
	if d := w.tick(w.names())["shop"]; d.Rung != Resume {
		t.Errorf("after a reset: %+v", d)
	}
}

// The starts of a crash loop are those for every trouble of the agent, and the budget's are those for one: who is told reads which is
// which.
func TestACrashLoopOfTwoTroubles(t *testing.T) {
	w := newFleet("shop")
	a := w.agents["shop"]
	a.pol.Ladders = map[string]Ladder{"rate_limited": {Resume}}
	w.fail("shop", "rate_limited", stallErrored)
	w.tick(w.names())
	var d Decision
	for w.now.Before(t0.Add(14*time.Minute)) && d.Rung != Escalate {
		w.now = w.now.Add(5 * time.Second)
		if a.problem.Since.Before(lastAct(a)) {
			w.fail("shop", "crashed", stallCrashed)
		}
		d = w.tick(w.names())["shop"]
	}
	if d.Rung != Escalate || d.Reason != "a crash loop: 5 starts of this agent within 15m, for whatever problem" || d.Budget.Used != 4 || d.Budget.Max != 5 {
		t.Errorf("%+v", d)
	}
}

func lastAct(a *agent) time.Time {
	if len(a.h.Acts) == 0 {
		return time.Time{}
	}
	return a.h.Acts[len(a.h.Acts)-1].At.Add(time.Nanosecond)
}

// Whoever waits for the end of a limit is left alone until then, and goes on one after the other.
func TestHoldUntilTheReset(t *testing.T) {
	w := newFleet("shop")
	w.fail("shop", "rate_limited", stallErrored)
	until := t0.Add(2 * time.Hour)
	w.agents["shop"].problem.Until = until
	w.run(3 * time.Hour)
	taken := w.agents["shop"].h.Acts
	if len(taken) < 2 || taken[0].Rung != Hold || taken[1].Rung != Nudge {
		t.Fatalf("%v", w.taken("shop"))
	}
	if at := taken[1].At; at.Before(until.Add(slack)) || at.After(until.Add(slack+spread+5*time.Second)) {
		t.Errorf("nudged at %s, the limit ends at %s", at, until)
	}
	// One that lasts for days is told at once, and waited for nevertheless.
	w = newFleet("shop")
	w.fail("shop", "rate_limited", stallErrored)
	w.agents["shop"].problem.Until = t0.Add(50 * time.Hour)
	w.run(30 * time.Minute)
	if d := cmp.Diff([]string{"hold 5s"}, w.taken("shop")); d != "" || !w.told["shop"].Equal(t0) {
		t.Errorf("%s, told %s", d, w.told["shop"])
	}
}

// A limit that is still there after its reset is tried again in minutes, and later each time.
func TestALimitAfterItsReset(t *testing.T) {
	for _, c := range []struct {
		name  string
		reset time.Duration // from now
		want  []string
		told  time.Duration
	}{
		{"waited for", time.Hour, []string{
			"hold 0s", "resume 1h1m20s", "hold 1h6m20s", "resume 1h16m20s", "hold 1h21m20s", "resume 1h41m20s", "hold 1h46m20s", "resume 2h26m20s",
		}, 2*time.Hour + 31*time.Minute + 20*time.Second},
		{"seen after it", -10 * time.Second, []string{
			"hold 0s", "resume 5m0s", "hold 10m0s", "resume 20m0s", "hold 25m0s", "resume 45m0s", "hold 50m0s", "resume 1h30m0s",
		}, time.Hour + 35*time.Minute},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newFleet("shop")
			w.agents["shop"].can = Capabilities{Resume: true}
			w.fail("shop", "rate_limited", stallErrored)
			w.agents["shop"].problem.Until = t0.Add(c.reset)
			w.run(4 * time.Hour)
			if d := cmp.Diff(c.want, w.taken("shop")); d != "" {
				t.Error(d)
			}
			if at := w.told["shop"].Sub(t0); at != c.told {
				t.Errorf("told after %s, want %s", at, c.told)
			}
			w.least(t)
		})
	}
}

// Agents that wait for one reset are spread over a minute.
func TestTheEndOfALimitIsSpread(t *testing.T) {
	first, last := spread, time.Duration(0)
	for _, name := range agentNames(20) {
		p := Problem{Agent: name, Class: "rate_limited", Stall: stallErrored, Confidence: "high", Until: t0.Add(time.Hour)}
		d := Decide(p, History{}, Default(), everything, Fleet{}, t0)
		at := d.VerifyWithin - time.Hour - slack
		if d.Rung != Hold || at < 0 || at >= spread {
			t.Fatalf("%s: %+v", name, d)
		}
		first, last = min(first, at), max(last, at)
	}
	if last-first < spread/2 {
		t.Errorf("all of 20 go on between %s and %s", first, last)
	}
}

// While a human is told of what no restart cures, nothing is started.
func TestHeldByAHuman(t *testing.T) {
	for class, want := range map[string]Rung{"crashed": Nothing, "loop": Nothing, "auth_expired": Escalate, "heartbeat_lost": Observe} {
		p := Problem{Agent: "shop", Class: class, Confidence: "high"}
		if d := Decide(p, History{Held: true}, Default(), everything, Fleet{}, t0); d.Rung != want {
			t.Errorf("%s: %+v", class, d)
		}
	}
	if !NeedsHuman("auth_expired", "") || !NeedsHuman("anything", stallErrored) || NeedsHuman("crashed", stallCrashed) {
		t.Error("NeedsHuman")
	}
}

// A step has helped once the agent has worked as long as the trouble lasted that it mended, and as long as an effect was awaited.
func TestEffectOf(t *testing.T) {
	t0 := time.Date(2026, 11, 21, 3, 0, 0, 0, time.UTC)
	at := func(d time.Duration) time.Time { return t0.Add(d) }
	restart := func(began, done, proved time.Duration) Act {
		a := Act{Rung: Restart, Class: "crashed", Since: at(began), At: at(done), Deadline: at(done + 5*time.Minute)}
		if proved > 0 {
			a.Proved = at(proved)
		}
		return a
	}
	const s, m = time.Second, time.Minute
	for name, tc := range map[string]struct {
		acts    []Act
		trouble time.Duration // 0: it is in none
		now     time.Duration
		want    Effect
	}{
		"nothing was seen of it":        {[]Act{restart(0, 5*s, 0)}, 0, m, Effect{}},
		"it works, so far":              {[]Act{restart(0, 5*s, 10*s)}, 0, 2 * m, Effect{Again: at(10 * s), Lasted: 110 * s}},
		"it has worked for long enough": {[]Act{restart(0, 5*s, 10*s)}, 0, 6 * m, Effect{Again: at(10 * s), Lasted: 350 * s, Helped: at(310 * s)}},
		"it crashed after 13 seconds":   {[]Act{restart(0, 5*s, 10*s)}, 23 * s, 25 * s, Effect{Again: at(10 * s), Lasted: 13 * s, Over: true}},
		"and was restarted again":       {[]Act{restart(0, 5*s, 10*s), restart(23*s, 30*s, 0)}, 0, 90 * m, Effect{Again: at(10 * s), Lasted: 13 * s, Over: true}},
		"and that was not done":         {[]Act{restart(0, 5*s, 10*s), {Rung: Restart, Since: at(23 * s), At: at(30 * s), Refunded: true}}, 0, 9 * m, Effect{Again: at(10 * s), Lasted: 530 * s, Helped: at(310 * s)}},
		"a later step did it":           {[]Act{restart(0, 5*s, 400*s), restart(0, 300*s, 400*s)}, 0, 90 * m, Effect{}},
		"it helped, once":               {[]Act{restart(0, 5*s, 10*s), restart(20*m, 21*m, 0)}, 20 * m, 22 * m, Effect{Again: at(10 * s), Lasted: 20*m - 10*s, Over: true, Helped: at(310 * s)}},
		"it hung for half an hour":      {[]Act{restart(0, 30*m, 31*m)}, 0, 50 * m, Effect{Again: at(31 * m), Lasted: 19 * m}},
	} {
		trouble := time.Time{}
		if tc.trouble > 0 {
			trouble = at(tc.trouble)
		}
		if d := cmp.Diff(tc.want, EffectOf(tc.acts, 0, trouble, at(tc.now))); d != "" {
			t.Errorf("%s (-want +got):\n%s", name, d)
		}
	}
}
