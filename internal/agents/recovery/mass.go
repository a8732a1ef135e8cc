package recovery

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"
)

// Sighting is one agent's trouble that others may share.
type Sighting struct {
	Agent string    `json:"agent"`
	Key   string    `json:"key"`   // of the mass that it would belong to
	Since time.Time `json:"since"` // when it began
	Last  time.Time `json:"last"`  // when it was last seen
}

// Mass is one incident of several agents that share a host or an account. A human is notified once, and one member is
// tried before the others.
type Mass struct {
	// Key is "host:" or "account:", its name, and after another colon the common trouble, such as "limit".
	Key     string    `json:"key"`
	Opened  time.Time `json:"opened"`
	Members []string  `json:"members"`
	// Seen is when each member was last in this very trouble.
	Seen map[string]time.Time `json:"seen,omitempty"`
	// Told says that a human was notified.
	Told bool `json:"told,omitempty"`
	// Canary is the member being tried, since CanaryAt; "": none since then.
	Canary   string    `json:"canary,omitempty"`
	CanaryAt time.Time `json:"canary_at,omitzero"`
	// Tried are those that were tried without success.
	Tried []string `json:"tried,omitempty"`
	// Released is when a member recovered and the others were let go. Zero: they wait.
	Released time.Time `json:"released,omitzero"`
	// Last is when a member was last in trouble.
	Last time.Time `json:"last"`
}

// settle is how long all members must be free of trouble until a mass is over, and how long one must be free of this
// trouble to leave it: a newly started agent shows none.
const settle = 5 * time.Minute

const (
	hostKey    = "host:"
	accountKey = "account:"
)

// massKey is the mass that a problem may belong to. "": none. A mass has one cause: an expired login, a limit and a
// crash on one machine are three.
func massKey(p Problem) string {
	r := remediesOf(p.Class, p.Stall)
	cause := cmp.Or(r.cause, p.Class)
	switch {
	case p.Class == "" || p.Stall == stallBlind || p.Reboot:
	case r.scope == hostCause && p.Host != "":
		return hostKey + p.Host + ":" + cause
	case r.scope == accountCause && p.Account != "":
		return accountKey + p.Account + ":" + cause
	}
	return ""
}

// machineCauses are the common troubles that a service causes, whatever the machine. A login is each machine's own.
var machineCauses = []string{"model", "limit", "credit"}

// SharedCause is a trouble of an account that agents of other machines may share, as "account:NAME:TROUBLE". "": it is not one. mass is the
// mass that the problem belongs to, if it does.
func SharedCause(p Problem, mass string) string {
	key := mass
	if key == "" {
		key = massKey(p)
	}
	if !strings.HasPrefix(key, accountKey) || !slices.Contains(machineCauses, key[strings.LastIndex(key, ":")+1:]) {
		return ""
	}
	return key
}

// sight brings the sightings up to date. Those that are over are kept for one window: an agent that was started again at once
// has failed with the others all the same.
func sight(before []Sighting, problems []Problem, window time.Duration, now time.Time) []Sighting {
	var list []Sighting
	now = now.Round(0)
	for _, p := range problems {
		key := massKey(p)
		if key == "" {
			continue
		}
		since := p.Since
		if since.IsZero() {
			since = now
			if i := slices.IndexFunc(before, func(s Sighting) bool { return s.Agent == p.Agent && s.Key == key }); i >= 0 {
				since = before[i].Since
			}
		}
		list = append(list, Sighting{Agent: p.Agent, Key: key, Since: since, Last: now})
	}
	current := len(list)
	for _, s := range before {
		again := slices.ContainsFunc(list[:current], func(t Sighting) bool { return t.Agent == s.Agent && t.Key == s.Key })
		if !again && near(s.Last, now, window) {
			list = append(list, s)
		}
	}
	return list
}

