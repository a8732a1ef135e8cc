package diagnose

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/outlive-mcp/outlive/internal/agents/agentcli"
	_ "github.com/outlive-mcp/outlive/internal/testing/tier" // fixes the seed of rapid
)

const (
	minute = Span(time.Minute)
	hour   = Span(time.Hour)
)

// heard is an agent of a PIV registry with a beat of that age, of which only the beat and the process are known.
func heard(age Span, life Life) Evidence {
	return Evidence{
		Status: "running", Watched: true, Beat: Beat{Has: true, Age: age},
		Process: Proc{Life: life, Detail: "PID 7 is " + string(life)}, Artefact: Artefact{Expected: true},
	}
}

func and(e Evidence, changes ...func(*Evidence)) Evidence {
	for _, change := range changes {
		change(&e)
	}
	return e
}

func manifest(age Span, failures ...Failure) func(*Evidence) {
	return func(e *Evidence) { e.Manifest = Manifest{Has: true, Dated: true, Age: age, Failures: failures} }
}

func session(s Session) func(*Evidence) {
	return func(e *Evidence) { e.Sessions = append(e.Sessions, s) }
}

func started(age Span) func(*Evidence) {
	return func(e *Evidence) { e.Process.AfterBeat, e.Process.Age = true, age }
}

func inGrace(dead bool) func(*Evidence) {
	return func(e *Evidence) { e.Grace, e.GraceDead = "slept", dead }
}

