package diagnose

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/outlive-mcp/outlive/internal/agents/agentcli"
)

// examples are what makes each rule of the middle of the table hold, alone.
var examples = []struct {
	rule   string
	class  Class
	tier   Tier
	change func(*Evidence)
}{
	{"W1", WaitingPermission, Hook, func(e *Evidence) { e.Hooks = []Request{{Tool: "Bash", Text: "ls", Age: minute}} }},
	{"W2", WaitingQuestion, Hook, func(e *Evidence) { e.Beat = Beat{Has: true, Age: minute, State: Waits} }},
	{"W3", WaitingOther, Hook, func(e *Evidence) { e.Beat = Beat{Has: true, Age: minute, State: Stuck} }},
	{"W3", WaitingOther, Hook, func(e *Evidence) { e.Manifest.Has, e.Manifest.Blocking = true, []string{"May I?"} }},
	{"W1", WaitingPermission, File, session(Session{Status: agentcli.Waiting, WaitingFor: agentcli.ForPermission, LastAge: minute})},
	{"W1", WaitingPermission, File, func(e *Evidence) { e.Title = Title{Status: agentcli.Waiting, Text: "Action Required"} }},
	{"W2", WaitingQuestion, File, session(Session{Status: agentcli.Busy, Open: agentcli.Question, LastAge: minute})},
	{"W2", WaitingQuestion, File, session(Session{Open: agentcli.Plan, LastAge: minute})},
	{"W3", WaitingOther, File, session(Session{Status: agentcli.Waiting, WaitingFor: agentcli.ForDialog, LastAge: minute})},
	{"W4", WaitingPermission, File, session(Session{Open: agentcli.Permission, OpenAge: 3 * minute, LastAge: 3 * minute})},
	{"L2", AuthExpired, File, session(Session{Ended: true, LastAge: minute, Error: SessionError{Kind: agentcli.AuthFailure}})},
	{"L2", CreditExhausted, File, session(Session{Ended: true, LastAge: minute, Error: SessionError{Kind: agentcli.CreditEmpty}})},
	{"L1", APIFailed, File, session(Session{Ended: true, LastAge: minute, Error: SessionError{Kind: agentcli.APIFailure}})},
	{"L1", RateLimited, File, session(Session{Ended: true, LastAge: minute, Error: SessionError{Kind: agentcli.RateLimited}})},
	{"E1", ExecutionError, File, func(e *Evidence) { e.Manifest.Has, e.Manifest.Failures = true, []Failure{{Category: "test_failure"}} }},
	{"E2", ContextExhausted, File, session(Session{Ended: true, LastAge: minute, Error: SessionError{Kind: agentcli.ContextFull}})},
	{"E1", ExecutionError, File, session(Session{Ended: true, LastAge: minute, Error: SessionError{Kind: agentcli.ExecutionFailed}})},
	{"H6", BudgetExceeded, File, session(Session{Status: agentcli.Idle, CostUSD: 100, LastAge: minute})},
	{"H3", Loop, File, session(Session{Status: agentcli.Busy, LastAge: minute, Repeats: agentcli.Repeats{SameCall: 9}})},
	{"L1", APIBackoff, File, session(Session{Status: agentcli.Retrying, LastAge: minute, Error: SessionError{Kind: agentcli.APIFailure}})},
	{"H7", TaskDead, File, session(parked(Task{Tool: "Bash", Shell: true, Gone: true, GoneAge: hour, SilentKnown: true, Silent: hour}))},
	{"H1", ModelSilent, File, session(Session{Status: agentcli.Busy, Open: agentcli.Model, OpenAge: hour, LastAge: hour})},
	{"H2", ToolHung, File, func(e *Evidence) {
		e.CPU.Known = true
		e.Sessions = append(e.Sessions, Session{Status: agentcli.Busy, Open: agentcli.Tool, OpenAge: hour, LastAge: hour})
	}},
	{"H9", NoProgress, File, headlessAtRest},
	{"R5", StartupBlocked, Process, func(e *Evidence) { e.Artefact.Expected, e.Process.AfterBeat, e.Process.Age = true, true, hour }},
	{"W5", WaitingQuestion, Guess, session(Session{Ended: true, EndedAsking: true, LastAge: hour})},
	{"H4", NoProgress, Guess, session(Session{Status: agentcli.Busy, Open: agentcli.Model, OpenAge: minute, LastAge: minute, Tokens: 9, ProgressKnown: true, ProgressAge: hour})},
	{"R6", Orphaned, Guess, func(e *Evidence) { e.Process.Orphaned = true; e.Beat = Beat{Has: true, Age: hour} }},
	{"H5", HeartbeatLost, Guess, func(e *Evidence) { e.Beat = Beat{Has: true, Age: hour} }},
}

