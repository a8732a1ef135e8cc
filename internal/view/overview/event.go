package overview

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"
	"unique"

	"github.com/outlive-mcp/outlive/internal/record/event"
)

// eventsShown is how many events an overview has at most.
const eventsShown = 2000

// Event is one event of a running outlive, or of the monitor.
type Event struct {
	At         time.Time
	Level      string // DEBUG, INFO, WARNING, ERROR
	Type       event.Type
	Message    string
	PID        int    // of outlive
	Instance   string // its label; "": not known
	Server     string // of a gateway: which server
	Agent      string // of the monitor: which agent
	ServerPID  int
	Generation int
	Cause      string
	Source     string
	Reason     string
	Took       time.Duration
}

// ParseEvent reads a line of the audit log.
func ParseEvent(line []byte) (Event, error) {
	var l struct {
		Timestamp  time.Time `json:"timestamp"`
		Level      string    `json:"level"`
		Message    string    `json:"message"`
		Type       string    `json:"event_type"`
		PID        int       `json:"proxy_pid"`
		ServerPID  int       `json:"server_pid"`
		Generation int       `json:"generation"`
		Server     string    `json:"server"`
		Cause      string    `json:"cause"`
		Source     string    `json:"source"`
		Reason     string    `json:"reason"`
		RestartMS  int64     `json:"restart_duration_ms"`
	}
	if err := json.Unmarshal(line, &l); err != nil {
		return Event{}, fmt.Errorf("event: %w", err)
	}
	one := func(s string) string { return unique.Make(s).Value() } // a day's events say the same words again and again
	return Event{
		At: l.Timestamp, Level: one(l.Level), Type: event.Type(one(l.Type)), Message: one(l.Message), PID: l.PID, Server: one(l.Server), ServerPID: l.ServerPID,
		Generation: l.Generation, Cause: one(l.Cause), Source: one(l.Source), Reason: one(l.Reason), Took: time.Duration(l.RestartMS) * time.Millisecond,
	}, nil
}

// dayOf are the events of the last day, the oldest first, without those for debugging; of one time in the order that they came.
func dayOf(all []Event, now time.Time) []*Event {
	list := make([]*Event, 0, len(all))
	for n := range all {
		if e := &all[n]; now.Sub(e.At) <= Day && e.Level != "DEBUG" {
			list = append(list, e)
		}
	}
	older := func(a, b *Event) int { return a.At.Compare(b.At) }
	if !slices.IsSortedFunc(list, older) {
		slices.SortStableFunc(list, older)
	}
	return list
}

// newest are the last of them, the newest first.
func newest(day []*Event) []Event {
	list := make([]Event, 0, min(len(day), eventsShown))
	for _, e := range slices.Backward(day[max(0, len(day)-eventsShown):]) {
		list = append(list, *e)
	}
	return list
}

// sorted are the events of each running outlive by its PID, in the same order.
func sorted(day []*Event) map[int][]*Event {
	of := map[int][]*Event{}
	for _, e := range day {
		of[e.PID] = append(of[e.PID], e)
	}
	return of
}