// The decisions of the PIV monitor (PIV-3, PIV-4), row by row.
func TestClassifyPIV(t *testing.T) {
	const old, young = hour, minute
	three := 3
	policy := PIV(15 * time.Minute)
	failed := Failure{Command: "execute", Category: "test_failure", Phase: &three, Details: "boom"}
	auth := Failure{Category: "integration_auth", Phase: &three, Details: "no key"}
	for _, tc := range []struct {
		name  string // the contract's own cases first
		e     Evidence
		stall Stall
		rule  string
		class Class
	}{
		{"Healthy project (fresh heartbeat)", heard(young, Alive), NoStall, "OK", Healthy},
		{"Dead PID + stale heartbeat", heard(old, Dead), Crash, "R2", Crashed},
		{"Alive PID + stale heartbeat + no manifest clues", heard(old, Alive), Hung, "H5", HeartbeatLost},
		{"Alive PID + stale heartbeat + pending failure in manifest", and(heard(old, Alive), manifest(old, failed)), Errored, "E1", ExecutionError},
		{"Missing heartbeat (never written)", and(heard(0, Dead), func(e *Evidence) { e.Beat = Beat{} }), Crash, "R2", Crashed},
		{"Heartbeat exactly at threshold boundary", heard(policy.Stale, Dead), NoStall, "OK", Healthy},
		{"one nanosecond later", heard(policy.Stale+1, Dead), Crash, "R2", Crashed},
		// Edge cases and the rest of the decision tree.
		{"Heartbeat timestamp in the future", heard(-hour, Alive), NoStall, "OK", Healthy},
		{"manifest last_updated stale", and(heard(old, Alive), manifest(old)), Hung, "H5", HeartbeatLost},
		{"manifest has blocking notification", and(heard(old, Alive), func(e *Evidence) { e.Manifest.Blocking = []string{"why"} }), Waiting, "W3", WaitingOther},
		{"a fresh heartbeat outweighs the manifest", and(heard(young, Alive), manifest(young, failed)), NoStall, "OK", Healthy},
		{"a dead PID outweighs an ordinary failure", and(heard(old, Dead), manifest(old, failed)), Crash, "R2", Crashed},
		{"SC-007 integration_auth", and(heard(old, Alive), manifest(old, auth)), Errored, "E0", HumanRequired},
		{"SC-007 integration_auth, and it gave up", and(heard(old, Dead), manifest(old, auth)), Errored, "E0", HumanRequired},
		{"the failure that needs a human before others", and(heard(old, Alive), manifest(old, failed, auth)), Errored, "E0", HumanRequired},
		{"a failure that was dealt with", and(heard(old, Alive), manifest(old)), Hung, "H5", HeartbeatLost},
		// What the field has taught since.
		{"R0 idle", and(heard(old, Dead), func(e *Evidence) { e.Watched = false }), NoStall, "R0", NotWatched},
		{"R1 unreadable entry", and(heard(old, Dead), func(e *Evidence) { e.Fault = "path is missing" }), Blind, "R1", Unreadable},
		{"R1 registry lost, alive", and(heard(old, Alive), func(e *Evidence) { e.Lost = "gone" }), Blind, "R1", Lost},
		{"R1 registry lost, dead is dead", and(heard(old, Dead), func(e *Evidence) { e.Lost = "gone" }), Crash, "R2", Crashed},
		{"R1 vanished", and(heard(old, Dead), func(e *Evidence) { e.Vanished = true }), Blind, "R1", Vanished},
		{"R1 unsure whose process", heard(old, Unsure), Blind, "R1", UnsureProcess},
		{"R1 manifest half written", and(heard(old, Alive), func(e *Evidence) { e.Manifest.Fault = "broken" }), Blind, "R1", ManifestFault},
		{"R4 starting", and(heard(old, Alive), started(young)), NoStall, "R4", Starting},
		{"R4 died while starting", and(heard(old, Dead), started(young)), Crash, "R2", Crashed},
		{"started, never heard", and(heard(old, Alive), started(old)), Hung, "H5", HeartbeatLost},
		{"G after a sleep, alive", and(heard(old, Alive), inGrace(false)), NoStall, "G", Grace},
		{"G after a sleep, dead is dead", and(heard(old, Dead), inGrace(false)), Crash, "R2", Crashed},
		{"G just booted", and(heard(old, Dead), inGrace(true)), NoStall, "G", Grace},
		{"W1", and(heard(old, Alive), session(Session{Status: agentcli.Waiting, WaitingFor: agentcli.ForPermission})), Waiting, "W1", WaitingPermission},
		{"W2", and(heard(old, Alive), session(Session{Status: agentcli.Waiting, WaitingFor: agentcli.ForQuestion})), Waiting, "W2", WaitingQuestion},
		{"W4", and(heard(old, Alive), session(Session{Open: agentcli.Permission, OpenAge: old})), Waiting, "W4", WaitingPermission},
		{"W5", and(heard(old, Alive), session(Session{Ended: true, EndedAsking: true, LastAge: old})), Waiting, "W5", WaitingQuestion},
		{"E1 before W5: the surer one", and(heard(old, Alive), session(Session{Ended: true, EndedAsking: true, LastAge: old}), manifest(old, failed)), Errored, "E1", ExecutionError},
		{"a session at its prompt is not an excuse: PIV beats at rest, too", and(heard(old, Alive), session(Session{Status: agentcli.Idle, LastAge: old})), Hung, "H5", HeartbeatLost},
		{"a session at work is one", and(heard(old, Alive), session(Session{Status: agentcli.Busy, Open: agentcli.Tool, OpenAge: young})), NoStall, "OK", AtWork},
		{"OK by the manifest", and(heard(old, Alive), manifest(young)), NoStall, "OK", AtWork},
	} {
		t.Run(tc.name, func(t *testing.T) {
			v := Classify(tc.e, policy)
			if v.Stall != tc.stall || v.Rule != tc.rule || v.Class != tc.class {
				t.Errorf("%s %s %s, want %s %s %s", v.Rule, v.Class, v.Stall, tc.rule, tc.class, tc.stall)
			}
			if v.Details == "" || v.Confidence == "" || v.Tier == "" {
				t.Errorf("it does not say why: %+v", v)
			}
		})
	}
}

