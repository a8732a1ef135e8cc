package monitor

import (
	"testing"
	"time"

	"github.com/outlive-mcp/outlive/internal/agents/agentcli"
	"github.com/outlive-mcp/outlive/internal/agents/diagnose"
	"github.com/outlive-mcp/outlive/internal/agents/process"
	"github.com/outlive-mcp/outlive/internal/agents/recovery"
	"github.com/outlive-mcp/outlive/internal/agents/registry"
)

// goesOn is an agent whose process, the 7, goes on with a session that was last written 14 hours before its start.
func goesOn(age time.Duration) (*gathering, agentcli.Session) {
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	id := process.Identity{PID: 7, Start: 70}
	entry := process.Process{Identity: id, Age: age}
	g := &gathering{
		setting: &setting{now: Clocks{Wall: now}, sources: &sources{table: process.TableOf([]process.Process{entry})}},
		agent:   agent{Declared: &registry.Agent{}}, e: &diagnose.Evidence{Watched: true}, f: &finding{process: id}, began: now.Add(-age),
	}
	g.e.Process = diagnose.Proc{Life: diagnose.Alive, Age: diagnose.Span(age), AfterBeat: true}
	g.e.Artefact.Expected = true
	written := g.began.Add(-14 * time.Hour)
	return g, agentcli.Session{Kind: agentcli.Codex, ID: "s", PID: 7, Start: 70, Status: agentcli.Idle, Turn: agentcli.Turn{LastAt: written, Ended: true}}
}

// What a session waited for, asked or failed with in an earlier run is not what its present process does.
func TestASessionOfTheRunBefore(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		change func(*agentcli.Session)
		want   diagnose.Class
	}{
		"its turn had ended": {func(*agentcli.Session) {}, diagnose.Idle},
		"it had asked":       {func(v *agentcli.Session) { v.Turn.EndedAsking = true }, diagnose.Idle},
		"its login had expired": {func(v *agentcli.Session) {
			v.Turn.Error = agentcli.Failure{Kind: agentcli.AuthFailure, At: v.Turn.LastAt}
		}, diagnose.Idle},
		"its model was asked": {func(v *agentcli.Session) {
			v.Status, v.StatusAt, v.Turn.Ended, v.Turn.Open, v.Turn.OpenAt = agentcli.Busy, v.Turn.LastAt, false, agentcli.Model, v.Turn.LastAt
		}, diagnose.Idle},
		"it works, and has written nothing yet": {func(v *agentcli.Session) {
			v.Status, v.StatusAt, v.Turn.Ended, v.Turn.Open, v.Turn.OpenAt = agentcli.Busy, v.Turn.LastAt.Add(14*time.Hour+time.Second), false, agentcli.Model, v.Turn.LastAt
		}, diagnose.AtWork},
		"its login has expired since": {func(v *agentcli.Session) {
			v.Turn.LastAt = v.Turn.LastAt.Add(14*time.Hour + time.Second)
			v.Turn.Error = agentcli.Failure{Kind: agentcli.AuthFailure, At: v.Turn.LastAt}
		}, diagnose.AuthExpired},
	} {
		g, v := goesOn(5 * time.Minute)
		tt.change(&v)
		g.shownBy(&v)
		g.e.Sessions = []diagnose.Session{g.session(&v)}
		if v := diagnose.Classify(*g.e, diagnose.Policy{}); v.Class != tt.want {
			t.Errorf("%s: it is called %s, want %s: %s", name, v.Class, tt.want, v.Details)
		}
	}
}

// A process that we have started with a prompt has begun only when its session goes on: a dialog may stand before the prompt.
func TestAResumedSessionThatDoesNotBegin(t *testing.T) {
	t.Parallel()
	resume := registry.Start{Resume: []string{"codex", "resume", "{session}", "{preamble}"}}
	for name, tt := range map[string]struct {
		age      time.Duration
		headless bool
		resumed  recovery.Rung // by us; "": somebody else has started it
		start    registry.Start
		began    bool
		want     diagnose.Class
	}{
		"by a person":                {5 * time.Minute, false, "", resume, false, diagnose.Idle},
		"headless, at once":          {time.Minute, true, recovery.Restart, resume, false, diagnose.Starting},
		"headless":                   {5 * time.Minute, true, recovery.Restart, resume, false, diagnose.StartupBlocked},
		"headless, by a person":      {5 * time.Minute, true, "", resume, false, diagnose.Idle},
		"headless, and it has begun": {5 * time.Minute, true, recovery.Restart, resume, true, diagnose.Idle},
		"by us":                      {5 * time.Minute, false, recovery.Resume, resume, false, diagnose.StartupBlocked},
		"by us, without a prompt":    {5 * time.Minute, false, recovery.Resume, registry.Start{Resume: []string{"codex", "resume"}}, false, diagnose.Idle},
		"begun anew by us":           {5 * time.Minute, false, recovery.Restart, resume, false, diagnose.Idle},
	} {
		g, v := goesOn(tt.age)
		g.agent.Declared.Start, g.e.Process.Headless = tt.start, tt.headless
		if tt.resumed != "" {
			g.known.launch = &attempt{Process: g.f.process, Act: recovery.Act{Rung: tt.resumed}}
		}
		if tt.began {
			v.Turn.LastAt = g.began.Add(time.Second)
		}
		g.shownBy(&v)
		g.e.Sessions = []diagnose.Session{g.session(&v)}
		if v := diagnose.Classify(*g.e, diagnose.Policy{}); v.Class != tt.want {
			t.Errorf("%s: it is called %s, want %s: %s", name, v.Class, tt.want, v.Details)
		}
	}
}

// The question or the error with which a subagent has ended is its session's to deal with. That one is at rest.
func TestWhatASubagentHasEndedWith(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*agentcli.Session){
		"a question": func(v *agentcli.Session) { v.Turn.EndedAsking = true },
		"a limit": func(v *agentcli.Session) {
			v.Turn.Error = agentcli.Failure{Kind: agentcli.RateLimited, At: v.Turn.LastAt, Final: true}
		},
	} {
		g, main := goesOn(20 * time.Minute)
		main.Turn.LastAt = g.began.Add(5 * time.Minute)
		subagent := main
		subagent.ID, subagent.Subagent = "sub", true
		change(&subagent)
		g.e.Artefact.Seen = true
		g.e.Sessions = []diagnose.Session{g.session(&subagent), g.session(&main)}
		if v := diagnose.Classify(*g.e, diagnose.Policy{}); v.Class != diagnose.Idle {
			t.Errorf("%s: it is called %s: %s", name, v.Class, v.Details)
		}
	}
}
