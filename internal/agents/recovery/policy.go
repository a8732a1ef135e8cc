package recovery

import (
	"fmt"
	"slices"
	"time"
)

// PIV's types of a stall, and one more. Every finer class belongs to one of them.
const (
	stallCrashed = "orchestrator_crashed"
	stallWaiting = "agent_waiting_for_input"
	stallErrored = "execution_error"
	stallHung    = "session_hung"
	stallBlind   = "monitor_blind"
)

// classLost is an unreadable registry: it is reported once, not for each agent.
const classLost = "lost"

// scope says which agents may share the cause of a trouble.
type scope uint8

const (
	ownCause     scope = iota // its own
	hostCause                 // all agents on the same host
	accountCause              // all agents with the same account
)

// remedies describe the recovery of one class.
type remedies struct {
	ladder Ladder
	budget Budget
	scope  scope
	// cause is the common trouble in a mass. "": the class.
	cause string
	// hold is the first wait for something that ends at an unknown time; each further one is twice as long, up to
	// [holdMost]. 0: the policy's, or [overdue] where it should have ended.
	hold time.Duration
	// quiet says that a mass of it is reported only when nothing helps: it usually passes.
	quiet bool
	// anew says that each occurrence is judged by itself: once the agent has continued, earlier acts are not counted. A
	// new question is sent first again, and the CLI's own retries are waited for again.
	anew bool
	// human says that a restart does not fix it: after a human was notified, nothing else is tried.
	human bool
}

var (
	perPhase1 = Budget{Max: 1, Window: phaseWindow, PerPhase: true}
	perPhase2 = Budget{Max: 2, Window: phaseWindow, PerPhase: true}
	perPhase3 = Budget{Max: 3, Window: phaseWindow, PerPhase: true}
	// A limit of five hours is met five times a day, and a network may be down for a night: a start that follows a long wait
	// costs little.
	perDay6  = Budget{Max: 6, Window: 24 * time.Hour}
	perDay8  = Budget{Max: 8, Window: 24 * time.Hour}
	perHour3 = Budget{Max: 3, Window: time.Hour}
	perHour5 = Budget{Max: 5, Window: time.Hour}
)

// patience is the sequence for what passes by itself: after each wait the session is told to continue, or resumed.
func patience(resumes int) Ladder {
	l := Ladder{Hold, Nudge, Resume}
	for range resumes - 1 {
		l = append(l, Hold, Resume)
	}
	return append(l, Escalate)
}

// holdMost is the longest wait for something that ends at an unknown time, and how long a mass waits for it silently.
const holdMost = time.Hour

