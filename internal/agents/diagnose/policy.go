package diagnose

import "time"

// Policy is what is expected of one agent. The zero value of a number means its default; a negative number disables
// its check.
type Policy struct {
	// Stale is the age at which a beat, or any other sign of work, is stale. 0: 6 min, three of PIV's beats.
	Stale Span `json:"stale,omitzero"`
	// Startup is how long a started process may take to show a first sign. 0: 3 min. Negative: no limit.
	Startup Span `json:"startup,omitzero"`
	// ModelSilent is how long a model call may take. 0: 8 min, more than the 361 s after which Claude Code (measured,
	// 2.1.329) restarts a silent call by itself. Negative: no limit.
	ModelSilent Span `json:"model_silent,omitzero"`
	// Tool is how long a tool may run while its processes do no work. 0: 30 min. Negative: no limit.
	Tool Span `json:"tool,omitzero"`
	// Task is how long a session may wait for a background task that is gone: its CLI reports a task's end to the
	// session within seconds. 0: 5 min. Negative: no limit. For a task without a process of its own, such as a
	// subagent, the larger of Task and Tool is used.
	Task Span `json:"task,omitzero"`
	// Waiting is how long a sign of waiting that is only inferred must last. 0: 2 min.
	Waiting Span `json:"waiting,omitzero"`
	// Progress is how long a working agent may go without any. 0: 45 min. Negative: no limit.
	Progress Span `json:"progress,omitzero"`

	// MaxCostUSD limits what one process may use. 0: no limit.
	MaxCostUSD float64 `json:"max_cost_usd,omitempty"`

	// Done says what counts as done besides a mark. If both members are set, both must hold; if neither is, a
	// complete manifest is enough.
	Done DoneWhen `json:"done,omitzero"`
	// ErrorExits and LimitExits are exit codes with a special meaning for this kind of agent: errors that a restart
	// does not fix (Gemini CLI: 42, bad input), and a limit of the agent's own (53, turns).
	ErrorExits []int `json:"error_exits,omitempty"`
	LimitExits []int `json:"limit_exits,omitempty"`

	// BeatDecides says that beats are the agent's only evidence (PIV): a fresh one outweighs everything, a stale one
	// is sufficient, and unreadable sources are reported before anything else.
	BeatDecides bool `json:"beat_decides,omitempty"`
}

// ToolLimit is how long a tool may run while its processes do no work, with the default filled in.
func (p Policy) ToolLimit() Span { return p.filled().Tool }

// DoneWhen is what counts as done besides a mark of its own.
type DoneWhen struct {
	Exit     bool `json:"exit,omitempty"` // exit code Code
	Code     int  `json:"code,omitempty"`
	Manifest bool `json:"manifest,omitempty"` // a complete manifest
}

// PIV is the policy of the PIV monitor: beats decide, and everything is stale after the same time. stale ≤ 0: 15 min.
func PIV(stale time.Duration) Policy {
	if stale <= 0 {
		stale = 15 * time.Minute
	}
	return Policy{BeatDecides: true, Stale: Span(stale), Startup: Span(stale)}.filled()
}

const (
	// longestPromise is the longest silence that a beat can promise.
	longestPromise = Span(time.Hour)
	// sameCalls, sameErrors and alternations are how many repetitions make a loop.
	sameCalls, sameErrors, alternations = 4, 3, 6
	// cpuIdle is the share of a core below which descendants count as idle.
	cpuIdle = 0.02
)

// DefaultStale is the age at which any sign of work is stale, if nothing else is declared.
const DefaultStale = 6 * time.Minute

// filled returns the policy with zeros replaced by the defaults. Negative numbers become [Never].
func (p Policy) filled() Policy {
	span(&p.Stale, DefaultStale)
	span(&p.Startup, 3*time.Minute)
	span(&p.ModelSilent, 8*time.Minute)
	span(&p.Tool, 30*time.Minute)
	span(&p.Task, 5*time.Minute)
	span(&p.Waiting, 2*time.Minute)
	span(&p.Progress, 45*time.Minute)
	return p
}

func span(s *Span, otherwise time.Duration) {
	switch {
	case *s == 0:
		*s = Span(otherwise)
	case *s < 0:
		*s = Never
	}
}
