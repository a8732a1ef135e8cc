package overview

import (
	"cmp"
	"encoding/json"
	"fmt"
	"time"
	"unique"

	"github.com/outlive-mcp/outlive/internal/record/event"
)

// Event is one event of a running outlive, or of the monitor. As JSON it is a line of the audit log with what outlive watch adds.
type Event struct {
	Instance   string     `json:"instance,omitempty"` // its label, with HOST/ before it on another machine; "": not known
	At         time.Time  `json:"timestamp"`
	Level      string     `json:"level"` // DEBUG, INFO, WARNING, ERROR
	Message    string     `json:"message"`
	Type       event.Type `json:"event_type"`
	PID        int        `json:"proxy_pid,omitempty"`  // of outlive; monitor_pid: of the monitor
	Host       string     `json:"-"`                    // "": this machine
	Agent      string     `json:"agent,omitempty"`      // of the monitor: which agent
	ServerPID  int        `json:"server_pid,omitempty"` // 0: none
	Generation int        `json:"generation,omitempty"`
	Server     string     `json:"server,omitempty"` // of a gateway: which server
	Cause      string     `json:"cause,omitempty"`
	Source     string     `json:"source,omitempty"`
	Reason     string     `json:"reason,omitempty"`

	Took  time.Duration `json:"-"` // restart_duration_ms
	Lived time.Duration `json:"-"` // of a process that has exited: uptime_ms
}

// fields are those of an event that JSON has as they are.
type fields Event

// eventLine is an event as JSON.
type eventLine struct {
	fields
	Monitor   int   `json:"monitor_pid,omitempty"`
	RestartMS int64 `json:"restart_duration_ms,omitempty"`
	UptimeMS  int64 `json:"uptime_ms,omitempty"`
}

// ParseEvent reads a line of the audit log, or of outlive watch.
func ParseEvent(line []byte) (e Event, err error) { return e, e.UnmarshalJSON(line) }

// UnmarshalJSON reads such a line.
func (e *Event) UnmarshalJSON(line []byte) error {
	var l eventLine
	if err := json.Unmarshal(line, &l); err != nil {
		return fmt.Errorf("event: %w", err)
	}
	*e = Event(l.fields)
	e.PID, e.Took, e.Lived = cmp.Or(e.PID, l.Monitor), time.Duration(l.RestartMS)*time.Millisecond, time.Duration(l.UptimeMS)*time.Millisecond
	texts := []*string{&e.Instance, &e.Level, &e.Message, (*string)(&e.Type), &e.Agent, &e.Server, &e.Cause, &e.Source, &e.Reason}
	for _, text := range texts {
		*text = unique.Make(*text).Value() // a day's events say the same words again and again
	}
	return nil
}

// MarshalJSON writes what [ParseEvent] reads.
func (e Event) MarshalJSON() ([]byte, error) {
	l := eventLine{fields: fields(e), RestartMS: e.Took.Milliseconds(), UptimeMS: e.Lived.Milliseconds()}
	if l.At = e.At.UTC(); e.OfMonitor() {
		l.Monitor, l.PID = e.PID, 0
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
