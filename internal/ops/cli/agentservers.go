package cli

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"sync"

	"github.com/outlive-mcp/outlive/internal/agents/diagnose"
	"github.com/outlive-mcp/outlive/internal/agents/incident"
	"github.com/outlive-mcp/outlive/internal/agents/monitor"
	"github.com/outlive-mcp/outlive/internal/agents/process"
	"github.com/outlive-mcp/outlive/internal/line/backend"
	"github.com/outlive-mcp/outlive/internal/line/remote"
	"github.com/outlive-mcp/outlive/internal/view/control"
	"github.com/outlive-mcp/outlive/internal/view/overview"
)

// keptServers shows the monitor every server that outlive keeps alive for this user.
type keptServers struct {
	mu   sync.Mutex
	seen map[string]control.Instance // by key
	last map[string][]monitor.Server // by the label of the outlive that keeps them: what it last told
}

// All implements monitor.Servers.
func (k *keptServers) All(ctx context.Context) ([]monitor.Server, error) {
	all, err := askAll(ctx)
	if err != nil {
		return nil, err
	}
	return k.told(all), nil
}

// told returns the servers of those that were asked. One that has not answered, because the machine is busy, has not ended: its
// servers are as it last told.
func (k *keptServers) told(all []running) []monitor.Server {
	k.mu.Lock()
	defer k.mu.Unlock()
	var found []monitor.Server
	seen, last := map[string]control.Instance{}, map[string][]monitor.Server{}
	shared := sharedBy(all)
	for _, r := range all {
		add := func(i control.Instance, s monitor.Server) {
			s.Key = i.Label()
			seen[s.Key], found = i, append(found, s)
			last[r.Label()] = append(last[r.Label()], s)
		}
		switch {
		case r.status.State == noAnswer && r.Name != sharedName:
			known := k.last[r.Label()]
			if len(known) == 0 {
				known = []monitor.Server{{Name: r.Name, Key: r.Label(), Ready: true}}
			}
			for _, s := range known {
				s.Silent, s.Restartable = true, false
				add(cmp.Or(k.seen[s.Key], r.Instance), s)
			}
		case r.status.Gateway():
			for _, m := range r.status.Servers {
				add(r.of(m.Name), gatewayServer(r, m))
			}
		case len(r.status.Servers) > 0, r.Name == sharedName: // the daemon: its runs show what it has
		default:
			add(r.Instance, runServer(r, shared))
		}
	}
	k.seen, k.last = seen, last
	return found
}

// Restart implements monitor.Servers.
func (k *keptServers) Restart(ctx context.Context, key, reason string) error {
	k.mu.Lock()
	i, known := k.seen[key]
	k.mu.Unlock()
	if !known {
		return fmt.Errorf("the server %s is no longer running", key)
	}
	_, err := i.Restart(ctx, control.Order{Reason: reason, Stalled: true})
	return err
}

// sharedUse is a server of the daemon with the runs that use it.
type sharedUse struct {
	control.Member
	runs []running
}

// sharedBy returns the shared server of each run that has one, by the run's process.
func sharedBy(all []running) map[int]*sharedUse {
	byRun := map[int]*sharedUse{}
	for _, r := range all {
		for _, m := range r.status.Servers {
			for _, run := range m.Runs {
				if byRun[run.PID] == nil {
					byRun[run.PID] = &sharedUse{Member: m}
				}
			}
		}
	}
	for _, r := range all {
		if s := byRun[r.PID]; s != nil {
			for _, run := range s.Runs {
				byRun[run.PID].runs = append(byRun[run.PID].runs, r)
			}
		}
	}
	return byRun
}

// runServer is the server of a run. Of a shared one, the daemon knows the processes and why they do not work.
func runServer(r running, shared map[int]*sharedUse) monitor.Server {
	st := r.status.Status
	s := monitor.Server{
		Name: r.Name, Client: identityOf(r.status.ClientProcess), Calls: callsOf(st), Remote: st.Remote,
		Processes: processesOf(st), Ready: isReady(st.State), Restartable: !st.HealthOff,
	}
	tellTrouble(&s, st, r.Label())
	if with := shared[r.PID]; with != nil {
		s.Remote = false
		for _, l := range with.Links {
			s.Processes = append(s.Processes, processesOf(l.Status)...)
			if s.Trouble == "" {
				tellTrouble(&s, l.Status, r.Label())
			}
		}
		for _, other := range with.runs {
			if other.PID != r.PID {
				s.Others = append(s.Others, callsOf(other.status.Status)...)
			}
		}
	}
	return s
}

