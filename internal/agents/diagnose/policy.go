package diagnose

import "time"

// Policy is what is expected of one agent. The zero value of each number is its default; a negative one switches off
// what it is for.
type Policy struct {
	// Stale is the age at which a beat, or any other sign of work, is stale. 0: 6 min, three of PIV's beats.
	Stale Span `json:"stale,omitzero"`
	// Promise is the longest silence that a beat can promise. 0: 1 h.
	Promise Span `json:"promise,omitzero"`
	// Startup is how long a started process may take until it shows itself. 0: 3 min. Negative: for ever.
	Startup Span `json:"startup,omitzero"`
	// ModelSilent is how long a model call may take. 0: 8 min, more than the 361 s after which Claude Code (measured,
	// 2.1.329) begins a silent call anew by itself. Negative: for ever.
	ModelSilent Span `json:"model_silent,omitzero"`
	// Tool is how long a tool may run while nothing that it has started works. 0: 30 min. Negative: for ever.
	Tool Span `json:"tool,omitzero"`
	// Task is how long a background task that is gone may be waited for: its CLI tells the session of its end within seconds. 0:
	// 5 min. Negative: for ever. Of what has no process of its own, such as a subagent, Tool is asked if that is longer.
	Task Span `json:"task,omitzero"`
	// Waiting is how long a sign of waiting that is only concluded must last. 0: 2 min.
	Waiting Span `json:"waiting,omitzero"`
	// Progress is how long a working agent may go without any. 0: 45 min. Negative: for ever.
	Progress Span `json:"progress,omitzero"`

	// SameCall, SameError and Alternating are how many repetitions make a loop. 0: 4, 3 and 6. Negative: none does.
	SameCall    int `json:"same_call,omitempty"`
	SameError   int `json:"same_error,omitempty"`
	Alternating int `json:"alternating,omitempty"`

	// CPUIdle is the share of a core below which descendants do nothing. 0: 0.02.
	CPUIdle float64 `json:"cpu_idle,omitempty"`

	// MaxCostUSD, MaxTokens, MaxTurns and MaxRun bound what one process may use. 0: no bound.
	MaxCostUSD float64 `json:"max_cost_usd,omitempty"`
	MaxTokens  int64   `json:"max_tokens,omitempty"`
	MaxTurns   int     `json:"max_turns,omitempty"`
	MaxRun     Span    `json:"max_run,omitzero"`

	// Done says what counts as done besides a mark. Where both are set, both must hold; where neither is, a complete
	// manifest is enough.
	Done DoneWhen `json:"done,omitzero"`
	// ErrorExits and LimitExits are exit codes with a meaning of their own for this kind of agent: an error that no
	// restart cures (Gemini CLI: 42, bad input), and a limit of the agent's own (53, turns).
	ErrorExits []int `json:"error_exits,omitempty"`
	LimitExits []int `json:"limit_exits,omitempty"`

	// BeatDecides says that the agent shows nothing but its beats (PIV): a fresh one outweighs everything, a stale one
	// is enough, and what can not be read of it is told before anything else.
	BeatDecides bool `json:"beat_decides,omitempty"`
}

// DoneWhen is what counts as done besides a mark of its own.
type DoneWhen struct {
	Exit     bool `json:"exit,omitempty"`     // exit code 0
	Manifest bool `json:"manifest,omitempty"` // a complete manifest
}

// PIV is the policy of the PIV monitor: beats decide, and everything is stale after the same time. stale ≤ 0: 15 min.
func PIV(stale time.Duration) Policy {
	if stale <= 0 {
		stale = 15 * time.Minute
	}
	return Policy{BeatDecides: true, Stale: Span(stale), Startup: Span(stale)}.filled()
}

// Filled is the policy with the defaults in the place of zeros. What is negative is [Never] or out of reach.
func (p Policy) filled() Policy {
	span(&p.Stale, 6*time.Minute)
	span(&p.Promise, time.Hour)
	span(&p.Startup, 3*time.Minute)
	span(&p.ModelSilent, 8*time.Minute)
	span(&p.Tool, 30*time.Minute)
	span(&p.Task, 5*time.Minute)
	span(&p.Waiting, 2*time.Minute)
	span(&p.Progress, 45*time.Minute)
	count(&p.SameCall, 4)
	count(&p.SameError, 3)
	count(&p.Alternating, 6)
	if p.CPUIdle == 0 {
		p.CPUIdle = 0.02
	}
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

// outOfReach is more than anybody counts to.
const outOfReach = 1<<31 - 1

func count(n *int, otherwise int) {
	switch {
	case *n == 0:
		*n = otherwise
	case *n < 0:
		*n = outOfReach
	}
}
