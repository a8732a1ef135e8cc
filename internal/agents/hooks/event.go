package hooks

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/outlive-mcp/outlive/internal/agents/agentcli"
	"github.com/outlive-mcp/outlive/internal/record/logline"
)

// Event is what a CLI passed to one of its hooks. Texts that look like secrets are removed from it.
type Event struct {
	Time   time.Time `json:"time"`   // when the hook was called, by the wall clock
	Vendor string    `json:"vendor"` // "claude", "codex", "gemini"
	// Name is the event's name at the vendor: "Stop", "PermissionRequest", "AfterAgent".
	Name    string `json:"name"`
	Session string `json:"session"`
	Dir     string `json:"dir"` // the agent's working directory
	// PID of the process that called the hook: the CLI, or Codex' app server, a daemon that serves several sessions.
	// 0: it was not found.
	PID   int    `json:"pid,omitempty"`
	Tool  string `json:"tool,omitempty"`
	Input string `json:"input,omitempty"` // what the tool is to do, at most 2 KiB
	// Reason is why a session began or ended, or why a turn failed: "resume", "logout", "rate_limit" …
	Reason string `json:"reason,omitempty"`
	// Text is the end of the notification's text or of the agent's last message, at most 600 bytes.
	Text string `json:"text,omitempty"`
	// Subagent is the id of the subagent that the event is about. "": the agent itself.
	Subagent string `json:"subagent,omitempty"`
	// Unasked says why a permission request is left to the CLI's own dialog although its input is known: it cannot be
	// shown completely to a person elsewhere. "": it can.
	Unasked string `json:"unasked,omitempty"`
}

// Maximum sizes of an event's members, in bytes. Real names, ids and paths have a few hundred at most; longer values
// are dropped.
const (
	maxName  = 256
	maxPath  = 4096
	maxInput = 2 << 10
	maxText  = 600
	// maxLooked is the maximum length of a text in which secrets are searched: a file to be written may have
	// megabytes, and searching those takes a second. It is more than any member keeps.
	maxLooked = maxCommand + 4<<10
)

// MaxPayload is the maximum size of a CLI's input that is read. It may contain a whole file to be written. Of a longer
// one, the members count that are complete within it.
const MaxPayload = 32 << 20

// ErrPayload is wrapped by the errors about a CLI's input.
var ErrPayload = errors.New("not a hook event")

// call is an event, with what is needed to ask for a permission.
type call struct {
	Event
	full string // all that the tool is to do, secrets included, as [describe] formats it; shown completely or not at all
	safe string // the same without secrets, for records
}

// The reasons why a request is left to the CLI's own dialog.
const (
	unaskedLong   = "its input is too long for one message"
	unaskedSecret = "its input contains what looks like a secret, which is not sent"
)

// parse reads a CLI's input. Members are read one by one, so that one of an unexpected type does not lose the others.
func parse(v *Vendor, payload []byte, redact func(string) string) (*call, error) {
	members, err := membersOf(payload)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrPayload, err)
	}
	text := func(limit int, names ...string) string {
		for _, name := range names {
			var s string
			if json.Unmarshal(members[name], &s) == nil && s != "" {
				return logline.Head(Escape(s), limit)
			}
		}
		return ""
	}
	c := &call{Event: Event{
		Vendor: v.Name, Name: text(maxName, "hook_event_name"), Session: text(maxName, "session_id"),
		Dir: text(maxPath, "cwd"), Tool: text(maxName, "tool_name"),
		Reason:   redact(text(maxName, "reason", "source", "error")),
		Subagent: text(maxName, "agent_id"),
	}}
	if c.Name == "" {
		return nil, fmt.Errorf("%w: hook_event_name is missing", ErrPayload)
	}
	for _, name := range []string{"message", "last_assistant_message", "prompt_response"} {
		if said, ok := stringOf(members[name]); ok && said != "" {
			c.Text = logline.Tail(redact(Escape(logline.Tail(said, maxLooked))), maxText)
			break
		}
	}
	if input := members["tool_input"]; len(input) > 0 {
		c.full = describe(input)
		c.safe = redact(logline.Head(c.full, maxLooked))
		c.Input = logline.Head(c.safe, maxInput)
		if c.Name == agentcli.PermissionRequest {
			c.Unasked = unasked(c.full, c.safe)
		}
	}
	return c, nil
}

// membersOf are the members of a CLI's input. One that was cut, mostly within the result of a tool, keeps those before.
func membersOf(payload []byte) (members map[string]json.RawMessage, err error) {
	text := bytes.TrimPrefix(payload, []byte(byteOrderMark))
	if err := json.Unmarshal(text, &members); err == nil || len(payload) < MaxPayload {
		return members, err
	}
	if members = agentcli.Members(text); members == nil {
		return nil, errors.New("it is not a JSON object")
	}
	return members, nil
}

// unasked says why an input cannot be shown completely to a person elsewhere; "": it can. An input that is shown only
// in part must not be allowed, because the hidden part would run, too.
func unasked(full, safe string) string {
	switch {
	case len(full) > maxCommand:
		return unaskedLong
	case full != safe:
		return unaskedSecret
	}
	return ""
}