// headlessAtRest is claude -p an hour after its answer.
func headlessAtRest(e *Evidence) {
	e.Process.Headless = true
	e.Sessions = append(e.Sessions, Session{Kind: "claude", Status: agentcli.Idle, Ended: true, LastAge: hour})
}

// parked is a session whose turn is over and that waits for tasks.
func parked(tasks ...Task) Session {
	for i := range tasks {
		tasks[i].Awaited = true
	}
	return Session{Kind: "claude", Ended: true, LastAge: hour, Tasks: tasks}
}

var living = Evidence{Watched: true, Process: Proc{Life: Alive, Detail: "PID 7 is alive", Age: hour}}

var bounded = Policy{MaxCostUSD: 20, Done: DoneWhen{Exit: true}}

func TestEachRuleAlone(t *testing.T) {
	for _, x := range examples {
		v := Classify(and(living, x.change), bounded)
		if v.Rule != x.rule || v.Class != x.class || v.Tier != x.tier {
			t.Errorf("%s %s of tier %s: got %+v", x.rule, x.class, x.tier, v)
		}
	}
}

const order = "XPTH" // the weakest tier first

// Among the rules about a living agent the tiers only fall, so that a weaker one can never be asked before a stronger.
func TestTiersOnlyFall(t *testing.T) {
	last := len(order)
	for _, r := range rules {
		if at := strings.Index(order, string(r.tier)); r.band == shown {
			if at < 0 || at > last {
				t.Errorf("%s %s of tier %s comes after a weaker one", r.id, r.class, r.tier)
			}
			last = at
		}
	}
}

// excluded are the pairs in which the second thing shows that the first is not so.
var excluded = map[[2]Class]string{
	{WaitingQuestion, StartupBlocked}: "a beat or a session of the process before is none of this one",
	{WaitingOther, StartupBlocked}:    "a beat of the process before is none of this one",
	{ExecutionError, NoProgress}:      "a session is at work, on the pending failure or without an error",
	{AuthExpired, NoProgress}:         "another session of it is at work",
	{CreditExhausted, NoProgress}:     "another session of it is at work",
	{APIFailed, NoProgress}:           "another session of it is at work",
	{RateLimited, NoProgress}:         "another session of it is at work",
	{ContextExhausted, NoProgress}:    "another session of it is at work",
	{NoProgress, NoProgress}:          "a session is in a turn: the headless command has not come to its end",
	{NoProgress, WaitingQuestion}:     "it has ended its turn with a question, and not with an answer",
	{ModelSilent, NoProgress}:         "another session of it is at work",
	{ToolHung, NoProgress}:            "another session of it is at work",
	{TaskDead, NoProgress}:            "another session of it is at work",
	{StartupBlocked, WaitingQuestion}: "there is a session: it has begun",
	{StartupBlocked, NoProgress}:      "there is a session: it has begun",
}

// If two signs are seen at once, the diagnosis is based on the stronger one.
func TestWeakerNeverPreempts(t *testing.T) {
	for _, a := range examples {
		for _, b := range examples {
			both := and(living, b.change, a.change) // where they fill the same section, a's stays
			v := Classify(both, bounded)
			if excluded[[2]Class{a.class, b.class}] != "" {
				continue
			}
			if strings.Index(order, string(v.Tier)) < strings.Index(order, string(a.tier)) {
				t.Errorf("%s %s (%s) with %s %s (%s): %s", a.rule, a.class, a.tier, b.rule, b.class, b.tier, v.brief())
			}
		}
	}
}

// Judged is evidence and what it is judged by.
type Judged struct {
	Evidence Evidence
	Policy   Policy
}

