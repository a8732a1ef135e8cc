package hooks

import (
	"context"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/outlive-mcp/outlive/internal/agents/process"
)

// How long a wait lasts, in a synctest bubble.
func TestVigil(t *testing.T) {
	tests := map[string]struct {
		answerAt  time.Duration // 0: never
		awayFrom  time.Duration // the monitor is away from here
		awayUntil time.Duration // to here
		agentEnds time.Duration
		hookEnds  time.Duration
		want      Outcome
		after     time.Duration
	}{
		"answered":              {answerAt: 90*time.Second + time.Millisecond, want: Allowed, after: 90*time.Second + lookEvery},
		"nobody answers":        {want: Expired, after: DefaultWait},
		"the monitor restarts":  {awayFrom: 10 * time.Second, awayUntil: 35 * time.Second, want: Expired, after: DefaultWait},
		"the monitor is gone":   {awayFrom: 10*time.Second + time.Millisecond, awayUntil: time.Hour, want: Unattended, after: 10*time.Second + awayGrace},
		"the agent is gone":     {agentEnds: 20*time.Second + time.Millisecond, want: Withdrawn, after: 20*time.Second + lookEvery},
		"the CLI ends the hook": {hookEnds: 20*time.Second + time.Millisecond, want: Withdrawn, after: 20*time.Second + time.Millisecond},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				begin := time.Now()
				since := func() time.Duration { return time.Since(begin) }
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				if tt.hookEnds > 0 {
					time.AfterFunc(tt.hookEnds, cancel)
				}
				v := approvalWait{
					answered: func() (Settlement, bool) {
						return Settlement{Outcome: Allowed}, tt.answerAt > 0 && since() >= tt.answerAt
					},
					attended: func() bool { return tt.awayFrom == 0 || since() < tt.awayFrom || since() >= tt.awayUntil },
					waited:   func() bool { return tt.agentEnds == 0 || since() < tt.agentEnds },
					deadline: begin.Add(DefaultWait),
				}
				if got := v.wait(ctx); got.Outcome != tt.want || since() != tt.after {
					t.Errorf("%s after %s, want %s after %s", got.Outcome, since(), tt.want, tt.after)
				}
			})
		})
	}
}

func TestAgentIsTheFirstThatIsNoShell(t *testing.T) {
	names, parents := map[int]string{50: "sh", 40: "-bash", 30: "claude.exe", 20: "zsh", 1: "systemd"}, map[int]int{50: 40, 40: 30, 30: 20, 20: 1}
	look := func(pid int) (process.Process, error) {
		if names[pid] == "" {
			return process.Process{}, os.ErrProcessDone
		}
		return process.Process{Identity: process.Identity{PID: pid, Start: 1}, Parent: parents[pid], Program: names[pid]}, nil
	}
	for from, want := range map[int]int{50: 30, 30: 30, 20: 0, 99: 0, 0: 0} {
		if got := firstNoShell(from, look).PID; got != want {
			t.Errorf("from %d: %d, want %d", from, got, want)
		}
	}
}
