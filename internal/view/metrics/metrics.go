package metrics

import (
	"github.com/outlive-mcp/outlive/internal/gateway/gateway"
	"github.com/outlive-mcp/outlive/internal/line/backend"
	"github.com/outlive-mcp/outlive/internal/record/event"
	"github.com/outlive-mcp/outlive/internal/view/control"
	"github.com/outlive-mcp/outlive/internal/view/overview"
)

// Input is what metrics are made of.
type Input struct {
	Version string // of this outlive
	Running []overview.Instance
	Home    *overview.Home // nil: there is none
	Trouble int            // sources that could not be looked at
	Ledger  *Ledger
}

// Text is everything on the machine in Prometheus' text format.
func Text(in Input) []byte {
	x := exposition{}
	x.add(buildInfo, 1, "version", in.Version)
	x.add(troubleOfOverview, float64(in.Trouble))
	for _, i := range in.Running {
		x.add(instances, 1, "kind", kindOf(i))
		if !i.Silent { // of one that is late, the status has no counts
			x.present(i.Status)
		}
	}
	if in.Home != nil {
		x.agents(in.Home)
	}
	if in.Ledger != nil {
		for name, c := range in.Ledger.sums() {
			x.counted(name, c)
		}
		if in.Home != nil {
			x.homeCounts(in.Ledger.Homes[in.Home.Path])
		}
	}
	return x.text()
}

// TextOf is one running outlive alone: for those who may see no other. Its counters grow as long as it runs.
func TextOf(version string, s control.Status) []byte {
	x := exposition{}
	x.add(buildInfo, 1, "version", version)
	x.present(s)
	for name, c := range CountedBy(s) {
		x.counted(name, c)
	}
	return x.text()
}

func kindOf(i overview.Instance) string {
	switch {
	case i.Silent:
		return "silent"
	case i.Status.Gateway():
		return "gateway"
	case i.Status.Servers != nil:
		return "shared"
	}
	return "run"
}

// present adds how the servers of an outlive are now.
func (x exposition) present(s control.Status) {
	if s.Run() {
		x.add(serverRestarts, float64(s.RestartCount), labelServer, s.Name)
		x.process(s.Name, s.Status, overview.RunState(s.Status) == "ready", s.State == "failed" || s.State == "backoff" || s.Trouble != "")
		return
	}
	for _, m := range s.Servers {
		name := nameOf(s, m)
		x.add(serverRestarts, float64(overview.RestartsOf(m.ServerStatus)), labelServer, name)
		if !s.Gateway() { // the runs that share its servers say the rest
			for _, l := range m.Links {
				x.add(serverResident, float64(l.RSS), labelServer, name)
			}
			continue
		}
		x.add(serverTools, float64(m.Tools), labelServer, name)
		failed := m.Standing == "unusable" // and none of its processes counts as that
		for _, l := range m.Links {
			gone := l.Phase == "failed" || l.State == "failed" || l.State == "backoff"
			failed = failed && !gone
			x.process(name, l.Status, l.Phase == "ready" && l.Failing == "" && !gone, gone)
		}
		x.process(name, backend.Status{}, false, failed)
	}
}

// nameOf is what outlive status calls a server of a gateway or daemon.
func nameOf(s control.Status, m control.Member) string { return s.Name + "/" + m.Name }

// process adds one process that is kept.
func (x exposition) process(server string, s backend.Status, up, failed bool) {
	x.add(serverUp, one(up), labelServer, server)
	x.add(serverFailed, one(failed), labelServer, server)
	x.add(serverInFlight, float64(s.InFlight), labelServer, server)
	x.add(serverQueued, float64(s.Queued), labelServer, server)
	memory := s.RSS
	for _, b := range s.Beside {
		memory += b.RSS
	}
	x.add(serverResident, float64(memory), labelServer, server)
}

func one(yes bool) float64 {
	if yes {
		return 1
	}
	return 0
}

// errorOther is the error.type of JSON-RPC errors, whose codes are not counted one by one.
const errorOther = "_OTHER"