// RuleCases are the examples of this package, for the tests outside of it.
func RuleCases() []Judged {
	all := []Judged{
		{Evidence{Watched: true, Complete: true}, Policy{}},
		{Evidence{Status: "idle"}, Policy{}},
		{Evidence{Watched: true, Fault: "no path"}, Policy{}},
		{and(living, func(e *Evidence) { e.Process.Stopped = true }), Policy{}},
		{heard(hour, Unsure), PIV(0)},
		{and(living, func(e *Evidence) { e.Manifest.Fault = "broken" }), Policy{}},
		{and(living, func(e *Evidence) { e.Beat = Beat{Has: true, State: Idles} }), Policy{}},
		{and(living, headlessAtRest), Policy{}},
	}
	for _, x := range examples {
		all = append(all, Judged{and(living, x.change), bounded})
	}
	for _, x := range endings {
		all = append(all, Judged{ended(x.kind), Policy{}})
	}
	return all
}

// Encode is v as a log has it.
func Encode(t *testing.T, v any) string {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func anyEvidence(t *rapid.T) Evidence {
	e := pivEvidence(t)
	yes := rapid.Bool()
	e.Fault, e.Watched = "", true
	if yes.Draw(t, "clean") { // otherwise most cases end at the first rules
		e.Lost, e.Vanished, e.Grace = "", false, ""
		e.Manifest.Fault, e.Manifest.Failures, e.Manifest.Blocking = "", nil, nil
	}
	e.Process.Life = rapid.SampledFrom([]Life{Alive, Alive, Alive, Dead, Unsure, Unknown}).Draw(t, "life2")
	e.Process.Gone, e.Process.Orphaned = max(ages.Draw(t, "gone"), 0), yes.Draw(t, "orphaned")
	e.Artefact = Artefact{Expected: yes.Draw(t, "expected"), Seen: yes.Draw(t, "seen")}
	e.Manifest.Complete = rapid.IntRange(0, 5).Draw(t, "complete") == 0
	if e.Beat.Has {
		e.Beat.State = rapid.SampledFrom([]State{"", "", Working, Waits, Idles, Stuck, Exiting, Finished}).Draw(t, "state")
		e.Beat.Next = max(ages.Draw(t, "next"), 0)
	}
	if rapid.IntRange(0, 4).Draw(t, "exited") == 0 {
		e.Exit = Exit{Known: true, Code: rapid.IntRange(0, 1).Draw(t, "code"), Signal: rapid.SampledFrom([]string{"", "killed"}).Draw(t, "signal")}
	}
	for range rapid.IntRange(0, 2).Draw(t, "sessions") {
		e.Sessions = append(e.Sessions, anySession(t))
	}
	if rapid.IntRange(0, 9).Draw(t, "hooked") == 0 {
		e.Hooks = []Request{{Tool: "Bash"}}
	}
	e.Title.Status = rapid.SampledFrom([]agentcli.Status{"", "", agentcli.Idle, agentcli.Busy, agentcli.Waiting}).Draw(t, "title")
	e.Output = Output{Known: yes.Draw(t, "output"), Age: max(ages.Draw(t, "written"), 0)}
	e.CPU = CPU{Known: yes.Draw(t, "cpu"), Share: rapid.SampledFrom([]float64{0, 0.01, 0.5}).Draw(t, "share")}
	e.LastError.Kind = rapid.SampledFrom([]agentcli.FailureKind{"", "", agentcli.AuthFailure, agentcli.CreditEmpty, agentcli.RateLimited, agentcli.APIFailure, agentcli.ContextFull}).Draw(t, "cause")
	e.Done = rapid.SampledFrom([]string{"", "", "", "DONE exists"}).Draw(t, "done")
	return e
}

func anySession(t *rapid.T) Session {
	yes := rapid.Bool()
	age := func(name string) Span { return max(ages.Draw(t, name), 0) }
	s := Session{
		Status:  rapid.SampledFrom([]agentcli.Status{"", agentcli.Busy, agentcli.Busy, agentcli.Idle, agentcli.Waiting, agentcli.Retrying}).Draw(t, "status"),
		Open:    rapid.SampledFrom([]agentcli.Open{"", agentcli.Model, agentcli.Model, agentcli.Tool, agentcli.Tool, agentcli.Question, agentcli.Permission}).Draw(t, "open"),
		OpenAge: age("opened"), LastAge: age("last"), StatusAge: age("since"), Ended: rapid.IntRange(0, 3).Draw(t, "ended") == 0,
		EndedAsking: yes.Draw(t, "asking"), Tokens: 1, ProgressKnown: yes.Draw(t, "progress"), ProgressAge: age("progressed"),
	}
	if s.Status == agentcli.Waiting {
		s.WaitingFor = rapid.SampledFrom([]agentcli.Wait{"", agentcli.ForPermission, agentcli.ForQuestion, agentcli.ForDialog}).Draw(t, "for")
	}
	if rapid.IntRange(0, 3).Draw(t, "failed") == 0 {
		s.Error = SessionError{
			Kind:    rapid.SampledFrom([]agentcli.FailureKind{agentcli.APIFailure, agentcli.RateLimited, agentcli.CreditEmpty, agentcli.AuthFailure, agentcli.ContextFull, agentcli.ExecutionFailed}).Draw(t, "error"),
			Attempt: rapid.IntRange(0, 10).Draw(t, "attempt"), Max: 10, ResetKnown: yes.Draw(t, "reset"), ResetIn: ages.Draw(t, "lifted"),
		}
	}
	s.Repeats.SameCall = rapid.SampledFrom([]int{0, 0, 0, 4}).Draw(t, "repeats")
	return s
}

func anyPolicy(t *rapid.T) Policy {
	return rapid.SampledFrom([]Policy{{}, {}, PIV(0), {Done: DoneWhen{Exit: true}}, {Done: DoneWhen{Exit: true, Manifest: true}}}).Draw(t, "policy")
}

// without is the evidence after one source has become unreadable.
func (e Evidence) without(s Source) Evidence {
	e.Missing = append(slices.Clone(e.Missing), s)
	switch s {
	case FromBeat:
		e.Beat = Beat{}
	case FromProcess:
		e.Process = Proc{}
	case FromExit:
		e.Exit = Exit{}
	case FromDone:
		e.Done = ""
	case FromArtefact:
		e.Artefact = Artefact{}
	case FromManifest:
		e.Manifest = Manifest{}
	case FromSessions:
		e.Sessions = nil
	case FromHooks:
		e.Hooks = nil
	case FromTitle:
		e.Title = Title{}
	case FromOutput:
		e.Output = Output{}
	case FromCPU:
		e.CPU = CPU{}
	case FromServers:
		e.Servers = nil
	}
	return e
}

var sources = []Source{FromBeat, FromProcess, FromExit, FromDone, FromArtefact, FromManifest, FromSessions, FromHooks, FromTitle, FromOutput, FromCPU, FromServers}

// Missing evidence lowers confidence: whichever source is lost, what was no reason to end anything does not become one.
func TestMissingNeverKills(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		e, p := anyEvidence(t), anyPolicy(t)
		v := Classify(e, p)
		if v.MayKill() {
			return
		}
		for _, s := range sources {
			if w := Classify(e.without(s), p); w.MayKill() {
				t.Errorf("without its %s, what was %s (%s) is %s (%s)", s, v.brief(), v.Details, w.brief(), w.Details)
			}
		}
	})
}

