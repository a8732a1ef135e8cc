package cli

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/outlive-mcp/outlive/internal/agents/diagnose"
	"github.com/outlive-mcp/outlive/internal/agents/incident"
	"github.com/outlive-mcp/outlive/internal/agents/monitor"
	"github.com/outlive-mcp/outlive/internal/agents/recovery"
	"github.com/outlive-mcp/outlive/internal/agents/registry"
)

// A limit whose reset is known is counted down to.
func TestAListCountsDownToAReset(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 21, 22, 0, 0, 0, time.UTC)
	f := monitor.Finding{Diagnosis: diagnose.Diagnosis{Class: diagnose.RateLimited, Stall: diagnose.Errored, Hold: diagnose.Span(72 * time.Minute)}}
	if got := stateWord(f); got != "limit, resets in 1h12m" {
		t.Errorf("%q", got)
	}
	if r := agentRecordOf(f, at); r.Until == nil || !r.Until.Equal(at.Add(72*time.Minute)) {
		t.Errorf("until %v", r.Until)
	}
	f.Diagnosis.Hold = 0
	if got := stateWord(f); got != "is rate limited" {
		t.Errorf("%q", got)
	}
}

// The monitor deals with what it can deal with. A question it cannot answer, and a reply it cannot hear before a message was sent.
func TestWhatOnlyAPersonCanDo(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 21, 22, 0, 0, 0, time.UTC)
	asked := incident.Incident{Key: incident.Key{Agent: "shop", Class: "waiting_question"}, State: incident.Open, Opened: at}
	told := asked
	told.State, told.NotifiedAt = incident.Notified, at
	for name, tt := range map[string]struct {
		class     diagnose.Class
		ways      incident.Ways
		incidents []incident.Incident
		want      string
	}{
		"it hangs":                       {diagnose.ModelSilent, incident.Ways{}, nil, "nothing: the monitor deals with it"},
		"it has only just asked":         {diagnose.WaitingQuestion, incident.Ways{}, nil, "answer at its terminal, or by a text (outlive agent say shop --home unused TEXT)"},
		"nobody could be told":           {diagnose.WaitingQuestion, incident.Ways{}, []incident.Incident{asked}, "answer at its terminal, or by a text (outlive agent say shop --home unused TEXT)"},
		"somebody was told":              {diagnose.WaitingQuestion, incident.Ways{}, []incident.Incident{told}, "answer by a reply to the message that told you, or at its terminal"},
		"it has no terminal, no command": {diagnose.WaitingOther, incident.Ways{NoTerminal: true, NoNudge: true}, nil, "give it what it lacks, then start it again; it has no terminal to answer at"},
	} {
		view := monitor.View{At: at, Running: 7, Registry: &registry.Registry{Agents: []registry.Agent{{Name: "shop"}}}}
		f := monitor.Finding{
			Key: "shop", Diagnosis: diagnose.Diagnosis{Class: tt.class, Stall: diagnose.Waiting}, Ways: tt.ways, Incidents: tt.incidents,
			Decision: recovery.Decision{Rung: recovery.Observe}, Action: "observe",
		}
		got := ""
		for _, a := range troubleAspects(monitor.Options{Home: "unused"}, view, f) {
			if a.Name == "to do" {
				got += a.Text
			}
		}
		if got != tt.want {
			t.Errorf("%s: %q, want %q", name, got, tt.want)
		}
	}
}

// A restart that lasted 13 seconds has helped nobody, in every place that tells of it.
func TestWhetherItHelped(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 21, 22, 0, 0, 0, time.Local)
	act := func(ago time.Duration) recovery.Act {
		began := at.Add(-ago)
		return recovery.Act{Rung: recovery.Restart, Class: "crashed", Stall: "orchestrator_crashed", Since: began, At: began.Add(5 * time.Second),
			Proved: began.Add(10 * time.Second), Deadline: began.Add(5 * time.Minute)}
	}
	f := monitor.Finding{
		Key: "shop", Diagnosis: diagnose.Diagnosis{Class: diagnose.AtWork},
		Acts: []recovery.Act{act(time.Hour), act(time.Hour - 23*time.Second), act(2 * time.Minute)},
	}
	want := []string{"it worked again for 13s only", "it worked again at 21:00", "it has worked again since 21:58"}
	for n := range want {
		if got := effectText(effectOf(f, n, at), at); got != want[n] {
			t.Errorf("act %d: %q, want %q", n, got, want[n])
		}
	}
	seen := seenAgent(monitor.Options{Home: t.TempDir()}, monitor.View{At: at}, f).Acts
	if !seen[0].Helped.IsZero() || seen[1].Helped.IsZero() || !seen[2].Helped.IsZero() || seen[0].Effect != want[0] {
		t.Errorf("the page has %+v", seen)
	}
}

// What could not be read stands below the table, in the record for programs, and in what was seen.
func TestAListNamesWhatCannotBeRead(t *testing.T) {
	t.Parallel()
	const why = "sessions: /home/u/.claude/sessions has more than 20000 entries: not read completely"
	f := monitor.Finding{
		Key: "shop", Diagnosis: diagnose.Diagnosis{Class: diagnose.AtWork},
		Evidence: diagnose.Evidence{Missing: []diagnose.Source{diagnose.FromSessions}, Unread: []string{why}},
	}
	names := func(list []string) bool {
		return slices.ContainsFunc(list, func(line string) bool { return strings.Contains(line, why) })
	}
	if notes := notesOf(monitor.Options{}, monitor.View{Running: 1, Findings: []monitor.Finding{f}}); !names(notes) || !strings.HasPrefix(notes[0], "shop: ") {
		t.Errorf("below the table: %q", notes)
	}
	if r := agentRecordOf(f, time.Now()); !names(r.Unread) {
		t.Errorf("for programs: %q", r.Unread)
	}
	if lines := evidenceLines(f.Evidence); !names(lines) {
		t.Errorf("what was seen: %q", lines)
	}
	f.Evidence = diagnose.Evidence{}
	if notes := notesOf(monitor.Options{}, monitor.View{Running: 1, Findings: []monitor.Finding{f}}); len(notes) != 0 {
		t.Errorf("nothing is unread, and there is a note: %q", notes)
	}
}