// classes are the remedies of each class; those of PIV's types are used for unlisted classes.
var classes = map[string]remedies{
	"crashed":              {ladder: Ladder{Resume, Restart}, budget: perHour5, scope: hostCause},
	"exited_unfinished":    {ladder: Ladder{Resume, Restart}, budget: perHour3},
	"startup_blocked":      {ladder: Ladder{Restart, Escalate}, budget: perPhase1, scope: hostCause},
	"stopped":              {ladder: Ladder{Observe, Escalate}}, // it was stopped on purpose: only reported
	"waiting_permission":   {ladder: Ladder{AskPhone, Escalate}, anew: true},
	"waiting_question":     {ladder: Ladder{AskPhone, Nudge, Resume, Resume, Escalate}, budget: perPhase3, anew: true},
	"waiting_other":        {ladder: Ladder{Escalate}},
	"api_backoff":          {ladder: Ladder{Hold, Nudge, Resume, Escalate}, budget: perPhase2, scope: accountCause, cause: "model", quiet: true, anew: true},
	"api_failed":           {ladder: patience(8), budget: perDay8, scope: accountCause, cause: "model", hold: time.Minute, quiet: true},
	"rate_limited":         {ladder: patience(4), budget: perDay6, scope: accountCause, cause: "limit"},
	"auth_expired":         {ladder: Ladder{Escalate}, scope: accountCause, cause: "login", human: true},
	"credit_exhausted":     {ladder: Ladder{Escalate}, scope: accountCause, cause: "credit", human: true},
	"human_required":       {ladder: Ladder{Escalate}, human: true},
	"model_silent":         {ladder: Ladder{Observe, Interrupt, Resume, Restart}, budget: perPhase2, scope: hostCause},
	"tool_hung":            {ladder: Ladder{KillTool, Restart}, budget: perPhase2},
	"server_hung":          {ladder: Ladder{RestartServer, RestartServer, Restart}, budget: perPhase2},
	"waiting_server":       {ladder: Ladder{Escalate}, human: true},
	"background_task_dead": {ladder: Ladder{Nudge, Resume, Restart}, budget: perPhase2},
	"loop":                 {ladder: Ladder{Nudge, Fresh, Escalate}, budget: perPhase1},
	"no_progress":          {ladder: Ladder{Escalate}},
	"context_exhausted":    {ladder: Ladder{Fresh, Escalate}, budget: perPhase2},
	"heartbeat_lost":       {ladder: Ladder{Observe, Observe, Restart}, budget: perPhase2, scope: hostCause},
	"budget_exceeded":      {ladder: Ladder{Interrupt, Escalate}, human: true},
	"orphaned":             {ladder: Ladder{Escalate}},

	stallCrashed: {ladder: Ladder{Resume, Restart}, budget: perHour5, scope: hostCause},
	stallWaiting: {ladder: Ladder{Escalate}},
	stallErrored: {ladder: Ladder{Escalate}, human: true},
	stallHung:    {ladder: Ladder{Observe, Observe, Restart}, budget: perPhase2, scope: hostCause},
	stallBlind:   {ladder: Ladder{Escalate}},
}

// remediesOf returns the remedies of a class, or else of its stall, or else the default.
func remediesOf(class, stall string) remedies {
	if r, ok := classes[class]; ok {
		return r
	}
	if r, ok := classes[stall]; ok {
		return r
	}
	return remedies{ladder: Ladder{Observe, Escalate}}
}

// NeedsHuman reports a class that a restart does not fix. After a human was notified of one, [History.Held] is set.
func NeedsHuman(class, stall string) bool { return remediesOf(class, stall).human }

// Policy is what the owner of one agent has set. Take [Default] or [PIV] and change fields.
type Policy struct {
	// Ladders are those that differ from the ones this package knows, by class. If Coarse is set, by PIV's type. An empty one is none.
	Ladders map[string]Ladder
	// Budgets are the same for how often the agent may be started.
	Budgets map[string]Budget
	// Verify is how long new evidence is awaited after each step; for [Hold], how long it lasts without a known end; for
	// [AskPhone], how long a human has for the answer. Missing: not at all.
	Verify map[Rung]time.Duration
	// Attended is how long after a person last typed in a living session nothing is done to its process. 0: it is not asked.
	Attended time.Duration
	// Pace is the least time between two acts on one agent.
	Pace time.Duration
	// StableAfter is how long an agent must be well until the ladder begins from below.
	StableAfter time.Duration
	// HoldMax is the longest silent hold; after it a human is notified. 0: no limit.
	HoldMax time.Duration
	// BlindFor is how many looks in a row without evidence lead to a notification.
	BlindFor int
	// Breaker stops starts that follow each other too fast.
	Breaker Breaker
	// Fleet is shared by all agents. It must be the same in every agent's policy.
	Fleet FleetPolicy
	// Coarse counts and looks up by PIV's types instead of the classes. A diagnosis of low confidence lets processes be touched
	// like any other then.
	Coarse bool
}

// Breaker stops an agent that only burns starts. The zero value never does.
type Breaker struct {
	// Starts within Window open it, for any trouble.
	Starts int
	// Window is the time in which they are counted.
	Window time.Duration
	// Cooldown is how long it stays open until one start is tried, the next after twice as long, and so on, up to
	// CooldownMax, if that is longer. It is also the pause after the last recovery step was repeated without success. 0: there is
	// no such pause.
	Cooldown, CooldownMax time.Duration
}

