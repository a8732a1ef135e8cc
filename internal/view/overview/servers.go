package overview

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/outlive-mcp/outlive/internal/line/backend"
	"github.com/outlive-mcp/outlive/internal/record/event"
	"github.com/outlive-mcp/outlive/internal/view/control"
)

// serversOf are the servers of one running outlive; of a gateway itself first.
func serversOf(i Instance, events eventsOf, now time.Time) []Server {
	if i.Silent {
		return []Server{{
			Key: i.Label(), Name: i.Name, Instance: i.Instance, Health: Bad, State: control.NoAnswer, Why: "outlive runs, and does not answer",
			Since: i.Heard, Strip: stripOf(nil, nil, now, Bad), LogPath: i.Status.LogPath,
		}}
	}
	s := i.Status
	if s.Run() {
		return []Server{serverOf(i, events, now)}
	}
	first := Server{
		Key: i.Label(), Name: cmp.Or(s.Name, i.Name), Gateway: true, Instance: i.Instance, Health: Good, State: s.State, Since: s.StartedAt,
		InFlight: s.InFlight, Queued: s.Queued, Version: s.Version, URL: s.URL, Config: s.Config,
	}
	list := []Server{first}
	for _, m := range s.Servers {
		one := memberOf(i, m, events.at(m.Name), now)
		list[0].Memory += one.Memory
		list = append(list, one)
		if one.Health.Wrong() {
			list[0].Health, list[0].Why = Warn, "not all of its servers are well"
		}
	}
	list[0].Strip = stripOf([]stretch{{s.StartedAt, now, Good}}, nil, now, list[0].Health)
	return list
}

// serverOf is the one server of a run.
func serverOf(i Instance, events eventsOf, now time.Time) Server {
	s := i.Status
	one := Server{
		Key: i.Label(), Name: s.Name, Instance: i.Instance, State: RunState(s.Status), Restarts: s.RestartCount, Memory: s.RSS, InFlight: s.InFlight,
		Queued: s.Queued, Era: Eras(s.Status), Protocol: s.ProtocolVersion, Version: s.Version, Command: s.Command, Dir: s.Dir, LogPath: s.LogPath,
		Curve: i.Curves[s.Name],
	}
	if client := strings.TrimSpace(s.Client); client != "" {
		one.Clients = []string{client}
	}
	one.Health, one.Why = healthOf(s.Status)
	one.await(s.Status)
	one.addProcesses(s.Status, "")
	one.count(s.Counters)
	one.past(s.StartedAt, s.Since, events, now)
	return one
}

// memberOf is one server behind a gateway, with all its processes.
func memberOf(i Instance, m control.Member, events eventsOf, now time.Time) Server {
	at := i.Instance
	at.Server = m.Name
	one := Server{
		Key: at.Label(), Name: m.Name, Of: i.Label(), Instance: at, State: StateOf(m.ServerStatus), LogPath: m.LogPath, Version: i.Status.Version,
		Runs: m.Runs, Apart: m.Apart, Curve: i.Curves[m.Name],
	}
	one.Health = Idle
	for _, l := range m.Links {
		h, why := healthOf(l.Status)
		one.Health = max(one.Health, h)
		one.Why = cmp.Or(one.Why, why)
		one.Memory += l.RSS
		one.InFlight += l.InFlight
		one.Queued += l.Queued
		one.Command = l.Command
		one.Protocol = cmp.Or(one.Protocol, l.ProtocolVersion)
		if client := l.Client; client != "" && !slices.Contains(one.Clients, client) {
			one.Clients = append(one.Clients, client)
		}
		if era := Eras(l.Status); !strings.Contains(one.Era, era) {
			one.Era = strings.TrimPrefix(one.Era+", "+era, ", ")
		}
		one.await(l.Status)
		one.addProcesses(l.Status, l.Client)
	}
	if trouble := TroubleOf(m.ServerStatus); trouble != "" {
		one.Health, one.Why = Bad, trouble
	} else if why := FailingOf(m.ServerStatus); why != "" {
		one.Health, one.Why = max(one.Health, Warn), why
	}
	one.count(m.Counted())
	one.Restarts = RestartsOf(m.ServerStatus)
	one.past(i.Status.StartedAt, m.Since, events, now)
	return one
}

// healthOf is how one process's keeper stands, and why, if something is wrong.
func healthOf(s backend.Status) (h Health, why string) {
	last := ""
	if s.LastExit != nil {
		last = strings.Join(append([]string{s.LastExit.Why}, s.LastExit.Stderr...), "\n")
	}
	switch s.State {
	case "ready":
		switch {
		case s.Failing != "":
			return Warn, s.Failing
		case s.ReloadFailed != nil:
			return Warn, "the last planned restart came to nothing: " + s.ReloadFailed.Error
		}
		return Good, ""
	case "asleep", "stopped", "ending":
		return Idle, ""
	case "failed":
		return Bad, cmp.Or(last, s.Failing)
	case "backoff":
		return Warn, last
	}
	return Busy, s.Failing
}

