package overview

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Snapshot is how everything stands on a machine, as it tells others. Members that are not known are ignored, so that versions
// may differ.
type Snapshot struct {
	Version   string     `json:"version"` // of the outlive that tells it
	At        time.Time  `json:"at"`      // by its clock
	Instances []Instance `json:"instances"`
	Home      *Home      `json:"home,omitempty"`
	Trouble   []string   `json:"trouble,omitempty"`
	// Events are those of the last day, the newest first; in the first snapshot only, if they were asked for.
	Events []Event `json:"events,omitempty"`
}

// SnapshotOf is what was gathered, for others.
func SnapshotOf(in Input, version string) Snapshot {
	return Snapshot{Version: version, At: in.At.UTC(), Instances: append([]Instance{}, in.Instances...), Home: in.Home, Trouble: in.Trouble}
}

// Machine is another machine, and what was heard of it last.
type Machine struct {
	Name     string
	Seen     Snapshot
	Heard    time.Time // when that was, by our clock; zero: never
	Answers  bool
	Word     string // how it stands, if it does not answer
	Why      string // why it does not
	Since    time.Time
	Versions string // that its version is another one; "": it is not, or is not known
}

// Host is a machine in an overview.
type Host struct {
	Name    string
	Health  Health
	State   string
	Why     string
	Since   time.Time
	Version string // of the outlive there; "": not known
	Servers int
	Agents  int
}

// clockTolerance is how far a clock may be off until it is said: what a link takes, and what nobody notices in a table.
const clockTolerance = 5 * time.Second

// addMachine adds what is known of another machine. Of one that does not answer, nothing is known now.
func (s *State) addMachine(m Machine, w *Memory) {
	h := Host{Name: m.Name, Health: Good, State: "connected", Since: m.Since, Version: m.Seen.Version, Why: m.Versions}
	if text := ClockText(m.Seen.At.Sub(m.Heard)); m.Answers && text != "" {
		h.Health, h.Why = Warn, strings.TrimPrefix(h.Why+"; "+text, "; ")
	}
	servers := allServers(m.Seen.Instances, w, m.Name, s.At)
	var agents []Agent
	if m.Seen.Home != nil {
		agents = agentsOf(m.Seen.Home, w, s.At)
		s.Incidents = append(s.Incidents[:len(s.Incidents):len(s.Incidents)], incidentsThere(m)...)
		if len(agents) > 0 && m.Seen.Home.Monitor == 0 && m.Answers {
			s.Trouble = append(s.Trouble[:len(s.Trouble):len(s.Trouble)], m.Name+": no monitor runs: nothing is done for the agents there, and nobody is told")
		}
	}
	for n := range agents {
		a := &agents[n]
		a.Host, a.Key, a.Name, a.Output = m.Name, m.Name+"/"+a.Key, m.Name+"/"+a.Name, ""
		if !m.Answers {
			a.Health, a.State = Unknown, "not known"
		}
	}
	for n := range servers {
		if one := &servers[n]; !m.Answers {
			one.Health, one.State, one.Why, one.Next = Unknown, "not known", "", time.Time{}
		}
	}
	if !m.Answers {
		h.Health, h.State, h.Why = Bad, m.Word, m.Why
		if m.Why == "" {
			h.Health = Busy // it was not tried yet
		}
	} else {
		for _, text := range m.Seen.Trouble {
			s.Trouble = append(s.Trouble[:len(s.Trouble):len(s.Trouble)], m.Name+": "+text)
		}
	}
	h.Servers, h.Agents = len(servers), len(agents)
	s.Servers, s.Agents, s.Hosts = append(s.Servers, servers...), append(s.Agents, agents...), append(s.Hosts, h)
}

// ClockText says how far the clock of another machine is off; "": so little that it is not said.
func ClockText(off time.Duration) string {
	if off.Abs() <= clockTolerance {
		return ""
	}
	word := "ahead"
	if off < 0 {
		word = "behind"
	}
	return fmt.Sprintf("its clock is %s %s", off.Abs().Round(time.Second), word)
}

// incidentsThere are a machine's incidents. Nothing can be done about them while it does not answer.
func incidentsThere(m Machine) []Incident {
	list := slices.Clone(m.Seen.Home.Incidents)
	for n := range list {
		i := &list[n]
		i.Host, i.ID, i.Title = m.Name, m.Name+"/"+i.ID, m.Name+"/"+i.Title
		if i.Agent != "" {
			i.Agent = m.Name + "/" + i.Agent
		}
		i.Members = slices.Clone(i.Members)
		for n := range i.Members {
			i.Members[n] = m.Name + "/" + i.Members[n]
		}
		if !m.Answers {
			i.Buttons = nil
		}
	}
	return list
}

// allServers are the servers of all running outlives of a machine; "": this one.
func allServers(all []Instance, w *Memory, host string, now time.Time) (list []Server) {
	for _, i := range all {
		for _, one := range serversOf(i, w.of(host, i.PID), now) {
			if host != "" {
				one.Host, one.Key, one.Name = host, host+"/"+one.Key, host+"/"+one.Name
				one.LogPath = "" // a file of that machine
				if one.Of != "" {
					one.Of = host + "/" + one.Of
				}
			}
			list = append(list, one)
		}
	}
	return list
}

// There is what a thing with this key or name is called on its own machine.
func There(host, key string) string { return strings.TrimPrefix(key, host+"/") }

// Unwatched reports whether there are agents of this machine that no monitor looks after.
func (s State) Unwatched() bool {
	return s.Monitor == 0 && slices.ContainsFunc(s.Agents, func(a Agent) bool { return a.Host == "" })
}
