package diagnose

import (
	"testing"

	"github.com/outlive-mcp/outlive/internal/agents/agentcli"
)

// works is a session that has just asked its model.
var works = Session{Kind: "claude", Status: agentcli.Busy, Open: agentcli.Model, OpenAge: minute, LastAge: minute}

// A session that is over says nothing about an agent of which another one works: it may be that of a CLI which the agent has run.
func TestAnotherSessionWorks(t *testing.T) {
	t.Parallel()
	over := func(kind agentcli.FailureKind) Session {
		return Session{Kind: "claude", Ended: true, LastAge: hour, Error: SessionError{Kind: kind}}
	}
	asked := Session{Kind: "claude", Ended: true, EndedAsking: true, LastAge: hour}
	for _, tc := range []struct {
		name  string
		over  Session
		alone Class
	}{
		{"401", over(agentcli.AuthFailure), AuthExpired}, {"credit", over(agentcli.CreditEmpty), CreditExhausted},
		{"429", over(agentcli.RateLimited), RateLimited}, {"529", over(agentcli.APIFailure), APIFailed},
		{"full context", over(agentcli.ContextFull), ContextExhausted}, {"any other error", over(agentcli.ExecutionFailed), ExecutionError},
		{"a question", asked, WaitingQuestion},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			alone := and(living, session(tc.over))
			if v := Classify(alone, Policy{}); v.Class != tc.alone {
				t.Errorf("alone: %s (%s), want %s", v.Class, v.Details, tc.alone)
			}
			for _, beside := range []Evidence{and(alone, session(works)), and(living, session(works), session(tc.over))} {
				if v := Classify(beside, Policy{}); v.Class != AtWork {
					t.Errorf("while another works: %s (%s)", v.Class, v.Details)
				}
			}
			retries := works
			retries.Status, retries.Error = agentcli.Retrying, SessionError{Kind: agentcli.APIFailure}
			want := tc.alone
			if kind := tc.over.Error.Kind; kind == agentcli.ContextFull || kind == "" {
				want = APIBackoff // only an end helps against the first, and the other one tries again
			}
			if v := Classify(and(alone, session(retries)), Policy{}); v.Class != want {
				t.Errorf("while another has an error, too: %s (%s), want %s", v.Class, v.Details, want)
			}
		})
	}
}

// A CLI that the agent runs never says what state the agent is in; as long as it works, nothing is ended for it.
func TestANestedCLI(t *testing.T) {
	t.Parallel()
	nested := func(s Session) func(*Evidence) { return func(e *Evidence) { e.Nested = append(e.Nested, s) } }
	full := Session{Kind: "claude", Status: agentcli.Idle, Ended: true, LastAge: minute, Error: SessionError{Kind: agentcli.ContextFull}}
	hung := Session{Kind: "claude", Status: agentcli.Busy, Open: agentcli.Tool, Tool: "Bash", OpenAge: 2 * hour, LastAge: 2 * hour}
	silent := Session{Kind: "claude", Status: agentcli.Busy, Open: agentcli.Model, OpenAge: hour, LastAge: hour}
	still := func(e *Evidence) { e.CPU.Known = true }
	asks := Session{Kind: "claude", Status: agentcli.Waiting, WaitingFor: agentcli.ForPermission, Open: agentcli.Question, LastAge: minute}
	for _, tc := range []struct {
		name string
		e    Evidence
		want Class
	}{
		{"its question", and(living, session(works), nested(asks)), AtWork},
		{"its error", and(living, session(works), nested(full)), AtWork},
		{"its silence", and(living, session(works), nested(silent)), AtWork},
		{"its work is not the agent's", and(living, session(Session{Status: agentcli.Idle, LastAge: minute}), nested(works)), Idle},
		{"the agent's full context, and it works", and(living, session(full), nested(works)), Idle},
		{"the agent's full context, and it hangs", and(living, session(full), nested(silent)), ContextExhausted},
		{"the agent's tool, and it works", and(living, still, session(hung), nested(works)), AtWork},
		{"the agent's tool, and it hangs", and(living, still, session(hung), nested(silent)), ToolHung},
		{"the agent's model, and it works", and(living, session(silent), nested(works)), AtWork},
		{"the agent's model, and it hangs", and(living, session(silent), nested(silent)), ModelSilent},
	} {
		if v := Classify(tc.e, Policy{}); v.Class != tc.want {
			t.Errorf("%s: %s (%s), want %s", tc.name, v.Class, v.Details, tc.want)
		}
	}
}

