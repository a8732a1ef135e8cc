package diagnose

import (
	"strings"
	"testing"

	"github.com/outlive-mcp/outlive/internal/agents/agentcli"
)

// A headless command exits with its turn. One that lives on is done or hangs, unless it waits for something.
func TestAHeadlessCommandThatDoesNotExit(t *testing.T) {
	t.Parallel()
	of := func(change func(*Session)) func(*Evidence) {
		return func(e *Evidence) { headlessAtRest(e); change(&e.Sessions[0]) }
	}
	same := func(*Session) {}
	exit, mark := Policy{Done: DoneWhen{Exit: true}}, Policy{Done: DoneWhen{Manifest: true}}
	for _, tc := range []struct {
		name string
		e    Evidence
		p    Policy
		want Class
		says string
	}{
		{"done", and(living, of(same)), Policy{}, Done, "it hangs"},
		{"hangs", and(living, of(same)), exit, NoProgress, "it hangs"},
		{"a script waits for it", and(living, of(same), func(e *Evidence) { e.Process.Scripted = true }), Policy{}, NoProgress, "it hangs"},
		{"without its mark", and(living, of(same)), mark, NoProgress, "nothing marks its work"},
		{"with its mark", and(living, of(same), func(e *Evidence) { e.Manifest = Manifest{Has: true, Complete: true} }), mark, Done, "it hangs"},
		{"only just at its end", and(living, of(func(s *Session) { s.LastAge = 30 * minute })), Policy{}, Idle, ""},
		{"it has only just begun", and(living, of(func(s *Session) { s.LastAge = 2 * hour })), Policy{}, Idle, ""},
		{"at a terminal", and(living, of(same), func(e *Evidence) { e.Process.Headless = false }), Policy{}, Idle, ""},
		{"it waits for a task", and(living, of(func(s *Session) { s.Tasks = []Task{{Tool: "Bash", Shell: true}} })), Policy{}, Idle, ""},
		{"it waits for a time", and(living, of(func(s *Session) { s.WakesItself = true })), Policy{}, Idle, ""},
		{"a person has interrupted it", and(living, of(func(s *Session) { s.Interrupted = true })), Policy{}, Idle, ""},
		{"it has asked", and(living, of(func(s *Session) { s.EndedAsking = true })), Policy{}, WaitingQuestion, ""},
		{"it has failed", and(living, of(func(s *Session) { s.Error.Kind = agentcli.ExecutionFailed })), Policy{}, ExecutionError, ""},
		{"what it has started works", and(living, of(same), func(e *Evidence) { e.CPU = CPU{Known: true, Share: 0.5} }), Policy{}, Idle, ""},
		{"a CLI of it works", and(living, of(same), func(e *Evidence) { e.Nested = []Session{works} }), Policy{}, Idle, ""},
		{"another turn", and(living, of(same), session(works)), Policy{}, AtWork, ""},
		{"not all was read", and(living, of(same), func(e *Evidence) { e.Missing = []Source{FromSessions} }), Policy{}, Idle, ""},
	} {
		v := Classify(tc.e, tc.p)
		if v.Class != tc.want || !strings.Contains(v.Details, tc.says) || v.MayKill() && tc.want != WaitingQuestion {
			t.Errorf("%s: %s (%s), want %s", tc.name, v.Class, v.Details, tc.want)
		}
	}
}