// decisionTree is the order of PIV-4 with what was learned of it, written as it was first: one decision after
// the other over nothing but the registry, the process and the manifest.
func decisionTree(e Evidence, stale Span) (rule string, class Class, c Confidence) {
	silence := Never
	switch {
	case e.Process.AfterBeat:
		silence = e.Process.Age
	case e.Beat.Has && e.Beat.Age < 0:
		silence = e.Beat.Seen
	case e.Beat.Has:
		silence = e.Beat.Age
	}
	dead := e.Process.Life == Dead
	failure, human := len(e.Manifest.Failures) > 0, false
	for _, f := range e.Manifest.Failures {
		human = human || f.Category == "integration_auth"
	}
	switch {
	case !e.Watched:
		return "R0", NotWatched, High
	case e.Fault != "":
		return "R1", Unreadable, High
	case e.Beat.Has && !e.Process.AfterBeat && silence <= stale:
		return "OK", Healthy, High
	case e.Process.AfterBeat && e.Process.Life == Alive && silence < stale:
		return "R4", Starting, High
	case e.Grace != "" && (!dead || e.GraceDead):
		return "G", Grace, Low
	case e.Vanished:
		return "R1", Vanished, Medium
	case e.Lost != "" && !dead:
		return "R1", Lost, Medium
	case human:
		return "E0", HumanRequired, High
	case dead:
		return "R2", Crashed, High
	case e.Process.Life == Unsure:
		return "R1", UnsureProcess, Medium
	case e.Manifest.Fault != "":
		return "R1", ManifestFault, Medium
	case len(e.Manifest.Blocking) > 0:
		return "W3", WaitingOther, High
	case failure:
		return "E1", ExecutionError, High
	case e.Manifest.Dated && e.Manifest.Age <= stale:
		return "OK", AtWork, Medium
	default:
		return "H5", HeartbeatLost, Medium
	}
}

// What PIV's sources alone come to is what it always came to.
func TestClassifyPIVAlone(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		stale := rapid.SampledFrom([]Span{6 * minute, 15 * minute}).Draw(t, "stale")
		e := pivEvidence(t)
		v := Classify(e, PIV(time.Duration(stale)))
		rule, class, confidence := decisionTree(e, stale)
		if v.Rule != rule || v.Class != class || v.Confidence != confidence {
			t.Errorf("%s %s %s, want %s %s %s for %+v", v.Rule, v.Class, v.Confidence, rule, class, confidence, e)
		}
	})
}

func pivEvidence(t *rapid.T) Evidence {
	yes := rapid.Bool()
	seldom := rapid.SampledFrom([]string{"", "", "", "", "why"})
	e := Evidence{
		Watched: rapid.SampledFrom([]bool{true, true, true, false}).Draw(t, "watched"), Fault: seldom.Draw(t, "fault"),
		Lost: seldom.Draw(t, "lost"), Vanished: seldom.Draw(t, "vanished") != "", Grace: seldom.Draw(t, "grace"), GraceDead: yes.Draw(t, "gracedead"),
		Process:  Proc{Life: rapid.SampledFrom([]Life{Alive, Alive, Dead, Unsure}).Draw(t, "life")},
		Artefact: Artefact{Expected: true},
	}
	if yes.Draw(t, "beats") {
		e.Beat = Beat{Has: true, Age: ages.Draw(t, "beat"), Seen: max(ages.Draw(t, "seen"), 0)}
	}
	if yes.Draw(t, "starting") {
		e.Process.AfterBeat, e.Process.Age = true, max(ages.Draw(t, "started"), 0)
	}
	switch rapid.IntRange(0, 3).Draw(t, "manifest") {
	case 0:
		e.Manifest.Fault = "broken"
	case 1, 2:
		e.Manifest = Manifest{Has: true, Dated: yes.Draw(t, "dated"), Age: ages.Draw(t, "written")}
		for range rapid.IntRange(0, 2).Draw(t, "failures") {
			e.Manifest.Failures = append(e.Manifest.Failures, Failure{Category: rapid.SampledFrom([]string{"", "test_failure", "integration_auth"}).Draw(t, "category")})
		}
		if yes.Draw(t, "blocks") {
			e.Manifest.Blocking = []string{"why"}
		}
	}
	return e
}

// ages lie on both sides of every threshold, and on it.
var ages = rapid.Custom(func(t *rapid.T) Span {
	around := rapid.SampledFrom([]Span{-hour, 0, 10 * Span(time.Second), 2 * minute, 3 * minute, 6 * minute, 8 * minute, 15 * minute, 30 * minute, 45 * minute, hour, 20 * hour}).Draw(t, "around")
	return around + rapid.SampledFrom([]Span{-1, 0, 1, minute}).Draw(t, "off")
})

