package agentcli

import (
	"database/sql"
	"encoding/json"
	"slices"
	"strings"
	"time"
)

// openCodeRow is a message with one of its parts.
type openCodeRow struct {
	message                string
	createdAt, messageAt   int64
	role, finish           string
	errorName, errorText   string
	errorStatus, completed float64
	part                   string
	partAt                 int64
	kind                   string
	own                    bool // of a prompt: OpenCode has written it, not a person
	text                   string
	tool, call, state      string
	input, output          string
	start, end             float64
	untold                 bool // a call whose result the model is not asked to go on with
}

func (r *openCodeRow) scan(rows *sql.Rows) error {
	return rows.Scan(&r.message, &r.createdAt, &r.messageAt, &r.role, &r.finish, &r.errorName, &r.errorText, &r.errorStatus, &r.completed,
		&r.part, &r.partAt, &r.kind, &r.own, &r.text, &r.tool, &r.call, &r.state, &r.input, &r.output, &r.start, &r.end, &r.untold)
}

// openCodeScript passes the rows of a session to a turn, in their order.
type openCodeScript struct {
	turn    turn
	last    openCodeRow // the last row of the present message
	stepped bool        // it has a step of the model
	called  bool        // it has a call with whose result the model is asked to go on
	refused bool        // it has a call that a person has refused
	queued  bool        // it waits for the end of the answer before it
}

func (o *openCodeScript) row(r *openCodeRow) {
	if r.message != o.last.message {
		o.close()
		o.begin(r)
	}
	switch {
	case r.part == "":
	case r.role == "assistant":
		o.part(r)
	case r.role == "user" && !r.own && o.queued:
		o.turn.TypedAt = millis(float64(r.createdAt))
	case r.role == "user" && !r.own:
		o.turn.typed()
	}
	o.last = *r
}

// begin handles the beginning of a message. A prompt during an answer is written at once, and read by the model after
// it: what the answer has open stays open.
func (o *openCodeScript) begin(r *openCodeRow) {
	o.queued = r.role == "user" && (o.queued || o.last.role == "assistant" && o.last.completed == 0 && o.last.errorName == "")
	o.stepped, o.called, o.refused = false, false, false
	created := millis(float64(r.createdAt))
	switch {
	case o.queued && created.After(o.turn.LastAt):
		o.turn.touch(created)
	case o.queued:
	case r.role == "user":
		o.turn.begin(created)
	case r.role == "assistant":
		o.turn.answersAnew() // a message follows the results of the one before
		o.turn.request(created)
	}
}

// part handles a part of an answer.
func (o *openCodeScript) part(r *openCodeRow) {
	at := millis(float64(r.partAt))
	switch r.kind {
	case "text":
		o.turn.say(r.text, at)
	case "reasoning", "step-start", "step-finish":
		o.turn.answered(at)
		o.stepped = true
	case "tool":
		o.called = o.called || !r.untold
		o.refused = o.refused || r.state == "error" && slices.Contains(openCodeRefusals, r.output)
		o.toolPart(r, at)
	case "patch":
		o.turn.ProgressAt = at
	}
}

// openCodeRefusals are the errors of a call that a person has refused. OpenCode ends the turn with that answer.
var openCodeRefusals = []string{"The user rejected permission to use this specific tool call.", "The user dismissed this question"}

// openCodeTools are the tools in its packages/opencode/src/tool that ask a person, change files or run commands.
var openCodeTools = tools{
	question: []string{"question"}, plan: []string{"plan_exit"}, edits: []string{"edit", "write", "apply_patch"}, shell: []string{"bash"},
}

func (o *openCodeScript) toolPart(r *openCodeRow, at time.Time) {
	start := millis(r.start)
	if start.IsZero() {
		start = at
	}
	o.turn.called(openCodeTools.call(r.call, r.tool, json.RawMessage(r.input), start))
	if r.state == "completed" || r.state == "error" {
		end := millis(r.end)
		if end.IsZero() {
			end = at
		}
		o.turn.returned(r.call, r.output, r.state == "error", end)
	}
}

// close handles the end of a message: its own members, which come after its parts. An answer ends the turn if it has a
// reason to finish, other than calls, and no call: some providers say "stop" beside calls, and then OpenCode goes on.
func (o *openCodeScript) close() {
	r := &o.last
	if r.role != "assistant" {
		return
	}
	at := millis(r.completed)
	if at.IsZero() {
		at = millis(float64(r.messageAt))
	}
	switch {
	case r.errorName == "MessageAbortedError":
		o.turn.interrupted(at)
	case r.errorName != "":
		f := Failure{Status: int(r.errorStatus), Text: r.errorText, At: at, Final: true, Kind: failureKind(int(r.errorStatus), r.errorText)}
		switch {
		case r.errorName == "ProviderAuthError":
			f.Kind = AuthFailure
		case strings.Contains(r.errorName, "ContextOverflow"):
			f.Kind = ContextFull
		}
		if f.Kind == RateLimited {
			f.Until = limitLifted(f.Text, at, time.Local)
		}
		o.turn.failed(f)
	case r.finish != "" && r.finish != "tool-calls" && !o.called, r.completed > 0 && o.refused:
		o.turn.end(at)
	case r.completed > 0 && r.finish == "" && o.called && !o.stepped: // a person's "!make"
		o.turn.end(at)
		o.turn.typed()
	}
}