// A full context waits for what the agent has started, and is told when that does not end; the agent is not ended meanwhile.
func TestAFullContextBesideABuild(t *testing.T) {
	t.Parallel()
	full := func(age Span) Evidence {
		return and(living, func(e *Evidence) { e.CPU = CPU{Known: true, Share: 0.9} },
			session(Session{Kind: "claude", Status: agentcli.Idle, Ended: true, LastAge: age, Error: SessionError{Kind: agentcli.ContextFull}}))
	}
	if v := Classify(full(minute), Policy{}); v.Class != Idle {
		t.Errorf("a minute after: %s (%s)", v.Class, v.Details)
	}
	if v := Classify(full(hour), Policy{}); v.Class != ContextExhausted || v.MayKill() {
		t.Errorf("an hour after: %s, may kill %v (%s)", v.Class, v.MayKill(), v.Details)
	}
}

func TestWhatAnEndWouldEnd(t *testing.T) {
	t.Parallel()
	loops := works
	loops.Repeats.SameCall = 9
	asks := Session{Status: agentcli.Busy, Open: agentcli.Question, OpenAge: minute, LastAge: minute}
	nested := func(e *Evidence) { e.Nested = []Session{works} }
	stopped := func(e *Evidence) { e.Process.Stopped = true }
	for _, tc := range []struct {
		name string
		e    Evidence
		want bool
	}{
		{"the one that asks", and(living, session(asks)), false},
		{"one that asks, one that works", and(living, session(asks), session(works)), true},
		{"one that asks, a CLI of it that works", and(living, session(asks), nested), true},
		{"the one that says that it waits", and(living, func(e *Evidence) { e.Beat = Beat{Has: true, Age: minute, State: Waits} }, session(works)), false},
		{"the one that loops", and(living, session(loops)), false},
		{"one that loops, one that works", and(living, session(loops), session(works)), true},
		{"one that loops, a CLI of it that works", and(living, session(loops), nested), true},
		{"stopped", and(living, stopped, session(works), nested), false},
		{"dead", and(living, func(e *Evidence) { e.Process.Life = Dead }, nested), false},
	} {
		if v := Classify(tc.e, Policy{}); v.EndsWork(tc.e, Policy{}) != tc.want {
			t.Errorf("%s (%s): %v, want %v", tc.name, v.Class, !tc.want, tc.want)
		}
	}
}

// While a subagent in the background writes, its agent is not ended. Neither a question is a reason, nor a model that does not answer the
// session itself.
func TestASubagentInTheBackgroundWorks(t *testing.T) {
	t.Parallel()
	left := Task{Tool: "Agent", Text: "Look for the cause", Age: hour, SilentKnown: true, Silent: minute}
	asks := Session{Kind: "claude", Status: agentcli.Waiting, WaitingFor: agentcli.ForQuestion, Open: agentcli.Question, OpenAge: hour, LastAge: hour, Tasks: []Task{left}}
	silent := Session{Kind: "claude", Status: agentcli.Busy, Open: agentcli.Model, OpenAge: hour, LastAge: hour, Tasks: []Task{left}}
	if e := and(living, session(silent)); Classify(e, Policy{}).Class != AtWork {
		t.Errorf("its subagent works, and it is %+v", Classify(e, Policy{}))
	}
	e := and(living, session(asks))
	if v := Classify(e, Policy{}); v.Class != WaitingQuestion || !v.EndsWork(e, Policy{}) {
		t.Errorf("its subagent works, and it may be ended: %+v", v)
	}
	e.Sessions[0].Tasks[0].Silent = 40 * minute
	if v := Classify(e, Policy{}); v.EndsWork(e, Policy{}) {
		t.Errorf("its subagent has written nothing for 40 minutes: %+v", v)
	}
	silent.Tasks[0].Silent = 40 * minute
	if v := Classify(and(living, session(silent)), Policy{}); v.Class != ModelSilent {
		t.Errorf("nothing of it works: %+v", v)
	}
}

// A script that waits for its next run is not ended for what its last CLI has shown, but it is when its own heartbeats have stopped.
func TestAScriptBetweenTwoRuns(t *testing.T) {
	t.Parallel()
	script := and(living, func(e *Evidence) { e.Process.Bare = true })
	limited := and(script, session(Session{Kind: "claude", Ended: true, LastAge: 3 * hour, Error: SessionError{Kind: agentcli.RateLimited}}))
	if v := Classify(limited, Policy{}); v.Class != RateLimited || !v.EndsWork(limited, Policy{}) {
		t.Errorf("it waits, and may be ended: %+v", v)
	}
	silent := and(script, func(e *Evidence) { e.Beat = Beat{Has: true, Age: hour} })
	if v := Classify(silent, Policy{}); v.Class != HeartbeatLost || v.EndsWork(silent, Policy{}) {
		t.Errorf("it beats no more, and may not be ended: %+v", v)
	}
	late := and(script, func(e *Evidence) { e.Artefact.Expected, e.Process.AfterBeat = true, true })
	if v := Classify(late, Policy{}); v.Class != Unobserved {
		t.Errorf("it waits before its first run: %+v", v)
	}
}