// The thresholds, each at its edge.
func TestThresholds(t *testing.T) {
	well := Evidence{Watched: true, Process: Proc{Life: Alive, Detail: "PID 7 is alive", Age: hour}}
	busy := func(s Session) Evidence { s.Status = agentcli.Busy; return and(well, session(s)) }
	for _, tc := range []struct {
		name          string
		before, after Evidence
		want          Class
	}{
		{"stale", and(well, func(e *Evidence) { e.Beat = Beat{Has: true, Age: 6 * minute} }),
			and(well, func(e *Evidence) { e.Beat = Beat{Has: true, Age: 6*minute + 1} }), HeartbeatLost},
		{"startup", and(well, started(3*minute-1), func(e *Evidence) { e.Artefact.Expected = true }),
			and(well, started(3*minute), func(e *Evidence) { e.Artefact.Expected = true }), StartupBlocked},
		{"model_silent", busy(Session{Open: agentcli.Model, OpenAge: 8 * minute}), busy(Session{Open: agentcli.Model, OpenAge: 8*minute + 1}), ModelSilent},
		{"tool", busy(Session{Open: agentcli.Tool, OpenAge: 30 * minute}), busy(Session{Open: agentcli.Tool, OpenAge: 30*minute + 1}), ToolHung},
		{"waiting, W4", busy(Session{Open: agentcli.Permission, OpenAge: 2 * minute}), busy(Session{Open: agentcli.Permission, OpenAge: 2*minute + 1}), WaitingPermission},
		{"waiting, W5", and(well, session(Session{Ended: true, EndedAsking: true, LastAge: 2 * minute})),
			and(well, session(Session{Ended: true, EndedAsking: true, LastAge: 2*minute + 1})), WaitingQuestion},
		{"progress", busy(Session{Tokens: 1, ProgressKnown: true, ProgressAge: 45 * minute}), busy(Session{Tokens: 1, ProgressKnown: true, ProgressAge: 45*minute + 1}), NoProgress},
		{"same call", busy(Session{Repeats: agentcli.Repeats{SameCall: 3}}), busy(Session{Repeats: agentcli.Repeats{SameCall: 4}}), Loop},
		{"same error", busy(Session{Repeats: agentcli.Repeats{SameError: 2}}), busy(Session{Repeats: agentcli.Repeats{SameError: 3}}), Loop},
		{"alternating", busy(Session{Repeats: agentcli.Repeats{Alternating: 5}}), busy(Session{Repeats: agentcli.Repeats{Alternating: 6}}), Loop},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if v := Classify(tc.before, Policy{}); !v.Well() {
				t.Errorf("at the edge: %+v", v)
			}
			if v := Classify(tc.after, Policy{}); v.Class != tc.want {
				t.Errorf("past it: %+v, want %s", v, tc.want)
			}
			off := Policy{Stale: -1, Startup: -1, ModelSilent: -1, Tool: -1, Waiting: -1, Progress: -1}
			if v := Classify(tc.after, off); !v.Well() && tc.want != Loop {
				t.Errorf("switched off: %+v", v)
			}
		})
	}
}

// A promise covers what it announces: a silent model, a long tool. It does not hold for ever.
func TestPromises(t *testing.T) {
	for _, tc := range []struct {
		beat Beat
		want Class
	}{
		{Beat{Has: true, Age: 40 * minute, Next: 40 * minute}, Healthy},
		{Beat{Has: true, Age: 40*minute + 1, Next: 40 * minute}, ModelSilent},
		{Beat{Has: true, Age: hour, Next: 9 * hour}, Healthy},
		{Beat{Has: true, Age: hour + 1, Next: 9 * hour}, ModelSilent},
		{Beat{Has: true, Age: minute}, ModelSilent},
	} {
		e := and(living, session(Session{Status: agentcli.Busy, Open: agentcli.Model, OpenAge: 2 * hour, LastAge: 2 * hour}))
		e.Beat = tc.beat
		v := Classify(e, Policy{})
		if e.Sessions[0].Open = agentcli.Tool; v.Class != tc.want {
			t.Errorf("%+v: %s, want %s", tc.beat, v.Class, tc.want)
		}
		if w := Classify(e, Policy{}); (w.Class == ToolHung) != (tc.want == ModelSilent) {
			t.Errorf("%+v with a tool: %s", tc.beat, w.Class)
		}
	}
}

