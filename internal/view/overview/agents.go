package overview

import (
	"cmp"
	"log/slog"
	"slices"
	"time"

	"github.com/outlive-mcp/outlive/internal/record/event"
)

// agentsOf are a home's agents with their histories and strips.
func agentsOf(h *Home, w *Memory, now time.Time) []Agent {
	list := slices.Clone(h.Agents)
	incidents := map[string][]Incident{}
	for _, i := range h.Incidents {
		for _, key := range append(i.Members[:len(i.Members):len(i.Members)], i.Agent) {
			incidents[key] = append(incidents[key], i)
		}
	}
	watched := slices.Clone(h.Watched)
	if last := len(watched) - 1; last >= 0 && h.Monitor != 0 && !watched[last].To.Before(h.At) {
		watched[last].To = now // it goes on
	}
	strips := w.stripsOf(h, now)
	for n := range list {
		list[n].History = historyOfAgent(list[n].History, watched, now)
		for m := range list[n].History {
			list[n].History[m].waitedFor(incidents[list[n].Key])
		}
		if last := len(list[n].History) - 1; last >= 0 && list[n].Since.IsZero() && list[n].History[last].Health == list[n].Health {
			list[n].Since = list[n].History[last].From // as long as is known
		}
		if strips[n] == nil {
			strips[n] = agentStrip(list[n], incidents[list[n].Key], watched, now)
		}
		list[n].Strip = strips[n]
	}
	return list
}

// historyOfAgent cuts what was written down to the last day and to the times in which a monitor looked.
func historyOfAgent(stood []Standing, watched []Period, now time.Time) (list []Standing) {
	from := now.Add(-Day)
	add := func(s Standing) {
		if s.From.Before(from) {
			s.From = from
		}
		if s.From.Before(s.To) {
			list = append(list, s)
		}
	}
	for n, p := range watched {
		if n > 0 {
			add(Standing{From: watched[n-1].To, To: p.From})
		}
		for m, s := range stood {
			s.To, s.Watched = p.To, true
			if m+1 < len(stood) && stood[m+1].From.Before(s.To) {
				s.To = stood[m+1].From
			}
			if s.From.Before(p.From) {
				s.From = p.From
			}
			add(s)
		}
	}
	return list
}

// waitedFor makes the health that of an agent that waited for a person, if it did: its incident was open then.
func (s *Standing) waitedFor(incidents []Incident) {
	for _, i := range incidents {
		if s.Health == Warn && i.Since().Before(s.To) && (i.Open() || i.Resolved.After(s.From)) {
			s.Health = Bad
		}
	}
}

// startSteps are the steps of an [Act] that start the agent anew: in its strip they are restarts.
var startSteps = []string{"resume", "restart", "fresh"}

// agentStrip is how an agent stood: as the monitor has written it down, and beside it what a person was asked and what was done. What a
// monitor saw and found nothing wrong with was well; nothing is known of the other times.
func agentStrip(a Agent, incidents []Incident, watched []Period, now time.Time) []Span {
	var list []stretch
	for _, p := range watched {
		if len(a.History) == 0 { // written down by an older monitor, or not yet
			list = append(list, stretch{p.From, p.To, min(a.Health, Good)})
		}
	}
	for _, s := range a.History {
		list = append(list, stretch{s.From, s.To, s.Health})
	}
	var started []time.Time
	for _, act := range a.Acts {
		if slices.Contains(startSteps, act.Step) {
			started = append(started, act.At)
		}
		list = append(list, stretch{act.At, cmp.Or(act.Again, act.Helped, act.At), Warn})
	}
	for _, i := range incidents {
		if i.Agent == a.Key { // one of several agents may be over for this one
			list = append(list, stretch{i.Opened, cmp.Or(i.Resolved, now), Bad})
		}
	}
	if a.Health.Wrong() && !a.Since.IsZero() {
		list = append(list, stretch{a.Since, now, a.Health})
	}
	return stripOf(list, started, now, a.Health)
}

// severities are those of incidents, the worst first; one that another version knows comes before them.
var severities = []string{"critical", "warning", "info"}

// ordered are incidents as one looks at them: those that wait, the worst first, the other open ones, those that are over; the newest first.
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
	severity := func(i Incident) int {
		if !i.Waits() {
			return 0
		}
		return slices.Index(severities, i.Severity)
	}
	slices.SortStableFunc(list, func(a, b Incident) int {
		return cmp.Or(rank(a)-rank(b), severity(a)-severity(b), b.Opened.Compare(a.Opened))
	})
	return list
}

// Changes are the events between two looks at a home; none if was is nil.
func Changes(was, is *Home) (list []Event) {
	if was == nil || is == nil {
		return nil
	}
	tell := func(t event.Type, level slog.Level, agent, message string) {
		list = append(list, Event{At: is.At, Level: event.LevelName(level), Type: t, PID: is.Monitor, Agent: agent, Message: message})
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
		tell(event.AgentChanged, event.Grade(a.Health == Bad, a.Health.Wrong()), a.Key, a.Key+": "+a.State+colon(a.Why))
	}
	for _, a := range is.Agents {
		for _, act := range a.Acts {
			if !slices.ContainsFunc(before[a.Key].Acts, func(o Act) bool { return o.At.Equal(act.At) }) {
				tell(event.AgentActed, slog.LevelInfo, a.Key, a.Key+": "+act.Text)
			}
		}
	}
	for _, i := range is.Incidents {
		at := slices.IndexFunc(was.Incidents, func(o Incident) bool { return o.ID == i.ID })
		switch {
		case at < 0 && i.Open():
			more := i.Details
			if i.Agent != "" { // that it stands so was an event of its own
				more = "it waits for a person"
			}
			tell(event.IncidentOpened, event.LevelOf(event.Event{Type: event.IncidentOpened}), i.Agent, i.Title+colon(more))
		case at >= 0 && was.Incidents[at].Open() && !i.Open():
			tell(event.IncidentResolved, slog.LevelInfo, i.Agent, i.Title+": over"+colon(i.Ending))
		case at >= 0 && was.Incidents[at].State != "acknowledged" && i.State == "acknowledged":
			tell(event.IncidentAcknowledged, slog.LevelInfo, i.Agent, i.Title+": acknowledged by "+i.By)
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
