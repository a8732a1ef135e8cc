package monitor

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/outlive-mcp/outlive/internal/agents/diagnose"
	"github.com/outlive-mcp/outlive/internal/agents/process"
)

// Servers are the MCP servers that outlive keeps alive for this user on this machine.
type Servers interface {
	// All returns them. One whose outlive runs, but does not tell how it stands, is as it was last, and Silent.
	All(ctx context.Context) ([]Server, error)
	// Restart replaces the processes of the server with that key because of a call that does not go on, and returns when
	// new ones work.
	Restart(ctx context.Context, key, reason string) error
}

// Server is one kept MCP server of one client.
type Server struct {
	Key  string // names it for [Servers.Restart], and no other one, as long as it runs
	Name string // for people
	// Client is the process that uses it. The zero value: not known, as behind a gateway with an endpoint.
	Client process.Identity
	// Trouble is why it does not work. "": it does, or is about to.
	Trouble diagnose.ServerTrouble
	Why     string // in words
	ToDo    string // what a person can do about it, such as a command
	// Ready says that it works, as far as is known, or that nobody needs it now. Neither this nor a trouble: it is starting.
	Ready bool
	// Calls are what the client waits for; Others are calls of other clients that a restart would concern, too.
	Calls, Others []ServerCall
	// Processes are those of the server, as far as they run on this machine.
	Processes []int
	Remote    bool // it has no process on this machine
	// Silent says that its outlive runs and has not told how the server stands. If it never did, its Name is the outlive's,
	// and nothing but its Key is known.
	Silent bool
	// Restartable says that its owner lets it be restarted when it hangs.
	Restartable bool
}

// ServerCall is a tool call that a server has not answered.
type ServerCall struct {
	Tool  string
	Since time.Time // when it came
	Moved time.Time // when the server got it or last reported progress; before that, when it came
}

// askServersEvery is how often servers are asked how they stand while all are ready and nothing waits for one. Asking wakes every one of
// them.
const askServersEvery = 15 * time.Second

// kept is what is known of the kept servers.
type kept struct {
	from  Servers // nil: none are looked at
	all   []Server
	asked time.Time
	state keptState
}

// keptState is what outlasts a run of the monitor.
type keptState struct {
	Work    map[string]work     `json:"work"`    // by key, of servers that somebody waits for
	Trouble map[string]troubled `json:"trouble"` // by key, of servers that are not ready
}

// work is what the processes of a server have done.
type work struct {
	CPU  time.Duration `json:"cpu"`
	PIDs []int         `json:"pids"`
	Seen time.Time     `json:"seen"` // the last look at them
	At   time.Time     `json:"at"`   // when they were last seen working
}

// refresh asks the servers how they stand, if it is time for that, one is not ready, or somebody waits for one.
func (k *kept) refresh(ctx context.Context, to *store, s *sources, now time.Time) error {
	if k.from == nil {
		return nil
	}
	waited := len(k.state.Trouble) > 0 || slices.ContainsFunc(k.all, func(s Server) bool { return len(s.Calls) > 0 })
	if age := now.Sub(k.asked); !waited && age >= 0 && age < askServersEvery {
		return nil
	}
	if k.asked.IsZero() {
		if _, err := fact(ctx, to.db, "servers", &k.state); err != nil {
			return err
		}
	}
	all, err := k.from.All(ctx)
	if err != nil {
		return fmt.Errorf("ask the kept servers how they stand: %w", err)
	}
	k.all, k.asked = all, now
	k.lookAtWork(s, now)
	k.lookAtTrouble(now)
	return setFact(ctx, to.db, "servers", k.state)
}

// lookAtWork notes which of the servers that somebody waits for use the processor, or have started a process.
func (k *kept) lookAtWork(s *sources, now time.Time) {
	was := k.state.Work
	k.state.Work = map[string]work{}
	for i := range k.all {
		server := &k.all[i]
		if len(server.Calls) == 0 || len(server.Processes) == 0 {
			continue
		}
		is, untold := work{Seen: now}, false
		for _, pid := range server.Processes {
			for _, e := range s.table.Tree(pid) {
				untold = untold || e.CPU == process.Untold
				is.CPU += e.CPU
				is.PIDs = append(is.PIDs, e.PID)
			}
		}
		if untold {
			continue // the system does not tell whether it works
		}
		before, known := was[server.Key]
		is.At = before.At
		young := func(pid int) bool { return !slices.Contains(before.PIDs, pid) }
		passed := now.Sub(before.Seen)
		c := diagnose.CPU{Known: true, Starts: slices.ContainsFunc(is.PIDs, young)}
		if passed > 0 {
			c.Share = max(is.CPU-before.CPU, 0).Seconds() / passed.Seconds()
		}
		if !known || passed < 0 || c.Works() {
			is.At = now
		}
		k.state.Work[server.Key] = is
	}
}

// servedBelow reports whether a server's client lives and is the agent or one of its descendants.
func (s *sources) servedBelow(client, agent process.Identity) bool {
	_, lives := s.entry(client)
	return lives && s.below(client.PID, agent)
}

// mostWaits is how many calls of one agent are taken for evidence. The others may go on.
const mostWaits = 64

// servers are the calls for which the agent waits, and the servers that have them.
func (g *gathering) servers() {
	if !g.agent.says("process") || g.e.Process.Life != diagnose.Alive {
		return
	}
	for i := range g.kept.all {
		server := &g.kept.all[i]
		if !g.sources.servedBelow(server.Client, g.f.process) {
			continue
		}
		for _, c := range server.Calls {
			if len(g.e.Servers) == mostWaits {
				g.miss(diagnose.FromServers, fmt.Sprintf("it waits for more than %d calls", mostWaits))
				return
			}
			g.e.Servers = append(g.e.Servers, g.waitFor(server, c))
			g.f.servers = append(g.f.servers, server.Key)
		}
	}
}

// waitFor is a call as evidence.
func (g *gathering) waitFor(server *Server, c ServerCall) diagnose.ServerCall {
	d := diagnose.ServerCall{
		Server: server.Name, Tool: c.Tool, Age: g.age(c.Since), Still: g.age(c.Moved),
		Trouble: server.Trouble, Why: strings.TrimSpace(server.Why), Remote: server.Remote,
	}
	if w, ok := g.kept.state.Work[server.Key]; ok {
		d.WorkKnown, d.Idle = true, g.age(w.At)
	}
	return d
}

// stalledServer is the key of the server whose call is the reason of the verdict; "": there is none. The order of both lists is
// the same.
func (c *examined) stalledServer() string {
	if at := c.evidence.StalledCall(c.expect); at >= 0 && at < len(c.subject.servers) {
		return c.subject.servers[at]
	}
	return ""
}

// mayRestartServer reports whether the server whose call is stalled may be restarted: its owner allows it, and no other client's
// call at it goes on.
func (r *round) mayRestartServer(c *examined) bool {
	key := c.stalledServer()
	at := slices.IndexFunc(r.kept.all, func(s Server) bool { return s.Key == key })
	if key == "" || at < 0 || !r.kept.all[at].Restartable {
		return false
	}
	moves := func(o ServerCall) bool { return r.now.Wall.Sub(o.Moved) <= time.Duration(c.expect.ToolLimit()) }
	return !slices.ContainsFunc(r.kept.all[at].Others, moves)
}