// Beside processes that work a silent model is trouble 30 s later, since they may have worked only before; and then it is in doubt.
func TestSilentModelBesideWork(t *testing.T) {
	for _, tc := range []struct {
		beyond Span
		cpu    CPU
		want   Class
	}{
		{1e9, CPU{Known: true}, ModelSilent},
		{1e9, CPU{Known: true, Starts: true}, AtWork},
		{30e9, CPU{Known: true, Share: 0.5}, AtWork},
		{31e9, CPU{Known: true, Share: 0.5}, ModelSilent},
	} {
		open := Policy{}.filled().ModelSilent + tc.beyond
		e := and(living, session(Session{Status: agentcli.Busy, Open: agentcli.Model, OpenAge: open, LastAge: open}))
		e.CPU = tc.cpu
		v := Classify(e, Policy{})
		if v.Class != tc.want || v.Class == ModelSilent && (v.Confidence == Low) != tc.cpu.Works() {
			t.Errorf("%s beyond the limit, %+v: %s of %s confidence, want %s", tc.beyond, tc.cpu, v.Class, v.Confidence, tc.want)
		}
	}
}

// The evidence of one session is judged together with the others, and with its status.
func TestSessions(t *testing.T) {
	silent := Session{Status: agentcli.Busy, Open: agentcli.Model, OpenAge: hour, LastAge: hour}
	atWork := Session{Status: agentcli.Busy, Open: agentcli.Tool, OpenAge: minute, LastAge: minute}
	failed := func(s agentcli.Status, kind agentcli.FailureKind) Session {
		return Session{Status: s, LastAge: minute, Error: SessionError{Kind: kind, Attempt: 10, Max: 10}}
	}
	dialog := func(kind agentcli.FailureKind) Session {
		return Session{Status: agentcli.Waiting, WaitingFor: agentcli.ForDialog, Ended: true, LastAge: minute, Error: SessionError{Kind: kind}}
	}
	for _, tc := range []struct {
		name string
		e    Evidence
		want Class
	}{
		{"one silent", and(living, session(silent)), ModelSilent},
		{"one silent, another at work", and(living, session(silent), session(atWork)), AtWork},
		{"both silent", and(living, session(silent), session(silent)), ModelSilent},
		{"a failure, and nobody at work", and(living, manifest(hour, Failure{Category: "test_failure"})), ExecutionError},
		{"a failure, and somebody at work on it", and(living, manifest(hour, Failure{Category: "test_failure"}), session(atWork)), AtWork},
		{"ended asking", and(living, session(Session{Status: agentcli.Idle, Ended: true, EndedAsking: true, LastAge: hour})), WaitingQuestion},
		{"ended asking, and busy with what comes after a turn", and(living, session(Session{Status: agentcli.Busy, Ended: true, EndedAsking: true, LastAge: hour})), Idle},
		{"the last attempt is being made", and(living, session(failed(agentcli.Retrying, agentcli.APIFailure))), APIBackoff},
		{"the last attempt has failed", and(living, session(failed(agentcli.Idle, agentcli.APIFailure))), APIFailed},
		{"the turn has ended with an error of the API", and(living, session(Session{Status: agentcli.Idle, Ended: true, Error: SessionError{Kind: agentcli.APIFailure}})), APIFailed},
		{"a dialog before a dead login", and(living, session(dialog(agentcli.AuthFailure))), AuthExpired},
		{"a dialog before missing credit", and(living, session(dialog(agentcli.CreditEmpty))), CreditExhausted},
		{"a dialog before a limit", and(living, session(dialog(agentcli.RateLimited))), RateLimited},
		{"a dialog before a full context", and(living, session(dialog(agentcli.ContextFull))), ContextExhausted},
		{"a dialog before an overloaded model", and(living, session(dialog(agentcli.APIFailure))), APIFailed},
		{"a dialog before any other error", and(living, session(dialog(agentcli.ExecutionFailed))), ExecutionError},
		{"a dialog before a finished turn", and(living, session(dialog(""))), Idle},
		{"a dialog before anything else", and(living, session(Session{Status: agentcli.Waiting, WaitingFor: agentcli.ForDialog})), WaitingOther},
		{"the last attempt has met a limit", and(living, session(failed(agentcli.Idle, agentcli.RateLimited))), RateLimited},
		{"one at its prompt, one in a turn that was forgotten", and(living, session(Session{Status: agentcli.Idle}), session(Session{Status: "", LastAge: hour})), Unobserved},
	} {
		if v := Classify(tc.e, Policy{}); v.Class != tc.want {
			t.Errorf("%s: %s (%s), want %s", tc.name, v.Class, v.Details, tc.want)
		}
	}
}

