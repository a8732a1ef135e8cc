package monitor

import (
	"context"
	"slices"
	"time"

	"github.com/outlive-mcp/outlive/internal/diagnose"
	"github.com/outlive-mcp/outlive/internal/hooks"
	"github.com/outlive-mcp/outlive/internal/process"
)

// rememberAgent keeps what the next look at a declared agent wants to know of this one.
func (r *round) rememberAgent(c *examined, s *sight) {
	s.Declared, s.Entry = true, c.Entry
	s.Phase, s.Session = c.body.phase, c.body.session
	switch alive := c.evidence.Process.Life == diagnose.Alive; {
	case alive:
		s.Identity, s.Gone, s.Stopped = c.body.process, time.Time{}, false
		s.AtRest = c.verdict.Class == diagnose.Idle
		s.CPU = s.CPU.next(r.sources.descendants(c.body.process), r.now)
	case c.evidence.Process.Life == diagnose.Dead && s.Gone.IsZero():
		s.Gone = r.now.Wall.Round(0)
	}
	if !c.evidence.Beat.Has || c.evidence.Beat.Age >= 0 {
		s.Ahead, s.AheadSince = "", time.Time{}
	} else if beat := r.sources.beats[c.Key].Wall.UTC().Format(time.RFC3339Nano); s.Ahead != beat {
		s.Ahead, s.AheadSince = beat, r.now.Wall.Round(0)
	}
	if !s.Asks.At.IsZero() && len(c.evidence.Hooks) == 0 {
		s.Asks = hookState{} // it goes on, or it is gone
	}
}

// cpuWindow is the least time between two readings of what the descendants use: the kernel counts in hundredths of a
// second.
const cpuWindow = 10 * time.Second

// next is the reading after m. A descendant that has ended takes its time with it; then a new window begins.
func (m cpuMark) next(descendants []process.Entry, now Moment) cpuMark {
	elapsed := now.Mono - m.Up
	if m.Up != 0 && elapsed >= 0 && elapsed < cpuWindow {
		return m
	}
	n := cpuMark{Up: now.Mono, Known: m.Up != 0 && elapsed > 0}
	for _, e := range descendants {
		n.Used += e.CPU
	}
	if n.Known {
		n.Share = max(float64(n.Used-m.Used)/float64(elapsed), 0)
		n.Share = float64(int(n.Share*1000)) / 1000
	}
	return n
}

// Events of hooks that say that an agent waits at its own dialog, and those that say that it goes on.
var (
	asking = []string{"PermissionRequest"}
	going  = []string{"PostToolUse", "PostToolUseFailure", "UserPromptSubmit", "Stop", "StopFailure", "SessionStart", "SessionEnd", "PermissionDenied", "BeforeAgent", "AfterAgent", "AfterTool"}
)

// questions are tools that ask the human: their hooks call that a permission, too (Claude Code 2.1.330, measured).
var questions = []string{"AskUserQuestion", "ExitPlanMode"}

// hear takes what hooks have left since the last look.
func (r *round) hear(ctx context.Context) error {
	if !r.page.declared() {
		return nil
	}
	return hooks.Drain(hooks.Dir(r.opts.Home), func(events []hooks.Event) error {
		for _, e := range events {
			a := r.agentOfHook(e)
			if a == nil {
				continue
			}
			s := r.sights[a.Key]
			switch {
			case slices.Contains(questions, e.Tool): // the transcript shows what is asked
				continue
			case slices.Contains(asking, e.Name):
				s.Asks = hookState{Tool: e.Tool, Text: e.Input, At: e.Time.Round(0)}
				if s.Asks.Text == "" {
					s.Asks.Text = e.Text
				}
			case slices.Contains(going, e.Name):
				s.Asks = hookState{}
			default:
				continue
			}
			r.sights[a.Key] = s
			if err := r.store.setSight(ctx, a.Key, s); err != nil {
				return err
			}
		}
		return nil
	})
}

// agentOfHook is the agent that a hook was called by: by its process, or else by its directory, the deepest first.
func (r *round) agentOfHook(e hooks.Event) *agent {
	var best *agent
	for i := range r.page.Agents {
		a := &r.page.Agents[i]
		if string(a.Kind) != e.Vendor {
			continue
		}
		s := r.sights[a.Key]
		if s.Session != "" && s.Session == e.Session || s.Session == "" && e.PID != 0 && s.Identity.PID == e.PID {
			return a // Codex' hooks run below a daemon of all its sessions: there the process says little
		}
		if a.ownsDirectory() && within(e.Dir, a.Path) && (best == nil || len(a.Path) > len(best.Path)) {
			best = a
		}
	}
	return best
}
