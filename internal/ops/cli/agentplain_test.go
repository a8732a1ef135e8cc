package cli

import (
	"bytes"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/outlive-mcp/outlive/internal/agents/agentcli"
	"github.com/outlive-mcp/outlive/internal/agents/diagnose"
	"github.com/outlive-mcp/outlive/internal/agents/incident"
	"github.com/outlive-mcp/outlive/internal/agents/monitor"
	"github.com/outlive-mcp/outlive/internal/agents/process"
	"github.com/outlive-mcp/outlive/internal/agents/recovery"
	"github.com/outlive-mcp/outlive/internal/agents/registry"
)

// night is a home at three in the morning, with an agent in each kind of trouble that somebody may be woken by.
func night() (monitor.Options, monitor.View) {
	at := time.Date(2026, 11, 21, 3, 0, 0, 0, time.Local)
	ago := func(d time.Duration) time.Time { return at.Add(-d) }
	span := func(d time.Duration) diagnose.Span { return diagnose.Span(d) }
	const minute, hour = time.Minute, time.Hour
	view := monitor.View{At: at, Running: 7, Registry: &registry.Registry{}}
	add := func(f monitor.Finding, e diagnose.Evidence, start registry.Start) {
		f.Name = f.Key
		e.Watched, e.Status = true, "watched"
		if f.Process.PID != 0 {
			e.Process.Life = diagnose.Alive
		}
		f.Evidence = e
		if f.Diagnosis = diagnose.Classify(e, diagnose.Policy{}); f.Diagnosis.Since > 0 {
			f.Since = ago(time.Duration(f.Diagnosis.Since))
		}
		if f.Action = string(f.Decision.Rung); f.Action == "" {
			f.Action = "wait"
		}
		view.Findings = append(view.Findings, f)
		view.Registry.Agents = append(view.Registry.Agents, registry.Agent{Name: f.Key, Kind: f.Kind, Start: start})
	}
	told := func(agent, class, details string, opened, notified time.Duration) incident.Incident {
		i := incident.Incident{
			ID: "ab12" + agent, Key: incident.Key{Agent: agent, Class: class}, State: incident.Notified, Opened: ago(opened), NotifiedAt: ago(notified),
			Facts: incident.Facts{Name: agent, Details: details, Severity: incident.Warning},
		}
		return i
	}
	both := registry.Start{Cmd: []string{"claude"}, Resume: []string{"claude", "--resume", "{session}"}}

	dialog := told("shop", "waiting_other", "Claude Code shows a dialog; PID 4711 is alive", 12*minute, 11*minute)
	add(monitor.Finding{
		Key: "shop", Kind: agentcli.Claude, Process: process.Identity{PID: 4711}, Session: "5e55", Ways: incident.Ways{Joinable: true}, Incidents: []incident.Incident{dialog},
		Decision: recovery.Decision{Reason: "it is left to a human"},
	}, diagnose.Evidence{
		Process:  diagnose.Proc{Detail: "PID 4711 is alive", Age: span(5 * hour)},
		Sessions: []diagnose.Session{{Kind: "claude", ID: "5e55", Status: agentcli.Waiting, WaitingFor: agentcli.ForDialog, StatusAge: span(12 * minute), LastAge: span(12 * minute)}},
	}, both)

	add(monitor.Finding{
		Key: "docs", Kind: agentcli.Claude, Process: process.Identity{PID: 4712}, Session: "d0c5",
		Decision: recovery.Decision{Reason: "held until 04:12:31", Budget: recovery.Usage{Used: 1, Max: 6, Window: 24 * hour}},
		Acts:     []recovery.Act{{Rung: recovery.Hold, Class: "rate_limited", Stall: "execution_error", At: ago(48 * minute)}},
	}, diagnose.Evidence{
		Process: diagnose.Proc{Detail: "PID 4712 is alive", Age: span(5 * hour)},
		Sessions: []diagnose.Session{{Kind: "claude", ID: "d0c5", Status: agentcli.Idle, LastAge: span(50 * minute), Error: diagnose.SessionError{
			Kind: agentcli.RateLimited, Text: "You've hit your limit · resets 4:12am", ResetKnown: true, ResetIn: span(72 * minute),
		}}},
	}, both)

	add(monitor.Finding{
		Key: "wiki", Kind: agentcli.Codex, Session: "3141",
		Decision: recovery.Decision{
			Rung: recovery.Restart, Reason: "step 2 of what is tried for it", Budget: recovery.Usage{Used: 1, Max: 5, Window: hour},
			LeftOut: []string{"nudge was left out: no nudge command is declared", "ask_phone has no effect: no channel is set up"},
		},
		Acts: []recovery.Act{{Rung: recovery.Resume, Class: "crashed", Stall: "orchestrator_crashed", At: ago(2 * minute)}},
	}, diagnose.Evidence{
		Process: diagnose.Proc{Life: diagnose.Dead, Detail: "PID 4713 has ended", Gone: span(3 * minute)},
		Exit:    diagnose.Exit{Known: true, Code: 137, Signal: "killed"},
	}, both)

	loop := told("cart", "crashed", "PID 4714 has ended; exit code 1", 40*minute, 40*minute)
	loop.State, loop.AckedBy, loop.AckedUntil = incident.Acknowledged, "ann", at.Add(3*hour)
	add(monitor.Finding{
		Key: "cart", Kind: registry.Command, Incidents: []incident.Incident{loop},
		Decision: recovery.Decision{Reason: "it is left to a human", Budget: recovery.Usage{Used: 5, Max: 5, Window: hour}},
		Acts: []recovery.Act{
			{Rung: recovery.Restart, Class: "crashed", Stall: "orchestrator_crashed", At: ago(4 * hour), Proved: ago(4*hour - minute)},
			{Rung: recovery.Restart, Class: "crashed", Stall: "orchestrator_crashed", At: ago(45 * minute)},
		},
	}, diagnose.Evidence{
		Process: diagnose.Proc{Life: diagnose.Dead, Detail: "PID 4714 has ended", Gone: span(46 * minute)},
		Exit:    diagnose.Exit{Known: true, Code: 1},
	}, registry.Start{Cmd: []string{"./cart"}})

	add(monitor.Finding{Key: "blog", Kind: agentcli.Claude, Process: process.Identity{PID: 4715}}, diagnose.Evidence{
		Process:  diagnose.Proc{Detail: "PID 4715 is alive", Age: span(5 * hour)},
		Sessions: []diagnose.Session{{Kind: "claude", ID: "b106", Status: agentcli.Busy, Open: agentcli.Model, OpenAge: span(5 * time.Second), LastAge: span(5 * time.Second), CostUSD: 1.5}},
	}, both)

	add(monitor.Finding{Key: "news", Kind: agentcli.Claude, Process: process.Identity{PID: 4716}, Decision: recovery.Decision{Reason: "they are left to a human"}}, diagnose.Evidence{
		Process:  diagnose.Proc{Detail: "PID 4716 is alive", Age: span(5 * hour)},
		Sessions: []diagnose.Session{{Kind: "claude", ID: "ee05", Status: agentcli.Idle, Ended: true, LastAge: span(6 * minute), Error: diagnose.SessionError{Kind: agentcli.AuthFailure, Status: 401, Text: "OAuth token has expired"}}},
	}, both)

	mass := told("account:claude:login", incident.Mass, "API Error: 401 OAuth token has expired", 5*minute, 4*minute)
	mass.ID, mass.Facts.Members = "cd34ef56", []string{"news", "mail"}
	over := told("shop", "model_silent", "a call to the model is open for 9m; PID 4711 is alive", 7*hour, 7*hour)
	over.State, over.Resolved, over.Ending = incident.Resolved, ago(6*hour+30*minute), "after 1 restart"
	view.Incidents = []incident.Incident{loop, dialog, mass}
	view.Past = []incident.Incident{over, loop, dialog, mass}
	return monitor.Options{Home: "unused"}, view
}

