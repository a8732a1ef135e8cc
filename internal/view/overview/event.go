package overview

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

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
	Lived      time.Duration // of a process that has exited
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
		UptimeMS   int64     `json:"uptime_ms"`
		Agent      string    `json:"agent"`
	}
	if err := json.Unmarshal(line, &l); err != nil {
		return Event{}, fmt.Errorf("event: %w", err)
	}
	return Event{
		At: l.Timestamp, Level: l.Level, Type: event.Type(l.Type), Message: l.Message, PID: l.PID, Server: l.Server, ServerPID: l.ServerPID,
		Generation: l.Generation, Cause: l.Cause, Source: l.Source, Reason: l.Reason, Took: time.Duration(l.RestartMS) * time.Millisecond, Lived: time.Duration(l.UptimeMS) * time.Millisecond, Agent: l.Agent,
	}, nil
}

// newest are the events of the last day, the newest first, without those for debugging.
func newest(all []Event, now time.Time) []Event {
	list := make([]Event, 0, len(all))
	for _, e := range all {
		if now.Sub(e.At) <= Day && e.Level != "DEBUG" {
			list = append(list, e)
		}
	}
	slices.SortStableFunc(list, func(a, b Event) int { return a.At.Compare(b.At) }) // of one time: in the order that they came
	slices.Reverse(list)
	return list[:min(len(list), eventsShown)]
}

// sorted are the events of each running outlive by its PID, the oldest first.
func sorted(newest []Event) map[int][]Event {
	of := map[int][]Event{}
	for _, e := range slices.Backward(newest) {
		of[e.PID] = append(of[e.PID], e)
	}
	return of
}
