package tap

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"fmt"
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

// record is the message as it is handed on. Secrets in its body, its id and what it is about are replaced.
func (m *Message) record() Record {
	r := Record{
		Timestamp: precise(m.At), Server: m.Server, Client: m.Client, Connection: m.Connection, From: m.From, To: m.To, Kind: m.Kind,
		Method: textOf(m.Method), Size: m.Size, Generation: m.Generation, Note: m.Note,
	}
	if len(m.Target) > 0 {
		r.Target = textOf(secret.JSON(m.Target))
	}
	if len(m.ID) > 0 {
		r.ID = secret.JSON(m.ID)
	}
	if m.Ends {
		r.Call = m.Call.record()
	}
	if m.Body != nil {
		r.Body = secret.JSON(m.Body, progressToken)
	}
	return r
}

func (c *Call) record() *CallRecord {
	code, err := strconv.Atoi(string(c.Code))
	if err != nil {
		code = 0 // of another kind it stands in the body alone
	}
	return &CallRecord{
		Started: precise(c.Started), DurationMS: milliseconds(c.Took), HeldMS: milliseconds(max(0, c.Held)), Sends: c.Sends, Outcome: c.Outcome,
		Code: code, Reason: c.Reason, Version: c.Version, Traceparent: textOf(c.Traceparent), Tracestate: textOf(c.Tracestate),
		ServerSpan: spanText(c.ServerSpan), ParentSpan: spanText(c.ParentSpan),
	}
}

func precise(at time.Time) time.Time { return at.UTC().Truncate(time.Microsecond) }

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// textOf is the text that a raw value is; "": it is none.
func textOf(raw []byte) (text string) {
	_ = json.Unmarshal(raw, &text)
	return text
}

func spanText(span [8]byte) string {
	if span == [8]byte{} {
		return ""
	}
	return hex.EncodeToString(span[:])
}

// AppendJSON appends the message as a [Record] in one line of JSON, without newline.
func (m *Message) AppendJSON(dst []byte) []byte {
	var line bytes.Buffer
	e := json.NewEncoder(&line)
	e.SetEscapeHTML(false)
	_ = e.Encode(m.record()) // all that is raw in it is valid JSON
	return append(dst, bytes.TrimSuffix(line.Bytes(), []byte("\n"))...)
}

// AppendLeftOut appends a line that says how many messages are missing there.
func AppendLeftOut(dst []byte, at time.Time, n int) []byte {
	return fmt.Appendf(dst, `{"timestamp":%q,"left_out":%d}`, precise(at).Format(time.RFC3339Nano), n)
}

// Parse reads a line of JSON back.
func Parse(line []byte) (Record, error) {
	var r Record
	err := json.Unmarshal(bytes.TrimSpace(line), &r)
	return r, err
}