// gatewayServer is one server behind a gateway with all its processes. What its clients wait for belongs to the one client on
// stdio, or to clients that are not known.
func gatewayServer(r running, m control.Member) monitor.Server {
	s := monitor.Server{
		Name: r.Name + "/" + m.Name, Client: identityOf(r.status.ClientProcess), Restartable: true, Ready: true,
	}
	for _, l := range m.Links {
		s.Calls = append(s.Calls, callsOf(l.Status)...)
		s.Processes = append(s.Processes, processesOf(l.Status)...)
		s.Ready = s.Ready && isReady(l.State) && (l.Phase == "ready" || l.Phase == "retired" || l.Phase == "ended")
		s.Remote = s.Remote || l.Remote
		s.Restartable = s.Restartable && !l.HealthOff
		if s.Trouble == "" || l.Trouble == backend.WantsLogin {
			tellTrouble(&s, l.Status, r.of(m.Name).Label())
		}
	}
	// That a server wants a login is known by outlive itself, never from what a server says: people are told what to run.
	if trouble := overview.TroubleOf(m.ServerStatus); trouble != "" && s.Trouble != diagnose.ServerLogin && (s.Trouble == "" || m.Standing == "unusable") {
		s.Ready, s.Trouble, s.Why, s.ToDo = false, diagnose.ServerFailed, trouble, mendToDo(r.of(m.Name).Label())
	}
	return s
}

// tellTrouble says why a server does not work, and what a person can do about it. label is its name for outlive restart.
func tellTrouble(s *monitor.Server, st backend.Status, label string) {
	if st.Trouble == "" {
		if !s.Ready && st.LastExit != nil && s.Why == "" {
			s.Why = st.LastExit.Why
		}
		return
	}
	s.Ready = false
	s.Trouble = diagnose.ServerTrouble(st.Trouble) // the same words
	if st.Trouble == backend.WantsLogin {
		_, login, _ := strings.Cut(st.Login, remote.WantsLogin)
		s.Why, s.ToDo = cmp.Or(st.Login, remote.WantsLogin), loginToDo(login)
		return
	}
	s.Why = "it gave no sign of life when it was asked for one"
	if st.Trouble != backend.Hung && st.LastExit != nil {
		s.Why = st.LastExit.Why
	}
	s.ToDo = mendToDo(label)
}

// mendToDo is what a person can do about a server that does not run.
func mendToDo(label string) string {
	label = incident.Quoted(label)
	return fmt.Sprintf("see why (outlive logs %s), then restart it (outlive restart %s)", label, label)
}

// loginToDo is what a person can do, from the text behind [remote.WantsLogin].
func loginToDo(text string) string {
	command, _, _ := strings.Cut(strings.TrimPrefix(text, ": run "), "\n")
	if command == "" || command == text {
		return ""
	}
	return "log in, on the machine where it runs (" + command + ")"
}

// isReady reports whether a server in that state works, or is not needed now.
func isReady(state string) bool {
	switch state {
	case "ready", "asleep", "stopped", "ending", "stopping":
		return true
	}
	return false
}

// callsOf are the tool calls that a server has not answered. While a client waits for anything else, such as the handshake, its
// agent mostly goes on with its work.
func callsOf(st backend.Status) (list []monitor.ServerCall) {
	for _, c := range st.Unanswered {
		if c.Tool == "" {
			continue
		}
		one := monitor.ServerCall{Tool: c.Tool, Since: c.Since, Moved: c.Since}
		if c.MovedAt != nil {
			one.Moved = *c.MovedAt
		}
		list = append(list, one)
	}
	return list
}

// processesOf are the processes of a server: the one that serves, and those beside it.
func processesOf(st backend.Status) (pids []int) {
	if st.ServerPID > 0 {
		pids = append(pids, st.ServerPID)
	}
	for _, b := range st.Beside {
		if b.PID > 0 {
			pids = append(pids, b.PID)
		}
	}
	return pids
}

// identityOf is a process in the monitor's words; the zero value: it is not known.
func identityOf(p *control.Peer) process.Identity {
	if p == nil {
		return process.Identity{}
	}
	return process.Identity{PID: p.PID, Start: p.Start, Boot: p.Boot}
}