func TestVerdicts(t *testing.T) {
	silent := []Class{ModelSilent, ToolHung, HeartbeatLost, Orphaned, StartupBlocked, NoProgress}
	rapid.Check(t, func(t *rapid.T) {
		e, p := anyEvidence(t), anyPolicy(t)
		before := fmt.Sprintf("%+v", e)
		v := Classify(e, p)
		if after := fmt.Sprintf("%+v", e); after != before {
			t.Errorf("judging has changed the evidence:\n%s\n%s", before, after)
		}
		if tr := Explain(e, p); tr.Diagnosis != v || len(tr.Steps) != len(rules) {
			t.Errorf("explained as %+v, judged as %+v", tr.Diagnosis, v)
		}
		if e.Grace != "" && slices.Contains(silent, v.Class) {
			t.Errorf("%s in a grace", v.Class)
		}
		if v.Stall == Blind && v.MayKill() || v.Confidence == Low && v.MayKill() || v.Well() && v.MayKill() {
			t.Errorf("%s is no reason to kill", v.brief())
		}
		if e.Process.Life != Dead && (v.Stall == Crash) {
			t.Errorf("%s, and its process is %q", v.Class, e.Process.Life)
		}
		text, err := json.Marshal(e)
		if err != nil {
			t.Fatal(err)
		}
		var back Evidence
		if err := json.Unmarshal(text, &back); err != nil {
			t.Fatal(err)
		}
		if w := Classify(back, p); w != v {
			t.Errorf("after a log it is %s, it was %s: %s", w.brief(), v.brief(), text)
		}
		for _, off := range []func(*Evidence){func(e *Evidence) { e.Watched = false }, func(e *Evidence) { e.Paused = true }, func(e *Evidence) { e.Complete = true }} {
			if w := Classify(and(e, off), p); !w.Well() || w.Rule != "R0" {
				t.Errorf("nobody watches it, and it is %s", w.brief())
			}
		}
	})
}

