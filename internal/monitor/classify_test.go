package monitor

import (
	"testing"
	"time"

	"github.com/outlive-mcp/outlive/internal/piv"
)

var policy = Policy{Stale: 15 * time.Minute, Restarts: 3, Pace: time.Minute}

// silent is a running project that was heard last so long ago.
func silent(age time.Duration, life Life) Evidence {
	return Evidence{
		Project: piv.Project{Name: "shop", Status: piv.Running, Phase: 3}, Watched: true,
		HasBeat: true, BeatAge: age, Silence: age, Life: life, LifeDetail: "PID 7 is " + string(life),
	}
}

func with(e Evidence, change func(*Evidence)) Evidence {
	change(&e)
	return e
}

func manifest(age time.Duration, failures ...piv.Failure) func(*Evidence) {
	return func(e *Evidence) {
		e.Manifest, e.ManifestAge = &piv.Manifest{LastUpdated: time.Unix(1, 0), Failures: failures}, age
	}
}

func signs(kind SignKind) func(*Evidence) {
	return func(e *Evidence) { e.Signs = append(e.Signs, Sign{kind, "why"}) }
}

func TestClassify(t *testing.T) {
	const old, fresh = time.Hour, time.Minute
	failed := piv.Failure{Command: "execute", Category: "test_failure", Phase: 3, Resolution: "pending", Details: "boom"}
	auth := piv.Failure{Category: "integration_auth", Phase: 3, Resolution: "pending", Details: "no key"}
	done := piv.Failure{Category: "integration_auth", Resolution: "escalated"}
	for _, tc := range []struct {
		name  string // of S4 Task 10 first, as it is written there
		e     Evidence
		stall Stall
		rule  string
		class string
	}{
		{"Healthy project (fresh heartbeat)", silent(fresh, Alive), noStall, "OK", "healthy"},
		{"Dead PID + stale heartbeat", silent(old, Dead), Crashed, "R2", "crashed"},
		{"Alive PID + stale heartbeat + no manifest clues", silent(old, Alive), Hung, "H5", "heartbeat_lost"},
		{"Alive PID + stale heartbeat + pending failure in manifest", with(silent(old, Alive), manifest(old, failed)), Errored, "E1", "execution_error"},
		{"Missing heartbeat (never written)", with(silent(0, Dead), func(e *Evidence) { e.HasBeat, e.Silence = false, 1<<63-1 }), Crashed, "R2", "crashed"},
		{"Heartbeat exactly at threshold boundary", silent(policy.Stale, Dead), noStall, "OK", "healthy"},
		{"one nanosecond later", silent(policy.Stale+1, Dead), Crashed, "R2", "crashed"},
		// S4 "Edge Cases" and decision tree.
		{"Heartbeat timestamp in the future", with(silent(0, Alive), func(e *Evidence) { e.BeatAge = -time.Hour }), noStall, "OK", "healthy"},
		{"manifest last_updated stale", with(silent(old, Alive), manifest(old)), Hung, "H5", "heartbeat_lost"},
		{"manifest has blocking notification", with(silent(old, Alive), signs(Notified)), Waiting, "W3", "waiting_other"},
		{"a fresh heartbeat outweighs the manifest", with(silent(fresh, Alive), manifest(fresh, failed)), noStall, "OK", "healthy"},
		{"a dead PID outweighs an ordinary failure", with(silent(old, Dead), manifest(old, failed)), Crashed, "R2", "crashed"},
		{"SC-007 integration_auth", with(silent(old, Alive), manifest(old, auth)), Errored, "E0", "human_required"},
		{"SC-007 integration_auth, and it gave up", with(silent(old, Dead), manifest(old, auth)), Errored, "E0", "human_required"},
		{"a failure that was dealt with", with(silent(old, Alive), manifest(old, done)), Hung, "H5", "heartbeat_lost"},
		// The rows of the design.
		{"R0 idle", with(silent(old, Dead), func(e *Evidence) { e.Watched = false }), noStall, "R0", "not watched"},
		{"R1 unreadable entry", with(silent(old, Dead), func(e *Evidence) { e.Fault = "path is missing" }), Blind, "R1", "unreadable"},
		{"R1 registry lost, alive", with(silent(old, Alive), func(e *Evidence) { e.Lost = "gone" }), Blind, "R1", "lost"},
		{"R1 registry lost, dead is dead", with(silent(old, Dead), func(e *Evidence) { e.Lost = "gone" }), Crashed, "R2", "crashed"},
		{"R1 vanished", with(silent(old, Dead), func(e *Evidence) { e.Vanished = true }), Blind, "R1", "vanished"},
		{"R1 unsure whose process", silent(old, Unsure), Blind, "R1", "unsure"},
		{"R1 manifest half written", with(silent(old, Alive), func(e *Evidence) { e.ManifestFault = "broken" }), Blind, "R1", "manifest"},
		{"R4 starting", with(silent(old, Alive), func(e *Evidence) { e.Starting, e.Silence = true, fresh }), noStall, "R4", "starting"},
		{"R4 died while starting", with(silent(old, Dead), func(e *Evidence) { e.Starting, e.Silence = true, fresh }), Crashed, "R2", "crashed"},
		{"R5 started, never heard", with(silent(old, Alive), func(e *Evidence) { e.Starting, e.Silence = true, old }), Waiting, "R5", "startup_blocked"},
		{"G after a sleep, alive", with(silent(old, Alive), func(e *Evidence) { e.Grace = "slept" }), noStall, "G", "grace"},
		{"G after a sleep, dead is dead", with(silent(old, Dead), func(e *Evidence) { e.Grace = "slept" }), Crashed, "R2", "crashed"},
		{"G just booted", with(silent(old, Dead), func(e *Evidence) { e.Grace, e.GraceDead = "booted", true }), noStall, "G", "grace"},
		{"W1", with(silent(old, Alive), signs(AsksPermission)), Waiting, "W1", "waiting_permission"},
		{"W2", with(silent(old, Alive), signs(AsksQuestion)), Waiting, "W2", "waiting_question"},
		{"W4", with(silent(old, Alive), signs(AsksEscalation)), Waiting, "W4", "waiting_permission"},
		{"W5", with(silent(old, Alive), signs(EndedAsking)), Waiting, "W5", "waiting_question"},
		{"E1 before W5: the surer one", with(with(silent(old, Alive), signs(EndedAsking)), manifest(old, failed)), Errored, "E1", "execution_error"},
		{"OK by the manifest", with(silent(old, Alive), manifest(fresh)), noStall, "OK", "working"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			v := Classify(tc.e, policy)
			if v.Stall != tc.stall || v.Rule != tc.rule || v.Class != tc.class {
				t.Errorf("%s %s %s, want %s %s %s", v.Rule, v.Class, v.Stall, tc.rule, tc.class, tc.stall)
			}
			if v.Details == "" || v.Confidence == "" {
				t.Errorf("it does not say why: %+v", v)
			}
		})
	}
}