// endings are the reasons for which a process can have ended, by the last error of its session.
var endings = []struct {
	kind  agentcli.FailureKind
	class Class
	start bool // a start may cure it
}{
	{agentcli.AuthFailure, AuthExpired, false}, {agentcli.CreditEmpty, CreditExhausted, false}, {agentcli.RateLimited, RateLimited, false}, {agentcli.APIFailure, APIFailed, false},
	{agentcli.ContextFull, ContextExhausted, true}, {agentcli.ExecutionFailed, Crashed, true}, {"", Crashed, true},
}

// ended is a process that has failed with a last error.
func ended(kind agentcli.FailureKind) Evidence {
	return Evidence{Watched: true, Process: Proc{Life: Dead, Detail: "PID 7 is dead"}, Exit: Exit{Known: true, Code: 1}, LastError: SessionError{Kind: kind, ResetIn: hour, ResetKnown: true}}
}

// A process that has ended after an error has that trouble, and not that it has ended.
func TestTheCauseOutlivesTheProcess(t *testing.T) {
	for _, tc := range endings {
		v := Classify(ended(tc.kind), Policy{})
		if v.Class != tc.class || v.MayKill() != tc.start || tc.kind == agentcli.RateLimited && v.Hold != hour {
			t.Errorf("%q: %+v", tc.kind, v)
		}
		if v := Classify(and(ended(tc.kind), func(e *Evidence) { e.Done = "DONE exists" }), Policy{}); v.Class != Done {
			t.Errorf("%q, and done: %s", tc.kind, v.Class)
		}
	}
	if v := Classify(and(ended(agentcli.RateLimited), func(e *Evidence) { e.LastError.ResetIn = hour / 2 }), Policy{}); v.Hold != hour/2 {
		t.Errorf("half an hour later: held for %s", v.Hold)
	}
	if v := Classify(and(ended(agentcli.RateLimited), func(e *Evidence) { e.LastError.ResetIn = -hour }), Policy{}); v.Class != RateLimited || v.Hold != -hour {
		t.Errorf("an hour after the reset: %s, held for %s", v.Class, v.Hold)
	}
	e := and(heard(hour, Alive), session(Session{Ended: true, Error: SessionError{Kind: agentcli.RateLimited, ResetKnown: true, ResetIn: -hour}}))
	if v := Classify(e, Policy{}); v.Class != RateLimited || v.Hold != -hour {
		t.Errorf("a session whose limit should have been lifted an hour ago: %s, held for %s", v.Class, v.Hold)
	}
}

func TestLimits(t *testing.T) {
	e := Evidence{Watched: true, Process: Proc{Life: Alive, Age: 3 * hour}, Sessions: []Session{
		{Status: agentcli.Busy, CostUSD: 3, Tokens: 300, Turns: 3}, {Status: agentcli.Idle, CostUSD: 2, Tokens: 200, Turns: 2},
	}}
	for _, tc := range []struct {
		name string
		p    Policy
		want Class
	}{
		{"none", Policy{}, AtWork},
		{"cost reached", Policy{MaxCostUSD: 5}, AtWork}, {"cost exceeded by both", Policy{MaxCostUSD: 4}, BudgetExceeded},
	} {
		if v := Classify(e, tc.p); v.Class != tc.want {
			t.Errorf("%s: %s, want %s", tc.name, v.Class, tc.want)
		}
	}
}

