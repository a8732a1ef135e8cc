package overview

import (
	"cmp"
	"encoding/json"
	"fmt"
	"time"
	"unique"

	"github.com/outlive-mcp/outlive/internal/record/event"
)

// Event is one event of a running outlive, or of the monitor.
type Event struct {
	At         time.Time
	Level      string // DEBUG, INFO, WARNING, ERROR
	Type       event.Type
	Message    string
	PID        int    // of outlive
	Host       string // "": this machine
	Instance   string // its label, with HOST/ before it on another machine; "": not known
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

// EventKey tells events apart, of which an audit log has one and the running outlive tells, too.
type EventKey struct {
	host    string
	pid     int
	at      int64 // Unix milliseconds
	kind    event.Type
	message string
}

// Key is the event's.
func (e Event) Key() EventKey { return EventKey{e.Host, e.PID, e.At.UnixMilli(), e.Type, e.Message} }

// eventLine is an event as the audit log has it, with what outlive watch adds.
type eventLine struct {
	Instance   string    `json:"instance,omitempty"`
	Timestamp  time.Time `json:"timestamp"`
	Level      string    `json:"level"`
	Message    string    `json:"message"`
	Type       string    `json:"event_type"`
	PID        int       `json:"proxy_pid,omitempty"`
	Monitor    int       `json:"monitor_pid,omitempty"`
	Agent      string    `json:"agent,omitempty"`
	ServerPID  int       `json:"server_pid,omitempty"`
	Generation int       `json:"generation,omitempty"`
	Server     string    `json:"server,omitempty"`
	Cause      string    `json:"cause,omitempty"`
	Source     string    `json:"source,omitempty"`
	Reason     string    `json:"reason,omitempty"`
	RestartMS  int64     `json:"restart_duration_ms,omitempty"`
	UptimeMS   int64     `json:"uptime_ms,omitempty"`
}

// ParseEvent reads a line of the audit log, or of outlive watch.
func ParseEvent(line []byte) (e Event, err error) { return e, e.UnmarshalJSON(line) }

// UnmarshalJSON reads such a line.
func (e *Event) UnmarshalJSON(line []byte) error {
	var l eventLine
	if err := json.Unmarshal(line, &l); err != nil {
		return fmt.Errorf("event: %w", err)
	}
	one := func(s string) string { return unique.Make(s).Value() } // a day's events say the same words again and again
	*e = Event{
		At: l.Timestamp, Level: one(l.Level), Type: event.Type(one(l.Type)), Message: one(l.Message), PID: cmp.Or(l.PID, l.Monitor),
		Instance: one(l.Instance), Agent: one(l.Agent), Server: one(l.Server), ServerPID: l.ServerPID,
		Generation: l.Generation, Cause: one(l.Cause), Source: one(l.Source), Reason: one(l.Reason), Took: time.Duration(l.RestartMS) * time.Millisecond, Lived: time.Duration(l.UptimeMS) * time.Millisecond,
	}
	return nil
}

// MarshalJSON writes what [ParseEvent] reads.
func (e Event) MarshalJSON() ([]byte, error) {
	l := eventLine{
		Instance: e.Instance, Timestamp: e.At.UTC(), Level: e.Level, Message: e.Message, Type: string(e.Type), Agent: e.Agent, ServerPID: e.ServerPID,
		Generation: e.Generation, Server: e.Server, Cause: e.Cause, Source: e.Source, Reason: e.Reason, RestartMS: e.Took.Milliseconds(), UptimeMS: e.Lived.Milliseconds(),
	}
	if e.OfMonitor() {
		l.Monitor = e.PID
	} else {
		l.PID = e.PID
	}
	return json.Marshal(l)
}

// OfMonitor reports whether the monitor is who tells of it, and no running outlive.
func (e Event) OfMonitor() bool {
	switch e.Type {
	case event.AgentChanged, event.AgentActed, event.IncidentOpened, event.IncidentAcknowledged, event.IncidentResolved:
		return true
	}
	return false
}
