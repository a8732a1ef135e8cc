package tap

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"strconv"
	"time"

	"github.com/outlive-mcp/outlive/internal/files/secret"
)

// Party is one who speaks or is spoken to.
type Party string

// The parties.
const (
	Client  Party = "client"
	Outlive Party = "outlive"
	Server  Party = "server"
)

// Kind is what a message is.
type Kind string

// The kinds.
const (
	Request      Kind = "request"
	Notification Kind = "notification"
	Result       Kind = "result"
	Error        Kind = "error"
	Invalid      Kind = "invalid" // a line of the client that is not a message and was not passed on
)

// Outcome is how a request of the client ended.
type Outcome string

// The outcomes.
const (
	OK        Outcome = "ok"
	Failed    Outcome = "error"      // a JSON-RPC error of the server
	ToolError Outcome = "tool_error" // a result that says isError
	Refused   Outcome = "refused"    // by outlive: no server has begun it
	Unknown   Outcome = "unknown"    // the process ended while it had the request
	TimedOut  Outcome = "timed_out"  // by the time limit of calls
	Cancelled Outcome = "cancelled"  // by the client
)

// Notes: what outlive did with a message besides passing it on.
const (
	NoteHeld    = "held"          // it waits for a server
	NoteLate    = "sent late"     // it has waited, and is sent for the first time
	NoteAgain   = "sent again"    // an earlier process, or connection, had it
	NoteDropped = "dropped"       // it reaches nobody
	NoteChanged = "changed"       // the client got it with changes
	NoteEarlier = "earlier"       // it was said before anybody watched
	NoteBlocked = "not a message" // the client was told so, if it could be
)

// Message is one message on its way. Byte slices are raw JSON, absent ones nil. They are the caller's until Put returns.
type Message struct {
	At         time.Time
	Server     string // its name
	Client     string // as it calls itself; "": unknown
	Connection uint64 // of one client, or of clients that share it, with the processes that have served it one after the other
	From, To   Party
	Kind       Kind
	Method     []byte // of an answer that of its request
	Target     []byte // the tool, the prompt or the URI that it is about; one that is no string is not shown
	ID         []byte // as the client knows it
	Size       int    // bytes, without newline
	Generation int    // of the server's process
	Note       string
	Ends       bool // it ends a request of the client's, about which Call tells
	Call       Call
	Body       []byte
}

// Call is a finished request of the client's.
type Call struct {
	Started time.Time
	Took    time.Duration // until its end
	Held    time.Duration // of that before it was sent for the first time
	Sends   int           // times that it was given to a process; 0: outlive has answered it
	Outcome Outcome
	Code    []byte // of an error
	Reason  string // of an answer that is outlive's own, as in error.data.reason
	Version string // of the protocol
	// Traceparent and Tracestate are raw, of its _meta as a server gets it: with the span towards the server if outlive makes spans.
	Traceparent, Tracestate []byte
	// ServerSpan is the span towards the client, ParentSpan the one that the client has said. Zero: none.
	ServerSpan, ParentSpan [8]byte
}

// Record is a message as it is read back from a line of JSON.
type Record struct {
	Timestamp  time.Time       `json:"timestamp"`
	Server     string          `json:"server,omitempty"`
	Client     string          `json:"client,omitempty"`
	Connection uint64          `json:"connection,omitempty"`
	From       Party           `json:"from,omitempty"`
	To         Party           `json:"to,omitempty"`
	Kind       Kind            `json:"kind,omitempty"`
	Method     string          `json:"method,omitempty"`
	Target     string          `json:"target,omitempty"`
	ID         json.RawMessage `json:"request_id,omitempty"`
	Size       int             `json:"size,omitempty"`
	Generation int             `json:"generation"`
	Note       string          `json:"note,omitempty"`
	Call       *CallRecord     `json:"call,omitempty"` // in the message that ends a request of the client's
	Body       json.RawMessage `json:"body,omitempty"` // secrets are replaced by "[redacted]"
	// LeftOut, in place of all others but the time, is how many messages are missing here because the reader was too slow.
	LeftOut int `json:"left_out,omitempty"`
}

// CallRecord is a finished request of the client's. Times are in milliseconds.
type CallRecord struct {
	Started     time.Time `json:"started"`
	DurationMS  float64   `json:"duration_ms"`
	HeldMS      float64   `json:"held_ms,omitempty"` // before it was sent for the first time
	Sends       int       `json:"sends"`             // times that it was given to a server; 0: outlive has answered it
	Outcome     Outcome   `json:"outcome"`
	Code        int       `json:"code,omitempty"`   // of a JSON-RPC error
	Reason      string    `json:"reason,omitempty"` // of an answer that is outlive's own
	Version     string    `json:"protocol_version,omitempty"`
	Traceparent string    `json:"traceparent,omitempty"` // of its _meta as a server gets it
	Tracestate  string    `json:"tracestate,omitempty"`
	ServerSpan  string    `json:"server_span,omitempty"` // in hex: outlive's towards the client; absent: outlive makes none
	ParentSpan  string    `json:"parent_span,omitempty"` // that the client has said
}

