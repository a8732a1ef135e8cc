package incident

import (
	"reflect"
	"strings"
	"time"
)

// State is the state of an incident.
type State string

// The states.
const (
	Open         State = "open"         // no notification was confirmed yet
	Notified     State = "notified"     // a message has arrived
	Acknowledged State = "acknowledged" // a user handles it, or has snoozed it, until AckedUntil
	Resolved     State = "resolved"     // it is over
	Expired      State = "expired"      // all reminders were sent, without an answer
)

// Severity decides whether a message waits until quiet hours are over.
type Severity string

// The severities.
const (
	Critical Severity = "critical" // sent at any hour
	Warning  Severity = "warning"  // sent outside of quiet hours
	Info     Severity = "info"     // in the digest only
)

// Mass is the class of an incident of several agents; its Agent names what they share, such as "host:alpha".
const Mass = "mass"

// ServerPrefix begins the Agent of an incident about a server: "server:NAME:AGENT", or "server:NAME:" of a server that no
// agent uses.
const ServerPrefix = "server:"

// ServerAndUser are the server that an incident is about and the agent that uses it. The server has the name that people see;
// the agent is "" if none uses it; is is false if the incident is about no server.
func (k Key) ServerAndUser() (server, user string, is bool) {
	rest, is := strings.CutPrefix(k.Agent, ServerPrefix)
	if !is || !AboutServer(k.Class) {
		return "", "", false
	}
	at := strings.LastIndex(rest, ":")
	return rest[:max(at, 0)], rest[at+1:], true
}

// Server is the server that an incident is about; "": it is about none.
func (k Key) Server() string {
	server, _, _ := k.ServerAndUser()
	return server
}

// Key identifies an incident.
type Key struct {
	Agent string `json:"agent"`
	Class string `json:"class"`
	Phase string `json:"phase,omitempty"`
}

// Facts are what is reported. The caller has removed secrets.
type Facts struct {
	Name     string    `json:"name"`  // of the agent, for people
	Phase    string    `json:"phase"` // of the agent; "": it has none
	Stall    string    `json:"stall"` // PIV's type
	Severity Severity  `json:"severity"`
	Since    time.Time `json:"since,omitzero"`
	Details  string    `json:"details"`
	Action   string    `json:"action"` // what was done about it
	Used     int       `json:"used"`   // starts used of Max for this problem
	Max      int       `json:"max"`    // 0: starts are not counted
	// Window is the time in which starts are counted; PerPhase says that only those of the same phase are.
	Window   time.Duration `json:"window,omitempty"`
	PerPhase bool          `json:"per_phase,omitempty"`
	// ToDo is what the reader should do, where it is more precise than what the class says. "": what that says.
	ToDo string `json:"todo,omitempty"`
	// Body is a longer text, such as the last lines of the agent's terminal.
	Body string `json:"body,omitempty"`
	// Asked is what the agent asks a person, if that is known: Details have it, too. "": nothing, or it has not been read yet.
	Asked string `json:"asked,omitempty"`
	// Request is the open permission request that Allow and Deny answer. "": none.
	Request string `json:"request,omitempty"`
	// Input is what runs when Request is allowed. The message has no Allow button unless it shows all of it.
	Input string `json:"input,omitempty"`
	// Unasked is why permission cannot be given remotely. "": it can, or there is no request.
	Unasked string `json:"unasked,omitempty"`
	// Members are the agents of a mass incident.
	Members []string `json:"members,omitempty"`
	// Shared is the cause, where agents of other machines may share it. Its severity is Info as long as the fleet tells of it.
	Shared string `json:"shared,omitempty"`
	// Case is the case of the fleet that the incident is about. "": none.
	Case string `json:"case,omitempty"`
	// Restart, Resume and Stop say which actions are possible remotely.
	Restart bool `json:"restart,omitempty"`
	Resume  bool `json:"resume,omitempty"`
	Stop    bool `json:"stop,omitempty"`
	Ways
	// Unheard says that button presses are not received now, so there are no buttons.
	Unheard bool `json:"unheard,omitempty"`
}

