package agentcli

import (
	"cmp"
	"encoding/json"
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/outlive-mcp/outlive/internal/files/lazyregexp"
)

// claudeLimit matches the end of claude -p at --max-turns or --max-budget-usd, with exit status 1, as text and as JSON (from its
// source; 2.1.177, 2.1.199).
var claudeLimit = lazyregexp.New(`\A(?:Error: (?:Reached max turns|Exceeded USD budget) \([\d.]{1,32}\)|error_max_(?:turns|budget_usd))\z`)

var claudeTools = tools{
	question: []string{"AskUserQuestion"}, plan: []string{"ExitPlanMode"},
	edits: []string{"Edit", "MultiEdit", "Write", "NotebookEdit"}, shell: []string{"Bash"},
	polls: []string{"TaskOutput", "BashOutput", "AgentOutputTool", "KillShell", "TaskStop"},
	wakes: []string{"ScheduleWakeup", "CronCreate"},
}

// claudeRecord is a line of a transcript of Claude Code (recorded: 2.1.330). It has the members of all types of
// lines; those that a type does not have are empty.
type claudeRecord struct {
	Type        string `json:"type"`
	Subtype     string `json:"subtype"`
	Timestamp   stamp  `json:"timestamp"`
	SessionID   string `json:"sessionId"`
	Dir         string `json:"cwd"`
	Sidechain   bool   `json:"isSidechain"` // set for a subagent's line, in old versions
	Meta        bool   `json:"isMeta"`      // not typed by a user
	Compacted   bool   `json:"isCompactSummary"`
	QuerySource string `json:"querySource"`

	Message claudeMessage `json:"message"`

	APIError     bool            `json:"isApiErrorMessage"`
	APIStatus    int             `json:"apiErrorStatus"`
	Error        json.RawMessage `json:"error"` // a string in an assistant's line, an object in a system's
	ErrorDetails string          `json:"errorDetails"`
	RetryIn      float64         `json:"retryInMs"`
	RetryAttempt int             `json:"retryAttempt"`
	MaxRetries   int             `json:"maxRetries"`

	CostUSD float64 `json:"totalCostUSD"`

	ToolUseResult json.RawMessage `json:"toolUseResult"` // in a user's line
	Operation     string          `json:"operation"`     // in a queue-operation's line
	Content       json.RawMessage `json:"content"`       // in a queue-operation's line
}

type claudeMessage struct {
	ID         string          `json:"id"`
	StopReason string          `json:"stop_reason"`
	Content    json.RawMessage `json:"content"` // a string, or blocks
	Usage      struct {
		Input      int64 `json:"input_tokens"`
		CacheWrite int64 `json:"cache_creation_input_tokens"`
		CacheRead  int64 `json:"cache_read_input_tokens"`
		Output     int64 `json:"output_tokens"`
	} `json:"usage"`
}

type claudeBlock struct {
	Type      string          `json:"type"`
	Text      string          `json:"text"`
	ID        string          `json:"id"`
	Name      string          `json:"name"`
	Input     json.RawMessage `json:"input"`
	ToolUseID string          `json:"tool_use_id"`
	Content   json.RawMessage `json:"content"`
	IsError   bool            `json:"is_error"`
}

// claudeTranscript reads the lines of one transcript.
type claudeTranscript struct {
	about
	turn
	counted string // id of the model's present answer, whose tokens were counted: each of its blocks repeats them
	slash   bool   // the turn was begun by a slash command, and the model has not answered
	asked   int    // requests since the model's last answer
}

// line handles one record, and reports whether it is relevant.
func (c *claudeTranscript) line(text []byte) bool {
	var r claudeRecord
	if !decode(text, &r) {
		return false
	}
	c.about.learn(r.SessionID, r.Dir)
	if r.Sidechain {
		c.touch(r.Timestamp.Time)
		return r.Type == "user" || r.Type == "assistant"
	}
	switch r.Type {
	case "user":
		return c.user(&r)
	case "assistant":
		return c.assistant(&r)
	case "api-request":
		return c.request(&r)
	case "system":
		return c.system(&r)
	case "queue-operation":
		c.queued(&r)
	case "cost-state":
		c.CostUSD = max(c.CostUSD, r.CostUSD)
	}
	return false
}