// await notes when the next start is.
func (s *Server) await(of backend.Status) {
	if of.NextTryAt != nil && (s.Next.IsZero() || of.NextTryAt.Before(s.Next)) {
		s.Next = *of.NextTryAt
	}
}

func (s *Server) addProcesses(of backend.Status, client string) {
	if of.ServerPID != 0 {
		s.Processes = append(s.Processes, Process{of.ServerPID, "serving", client, of.RSS})
	}
	for _, b := range of.Beside {
		s.Processes = append(s.Processes, Process{b.PID, b.Role, client, b.RSS})
		s.Memory += b.RSS
	}
}

func (s *Server) count(c backend.Counters) {
	s.Calls = c.Calls
	for _, cause := range slices.Sorted(maps.Keys(c.Restarts)) {
		if ofAProbe(cause) {
			continue
		}
		s.Causes = append(s.Causes, Count{cause, c.Restarts[cause]})
	}
}

// past fills in what has happened since outlive started. since is what it says itself of how long it stands so; an older one says nothing.
func (s *Server) past(started, since time.Time, events eventsOf, now time.Time) {
	p := events.past(started, now, s.Health)
	s.Strip, s.Since, s.Renewals = p.strip, p.since, p.renewals
	for _, r := range p.waiting { // outlive has counted it already
		s.Restarts = max(0, s.Restarts-1)
		for n := range s.Causes {
			if s.Causes[n].Name == r.Cause {
				s.Causes[n].N--
			}
		}
	}
	s.Causes = slices.DeleteFunc(s.Causes, func(c Count) bool { return c.N <= 0 })
	if !since.IsZero() {
		s.Since = since
	}
	if n, last := stopsOf(s.Renewals, now); n > stopsFine && (s.Health == Good || s.Health == Busy) {
		s.Health, s.Stops = Warn, n
		s.Why = fmt.Sprintf("has stopped working %d × in the last 15 minutes%s", n, colon(last.Reason))
	}
}

// How often a server may stop working in a time, and still be well when it is ready: as in the alert OutliveServerCrashing.
const (
	stopsWithin = 15 * time.Minute
	stopsFine   = 3
)

// stopsOf is how often a server has stopped working of late, and the last time, from its restarts, the newest first.
func stopsOf(list []Renewal, now time.Time) (n int, last Renewal) {
	for _, r := range list {
		if now.Sub(r.At) > stopsWithin {
			break
		}
		if r.Unplanned() {
			if n++; n == 1 {
				last = r
			}
		}
	}
	return n, last
}

// pastOf is what has happened to a server since outlive started.
func pastOf(events []*Event, started, now time.Time, health Health) (p past) {
	list := historyOf(events, started, now, health)
	p.renewals, p.waiting = renewalsOf(events)
	restarts := make([]time.Time, len(p.renewals))
	for n, r := range p.renewals {
		restarts[n] = r.At
	}
	p.strip, p.since = stripOf(list, restarts, now, health), started
	for _, one := range slices.Backward(list) {
		if one.health != list[len(list)-1].health {
			break
		}
		p.since = one.from
	}
	return p
}

// renewalsOf are the restarts among events, the newest first, and apart those that wait for their time: nothing was started yet. Those of
// several processes behind a gateway may overlap: one that is completed has replaced the last generation before it, and of several
// such began when the event says.
func renewalsOf(events []*Event) (list, waiting []Renewal) {
	var old []int // the generation that each replaces
	later := 0    // how many of the last ones wait
	for _, e := range events {
		switch e.Type {
		case event.RestartDelayed:
			if !ofAProbe(e.Cause) {
				later = min(later+1, len(list))
			}
		case event.ServerStarting:
			for ; later > 0; later-- {
				list[len(list)-later].Begun = e.At
			}
		case event.RestartInitiated:
			if ofAProbe(e.Cause) {
				continue
			}
			list, old = append(list, Renewal{At: e.At, Cause: e.Cause, Source: e.Source, Reason: e.Reason}), append(old, e.Generation)
		case event.RestartCompleted:
			began, best := e.At.Add(-e.Took), -1
			off := func(n int) time.Duration { return list[n].At.Sub(began).Abs() }
			for n, r := range list {
				if r.Done || r.Cause != e.Cause && e.Cause != "" || old[n] > e.Generation {
					continue
				}
				if best < 0 || old[n] > old[best] || old[n] == old[best] && off(n) <= off(best) {
					best = n
				}
			}
			if best >= 0 {
				list[best].Done, list[best].Took = true, e.Took
			}
			later = 0
		}
	}
	for n := range list {
		list[n].Failed = !list[n].Done && n < len(list)-1 // the next try has followed
	}
	slices.Reverse(list)
	return list[later:], list[:later:later]
}
