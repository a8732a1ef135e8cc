package monitor

import (
	"fmt"
	"slices"
	"strings"

	"github.com/outlive-mcp/outlive/internal/agents/agentcli"
	"github.com/outlive-mcp/outlive/internal/agents/diagnose"
)

// miss records that a source could not be read, or not completely, and why.
func (g *gathering) miss(from diagnose.Source, why string) {
	e := g.e
	if !slices.Contains(e.Missing, from) {
		e.Missing = append(e.Missing, from)
	}
	why = fmt.Sprintf("%s: %s", from, strings.Join(strings.Fields(why), " "))
	if !slices.Contains(e.Unread, why) {
		e.Unread = append(e.Unread, why)
	}
}

// missFiles records which of the agent's sources could not be read.
func (g *gathering) missFiles(kind agentcli.Kind) {
	if g.sources.fault != nil { // of this look
		if err := g.sources.reader.Fault(kind); err != nil {
			g.miss(diagnose.FromSessions, err.Error())
		}
	}
	for _, v := range g.sources.sessions {
		if v.Kind == kind && v.Unread != "" && !(v.Unfinished && g.died) && g.ours(&v) {
			g.miss(diagnose.FromSessions, v.Unread)
		}
	}
}

// missReport records that the wrapper's report cannot be read. One of before the machine was started says nothing of the
// present run: a loss of power may have damaged it.
func (g *gathering) missReport() {
	if r := g.sources.unreported[g.agent.Key]; r.why != "" && r.at.After(g.now.Wall.Add(-g.now.Up)) {
		g.miss(diagnose.FromExit, r.why)
	}
}

// missRequests records that an open permission request may not have been seen. Either the requests cannot be read, or
// events of hooks were dropped before they were read, and the agent has not gone on since.
func (g *gathering) missRequests() {
	if err := g.sources.requestsFault; err != nil {
		g.miss(diagnose.FromHooks, err.Error())
	}
	if at := g.known.agentState.Unheard; !at.IsZero() && !g.began.After(at) && !g.wentOnSince(at) {
		g.miss(diagnose.FromHooks, fmt.Sprintf("events of hooks that came before %s were dropped before they were read", at.Local().Format("2006-01-02 15:04:05")))
	}
}