// Bad reports whether the message says that something went wrong.
func (r *Record) Bad() bool {
	return r.LeftOut > 0 || r.Kind == Error || r.Kind == Invalid || r.Call != nil && r.Call.Outcome != OK && r.Call.Outcome != Cancelled
}

// progressToken is a number of the protocol, and no secret.
const progressToken = "progressToken"

// TimeLayout is UTC with microseconds.
const TimeLayout = "2006-01-02T15:04:05.000000Z"

// AppendJSON appends the message as one line of JSON, without newline. Secrets in its body, its id and what it is about are replaced.
func (m *Message) AppendJSON(dst []byte) []byte {
	dst = append(dst, `{"timestamp":"`...)
	dst = m.At.UTC().AppendFormat(dst, TimeLayout)
	dst = append(dst, '"')
	dst = appendText(dst, "server", m.Server)
	dst = appendText(dst, "client", m.Client)
	dst = append(dst, `,"connection":`...)
	dst = strconv.AppendUint(dst, m.Connection, 10)
	dst = appendText(dst, "from", string(m.From))
	dst = appendText(dst, "to", string(m.To))
	dst = appendText(dst, "kind", string(m.Kind))
	dst = appendRaw(dst, "method", m.Method)
	if len(m.Target) > 0 && m.Target[0] == '"' {
		dst = appendRaw(dst, "target", secret.JSON(m.Target))
	}
	if len(m.ID) > 0 {
		dst = appendRaw(dst, "request_id", secret.JSON(m.ID))
	}
	dst = append(dst, `,"size":`...)
	dst = strconv.AppendInt(dst, int64(m.Size), 10)
	dst = append(dst, `,"generation":`...)
	dst = strconv.AppendInt(dst, int64(m.Generation), 10)
	dst = appendText(dst, "note", m.Note)
	if m.Ends {
		dst = m.Call.append(append(dst, `,"call":`...))
	}
	if m.Body != nil {
		dst = append(append(dst, `,"body":`...), secret.JSON(m.Body, progressToken)...)
	}
	return append(dst, '}')
}

func (c *Call) append(dst []byte) []byte {
	dst = append(dst, `{"started":"`...)
	dst = c.Started.UTC().AppendFormat(dst, TimeLayout)
	dst = append(dst, `","duration_ms":`...)
	dst = appendMS(dst, c.Took)
	if c.Held > 0 {
		dst = appendMS(append(dst, `,"held_ms":`...), c.Held)
	}
	dst = append(dst, `,"sends":`...)
	dst = strconv.AppendInt(dst, int64(c.Sends), 10)
	dst = appendText(dst, "outcome", string(c.Outcome))
	if _, err := strconv.Atoi(string(c.Code)); err == nil { // of another kind it stands in the body alone
		dst = appendRaw(dst, "code", c.Code)
	}
	dst = appendText(dst, "reason", c.Reason)
	dst = appendText(dst, "protocol_version", c.Version)
	if len(c.Traceparent) > 0 && c.Traceparent[0] == '"' {
		dst = appendRaw(dst, "traceparent", c.Traceparent)
	}
	if len(c.Tracestate) > 0 && c.Tracestate[0] == '"' {
		dst = appendRaw(dst, "tracestate", c.Tracestate)
	}
	dst = appendSpan(dst, "server_span", c.ServerSpan)
	dst = appendSpan(dst, "parent_span", c.ParentSpan)
	return append(dst, '}')
}

func appendSpan(dst []byte, name string, span [8]byte) []byte {
	if span == [8]byte{} {
		return dst
	}
	return append(hex.AppendEncode(append(appendName(dst, name), '"'), span[:]), '"')
}

func appendMS(dst []byte, d time.Duration) []byte {
	return strconv.AppendFloat(dst, float64(d.Microseconds())/1000, 'f', -1, 64)
}

func appendRaw(dst []byte, name string, raw []byte) []byte {
	if len(raw) == 0 {
		return dst
	}
	return append(appendName(dst, name), raw...)
}

func appendText(dst []byte, name, text string) []byte {
	if text == "" {
		return dst
	}
	dst = appendName(dst, name)
	if plain(text) {
		return append(append(append(dst, '"'), text...), '"')
	}
	quoted, _ := json.Marshal(text) // a string: no error
	return append(dst, quoted...)
}

func appendName(dst []byte, name string) []byte {
	return append(append(append(dst, `,"`...), name...), `":`...)
}

// plain reports whether a text stands in JSON as it is.
func plain(text string) bool {
	for i := range len(text) {
		if c := text[i]; c < ' ' || c > '~' || c == '"' || c == '\\' {
			return false
		}
	}
	return true
}

// AppendLeftOut appends a line that says how many messages are missing there.
func AppendLeftOut(dst []byte, at time.Time, n int) []byte {
	dst = at.UTC().AppendFormat(append(dst, `{"timestamp":"`...), TimeLayout)
	dst = strconv.AppendInt(append(dst, `","left_out":`...), int64(n), 10)
	return append(dst, '}')
}

// Parse reads a line of JSON back.
func Parse(line []byte) (Record, error) {
	var r Record
	err := json.Unmarshal(bytes.TrimSpace(line), &r)
	return r, err
}