// FleetPolicy holds for all agents together. The zero value limits nothing.
type FleetPolicy struct {
	// Global is how often any process may be touched. The zero value: as often as there is room.
	Global Budget
	// HostStarts is how many agents of one host may be starting at once, AccountStarts how many of one account: each start
	// wants processor and memory, and many at once with one login may refresh its token at the same time. 0: any number.
	HostStarts, AccountStarts int
	// StartFor is how long one counts as starting that has shown nothing new yet.
	StartFor time.Duration
	// HostAgents that fail on one host within HostWindow fail together. 0: never.
	HostAgents int
	// HostWindow is that time.
	HostWindow time.Duration
	// AccountAgents with a limited or logged-out account count as failing together, whenever each noticed. 0: never.
	AccountAgents int
	// CanaryFor is how long the one that is tried first has, until it is another's turn.
	CanaryFor time.Duration
}

// limits are what holds for all agents together, for people.
func (p FleetPolicy) limits() string {
	text := fmt.Sprintf("%d start at once on a host, %d with one account", p.HostStarts, p.AccountStarts)
	if !p.Global.unlimited() {
		text += ", " + p.Global.String() + " for all agents"
	}
	return text
}

// Default is the policy of a declared agent.
func Default() Policy {
	return Policy{
		Verify: map[Rung]time.Duration{
			Observe: time.Minute, Hold: 15 * time.Minute, Nudge: 5 * time.Minute, AskPhone: 15 * time.Minute,
			RestartServer: 2 * time.Minute, KillTool: 3 * time.Minute, Interrupt: 3 * time.Minute,
			Resume: 5 * time.Minute, Restart: 5 * time.Minute, Fresh: 5 * time.Minute,
		},
		Attended:    30 * time.Minute,
		Pace:        time.Minute,
		StableAfter: 30 * time.Minute,
		HoldMax:     6 * time.Hour,
		BlindFor:    3,
		Breaker:     Breaker{Starts: 5, Window: 15 * time.Minute, Cooldown: 15 * time.Minute, CooldownMax: 8 * time.Hour},
		Fleet: FleetPolicy{
			HostStarts: 6, AccountStarts: 3, StartFor: 10 * time.Second,
			HostAgents: 3, HostWindow: 30 * time.Second, AccountAgents: 2, CanaryFor: 10 * time.Minute,
		},
	}
}

// PIV is the policy of PIV-5 to PIV-8, with a budget on every stall: a crash is restarted, five times an hour or as
// configured; the third hang or question in one phase (restarts: at which) is escalated; an error at once. pace is the
// shortest time between two acts on one project.
func PIV(restarts int, pace time.Duration) Policy {
	same := Budget{Max: restarts - 1, Window: phaseWindow, PerPhase: true}
	return Policy{
		Ladders: map[string]Ladder{
			stallCrashed: {Restart}, stallHung: {Restart}, stallWaiting: {Restart}, stallErrored: {Escalate},
		},
		Budgets: map[string]Budget{
			stallCrashed: {Max: max(5, restarts), Window: time.Hour}, stallHung: same, stallWaiting: same,
		},
		Pace: pace, BlindFor: 3, Coarse: true,
	}
}

// key is under which name a problem is counted.
func (p Policy) key(class, stall string) string {
	if p.Coarse && stall != "" {
		return stall
	}
	return class
}

// ladder is the configured or default sequence, with its impossible steps.
func (p Policy) ladder(pr Problem, can Capabilities) Ladder {
	if pr.Stall == stallBlind {
		return Ladder{Escalate}
	}
	if own := p.Ladders[p.key(pr.Class, pr.Stall)]; len(own) > 0 {
		return own
	}
	wanted := slices.Clone(remediesOf(pr.Class, pr.Stall).ladder)
	for i, r := range wanted {
		if r == Resume && !can.Resume && can.Ended && can.Restart {
			wanted[i] = Restart // there is no session to go on with, and nothing to be ended
		}
	}
	return wanted
}

// budget is how often an agent may be started for a problem.
func (p Policy) budget(pr Problem) Budget {
	if b, ok := p.Budgets[p.key(pr.Class, pr.Stall)]; ok {
		return b
	}
	if b := remediesOf(pr.Class, pr.Stall).budget; b != (Budget{}) {
		return b
	}
	return perPhase2 // a class the owner has given a ladder that starts, and no budget
}