// request handles a call of the model. A terminal session records its retries only as calls: several in a row without
// an answer mean errors, or silence after which the CLI has retried.
func (c *claudeTranscript) request(r *claudeRecord) bool {
	if s := r.QuerySource; s != "" && s != "sdk" && !strings.HasPrefix(s, "repl_main_thread") {
		return false // a title, a summary, a suggestion: no turn waits for it
	}
	c.turn.request(r.Timestamp.Time)
	c.asked++
	if c.asked > 1 && c.Error.Attempt < c.asked-1 && len(c.open) == 0 {
		c.turn.failed(Failure{Kind: APIFailure, Attempt: c.asked - 1, At: r.Timestamp.Time,
			Text: "The model has been asked " + strconv.Itoa(c.asked) + " times and has not answered."})
	}
	return true
}

func (c *claudeTranscript) user(r *claudeRecord) bool {
	at := r.Timestamp.Time
	text, blocks := claudeContent(r.Message.Content)
	returned := false
	for _, b := range blocks {
		switch b.Type {
		case "tool_result":
			c.asked = 0
			c.launches(r, b)
			c.asksAfter(b)
			c.returned(b.ToolUseID, contentText(b.Content), b.IsError, at)
			returned = true
		case "text":
			text += b.Text
		}
	}
	switch {
	case strings.HasPrefix(text, "[Request interrupted by user"):
		c.interrupted(at)
	case returned:
	case strings.HasPrefix(text, "Stop hook feedback"):
		c.turn.request(at) // a hook has prevented the end of the turn
	case r.Meta, r.Compacted:
		return false
	case strings.HasPrefix(text, notification):
		c.asked = 0
		if c.notified(text) {
			c.begin(at)
			break
		}
		c.touch(at)
		c.typed() // it was resumed without a prompt
	case strings.HasPrefix(strings.TrimSpace(text), "<command-message>"):
		c.asked = 0
		c.prompted(text, at) // it contains its arguments, too
		c.slash = true
	case isLocal(text):
		if c.slash && strings.HasPrefix(strings.TrimSpace(text), "<local-command-") { // without the model
			c.end(at)
		}
		c.slash = false // what follows belongs to another command
		if beginsWith(strings.TrimSpace(text), "<command-name>", "<bash-input>") {
			c.typedAlready(at)
		}
		return false
	case text == "" && len(blocks) == 0:
		return false
	default:
		c.asked = 0
		c.prompted(text, at)
		c.slash = false
	}
	return true
}

// isLocal reports records of the CLI's own commands, which do not call the model. A command that stands for a prompt
// is preceded by its message (recorded), which begins a turn.
func isLocal(text string) bool {
	return beginsWith(strings.TrimSpace(text), "<command-name>", "<local-command-", "<bash-input>", "<bash-stdout>", "<bash-stderr>")
}

func (c *claudeTranscript) assistant(r *claudeRecord) bool {
	at := r.Timestamp.Time
	c.slash = false
	text, blocks := claudeContent(r.Message.Content)
	if r.APIError {
		for _, b := range blocks {
			text += b.Text
		}
		c.asked = 0
		c.failed(claudeFailure(r, text))
		return true
	}
	c.asked = 0
	c.goesOn()
	if u := r.Message.Usage; r.Message.ID != "" && r.Message.ID != c.counted {
		c.answersAnew()
		c.counted = r.Message.ID
		c.Tokens += amount(u.Input) + amount(u.CacheWrite) + amount(u.CacheRead) + amount(u.Output)
	}
	if text != "" {
		c.say(text, at)
	}
	for _, b := range blocks {
		switch b.Type {
		case "text":
			c.say(b.Text, at)
		case "tool_use":
			c.called(claudeTools.call(b.ID, b.Name, b.Input, at))
		default:
			c.answered(at)
		}
	}
	switch r.Message.StopReason {
	case "end_turn", "stop_sequence", "max_tokens", "refusal", "model_context_window_exceeded":
		if len(c.open) == 0 {
			c.end(at)
		}
	}
	return text != "" || len(blocks) > 0
}

