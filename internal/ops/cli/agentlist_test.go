package cli

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/outlive-mcp/outlive/internal/agents/diagnose"
	"github.com/outlive-mcp/outlive/internal/agents/monitor"
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
