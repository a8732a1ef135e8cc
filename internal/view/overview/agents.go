package overview

import (
	"cmp"
	"slices"
	"time"

	"github.com/outlive-mcp/outlive/internal/record/event"
)

// agentsOf are a home's agents with their strips, the worst first.
func agentsOf(h *Home, now time.Time) []Agent {
	list := slices.Clone(h.Agents)
	for n := range list {
		list[n].Strip = agentStrip(list[n], h.Incidents, now)
	}
	return list
}

// agentStrip is how an agent stood, as far as it was written down: while an incident was open, and while something that was done
// had not helped yet.
func agentStrip(a Agent, incidents []Incident, now time.Time) []Span {
	from := now.Add(-Day)
	list := []stretch{{from, now, Good}}
	if a.Health == Idle {
		list[0].health = Idle
	}
	var acted []time.Time
	for _, act := range a.Acts {
		acted = append(acted, act.At)
		until := cmp.Or(act.Helped, act.At)
		list = append(list, stretch{act.At, until, Warn})
	}
	for _, i := range incidents {
		if i.Agent == a.Key {
			list = append(list, stretch{i.Opened, orNow(i.Resolved, now), Bad})
		}
	}
	if a.Health.Wrong() && !a.Since.IsZero() {
		list = append(list, stretch{a.Since, now, a.Health})
	}
	return stripOf(list, acted, now, a.Health)
}

func orNow(t, now time.Time) time.Time {
	if t.IsZero() {
		return now
	}
	return t
}

// ordered are incidents as one looks at them: those that wait, the other open ones, those that are over; the newest first.
func ordered(all []Incident) []Incident {
	list := slices.Clone(all)
	rank := func(i Incident) int {
		switch {
		case i.Waits():
			return 0
		case i.Open():
			return 1
		}
		return 2
	}
	slices.SortStableFunc(list, func(a, b Incident) int { return cmp.Or(rank(a)-rank(b), b.Opened.Compare(a.Opened)) })
	return list
}

// Changes are the events between two looks at a home; none if was is nil.
func Changes(was, is *Home) (list []Event) {
	if was == nil || is == nil {
		return nil
	}
	tell := func(t event.Type, level, agent, message string) {
		list = append(list, Event{At: is.At, Level: level, Type: t, PID: is.Monitor, Agent: agent, Message: message})
	}
	before := map[string]Agent{}
	for _, a := range was.Agents {
		before[a.Key] = a
	}
	for _, a := range is.Agents {
		old, known := before[a.Key]
		if known && old.Class == a.Class {
			continue
		}
		level := "INFO"
		if a.Health.Wrong() {
			level = "WARNING"
		}
		tell(event.AgentChanged, level, a.Key, a.Key+": "+a.State+colon(a.Why))
	}
	for _, a := range is.Agents {
		for _, act := range a.Acts {
			if !slices.ContainsFunc(before[a.Key].Acts, func(o Act) bool { return o.At.Equal(act.At) }) {
				tell(event.AgentActed, "INFO", a.Key, a.Key+": "+act.Text)
			}
		}
	}
	for _, i := range is.Incidents {
		at := slices.IndexFunc(was.Incidents, func(o Incident) bool { return o.ID == i.ID })
		switch {
		case at < 0 && i.Open():
			tell(event.IncidentOpened, "WARNING", i.Agent, i.Title+colon(i.Details))
		case at >= 0 && was.Incidents[at].Open() && !i.Open():
			tell(event.IncidentResolved, "INFO", i.Agent, i.Title+": over"+colon(i.Ending))
		case at >= 0 && was.Incidents[at].State != "acknowledged" && i.State == "acknowledged":
			tell(event.IncidentAcknowledged, "INFO", i.Agent, i.Title+": acknowledged by "+i.By)
		}
	}
	return list
}

func colon(text string) string {
	if text == "" {
		return ""
	}
	return ": " + text
}