func (c *claudeTranscript) system(r *claudeRecord) bool {
	switch r.Subtype {
	case "turn_duration":
		if !c.Ended {
			c.end(r.Timestamp.Time)
		}
		c.touch(r.Timestamp.Time)
		return true
	case "compact_boundary":
		if c.running { // the model has summarised the conversation; the next request is a new call
			c.answered(r.Timestamp.Time)
		}
		c.touch(r.Timestamp.Time)
		c.asked = 0
		return true
	case "stop_hook_summary":
		c.touch(r.Timestamp.Time)
		c.asked = 0
		return true
	case "api_error":
		c.failed(claudeRetry(r))
		return true
	}
	return false
}

// claudeRetry is an API error after which the CLI retries by itself.
func claudeRetry(r *claudeRecord) Failure {
	var e struct {
		Status    int    `json:"status"`
		Message   string `json:"message"`
		Formatted string `json:"formatted"`
	}
	decode(r.Error, &e)
	text := cmp.Or(e.Formatted, e.Message)
	f := Failure{Kind: failureKind(e.Status, text), Status: e.Status, Text: text, At: r.Timestamp.Time, Attempt: max(0, r.RetryAttempt), Max: max(0, r.MaxRetries)}
	f.Kind = retried(f.Kind)
	if wait := r.RetryIn; wait > 0 && wait < 1e9 && !f.At.IsZero() {
		f.RetryAt = f.At.Add(time.Duration(wait) * time.Millisecond)
	}
	if f.Kind == RateLimited {
		f.Until = limitLifted(e.Message+" "+text, f.At, time.Local)
	}
	return f
}

// claudeFailure is the error that replaces the model's answer and ends the turn.
func claudeFailure(r *claudeRecord, text string) Failure {
	var word string
	decode(r.Error, &word)
	f := Failure{Kind: failureKind(r.APIStatus, text+" "+r.ErrorDetails), Status: r.APIStatus, Text: text, At: r.Timestamp.Time, Final: true}
	switch word {
	case "rate_limit": // also used for missing credit, which does not pass by itself
		if f.Kind != CreditEmpty {
			f.Kind = RateLimited
		}
	case "billing_error":
		f.Kind = CreditEmpty
	case "authentication_failed", "oauth_org_not_allowed", "account_on_hold", "cloud_credential_error":
		f.Kind = AuthFailure
	case "overloaded", "server_error":
		f.Kind = APIFailure
	}
	if f.Kind == RateLimited {
		f.Until = limitLifted(text, f.At, time.Local)
	}
	return f
}

// claudeContent is the content of a message: a string, or blocks.
func claudeContent(content json.RawMessage) (string, []claudeBlock) {
	var text string
	if json.Unmarshal(content, &text) == nil {
		return text, nil
	}
	var blocks []claudeBlock
	if !decode(content, &blocks) {
		return "", nil
	}
	return "", blocks
}

// contentText is the text of a result: a string, or blocks with texts.
func contentText(content json.RawMessage) string {
	text, blocks := claudeContent(content)
	for _, b := range blocks {
		text += b.Text
	}
	return text
}

// decode parses JSON as far as possible: members of an unexpected type stay empty, the others are used.
func decode(text []byte, into any) bool {
	err := json.Unmarshal(text, into)
	var other *json.UnmarshalTypeError
	return err == nil || errors.As(err, &other)
}

// stamp is a time in JSON; anything else than an RFC 3339 string is zero.
type stamp struct{ time.Time }

// UnmarshalJSON never fails, so that an invalid time does not lose the record.
func (s *stamp) UnmarshalJSON(text []byte) error {
	var word string
	if json.Unmarshal(text, &word) != nil {
		return nil
	}
	if at, err := time.Parse(time.RFC3339Nano, word); err == nil && at.Year() >= 2000 && at.Year() < 3000 {
		s.Time = at
	}
	return nil
}

// millis is a time in Unix milliseconds; zero for an invalid number.
func millis(ms float64) time.Time {
	if ms < 1e11 || ms > 1e14 {
		return time.Time{}
	}
	return time.UnixMilli(int64(ms)).UTC()
}