// brief is a diagnosis in the message of a test.
func (v Diagnosis) brief() string {
	return fmt.Sprintf("%s %s (%s, %s)", v.Rule, v.Class, v.Confidence, v.Tier)
}

// A log that is appended to keeps its meaning: these names never change.
func TestNamesAreStable(t *testing.T) {
	three := 3
	e := Evidence{
		Status: "running", Watched: true, Beat: Beat{Has: true, Age: 90 * Span(time.Second), Seen: minute, State: Working, Note: "n", Next: hour},
		Process:  Proc{Life: Alive, Detail: "PID 7 is alive", Age: hour, AfterBeat: true, Orphaned: true},
		Artefact: Artefact{Expected: true, Seen: true}, Manifest: Manifest{Has: true, Dated: true, Age: minute, Failures: []Failure{{Category: "c", Phase: &three}}, Blocking: []string{"b"}},
		Sessions: []Session{{
			Kind: "claude", ID: "1", Status: agentcli.Waiting, WaitingFor: agentcli.ForPermission, StatusAge: minute, Open: agentcli.Tool, OpenAge: minute, OpenText: "ls", Tool: "Bash",
			Error: SessionError{Kind: agentcli.RateLimited, Status: 429, ResetKnown: true, ResetIn: hour}, Repeats: agentcli.Repeats{SameCall: 1}, Tokens: 5, CostUSD: 0.5, LastAge: minute, ProgressKnown: true, ProgressAge: minute,
		}},
		LastError: SessionError{Kind: agentcli.CreditEmpty, Status: 402},
		Hooks:     []Request{{Tool: "Bash", Text: "ls", Age: minute}}, Title: Title{Status: agentcli.Busy, Text: "t"}, Output: Output{Known: true, Age: minute},
		CPU: CPU{Known: true, Share: 0.5}, Grace: "g", Missing: []Source{FromExit}, Unread: []string{"exit: u"}, BlindTicks: 2,
	}
	want := `{"status":"running","watched":true,"beat":{"has":true,"age":"1m30s","seen":"1m","state":"working","note":"n","next":"1h"},` +
		`"process":{"life":"alive","detail":"PID 7 is alive","age":"1h","after_beat":true,"orphaned":true},"artefact":{"expected":true,"seen":true},` +
		`"manifest":{"has":true,"dated":true,"age":"1m","failures":[{"category":"c","phase":3}],"blocking":["b"]},` +
		`"sessions":[{"kind":"claude","id":"1","status":"waiting","waiting_for":"permission","status_age":"1m","open":"tool","open_age":"1m","open_text":"ls","tool":"Bash",` +
		`"error":{"kind":"rate_limit","status":429,"reset_known":true,"reset_in":"1h"},"repeats":{"same_call":1},"tokens":5,"cost_usd":0.5,"last_age":"1m","progress_known":true,"progress_age":"1m"}],"last_error":{"kind":"credit","status":402},` +
		`"hooks":[{"tool":"Bash","text":"ls","age":"1m"}],"title":{"status":"busy","text":"t"},"output":{"known":true,"age":"1m"},"cpu":{"known":true,"share":0.5},` +
		`"grace":"g","missing":["exit"],"unread":["exit: u"],"blind_ticks":2}`
	if diff := cmp.Diff(want, Encode(t, e)); diff != "" {
		t.Error(diff)
	}
	v := Diagnosis{Rule: "L1", Class: RateLimited, Stall: Errored, Confidence: High, Tier: File, Since: minute, Hold: hour, Details: "d", Doubt: "u"}
	want = `{"rule":"L1","class":"rate_limited","stall":"execution_error","confidence":"high","tier":"T","since":"1m","hold":"1h","details":"d","doubt":"u"}`
	if diff := cmp.Diff(want, Encode(t, v)); diff != "" {
		t.Error(diff)
	}
}
