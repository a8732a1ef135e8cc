package diagnose

import (
	"fmt"
	"slices"

	"github.com/outlive-mcp/outlive/internal/agents/agentcli"
)

// rule is one line of the table.
type rule struct {
	id         string
	class      Class
	stall      Stall
	confidence Confidence
	tier       Tier
	band       band
	// refuters are the sources that could show the rule to be wrong. While one of them is missing, the rule's diagnosis
	// has low confidence.
	refuters []Source
	ask      func(*Evidence, Policy) answer
}

// band is a part of the table.
type band uint8

const (
	gate  band = iota // is there anything to judge
	shown             // what is seen of a living agent, ordered by descending tier
	rest              // no trouble was found
)

// answer is a rule's answer for one look.
type answer struct {
	held  bool
	why   string // in words, also if it does not hold
	since Span
	hold  Span
	doubt string // lowers the confidence
}

func yes(since Span, format string, args ...any) answer {
	return answer{held: true, since: since, why: fmt.Sprintf(format, args...)}
}

func no(format string, args ...any) answer { return answer{why: fmt.Sprintf(format, args...)} }

// unless returns the answer with a doubt, if doubt is not empty.
func (a answer) unless(doubt string) answer {
	a.doubt = doubt
	return a
}

// The sources that can refute a rule: for an ended process, whether its work was done or interrupted; for a living
// agent all of them, because each may show that it works, rests or waits for a human.
var (
	ofEnd    = []Source{FromBeat, FromExit, FromDone, FromManifest, FromSessions, FromProcess}
	ofLiving = append([]Source{FromArtefact, FromHooks, FromTitle, FromOutput, FromCPU, FromServers}, ofEnd...)
)

