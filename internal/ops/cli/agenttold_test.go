package cli

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/outlive-mcp/outlive/internal/agents/diagnose"
	"github.com/outlive-mcp/outlive/internal/agents/incident"
	"github.com/outlive-mcp/outlive/internal/agents/monitor"
	"github.com/outlive-mcp/outlive/internal/agents/recovery"
	"github.com/outlive-mcp/outlive/internal/agents/registry"
)

// Who was told is said with what has failed and why, and nobody is promised a message that will never come.
func TestToldWhom(t *testing.T) {
	at := time.Date(2026, 11, 21, 3, 0, 0, 0, time.Local)
	failed := monitor.Unsent{Channel: "me", Error: "unreachable: cat: no such file", Next: at.Add(12 * time.Second)}
	for name, tc := range map[string]struct {
		i      incident.Incident
		unsent []monitor.Unsent
		want   string
	}{
		"not yet":             {i: incident.Incident{State: incident.Open}, want: "nobody could be told yet"},
		"it failed":           {i: incident.Incident{State: incident.Open}, unsent: []monitor.Unsent{failed}, want: "nobody could be told yet; not by me: unreachable: cat: no such file, tried again at 03:00:12"},
		"it was rejected":     {i: incident.Incident{State: incident.Open}, unsent: []monitor.Unsent{{Channel: "me", Error: "rejected: no"}}, want: "nobody could be told yet; not by me: rejected: no; it is not tried again"},
		"by one of two":       {i: incident.Incident{State: incident.Notified, NotifiedAt: at}, unsent: []monitor.Unsent{failed}, want: "you were told at 03:00; not by me: unreachable: cat: no such file, tried again at 03:00:12"},
		"in the summary":      {i: incident.Incident{State: incident.Open, Facts: incident.Facts{Severity: incident.Info}}, want: "nobody is told: it stands in the daily summary"},
		"left to the fleet":   {i: incident.Incident{State: incident.Open, Facts: incident.Facts{Severity: incident.Info, Shared: "api"}}, want: "the fleet tells of it"},
		"no answer in time":   {i: incident.Incident{State: incident.Expired, NotifiedAt: at}, want: "you were told at 03:00, and nobody has answered"},
		"somebody sees to it": {i: incident.Incident{State: incident.Acknowledged, NotifiedAt: at, AckedBy: "ann", AckedUntil: at.Add(time.Hour)}, want: "acknowledged by ann, no reminders until 04:00"},
	} {
		tc.i.ID = "ab12"
		if got := toldWhom(monitor.View{At: at, Unsent: map[string][]monitor.Unsent{"ab12": tc.unsent}}, tc.i); got != tc.want {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
}

// Where nobody could be told, nothing beside it says that somebody was.
func TestNobodyAndSomebodyWereNotTold(t *testing.T) {
	o, view := night()
	question := incident.Incident{
		ID: "ab12", Key: incident.Key{Agent: "asks", Class: "waiting_question"}, State: incident.Open, Opened: view.At.Add(-12 * time.Minute),
		Facts: incident.Facts{Name: "asks", Severity: incident.Warning, Details: "it asks which database"},
	}
	f := monitor.Finding{
		Key: "asks", Name: "asks", Kind: registry.Command, Incidents: []incident.Incident{question}, Action: "wait",
		Decision:  recovery.Decision{Reason: "it is left to a human"},
		Diagnosis: diagnose.Diagnosis{Class: diagnose.WaitingQuestion, Stall: diagnose.Waiting, Details: "it asks which database"},
		Acts:      []recovery.Act{{Rung: recovery.AskPhone, Class: "waiting_question", Stall: string(diagnose.Waiting), At: view.At.Add(-12 * time.Minute)}},
	}
	view.Findings, view.Incidents, view.Past = []monitor.Finding{f}, f.Incidents, f.Incidents
	var b bytes.Buffer
	for _, err := range []error{printAgents(&b, homeRecordOf(o, view)), printReport(&b, o, view, reportOf(view, 12*time.Hour)), printExplained(&b, o, view, f)} {
		if err != nil {
			t.Error(err)
		}
	}
	shown := b.String()
	if !strings.Contains(shown, "nobody could be told") || !strings.Contains(shown, "its question was put into a message") {
		t.Errorf("it does not say that nobody could be told, and what was done:\n%s", shown)
	}
	for _, word := range []string{"you were told", "asked you", "was told", "has been told"} {
		if strings.Contains(shown, word) {
			t.Errorf("it says %q beside that:\n%s", word, shown)
		}
	}
}

// A message that one of several channels refuses may still come by another one.
func TestRefusedByAll(t *testing.T) {
	for failing, want := range map[string]bool{"": false, "a": false, "a b": true} {
		i := seenIncident(monitor.Options{}, monitor.View{}, incident.Incident{State: incident.Open, Channels: []string{"a", "b"}, Failing: strings.Fields(failing)})
		if i.Refused != want || i.Untold != (failing != "") {
			t.Errorf("failing are %q: refused is %t, untold %t", failing, i.Refused, i.Untold)
		}
	}
}

// Whoever is to start an agent again is told how, on the page and in top.
func TestHowAnAgentIsStartedAgain(t *testing.T) {
	view := monitor.View{Registry: &registry.Registry{Agents: []registry.Agent{{Name: "cart", Start: registry.Start{Cmd: []string{"make"}}}, {Name: "wiki"}}}}
	for _, key := range []string{"cart", "wiki", "piv"} {
		view.Findings = append(view.Findings, monitor.Finding{Key: key, Name: key, Evidence: diagnose.Evidence{Process: diagnose.Proc{Life: diagnose.Dead}}})
	}
	for key, want := range map[string]string{
		"cart": "find out why it has ended (outlive agent logs cart --home unused), then start it again (outlive agent start cart --home unused)",
		"wiki": "find out why it has ended (outlive agent logs wiki --home unused), then start it again (as you have started it: its declaration has no command)",
		"piv":  "find out why it has ended (outlive agent logs piv --home unused), then start it again",
	} {
		i := incident.Incident{Key: incident.Key{Agent: key, Class: "crashed"}, State: incident.Open}
		if got := seenIncident(monitor.Options{Home: "unused"}, view, i).ToDo; got != want {
			t.Errorf("%s: %q, want %q", key, got, want)
		}
	}
}

// How long ago a heartbeat was does not stand still on the card of an incident, beside the agent's own.
func TestDetailsOfAnIncidentAreOfNow(t *testing.T) {
	view := monitor.View{Findings: []monitor.Finding{{Key: "cart", Diagnosis: diagnose.Diagnosis{Class: diagnose.HeartbeatLost, Details: "heartbeat 9m ago"}}}}
	for class, want := range map[string]string{"heartbeat_lost": "heartbeat 9m ago", "crashed": "heartbeat 6m ago"} {
		i := incident.Incident{Key: incident.Key{Agent: "cart", Class: class}, State: incident.Open, Facts: incident.Facts{Details: "heartbeat 6m ago"}}
		if got := seenIncident(monitor.Options{Home: "unused"}, view, i).Details; got != want {
			t.Errorf("%s: %q, want %q", class, got, want)
		}
	}
}

// What an agent did while it was well is not kept, so its day does not say that it worked.
func TestAnEarlierVerdictSaysWhatIsKnown(t *testing.T) {
	if s := stood(monitor.Verdict{Standing: monitor.Well, Class: diagnose.Unobserved}); s.State != "well" {
		t.Errorf("it %s, of which nothing else is known", s.State)
	}
}
