package monitor

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/outlive-mcp/outlive/internal/agents/agentcli"
	"github.com/outlive-mcp/outlive/internal/agents/diagnose"
	"github.com/outlive-mcp/outlive/internal/agents/piv"
	"github.com/outlive-mcp/outlive/internal/agents/process"
	"github.com/outlive-mcp/outlive/internal/agents/recovery"
	"github.com/outlive-mcp/outlive/internal/agents/registry"
)

// agent is one agent at this look.
type agent struct {
	// Project is that of a PIV registry. For an agent of version 2 only Key, Name and Path are set ("": it has no directory), and
	// the phase once its heartbeats report it.
	piv.Project
	Kind     registry.Kind
	Declared *registry.Agent // never nil; of a project what [Options.ofProject] makes of it

	expect   diagnose.Policy
	recovery recovery.Policy
}

// ofProject is a project of a PIV registry as a declared agent, with PIV's policies.
func (o Options) ofProject(p piv.Project) agent {
	d := registry.Agent{Name: p.Key, Path: p.Path, Kind: registry.PIV, Start: registry.Start{Cmd: o.Command}}
	return agent{
		Project: p, Kind: d.Kind, Declared: &d,
		expect: diagnose.PIV(o.Stale), recovery: recovery.PIV(o.Restarts, min(o.Interval, time.Minute)),
	}
}

// isProject reports whether the agent is a project of a PIV registry, and has PIV's policies. One of kind piv in version 2 has not.
func (a agent) isProject() bool { return a.recovery.Coarse }

// ofDeclaration is a declared agent (registry version 2), with defaults filled in.
func ofDeclaration(d registry.Agent) agent {
	return agent{
		Project: piv.Project{Key: d.Name, Name: d.Name, Path: d.Path, Phase: piv.NoPhase, LastCompleted: piv.NoPhase},
		Kind:    d.Kind, Declared: &d, expect: expected(d), recovery: recoveryOf(d),
	}
}

// missedBeats is how many heartbeats an agent may miss before it is stale, if only its interval is declared.
const missedBeats = 3

// expected translates the declaration to the policy that diagnose uses.
func expected(d registry.Agent) diagnose.Policy {
	e := d.Expect
	p := diagnose.Policy{
		Stale: diagnose.Span(e.Stale), Startup: diagnose.Span(e.Startup), ModelSilent: diagnose.Span(e.ModelSilent),
		Tool: diagnose.Span(e.Tool), Waiting: diagnose.Span(e.Waiting), Progress: diagnose.Span(e.Progress),
		Task: diagnose.Span(e.Task), MaxCostUSD: e.MaxCostUSD,
		Done: doneWhen(d),
	}
	if p.Stale == 0 && e.Beat > 0 {
		p.Stale = diagnose.Span(missedBeats * e.Beat)
	}
	if p.Startup == 0 && vendorKind(d.Kind) == "" {
		p.Startup = cmp.Or(p.Stale, diagnose.Span(diagnose.DefaultStale)) // the first heartbeat may take as long as any other
	}
	cli := agentcli.Of(d.Kind)
	p.ErrorExits, p.LimitExits = cli.ErrorExits, cli.LimitExits
	return p
}

// doneWhen is how a finished agent looks. A command is finished when it exits 0, unless something else is declared.
func doneWhen(d registry.Agent) diagnose.DoneWhen {
	done := d.Expect.Done
	if d.Kind == registry.Command && done == (registry.Done{}) {
		return diagnose.DoneWhen{Exit: true}
	}
	when := diagnose.DoneWhen{Manifest: done.Manifest == "complete"}
	if done.Exit != nil && *done.Exit != registry.NeverDone {
		when.Exit, when.Code = true, *done.Exit
	}
	return when
}

// recoveryOf translates the declaration to the policy that recovery uses.
func recoveryOf(d registry.Agent) recovery.Policy {
	p := recovery.Default()
	p.Ladders, p.Budgets = d.Policy, d.Budget.PerClass
	p.Attended, p.StableAfter = cmp.Or(d.Expect.Attended, p.Attended), cmp.Or(d.Budget.StableAfter, p.StableAfter)
	return p
}

// says reports whether a source of evidence counts for an agent.
func (a agent) says(signal string) bool { return a.Declared.Uses(signal) }

// ownsDirectory reports whether processes and sessions in the agent's directory are its own.
func (a agent) ownsDirectory() bool {
	return a.Path != "" && (a.Declared.Match.CWD == nil || *a.Declared.Match.CWD)
}

// runsAs reports whether the user's process can be the agent's. An unknown user can.
func (a agent) runsAs(user string) bool {
	own := process.OwnUser()
	if a.Declared.Match.User != nil {
		own = strconv.Itoa(*a.Declared.Match.User)
	}
	return user == "" || user == own
}

// fill replaces {names} in a declared command.
func fill(command []string, values map[string]string) []string {
	var pairs []string
	for name, value := range values {
		pairs = append(pairs, "{"+name+"}", value)
	}
	replacer := strings.NewReplacer(pairs...)
	filled := slices.Clone(command)
	for i := range filled {
		filled[i] = replacer.Replace(filled[i])
	}
	return filled
}

// wants reports whether a command has the placeholder {name}.
func wants(command []string, name string) bool {
	return slices.ContainsFunc(command, func(s string) bool { return strings.Contains(s, "{"+name+"}") })
}
