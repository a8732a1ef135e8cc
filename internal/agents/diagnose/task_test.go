package diagnose

import (
	"strings"
	"testing"
	"time"

	"github.com/outlive-mcp/outlive/internal/agents/agentcli"
)

// A task of the background is called dead only when that is proven, and only when nothing else is waited for.
func TestBackgroundTaskThatIsDead(t *testing.T) {
	t.Parallel()
	shell := Task{Tool: "Bash", Text: "npm test", Shell: true, Gone: true, GoneAge: 31 * minute, SilentKnown: true, Silent: 6 * minute, Age: hour}
	with := func(change func(*Task)) Task {
		task := shell
		change(&task)
		return task
	}
	of := func(change func(*Session), tasks ...Task) Session {
		s := parked(tasks...)
		s.LastAge = 6 * minute
		change(&s)
		return s
	}
	asIs := func(*Session) {}
	for name, test := range map[string]struct {
		session Session
		policy  Policy
		want    Class
	}{
		"a shell that is gone":                       {of(asIs, shell), Policy{}, TaskDead},
		"one of two":                                 {of(asIs, shell, with(func(t *Task) { t.Gone = false })), Policy{}, Idle},
		"both":                                       {of(asIs, shell, shell), Policy{}, TaskDead},
		"it has a process":                           {of(asIs, with(func(t *Task) { t.Gone = false })), Policy{}, Idle},
		"it has only just ended":                     {of(asIs, with(func(t *Task) { t.GoneAge = 4 * minute })), Policy{}, Idle},
		"it wrote something":                         {of(asIs, with(func(t *Task) { t.Silent = 4 * minute })), Policy{}, Idle},
		"nobody sees where it writes":                {of(asIs, with(func(t *Task) { t.SilentKnown = false })), Policy{}, Idle},
		"the session was at work only just":          {of(func(s *Session) { s.LastAge = minute }, shell), Policy{}, Idle},
		"a subagent may think":                       {of(asIs, with(func(t *Task) { t.Shell, t.Tool = false, "Agent" })), Policy{}, Idle},
		"a subagent that is silent for half an hour": {of(asIs, with(func(t *Task) { t.Shell, t.Silent = false, 31*minute })), Policy{}, TaskDead},
		"longer than its owner has said":             {of(asIs, shell), Policy{Task: Span(time.Hour)}, Idle},
		"its owner waits for ever":                   {of(asIs, shell), Policy{Task: -1}, Idle},
		"its turn has ended with a question":         {of(func(s *Session) { s.EndedAsking = true }, shell), Policy{}, WaitingQuestion},
		"its turn goes on": {of(func(s *Session) {
			s.Ended, s.Status, s.Open, s.OpenAge, s.Tasks[0].Awaited = false, agentcli.Busy, agentcli.Model, minute, false
		}, shell), Policy{}, AtWork},
		"it asks for the output, and nothing answers": {of(func(s *Session) { s.Ended, s.Status, s.Open, s.OpenAge = false, agentcli.Busy, agentcli.Tool, 6*minute }, shell), Policy{}, TaskDead},
	} {
		v := Classify(and(living, session(test.session)), test.policy)
		if v.Class != test.want {
			t.Errorf("%s: %s %s (%s), want %s", name, v.Rule, v.Class, v.Details, test.want)
		}
	}
	dead := and(living, session(of(asIs, shell)))
	if v := Classify(dead, Policy{}); !v.MayKill() || !strings.Contains(v.Details, "npm test") || v.Since != 6*minute {
		t.Errorf("%+v", v)
	}
	dead.Grace = "the machine slept"
	if v := Classify(dead, Policy{}); v.Class != Grace {
		t.Errorf("after a sleep: %+v", v)
	}
	dead.Grace, dead.Process.Life = "", Unsure
	if v := Classify(dead, Policy{}); v.Class == TaskDead {
		t.Errorf("of an agent whose process nobody knows: %+v", v)
	}
}