func TestDone(t *testing.T) {
	zero := func(e *Evidence) { e.Exit = Exit{Known: true} }
	one := func(e *Evidence) { e.Exit = Exit{Known: true, Code: 1} }
	killed := func(e *Evidence) { e.Exit = Exit{Known: true, Signal: "killed"} }
	complete := func(e *Evidence) { e.Manifest = Manifest{Has: true, Complete: true} }
	ended := Evidence{Watched: true, Process: Proc{Life: Dead}}
	for _, tc := range []struct {
		name string
		e    Evidence
		when DoneWhen
		want Class
	}{
		{"exit 0 alone", and(ended, zero), DoneWhen{}, ExitedUnfinished},
		{"exit 0 is enough", and(ended, zero), DoneWhen{Exit: true}, Done},
		{"killed is not exit 0", and(ended, killed), DoneWhen{Exit: true}, Crashed},
		{"exit 1", and(ended, one), DoneWhen{Exit: true}, Crashed},
		{"exit 1 is declared", and(ended, one), DoneWhen{Exit: true, Code: 1}, Done},
		{"exit 0 where exit 1 is declared", and(ended, zero), DoneWhen{Exit: true, Code: 1}, ExitedUnfinished},
		{"complete manifest", and(ended, one, complete), DoneWhen{}, Done},
		{"complete manifest is wanted", and(ended, zero), DoneWhen{Manifest: true}, ExitedUnfinished},
		{"both, and only one", and(ended, zero), DoneWhen{Exit: true, Manifest: true}, ExitedUnfinished},
		{"both", and(ended, zero, complete), DoneWhen{Exit: true, Manifest: true}, Done},
		{"a mark outweighs the exit", and(ended, one, func(e *Evidence) { e.Done = "DONE exists" }), DoneWhen{Exit: true}, Done},
		{"a mark, and it lives", and(ended, func(e *Evidence) { e.Done, e.Process.Life = "DONE exists", Alive }), DoneWhen{}, Unobserved},
		{"the word of the process before", and(ended, func(e *Evidence) { e.Beat = Beat{Has: true, State: Finished}; e.Process.AfterBeat = true }), DoneWhen{}, Crashed},
	} {
		if v := Classify(tc.e, Policy{Done: tc.when}); v.Class != tc.want {
			t.Errorf("%s: %s (%s), want %s", tc.name, v.Class, v.Details, tc.want)
		}
	}
}

func TestSpan(t *testing.T) {
	for _, tc := range []struct {
		s    Span
		want string
	}{
		{0, "0s"}, {90 * Span(time.Second), "1m30s"}, {hour, "1h"}, {72 * hour, "72h"}, {hour + Span(time.Second), "1h0m1s"},
		{-5 * minute, "-5m"}, {Span(1500 * time.Millisecond), "1.5s"}, {10 * Span(time.Second), "10s"}, {Never, "never"},
	} {
		text, err := tc.s.MarshalText()
		if err != nil || string(text) != tc.want {
			t.Errorf("%d is written %q (%v), want %q", tc.s, text, err, tc.want)
		}
		var back Span
		if err := back.UnmarshalText(text); err != nil || back != tc.s {
			t.Errorf("%q is read as %d (%v), want %d", text, back, err, tc.s)
		}
	}
	var s Span
	if err := s.UnmarshalText([]byte("soon")); err == nil || !strings.Contains(err.Error(), "soon") {
		t.Errorf("%v, want an error that names it", err)
	}
	if got := []Span{Never.plus(hour), (Never - 1).plus(hour), hour.plus(-2 * hour), hour.plus(Never)}; !cmp.Equal(got, []Span{Never, Never, -hour, Never}) {
		t.Errorf("sums that run over: %v", got)
	}
}

// A tool is silent for as long as nothing that it has started has worked: a pause of a long build is none.
func TestAPauseOfALongBuild(t *testing.T) {
	t.Parallel()
	e := Evidence{
		Watched: true, Process: Proc{Life: Alive}, CPU: CPU{Known: true, Worked: true, Idle: Span(20e9)},
		Sessions: []Session{{Kind: "claude", Status: agentcli.Busy, Open: agentcli.Tool, Tool: "Bash", OpenAge: Span(45 * 60e9), LastAge: Span(45 * 60e9)}},
	}
	if v := Classify(e, Policy{}); v.Class != AtWork {
		t.Errorf("%s: %s", v.Class, v.Details)
	}
	e.CPU.Idle = Span(31 * 60e9)
	if v := Classify(e, Policy{}); v.Class != ToolHung {
		t.Errorf("idle for longer than a tool may be: %s: %s", v.Class, v.Details)
	}
}