func history(stall Stall, phase int, ago ...time.Duration) History {
	var h History
	for _, d := range ago {
		h.Attempts = append(h.Attempts, Attempt{At: time.Unix(1e9, 0).Add(-d), Stall: stall, Phase: phase})
		h.Last = h.Attempts[len(h.Attempts)-1].At
	}
	return h
}

func TestDecide(t *testing.T) {
	const m, h = time.Minute, time.Hour
	for _, tc := range []struct {
		name  string // of S4 Task 11 first
		stall Stall
		class string
		past  History
		want  ActionKind
		count int
	}{
		{"orchestrator_crashed", Crashed, "", History{}, Restart, 0},
		{"session_hung first occurrence", Hung, "", History{}, Restart, 0},
		{"session_hung second occurrence", Hung, "", history(Hung, 3, 20*m), Restart, 1},
		{"session_hung third occurrence", Hung, "", history(Hung, 3, 40*m, 20*m), Escalate, 2},
		{"agent_waiting first occurrence", Waiting, "", History{}, RestartWithPreamble, 0},
		{"agent_waiting second occurrence", Waiting, "", history(Waiting, 3, 20*m), RestartWithPreamble, 1},
		{"agent_waiting third occurrence", Waiting, "", history(Waiting, 3, 40*m, 20*m), Escalate, 2},
		{"execution_error", Errored, "", History{}, Escalate, 0},
		// A budget on every stall, in windows.
		{"another phase begins anew", Hung, "", history(Hung, 2, 40*m, 20*m), Restart, 0},
		{"another stall does not count", Hung, "", history(Waiting, 3, 40*m, 20*m), Restart, 0},
		{"yesterday does not count", Hung, "", history(Hung, 3, 25*h, 24*h), Restart, 0},
		{"the fifth crash in an hour", Crashed, "", history(Crashed, 3, 50*m, 40*m, 30*m, 20*m), Restart, 4},
		{"the sixth crash in an hour", Crashed, "", history(Crashed, 3, 50*m, 40*m, 30*m, 20*m, 10*m), Escalate, 5},
		{"crashes hours apart", Crashed, "", history(Crashed, 3, 9*h, 7*h, 5*h, 3*h, 61*m), Restart, 0},
		{"a clock that was set back wins no budget", Hung, "", history(Hung, 3, -2*h, -h), Escalate, 2},
		{"only just", Crashed, "", history(Crashed, 3, 30*time.Second), Skip, 1},
		// A human is told once.
		{"told already", Hung, "", and(history(Hung, 3, 40*m, 20*m), func(h *History) { h.Open = true }), Skip, 2},
		{"told, and the window has passed", Crashed, "", and(history(Crashed, 3, 70*m), func(h *History) { h.Open = true }), Restart, 0},
		{"no restart over an error", Crashed, "", History{Held: true}, Skip, 0},
		// Blind never kills.
		{"blind once", Blind, "unsure", History{Blind: 1}, Skip, 0},
		{"blind three times", Blind, "unsure", History{Blind: 3}, Escalate, 0},
		{"blind because of the registry", Blind, "lost", History{Blind: 3}, Skip, 0},
		{"no stall", noStall, "healthy", History{}, Skip, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got := Decide(Verdict{Stall: tc.stall, Class: tc.class}, 3, tc.past, policy, time.Unix(1e9, 0))
			if got.Kind != tc.want || got.Count != tc.count {
				t.Errorf("%+v, want %s after %d", got, tc.want, tc.count)
			}
			if (got.Kind == Skip) != (got.Reason != "") {
				t.Errorf("%+v: a skipped action says why, and no other", got)
			}
		})
	}
}

