package diagnose

import (
	"time"

	"github.com/outlive-mcp/outlive/internal/agents/agentcli"
)

// Session is one session of an agent CLI that belongs to the living process, as its own files show it.
type Session struct {
	Kind agentcli.Kind `json:"kind,omitempty"`
	ID   string        `json:"id,omitempty"`

	Status     agentcli.Status `json:"status,omitempty"`
	WaitingFor agentcli.Wait   `json:"waiting_for,omitempty"`
	StatusAge  Span            `json:"status_age,omitzero"` // time since it has this status

	Open     agentcli.Open `json:"open,omitempty"`
	OpenAge  Span          `json:"open_age,omitzero"`
	OpenText string        `json:"open_text,omitempty"` // the question or the command, shortened
	Tool     string        `json:"tool,omitempty"`      // the name of the open tool

	Ended       bool   `json:"ended,omitempty"`        // the last turn has ended
	EndedAsking bool   `json:"ended_asking,omitempty"` // with a question in its text
	Interrupted bool   `json:"interrupted,omitempty"`  // by a person
	LastText    string `json:"last_text,omitempty"`
	WakesItself bool   `json:"wakes_itself,omitempty"` // it has asked its CLI to call the model later

	// Tasks run in the background, as far as the session knows.
	Tasks []Task `json:"tasks,omitempty"`

	Error   SessionError     `json:"error,omitzero"` // set if the last event is an error
	Repeats agentcli.Repeats `json:"repeats,omitzero"`

	Tokens  int64   `json:"tokens,omitempty"`
	CostUSD float64 `json:"cost_usd,omitempty"`
	Turns   int     `json:"turns,omitempty"`

	// Unwritten says that no record of it is known. Its CLI alone says how it stands, and since when.
	Unwritten     bool `json:"unwritten,omitempty"`
	LastAge       Span `json:"last_age,omitzero"` // time since the last relevant record; of an unwritten one since its CLI said so
	ProgressKnown bool `json:"progress_known,omitempty"`
	// ProgressAge is the time since a file was edited, something was committed, a phase changed, or a long call
	// ended.
	ProgressAge Span `json:"progress_age,omitzero"`
}

func (s Session) showsDialog() bool {
	return s.Status == agentcli.Waiting && s.WaitingFor == agentcli.ForDialog
}

// mayEnd reports whether its dialog is so young that the end of the turn before it may not have been written down yet.
func (s Session) mayEnd() bool {
	return s.showsDialog() && !s.Unwritten && s.StatusAge > 0 && s.StatusAge < Span(2*time.Second)
}

// SessionError is an error that is a session's last event.
type SessionError struct {
	Kind       agentcli.FailureKind `json:"kind,omitempty"` // "": there is no error
	Status     int                  `json:"status,omitempty"`
	Text       string               `json:"text,omitempty"`
	Attempt    int                  `json:"attempt,omitempty"`
	Max        int                  `json:"max,omitempty"` // maximum number of attempts; 0: unknown
	ResetKnown bool                 `json:"reset_known,omitempty"`
	ResetIn    Span                 `json:"reset_in,omitzero"` // time until the limit ends; negative: time since its end
	RetryKnown bool                 `json:"retry_known,omitempty"`
	RetryIn    Span                 `json:"retry_in,omitzero"` // time until its CLI tries again by itself; negative: time since then
}

// Task is a background task of a session that was not told of its end.
type Task struct {
	Tool string `json:"tool,omitempty"` // the tool that started it
	Text string `json:"text,omitempty"` // its command or task text, shortened
	Age  Span   `json:"age,omitzero"`   // since it was started
	// Shell says that it is a process below the agent's. Other tasks, such as subagents, are part of the CLI.
	Shell bool `json:"shell,omitempty"`
	// Awaited says that the session does nothing until the task has ended.
	Awaited bool `json:"awaited,omitempty"`
	// Gone says that no process below the agent's is as young as the task, proven by the system's process table.
	Gone bool `json:"gone,omitempty"`
	// GoneAge is the time since it was first seen gone: its CLI needs a moment to tell the model of a task's end.
	GoneAge     Span `json:"gone_age,omitzero"`
	SilentKnown bool `json:"silent_known,omitempty"`
	Silent      Span `json:"silent,omitzero"` // time since its last output
}
