package hooks

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/outlive-mcp/outlive/internal/agents/agentcli"
)

// Event is what a CLI told one of its hooks. What is a secret by its looks is taken out of all texts.
type Event struct {
	Time   time.Time `json:"time"`   // when the hook was called, by the wall clock
	Vendor string    `json:"vendor"` // "claude", "codex", "gemini"
	// Name of the event, as the vendor has it: "Stop", "PermissionRequest", "AfterAgent".
	Name    string `json:"name"`
	Session string `json:"session"`
	Dir     string `json:"dir"` // the agent's working directory
	// PID of the process that called the hook: the CLI, or Codex' app server, a daemon that serves several sessions. 0: it
	// could not be found.
	PID        int    `json:"pid,omitempty"`
	Transcript string `json:"transcript,omitempty"` // path of the session's transcript
	Mode       string `json:"mode,omitempty"`       // permission mode: "default", "acceptEdits", "bypassPermissions" …
	Tool       string `json:"tool,omitempty"`
	Input      string `json:"input,omitempty"` // what the tool is to do, at most 2 KiB
	// Notification is the kind of a notification: "permission_prompt", "idle_prompt", "ToolPermission" …
	Notification string `json:"notification,omitempty"`
	// Reason is why a session began or ended, or what a turn failed of: "resume", "logout", "rate_limit" …
	Reason string `json:"reason,omitempty"`
	// Text is the end of what the notification or the agent's last message says, at most 600 bytes.
	Text string `json:"text,omitempty"`
	// Subagent is the id of the subagent that the event is about. "": the agent itself.
	Subagent string `json:"subagent,omitempty"`
	// Unasked says why a permission request is left to the CLI's own dialog although its input is known: somebody far away
	// could not be shown all of it. "": nothing speaks against asking.
	Unasked string `json:"unasked,omitempty"`
}

// Bounds of what an event keeps, in bytes. Names, ids and paths are a few hundred at most; anything longer is no
// such thing.
const (
	maxName  = 256
	maxPath  = 4096
	maxInput = 2 << 10
	maxText  = 600
	// maxLooked is the most in which secrets are looked for: a file to be written may have megabytes, and looking through
	// one takes a second. It is more than anything keeps.
	maxLooked = maxCommand + 4<<10
)

// MaxPayload is the most that is read from a CLI: the content of a file to be written comes along.
const MaxPayload = 32 << 20

// ErrPayload is wrapped by the errors about what a CLI said.
var ErrPayload = errors.New("not a hook event")

// call is an event with what is needed to ask for a permission.
type call struct {
	Event
	full string // all that the tool is to do, secrets included, as [describe] writes it; for showing whole or not at all
	safe string // the same with secrets taken out, for records
}

// Why a request is left to the CLI's own dialog.
const (
	unaskedLong   = "its input is too long for one message"
	unaskedSecret = "its input contains what looks like a secret, which is not sent"
)

// parse reads what the CLI said. Members are looked at one by one: one of an unexpected kind is no reason to lose the
// others.
func parse(v *Vendor, payload []byte, redact func(string) string) (*call, error) {
	var members map[string]json.RawMessage
	if err := json.Unmarshal(bytes.TrimPrefix(payload, []byte(byteOrderMark)), &members); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrPayload, err)
	}
	text := func(limit int, names ...string) string {
		for _, name := range names {
			var s string
			if json.Unmarshal(members[name], &s) == nil && s != "" {
				return head(Escape(s), limit)
			}
		}
		return ""
	}
	c := &call{Event: Event{
		Vendor: v.Name, Name: text(maxName, "hook_event_name"), Session: text(maxName, "session_id"),
		Dir: text(maxPath, "cwd"), Transcript: text(maxPath, "transcript_path"), Mode: text(maxName, "permission_mode"),
		Tool: text(maxName, "tool_name"), Notification: text(maxName, "notification_type"),
		Reason:   redact(text(maxName, "reason", "source", "error")),
		Subagent: text(maxName, "agent_id"),
	}}
	if c.Name == "" {
		return nil, fmt.Errorf("%w: hook_event_name is missing", ErrPayload)
	}
	for _, name := range []string{"message", "last_assistant_message", "prompt_response"} {
		if said, ok := stringOf(members[name]); ok && said != "" {
			c.Text = tail(redact(Escape(tail(said, maxLooked))), maxText)
			break
		}
	}
	if input := members["tool_input"]; len(input) > 0 {
		c.full = describe(input)
		c.safe = redact(head(c.full, maxLooked))
		c.Input = head(c.safe, maxInput)
		if c.Name == agentcli.PermissionRequest {
			c.Unasked = unasked(c.full, c.safe)
		}
	}
	return c, nil
}

// unasked says why nobody far away can be shown all of an input; "": somebody can. What was shown in part must not be
// allowed: the part that was left out would run, too.
func unasked(full, safe string) string {
	switch {
	case len(full) > maxCommand:
		return unaskedLong
	case full != safe:
		return unaskedSecret
	}
	return ""
}