// An agent that computes or writes is not held up by a dialog, though it has not shown itself yet.
func TestStartThatTakesLong(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*Evidence)
		want   Class
	}{
		"nothing":          {func(*Evidence) {}, StartupBlocked},
		"it computes":      {func(e *Evidence) { e.CPU = CPU{Known: true, Share: 0.5} }, AtWork},
		"it does not":      {func(e *Evidence) { e.CPU = CPU{Known: true} }, StartupBlocked},
		"it writes":        {func(e *Evidence) { e.Output = Output{Known: true, Age: minute} }, AtWork},
		"it wrote at once": {func(e *Evidence) { e.Output = Output{Known: true, Age: 4 * minute} }, StartupBlocked},
		"it only draws":    {func(e *Evidence) { e.Output = Output{Known: true, Age: 1, Drawn: 4 * minute} }, StartupBlocked},
	} {
		e := Evidence{Watched: true, Process: Proc{Life: Alive, AfterBeat: true, Age: 5 * minute}, Artefact: Artefact{Expected: true}}
		if v := Classify(and(e, tc.change), Policy{}); v.Class != tc.want {
			t.Errorf("%s: %s (%s), want %s", name, v.Class, v.Details, tc.want)
		}
	}
}

// An agent that has called itself done and works again is not done: somebody has given it more to do.
func TestWorkAfterItWasDone(t *testing.T) {
	for name, tc := range map[string]struct {
		session Session
		want    Class
	}{
		"its turn has ended":     {Session{Ended: true, LastAge: 50 * minute}, Done},
		"it comes to an end":     {Session{Status: agentcli.Busy, Open: agentcli.Model, OpenAge: 57 * minute, LastAge: 57 * minute}, Done},
		"it works half an hour":  {Session{Status: agentcli.Busy, Open: agentcli.Model, OpenAge: minute, LastAge: minute}, AtWork},
		"its model hangs by now": {Session{Status: agentcli.Busy, Open: agentcli.Model, OpenAge: 20 * minute, LastAge: 20 * minute}, ModelSilent},
	} {
		e := Evidence{Watched: true, Process: Proc{Life: Alive, Age: 3 * hour}, Beat: Beat{Has: true, Age: hour, State: Finished}, Sessions: []Session{tc.session}}
		if v := Classify(e, Policy{}); v.Class != tc.want {
			t.Errorf("%s: %s (%s), want %s", name, v.Class, v.Details, tc.want)
		}
	}
}

// A beat that says that there is nothing to do is outdated by the next turn, also while it is fresh.
func TestWorkAfterItWasIdle(t *testing.T) {
	for name, tc := range map[string]struct {
		session Session
		want    Class
	}{
		"its turn has ended": {Session{Ended: true, LastAge: 4 * minute}, Idle},
		"the next turn":      {Session{Status: agentcli.Busy, Open: agentcli.Model, OpenAge: minute, LastAge: minute}, Healthy},
	} {
		e := Evidence{Watched: true, Process: Proc{Life: Alive, Age: hour}, Beat: Beat{Has: true, Age: 4 * minute, State: Idles}, Sessions: []Session{tc.session}}
		if v := Classify(e, Policy{}); v.Class != tc.want {
			t.Errorf("%s: %s (%s), want %s", name, v.Class, v.Details, tc.want)
		}
	}
}

// A CLI that has said when it asks its model again is not silent before that, and has as long as any answer after it.
func TestAnAnnouncedRetryIsWaitedFor(t *testing.T) {
	for name, tc := range map[string]struct {
		known bool
		in    Span
		want  Class
		hold  Span // 0: nothing says how long nothing helps
	}{
		"nothing is announced":      {false, 0, ModelSilent, 0},
		"it asks again in an hour":  {true, hour, APIBackoff, hour},
		"it asks again at once":     {true, minute, APIBackoff, 0},
		"it has asked again":        {true, -5 * minute, AtWork, 0},
		"and has got no answer":     {true, -9 * minute, ModelSilent, 0},
		"long before the last call": {true, -3 * hour, ModelSilent, 0},
	} {
		s := Session{Status: agentcli.Retrying, Open: agentcli.Model, OpenAge: 2 * hour, LastAge: 20 * minute}
		s.Error = SessionError{Kind: agentcli.RateLimited, Status: 429, Attempt: 3, RetryKnown: tc.known, RetryIn: tc.in}
		e := Evidence{Watched: true, Process: Proc{Life: Alive, Age: 3 * hour}, Sessions: []Session{s}}
		if v := Classify(e, Policy{}); v.Class != tc.want || v.Hold != tc.hold {
			t.Errorf("%s: %s, for %s (%s), want %s, for %s", name, v.Class, v.Hold, v.Details, tc.want, tc.hold)
		}
	}
}