// group finds the agents that fail together, and ends masses that are over.
func group(before []Mass, sightings []Sighting, troubled map[string]bool, pol FleetPolicy, now time.Time) []Mass {
	byKey := map[string][]Sighting{}
	var keys []string
	for _, s := range sightings {
		if byKey[s.Key] == nil {
			keys = append(keys, s.Key)
		}
		byKey[s.Key] = append(byKey[s.Key], s)
	}
	slices.Sort(keys)
	var masses []Mass
	for _, m := range before {
		m = m.grow(byKey[m.Key], pol).leave(byKey[m.Key], now)
		if m.Released.IsZero() && len(m.Members) < 2 {
			continue // a single agent is no mass
		}
		if slices.ContainsFunc(m.Members, func(a string) bool { return troubled[a] }) {
			m.Last = now.Round(0)
		}
		if now.Sub(m.Last) < settle && (m.Released.IsZero() || m.Last.Equal(now.Round(0))) {
			masses = append(masses, m.rotate(pol.CanaryFor, now))
		}
	}
	for _, key := range keys {
		if slices.ContainsFunc(masses, func(m Mass) bool { return m.Key == key }) {
			continue
		}
		if members := together(byKey[key], pol); members != nil {
			masses = append(masses, Mass{Key: key, Opened: now.Round(0), Last: now.Round(0), Members: members})
		}
	}
	return masses
}

// together are the agents that fail together: on one host within the window, of one account at any time. nil: too few.
func together(list []Sighting, pol FleetPolicy) []string {
	least, window := pol.HostAgents, pol.HostWindow
	if len(list) > 0 && strings.HasPrefix(list[0].Key, accountKey) {
		least, window = pol.AccountAgents, time.Duration(1<<63-1)
	}
	if least <= 0 || len(list) < least {
		return nil
	}
	list = slices.SortedFunc(slices.Values(list), func(a, b Sighting) int { return a.Since.Compare(b.Since) })
	found := map[string]bool{}
	for i := 0; i+least <= len(list); i++ {
		if last := i + least - 1; list[last].Since.Sub(list[i].Since) <= window {
			for _, s := range list[i : last+1] {
				found[s.Agent] = true
			}
		}
	}
	if len(found) < least {
		return nil
	}
	return slices.Sorted(maps.Keys(found))
}

// grow adds agents that fail while the mass exists, and makes all wait again if they fail together again.
func (m Mass) grow(list []Sighting, pol FleetPolicy) Mass {
	set := map[string]bool{}
	for _, a := range m.Members {
		set[a] = true
	}
	if m.Released.IsZero() {
		for _, s := range list {
			if strings.HasPrefix(m.Key, accountKey) || !s.Since.Before(m.Opened.Add(-pol.HostWindow)) {
				set[s.Agent] = true
			}
		}
	} else {
		anew := slices.DeleteFunc(slices.Clone(list), func(s Sighting) bool { return !s.Since.After(m.Released) })
		members := together(anew, pol)
		if members == nil {
			return m
		}
		for _, a := range members {
			set[a] = true
		}
		m.Released, m.Canary, m.Tried = time.Time{}, "", nil
	}
	m.Members = slices.Sorted(maps.Keys(set))
	return m
}

// leave removes members that were free of this trouble for long: they work, have other trouble, have finished, or were
// removed.
func (m Mass) leave(list []Sighting, now time.Time) Mass {
	seen := map[string]time.Time{}
	for _, a := range m.Members {
		last, known := m.Seen[a]
		here := slices.ContainsFunc(list, func(s Sighting) bool { return s.Agent == a && s.Last.Equal(now) })
		if here || !known || last.After(now) { // later: the clock was set back since
			last = now.Round(0)
		}
		if now.Sub(last) < settle || !m.Released.IsZero() {
			seen[a] = last
		}
	}
	m.Seen, m.Members = seen, slices.DeleteFunc(slices.Clone(m.Members), func(a string) bool { _, there := seen[a]; return !there })
	return m
}

// rotate gives the turn to another when the one that is tried has had its time.
func (m Mass) rotate(turn time.Duration, now time.Time) Mass {
	if now.Sub(m.CanaryAt) < turn && !now.Before(m.CanaryAt) {
		return m
	}
	switch {
	case m.Canary != "":
		m.Tried = append(slices.Clone(m.Tried), m.Canary)
		m.Canary, m.CanaryAt = "", now.Round(0)
	default: // all were tried: begin again
		m.Tried = nil
	}
	return m
}

// mayTry reports whether this member is the one that is tried, or may become it.
func (m *Mass) mayTry(agent string) bool {
	return m.Canary == agent || m.Canary == "" && !slices.Contains(m.Tried, agent)
}

// note records the decision about a member. m is the caller's copy.
func (m *Mass) note(agent string, d Decision, now time.Time) {
	if d.Rung == Escalate {
		m.Told = true
	}
	if d.Canary && (m.Canary != agent || d.Queued) { // its time does not begin while it waits for its turn
		m.Canary, m.CanaryAt = agent, now.Round(0)
	}
}