// counted adds what was counted of a server.
func (x exposition) counted(server string, c Counted) {
	for _, calls := range c.Calls {
		labels := []string{labelServer, server, labelMethod, calls.Method, labelTool, calls.Tool}
		for outcome, n := range map[string]int64{
			"ok": calls.OK, "error": calls.Errors, "tool_error": calls.ToolError, "refused": calls.Refused, "unknown": calls.Unknown,
			"timed_out": calls.TimedOut, "cancelled": calls.Cancelled,
		} {
			x.count(callsTotal, n, append(labels[:len(labels):len(labels)], labelOutcome, outcome)...)
		}
		well := calls.Latency
		well.Subtract(calls.LatencyErrors)
		well.Subtract(calls.LatencyToolErrors)
		withError := func(kind string) []string { return append(labels[:len(labels):len(labels)], labelError, kind) }
		x.observe(serverOperation, &well, labels...)
		x.observe(serverOperation, calls.LatencyErrors, withError(errorOther)...)
		x.observe(serverOperation, calls.LatencyToolErrors, withError("tool_error")...)
		x.observe(clientOperation, calls.Served, labels...)
		x.observe(clientOperation, calls.ServedErrors, withError(errorOther)...)
		x.observe(clientOperation, calls.ServedToolErrors, withError("tool_error")...)
	}
	for cause, n := range c.Restarts {
		x.count(restartsTotal, n, labelServer, server, "cause", cause)
	}
	for kind, n := range c.Events {
		x.count(eventsTotal, n, labelServer, server, "type", kind)
	}
	for kind, f := range counters { // also those that are zero: otherwise the first of all is no increase
		x.add(f, float64(c.Events[string(kind)]), labelServer, server)
	}
	x.observe(restartDuration, c.Gaps, labelServer, server)
	x.observe(clientSession, c.Lives, labelServer, server)
	x.observe(serverSession, c.Sessions, labelServer, server)
}

// counters are the events that are a metric of their own.
var counters = map[event.Type]*family{
	event.ServerCrashed: crashesTotal, event.ConnectionLost: connectionsLost, event.SpawnFailed: failedStarts, event.StartTimeout: failedStarts, event.ServerUnhealthy: hangsTotal,
	event.ReloadFailed: reloadsFailed, event.BreakerOpened: breakersOpened, event.RequestResent: resentTotal, event.RequestLost: lostTotal,
}

// agents adds how the agents of a home are now.
func (x exposition) agents(h *overview.Home) {
	x.add(monitorUp, one(h.Monitor != 0))
	for _, a := range h.Agents {
		x.add(agentState, 1, labelAgent, a.Key, "state", a.Class)
		x.add(agentTrouble, one(a.Health.Wrong()), labelAgent, a.Key)
		x.add(agentNeedsPerson, one(a.Health == overview.Bad), labelAgent, a.Key)
		if a.Tokens > 0 {
			x.add(agentTokens, float64(a.Tokens), labelAgent, a.Key)
		}
	}
	x.add(incidentsWaiting, 0)
	x.add(incidentsUntold, 0)
	for _, i := range h.Incidents {
		if i.Open() {
			x.add(incidentsOpen, 1, "severity", i.Severity)
			x.add(incidentsWaiting, one(i.Waits()))
			x.add(incidentsUntold, one(i.Untold))
		}
	}
}

func (x exposition) homeCounts(h *Home) {
	if h == nil {
		return
	}
	for f, all := range map[*family]map[string]map[string]int64{recoveries: h.Steps, recoveredTotal: h.Helped} {
		for agent, steps := range all {
			for step, n := range steps {
				x.count(f, n, labelAgent, agent, "step", step)
			}
		}
	}
	for f, all := range map[*family]map[string]int64{incidentsTotal: h.Begun, resolvedTotal: h.Over} {
		for class, n := range all {
			x.count(f, n, "class", class)
		}
	}
}

// ServersOf is a gateway's servers as [TextOf] wants them.
func ServersOf(name string, all []gateway.ServerStatus) control.Status {
	s := control.Status{Status: backend.Status{Name: name}, Config: "gateway", Servers: make([]control.Member, len(all))}
	for n, server := range all {
		s.Servers[n].ServerStatus = server
	}
	return s
}