// reworded reports whether facts differ from others in their words alone.
func (f Facts) reworded(as Facts) bool {
	f.Since, f.Details, f.Action, f.ToDo, f.Body, f.Asked, f.Unasked, f.Ways = as.Since, as.Details, as.Action, as.ToDo, as.Body, as.Asked, as.Unasked, as.Ways
	return reflect.DeepEqual(f, as)
}

// asks reports whether there is a permission request that can be answered remotely.
func (f *Facts) asks() bool { return f.Request != "" && f.Input != "" }

// Incident is one reported problem. It is plain data; only [Step] changes it.
type Incident struct {
	ID    string `json:"id"`
	Key   Key    `json:"key"`
	State State  `json:"state"`
	Facts Facts  `json:"facts"`
	// Version is of the outlive that has learned the facts. "": of one that did not say.
	Version string `json:"version,omitempty"`

	Opened   time.Time `json:"opened,omitzero"`   // when it was first opened
	Reopened int       `json:"reopened"`          // how often it was reopened
	Resolved time.Time `json:"resolved,omitzero"` // when it ended
	Ending   string    `json:"ending,omitempty"`  // how it ended
	// Recovered says that it ended because the agent works again.
	Recovered bool `json:"recovered,omitempty"`

	Tier   int       `json:"tier"`             // the last tier that was notified
	TierAt time.Time `json:"tier_at,omitzero"` // when that was
	Rang   time.Time `json:"rang,omitzero"`    // the last notification; zero: none
	Rings  int       `json:"rings"`            // total number of notifications
	Rung   string    `json:"rung,omitempty"`   // the permission request of that notification
	// Repeats is the number of reminders since the last acknowledgement.
	Repeats int `json:"repeats"`
	// News says that the notified channels must be notified again at once.
	News bool `json:"news,omitempty"`
	// Closing is the value of Rings when its end was last reported: an incident that opens and closes repeatedly does
	// not report each end.
	Closing int `json:"closing"`
	// Channels are those notified, in order; Failing are those of them that did not get the last message.
	Channels   []string  `json:"channels,omitempty"`
	Failing    []string  `json:"failing,omitempty"`
	NotifiedAt time.Time `json:"notified_at,omitzero"` // when a message last arrived

	AckedBy    string    `json:"acked_by,omitempty"`
	AckedAt    time.Time `json:"acked_at,omitzero"`
	AckedUntil time.Time `json:"acked_until,omitzero"`
	Snoozed    bool      `json:"snoozed,omitempty"` // it was acknowledged by Snooze
	Expanded   bool      `json:"expanded,omitempty"`

	// Nonce is the nonce of the buttons. "": none.
	Nonce string `json:"nonce,omitempty"`
	// Answered is the last permission request that was answered.
	Answered string `json:"answered,omitempty"`
	// Done is the last press of a button that acts.
	Done Done `json:"done,omitzero"`
}

// Done is an action that was requested by a button.
type Done struct {
	Verb  Verb      `json:"verb"`
	By    string    `json:"by"`
	At    time.Time `json:"at,omitzero"`
	Nonce string    `json:"nonce"` // the nonce that it used up
}

// New returns an incident before its first [Opened]. id has at most 16 characters of [0-9A-Za-z], to fit into a
// button's data.
func New(id string, key Key) Incident { return Incident{ID: id, Key: key, State: Open} }

// Continues reports whether trouble with that key belongs to this incident: it is open, or was until a short time
// ago.
func (i Incident) Continues(k Key, now time.Time) bool {
	return i.Key == k && (i.State != Resolved || now.Sub(i.Resolved) < reopenFor)
}

// Began is when the trouble began, as far as is known. An incident is opened later, where the agent is watched for a while first.
func (i Incident) Began() time.Time {
	if since := i.Facts.Since; !since.IsZero() && since.Before(i.Opened) {
		return since
	}
	return i.Opened
}

// critical is also true while the severity is unknown.
func (i *Incident) critical() bool {
	return i.Facts.Severity != Warning && i.Facts.Severity != Info
}

func (i *Incident) told() bool { return !i.Rang.IsZero() }
