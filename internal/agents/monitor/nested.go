package monitor

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/outlive-mcp/outlive/internal/agents/agentcli"
	"github.com/outlive-mcp/outlive/internal/agents/diagnose"
	"github.com/outlive-mcp/outlive/internal/agents/process"
)

// hold notes which living processes run a session of their own, by the files of their CLIs.
func (s *sources) hold() {
	s.holders = map[int]agentcli.Kind{}
	for i := range s.sessions {
		v := &s.sessions[i]
		if _, lives := s.entry(process.Identity{PID: v.PID, Start: v.Start}); lives {
			s.holders[v.PID] = v.Kind
		}
	}
}

// cliOf is which CLI a process is; "": none.
func (s *sources) cliOf(id process.Identity) agentcli.Kind {
	return cmp.Or(s.programs[id].kind, s.holders[id.PID])
}

// nested reports whether a CLI below root was started by another one. A process above it is of another CLI, or runs a
// session of its own; a launcher such as npx is of the same kind and has no session.
func (s *sources) nested(pid int, kind agentcli.Kind, root process.Identity) bool {
	return s.anyAbove(pid, root, func(id process.Identity) bool { return s.starts(id, kind) })
}

// startedWithin reports whether a CLI was started by another one that works in the same place.
func (s *sources) startedWithin(pid int, kind agentcli.Kind, place string) bool {
	return s.anyAbove(pid, process.Identity{}, func(id process.Identity) bool {
		return s.starts(id, kind) && s.within(s.programs[id].dir, place)
	})
}

// starts reports whether a process above a CLI of that kind is a CLI by itself, and no launcher of it.
func (s *sources) starts(id process.Identity, kind agentcli.Kind) bool {
	its := s.cliOf(id)
	return its != "" && (its != kind || s.holders[id.PID] != "")
}

// anyAbove asks about the processes above one, up to root; the zero root: all.
func (s *sources) anyAbove(pid int, root process.Identity, is func(process.Identity) bool) bool {
	for e := range s.table.Lineage(pid) {
		if e.PID != pid && is(e.Identity) {
			return true
		}
		if e.PID == root.PID {
			break
		}
	}
	return false
}

// clisBelow are the CLIs at or below a process: its own, with their launchers, and those that these have started.
func (s *sources) clisBelow(root process.Identity) (own, nested []process.Identity) {
	if _, there := s.entry(root); !there {
		return nil, nil
	}
	for _, e := range s.table.Tree(root.PID) {
		switch kind := s.cliOf(e.Identity); {
		case kind == "":
		case s.nested(e.PID, kind, root):
			nested = append(nested, e.Identity)
		default:
			own = append(own, e.Identity)
		}
	}
	return own, nested
}

// runsCLI reports whether a process is a CLI of that kind, or has started one. A script and a launcher have.
func (s *sources) runsCLI(root process.Identity, kind agentcli.Kind) bool {
	own, nested := s.clisBelow(root)
	return slices.ContainsFunc(append(own, nested...), func(id process.Identity) bool { return s.cliOf(id) == kind })
}

// ownCLIs finds the CLIs of the living process: whether they exit with their turn, and which others they have started.
func (g *gathering) ownCLIs() {
	if len(g.sources.table.All) == 0 { // it could not be read
		g.f.nested, g.f.moved = g.known.agentState.Nested, g.known.agentState.Moved
		return
	}
	own, nested := g.sources.clisBelow(g.f.process)
	once, streamed := g.headless(), false
	for _, id := range own {
		its := g.sources.programs[id]
		once, streamed = once || its.headless, streamed || its.streamed
		g.f.moved = cmp.Or(g.f.moved, its.moved)
	}
	p := &g.e.Process
	p.Headless = once && !streamed && p.Life == diagnose.Alive
	p.Scripted = p.Headless && !g.headless() && g.sources.cliOf(g.f.process) == ""
	p.Bare = p.Life == diagnose.Alive && vendorKind(g.agent.Kind) != "" && g.sources.programs[g.f.process].told && len(own)+len(nested) == 0
	g.nested, g.f.nested = nested, namesOf(append(g.orphans(), nested...))
}

// orphans are the living CLIs that the agent was once seen to have started. One that outlives the agent is not its
// successor.
func (g *gathering) orphans() (list []process.Identity) {
	for name := range strings.FieldsSeq(g.known.agentState.Nested) {
		if e, lives := g.sources.entry(identityNamed(name)); lives {
			list = append(list, e.Identity)
		}
	}
	return list
}

// namesOf are identities in one word each, in order and without repetitions.
func namesOf(ids []process.Identity) string {
	names := make([]string, len(ids))
	for i, id := range ids {
		names[i] = fmt.Sprintf("%d/%d", id.PID, id.Start)
	}
	slices.Sort(names)
	return strings.Join(slices.Compact(names), " ")
}

func identityNamed(name string) process.Identity {
	pid, start, _ := strings.Cut(name, "/")
	number, err := strconv.Atoi(pid)
	began, err2 := strconv.ParseUint(start, 10, 64)
	if err != nil || err2 != nil || began == 0 {
		return process.Identity{} // of no process
	}
	return process.Identity{PID: number, Start: began}
}

// ownSessions are the agent's sessions, and those of living CLIs that it has started. Where a living process is known to
// run a session of the agent, those without a process are over: an earlier one, or that of a CLI it had started.
func (g *gathering) ownSessions(kind agentcli.Kind) (own, nested []*agentcli.Session) {
	named := false
	for i := range g.sources.sessions {
		v := &g.sources.sessions[i]
		if g.runsNested(v) {
			nested = append(nested, v)
		} else if v.Kind == kind && g.ours(v) {
			own = append(own, v)
			named = named || v.PID != 0 && !v.Assigned && !v.Subagent
		}
	}
	if named {
		own = slices.DeleteFunc(own, func(v *agentcli.Session) bool { return v.PID == 0 })
	}
	return own, nested
}

// runsNested reports whether a session runs in a CLI that the agent has started.
func (g *gathering) runsNested(v *agentcli.Session) bool {
	return slices.ContainsFunc(g.nested, func(id process.Identity) bool { return id.PID == v.PID && (v.Start == 0 || v.Start == id.Start) })
}
