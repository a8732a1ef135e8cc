package overview

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/outlive-mcp/outlive/internal/record/event"
)

// Levels are the levels of events, the least first.
var Levels = []string{"DEBUG", "INFO", "WARNING", "ERROR"}

// Filter is which events are shown. The zero Filter shows all of them.
type Filter struct {
	About []string // servers, gateways, agents, machines, by the names that status shows, with or without @PID; none: all
	Level string   // the least one of [Levels]; "": every one
	Text  string   // a part of the message, in capitals or not
	Brief bool     // without the steps of a restart, which say nothing that a person needs
}

// Shows reports whether an event is one of those.
func (f Filter) Shows(e Event) bool {
	if f.Brief && e.isStep() || slices.Index(Levels, e.Level) < slices.Index(Levels, f.Level) {
		return false
	}
	if f.Text != "" && !strings.Contains(strings.ToLower(e.Message), strings.ToLower(f.Text)) {
		return false
	}
	return len(f.About) == 0 || slices.ContainsFunc(f.About, e.isAbout)
}

// isStep reports whether an event is a step between two that people hear of. A crash, and that the server is ready again, are two such.
func (e Event) isStep() bool {
	switch e.Type {
	case event.ServerStarting, event.ServerSpawned, event.ServerExited, event.InitializeReplayed, event.RestartDelayed:
		return e.Level == "INFO"
	case event.RestartInitiated: // of one that was asked for it says why
		return Renewal{Source: e.Source}.Unplanned()
	}
	return false
}

// Newest are the events of the last day that a filter shows, the newest first, and no more than most.
func Newest(all []Event, only Filter, most int, now time.Time) (list []Event) {
	for _, e := range slices.Backward(dayOf(nil, all, now)) {
		if len(list) == most {
			break
		}
		if only.Shows(*e) {
			list = append(list, *e)
		}
	}
	return list
}

// isAbout reports whether a name is that of what an event is about, or of what that is a part of.
func (e Event) isAbout(name string) bool {
	if name == e.Host || name == e.Agent || name == e.Server {
		return name != ""
	}
	if e.Host != "" && e.Agent != "" {
		return name == e.Host+"/"+e.Agent
	}
	label := strings.TrimPrefix(e.Instance, e.Host+"/")
	if label == "" {
		return false
	}
	short := label[:max(0, strings.LastIndexByte(label, '@'))]
	for _, one := range []string{label, short} {
		for _, whole := range []string{one, e.Host + "/" + one} {
			if name == whole || e.Server != "" && name == whole+"/"+e.Server {
				return true
			}
		}
	}
	return false
}

// Named reports whether one of the names is that of the server, or of what it is a part of.
func (s Server) Named(names []string) bool {
	at := s.Instance
	at.Server = ""
	return slices.ContainsFunc(names, Event{Host: s.Host, Instance: at.Label(), Server: s.Instance.Server}.isAbout)
}

// Repeated is an event that has happened again and again, without another one about the same in between.
type Repeated struct {
	Last  Event
	Times int       // 1: it has happened once
	First time.Time // when it has happened first
}

// Fold joins repeated events of a list that has the newest first. Messages may differ where they have a reason in common.
func Fold(list []Event) []Repeated {
	folded := make([]Repeated, 0, len(list))
	type subject struct {
		host, instance, server, agent string
		pid                           int
	}
	last := map[subject]int{} // of what each is about, by its place in folded
	for _, e := range list {
		about := subject{e.Host, e.Instance, e.Server, e.Agent, e.PID}
		if at, known := last[about]; known && folded[at].repeats(e) {
			folded[at].Times++
			folded[at].First = e.At
			continue
		}
		last[about] = len(folded)
		folded = append(folded, Repeated{Last: e, Times: 1, First: e.At})
	}
	return folded
}

func (r Repeated) repeats(e Event) bool {
	return r.Last.Type == e.Type && r.Last.Level == e.Level && cmp.Or(r.Last.Reason, r.Last.Message) == cmp.Or(e.Reason, e.Message)
}