// What somebody reads who is woken at three in the morning, in one file that can be read from its beginning to its end.
// -update writes it anew.
func TestAtThreeInTheMorning(t *testing.T) {
	o, view := night()
	if home, err := monitorHome(""); err == nil {
		o.Home = home // the usual one: no command needs --home
	}
	var b bytes.Buffer
	say := func(command string, err error) {
		if err != nil {
			t.Errorf("%s: %v", command, err)
		}
	}
	b.WriteString("$ outlive agent list\n")
	say("list", printAgents(&b, homeRecordOf(o, view)))
	b.WriteString("\n$ outlive agent report\n")
	say("report", printReport(&b, o, view, reportOf(view, 12*time.Hour)))
	for _, f := range []monitor.Finding{view.Findings[0], view.Findings[2]} {
		b.WriteString("\n$ outlive agent explain " + f.Key + "\n")
		say("explain", printExplained(&b, o, view, f))
	}
	view.Running, view.Findings = 0, view.Findings[2:3]
	b.WriteString("\n$ outlive agent list   # without a monitor\n")
	say("list", printAgents(&b, homeRecordOf(o, view)))
	got := b.String()
	for _, line := range strings.Split(got, "\n") {
		if plain := bracketed.ReplaceAllString(line, ""); internalName.MatchString(plain) {
			t.Errorf("an internal name without words: %q", line)
		}
	}
	const path = "testdata/agents.txt"
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), got); d != "" {
		t.Errorf("go test ./internal/ops/cli -run AtThree -update writes it anew, if it is what people should read:\n%s", d)
	}
}

var (
	bracketed    = regexp.MustCompile(`\([^()]*\)`)
	internalName = regexp.MustCompile(`\b[a-z]+_[a-z_]+\b`)
)
