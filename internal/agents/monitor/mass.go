package monitor

import (
	"cmp"
	"context"
	"strings"

	"github.com/outlive-mcp/outlive/internal/agents/incident"
	"github.com/outlive-mcp/outlive/internal/agents/recovery"
	"github.com/outlive-mcp/outlive/internal/agents/registry"
)

// sharedPolicy is the policy of all agents together, each key from the first agent that declares it.
func sharedPolicy(agents []registry.Agent) recovery.FleetPolicy {
	fleet := recovery.Default().Fleet
	var said registry.AtOnce
	for _, a := range agents {
		b := a.Budget
		if b.Global.Window > 0 && !b.Global.PerPhase && fleet.Global == (recovery.Budget{}) {
			fleet.Global = b.Global
		}
		said.Host, said.Account = cmp.Or(said.Host, b.AtOnce.Host), cmp.Or(said.Account, b.AtOnce.Account)
	}
	fleet.HostStarts, fleet.AccountStarts = cmp.Or(said.Host, fleet.HostStarts), cmp.Or(said.Account, fleet.AccountStarts)
	return fleet
}

// escalateMass notifies a human once that many agents fail together.
func (r *round) escalateMass(ctx context.Context, c *examined, d recovery.Decision) error {
	key := incident.Key{Agent: d.Mass, Class: incident.Mass}
	f := r.facts(c, d)
	f.Name, f.Phase, f.Severity, f.Request, f.Input, f.Body = massName(d.Mass), "", incident.Critical, "", "", ""
	f.Restart, f.Resume, f.Stop, f.Action = false, false, false, "one of them is tried first, the others wait"
	f.Members = r.ledger.fleet.Held(c.Key).Members
	r.fleet.share(ctx, &f, recovery.SharedCause(c.problem, d.Mass))
	return r.incidents.raise(ctx, r.incidents.agentOf(incident.Incident{Key: key}), key, f, c.entryOf(r.now.Wall, d), nil)
}

// massName is the name of a mass failure: "account claude (limit)".
func massName(key string) string {
	shared, cause, _ := strings.Cut(key, ":")
	name := cause
	if i := strings.LastIndex(cause, ":"); i >= 0 {
		name, cause = cause[:i], cause[i+1:]
	}
	return shared + " " + name + " (" + cause + ")"
}