func and(h History, change func(*History)) History {
	change(&h)
	return h
}

func TestAge(t *testing.T) {
	at := func(m int) time.Time { return time.Unix(0, 0).Add(time.Duration(m) * time.Minute) }
	sleeps := []Sleep{{End: at(30), Length: 10 * time.Minute}, {End: at(100), Length: 60 * time.Minute}}
	for _, tc := range []struct{ then, now, want int }{
		{110, 120, 10}, // after every sleep
		{0, 120, 50},   // both lie between
		{25, 35, 5},    // begun in the middle of one
		{30, 40, 10},   // exactly at its end
		{90, 101, 1},   // it slept nearly all the time
	} {
		if got := Age(at(tc.then), at(tc.now), sleeps); got != time.Duration(tc.want)*time.Minute {
			t.Errorf("from %d to %d: %v, want %d min", tc.then, tc.now, got, tc.want)
		}
	}
}

func TestGap(t *testing.T) {
	moment := func(wall, mono time.Duration, boot string) Moment {
		return Moment{Wall: time.Unix(1e9, 0).Add(wall), Mono: mono, Up: mono, Boot: boot}
	}
	for _, tc := range []struct {
		name       string
		a, b       Moment
		want       time.Duration
		wantUnseen time.Duration
	}{
		{"awake", moment(0, time.Hour, "x"), moment(time.Minute, time.Hour+time.Minute, "x"), 0, 0},
		{"asleep", moment(0, time.Hour, "x"), moment(8*time.Hour, time.Hour+time.Minute, "x"), 8*time.Hour - time.Minute, 0},
		{"clock set forward", moment(0, time.Hour, "x"), moment(time.Hour, time.Hour, "x"), time.Hour, 0},
		{"clock set back", moment(0, time.Hour, "x"), moment(-time.Hour, time.Hour+time.Second, "x"), 0, 0},
		{"clock corrected a little", moment(0, time.Hour, "x"), moment(4*time.Second, time.Hour, "x"), 0, 0},
		{"another boot", moment(0, 10*time.Hour, "x"), moment(8*time.Hour, time.Minute, "y"), 0, 0},
		{"the first look", Moment{}, moment(0, time.Hour, "x"), 0, 0},
	} {
		if got := Gap(tc.a, tc.b); got != tc.want {
			t.Errorf("%s: %v, want %v", tc.name, got, tc.want)
		}
	}
	if got := UnseenSleep(Moment{Up: 3 * time.Hour, Mono: time.Hour}); got != 2*time.Hour {
		t.Error(got)
	}
	m := now()
	if m.Wall.IsZero() || m.Mono <= 0 || m.Up < m.Mono-time.Second {
		t.Errorf("the clocks of this machine: %+v", m)
	}
}