// rules is the table: the first rule that holds decides. Where beats decide (PIV), the rules for unreadable sources
// and for grace precede the others about living agents; for other agents they are at their usual place.
var rules = []rule{
	{"R0", Complete, NoStall, High, Hook, gate, nil, complete},
	{"R0", Paused, NoStall, High, Hook, gate, nil, paused},
	{"R0", NotWatched, NoStall, High, Hook, gate, nil, notWatched},
	{"R1", Unreadable, Blind, High, Process, gate, nil, unreadable},
	{"OK", Healthy, NoStall, High, Hook, gate, nil, whereBeatsDecide(fresh)},
	{"R4", Starting, NoStall, High, Process, gate, nil, starting},
	{"G", Grace, NoStall, Low, Process, gate, nil, graceFirst},
	{"R1", Vanished, Blind, Medium, Process, gate, nil, vanished},
	{"R1", Lost, Blind, Medium, Process, gate, nil, lost},
	{"OK", Done, NoStall, High, Hook, gate, nil, done},
	{"R1", Contradiction, Blind, Medium, Process, gate, nil, contradiction},
	{"E0", HumanRequired, Errored, High, Hook, gate, nil, humanRequired},
	{"E2", ExecutionError, Errored, High, Process, gate, nil, errorExit},
	{"H6", BudgetExceeded, Hung, High, Process, gate, nil, limitExit},
	{"L2", AuthExpired, Errored, High, File, gate, nil, endedBy(agentcli.AuthFailure)},
	{"L2", CreditExhausted, Errored, High, File, gate, nil, endedBy(agentcli.CreditEmpty)},
	{"L1", RateLimited, Errored, High, File, gate, nil, endedBy(agentcli.RateLimited)},
	{"L1", APIFailed, Errored, High, File, gate, nil, endedBy(agentcli.APIFailure)},
	{"E2", ContextExhausted, Errored, High, File, gate, ofEnd, endedBy(agentcli.ContextFull)},
	{"R3", ExitedUnfinished, Crash, Medium, Process, gate, ofEnd, exitedUnfinished},
	{"R2", Crashed, Crash, High, Process, gate, ofEnd, crashed},
	{"R7", Stopped, Hung, High, Process, gate, nil, stopped},
	{"R1", UnsureProcess, Blind, Medium, Process, gate, nil, whereBeatsDecide(unsure)},
	{"R1", ManifestFault, Blind, Medium, Process, gate, nil, whereBeatsDecide(manifestFault)},

	{"W1", WaitingPermission, Waiting, High, Hook, shown, nil, hookAsks},
	{"W2", WaitingQuestion, Waiting, High, Hook, shown, ofLiving, beatWaits},
	{"W3", WaitingOther, Waiting, High, Hook, shown, nil, beatStuck},
	{"W3", WaitingOther, Waiting, High, Hook, shown, nil, blocking},
	{"E1", ExecutionError, Errored, High, Hook, shown, nil, reportedFailure},
	{"W1", WaitingPermission, Waiting, High, File, shown, nil, sessionAsksPermission},
	{"W2", WaitingQuestion, Waiting, High, File, shown, ofLiving, sessionAsks},
	{"W4", WaitingPermission, Waiting, Medium, File, shown, nil, escalatedCall},
	{"L2", AuthExpired, Errored, High, File, shown, nil, failedBy(agentcli.AuthFailure)},
	{"L2", CreditExhausted, Errored, High, File, shown, nil, failedBy(agentcli.CreditEmpty)},
	{"L1", RateLimited, Errored, High, File, shown, ofLiving, failedBy(agentcli.RateLimited)},
	{"L1", APIFailed, Errored, High, File, shown, ofLiving, failedBy(agentcli.APIFailure)},
	{"E1", ExecutionError, Errored, High, File, shown, nil, manifestFailure},
	{"E2", ContextExhausted, Errored, High, File, shown, ofLiving, contextExhausted},
	{"E1", ExecutionError, Errored, High, File, shown, nil, failedBy(agentcli.ExecutionFailed)},
	{"W3", WaitingOther, Waiting, High, File, shown, nil, sessionDialog},
	{"H6", BudgetExceeded, Hung, High, File, shown, nil, overBudget},
	{"H3", Loop, Hung, Medium, File, shown, ofLiving, looping},
	{"L1", APIBackoff, NoStall, High, File, shown, nil, backingOff},
	{"G", Grace, NoStall, Low, File, gate, nil, grace},
	{"W6", WaitingServer, Waiting, High, File, shown, nil, waitingServer},
	{"H8", ServerHung, Hung, Medium, File, shown, ofLiving, serverHung},
	{"H7", TaskDead, Hung, Medium, File, shown, ofLiving, taskDead},
	{"H1", ModelSilent, Hung, Medium, File, shown, ofLiving, modelSilent},
	{"H2", ToolHung, Hung, Medium, File, shown, ofLiving, toolHung},
	{"H9", NoProgress, Hung, Medium, File, shown, nil, hungAtItsEnd},
	{"R5", StartupBlocked, Waiting, Medium, Process, shown, ofLiving, startupBlocked},
	{"W5", WaitingQuestion, Waiting, Low, Guess, shown, nil, endedAsking},
	{"H4", NoProgress, Hung, Low, Guess, shown, nil, noProgress},
	{"OK", Idle, NoStall, High, Hook, rest, nil, beatIdle},
	{"OK", Healthy, NoStall, High, Hook, rest, nil, fresh},
	{"R1", NoEvidence, Blind, Low, Guess, rest, nil, unborne},
	{"OK", AtWork, NoStall, Medium, File, rest, nil, atWork},
	{"OK", Done, NoStall, Medium, File, rest, nil, doneAndLiving},
	{"OK", Idle, NoStall, Medium, File, rest, nil, idle},
	{"R1", UnsureProcess, Blind, Medium, Process, rest, nil, unsure},
	{"R1", ManifestFault, Blind, Medium, Process, rest, nil, manifestFault},
	{"R6", Orphaned, Hung, Medium, Guess, shown, ofLiving, orphaned},
	{"H5", HeartbeatLost, Hung, Medium, Guess, shown, ofLiving, heartbeatLost},
	{"R1", NoEvidence, Blind, Low, Guess, rest, nil, noEvidence},
	{"OK", Unobserved, NoStall, Low, Guess, rest, nil, unobserved},
}

// Classify judges the evidence. It is pure.
func Classify(e Evidence, p Policy) Diagnosis {
	p = p.filled()
	for i := range rules {
		if a := rules[i].ask(&e, p); a.held {
			return rules[i].diagnosis(&e, a)
		}
	}
	panic("diagnose: the last rule always holds")
}

// diagnosis is made from a rule's answer, with lower confidence where there is a doubt.
func (r *rule) diagnosis(e *Evidence, a answer) Diagnosis {
	v := Diagnosis{
		Rule: r.id, Class: r.class, Stall: r.stall, Confidence: r.confidence, Tier: r.tier,
		Since: max(a.since, 0), Hold: a.hold, Details: a.why, Doubt: a.doubt,
	}
	for _, s := range e.Missing {
		if a.doubt == "" && slices.Contains(r.refuters, s) {
			v.Doubt = fmt.Sprintf("the %s cannot be read now, or not completely", s)
		}
	}
	if v.Doubt != "" {
		v.Confidence = Low
	}
	return v
}

// whereBeatsDecide restricts a rule to agents whose only evidence is their beats.
func whereBeatsDecide(ask func(*Evidence, Policy) answer) func(*Evidence, Policy) answer {
	return func(e *Evidence, p Policy) answer {
		if !p.BeatDecides {
			return no("asked further down: beats do not decide alone")
		}
		return ask(e, p)
	}
}
