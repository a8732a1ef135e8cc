package agentcli

import (
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"
)

// claudeRecord is a line of a transcript of Claude Code (recorded: 2.1.330). The members of all types of lines stand
// side by side; what a type does not have is empty.
type claudeRecord struct {
	Type        string `json:"type"`
	Subtype     string `json:"subtype"`
	Timestamp   stamp  `json:"timestamp"`
	SessionID   string `json:"sessionId"`
	Dir         string `json:"cwd"`
	Version     string `json:"version"`
	Sidechain   bool   `json:"isSidechain"` // a subagent's line, in old versions
	Meta        bool   `json:"isMeta"`      // not typed by anybody
	Compacted   bool   `json:"isCompactSummary"`
	QuerySource string `json:"querySource"`

	Message claudeMessage `json:"message"`

	APIError     bool            `json:"isApiErrorMessage"`
	APIStatus    int             `json:"apiErrorStatus"`
	Error        json.RawMessage `json:"error"` // a word of an assistant's line, an object of a system's
	ErrorDetails string          `json:"errorDetails"`
	RetryIn      float64         `json:"retryInMs"`
	RetryAttempt int             `json:"retryAttempt"`
	MaxRetries   int             `json:"maxRetries"`

	CostUSD float64 `json:"totalCostUSD"`

	ToolUseResult json.RawMessage `json:"toolUseResult"` // of a user's line
	Content       json.RawMessage `json:"content"`       // of a queue-operation's
}

type claudeMessage struct {
	ID         string          `json:"id"`
	StopReason string          `json:"stop_reason"`
	Content    json.RawMessage `json:"content"` // a text, or blocks
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
	counted string // the message whose tokens have been counted: each of its blocks repeats them
	slash   bool   // the turn was begun by a slash command, and its model has not answered
	asked   int    // requests since the model last said something
}

func (c *claudeTranscript) now() *turn { return &c.turn }

// line takes one record; it tells whether it means something.
func (c *claudeTranscript) line(text []byte) bool {
	var r claudeRecord
	if !decode(text, &r) {
		return false
	}
	c.about.learn(r.SessionID, r.Dir, r.Version)
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
		c.cost = max(c.cost, r.CostUSD)
	}
	return false
}

// request is a call of the model. A terminal session writes nothing else of its retries: several calls in a row without
// an answer are the only sign that the answers were errors, or silence that the CLI itself has given up on.
func (c *claudeTranscript) request(r *claudeRecord) bool {
	if s := r.QuerySource; s != "" && s != "sdk" && !strings.HasPrefix(s, "repl_main_thread") {
		return false // a title, a summary, a suggestion: no turn waits for it
	}
	c.turn.request(r.Timestamp.Time)
	c.asked++
	if c.asked > 1 && c.failure.Attempt < c.asked-1 && len(c.open) == 0 {
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
		c.turn.request(at) // a hook has not let it stop
	case r.Meta, r.Compacted:
		return false
	case strings.HasPrefix(text, notification):
		c.asked = 0
		if c.notified(text) {
			c.begin(at)
			break
		}
		c.touch(at)
		c.typed() // somebody has resumed it without a prompt
	case strings.HasPrefix(strings.TrimSpace(text), "<command-message>"):
		c.asked = 0
		c.prompted(text, at) // its arguments stand there, too
		c.slash = true
	case isLocal(text):
		if c.slash && strings.HasPrefix(strings.TrimSpace(text), "<local-command-") { // that command has asked no model
			c.end(at)
		}
		c.slash = false // what comes next is of another command
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

// isLocal tells what the CLI notes of its own commands, which ask the model nothing. Of a command that stands for a prompt
// it notes the message first (recorded), and that begins a turn.
func isLocal(text string) bool {
	return slices.ContainsFunc([]string{"<command-name>", "<local-command-", "<bash-input>", "<bash-stdout>", "<bash-stderr>"},
		func(tag string) bool { return strings.HasPrefix(strings.TrimSpace(text), tag) })
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
	if text != "" {
		c.say(text, at)
	}
	for _, b := range blocks {
		switch b.Type {
		case "text":
			c.say(b.Text, at)
		case "tool_use":
			c.called(claudeCall(b, at))
		default:
			c.answered(at)
		}
	}
	if u := r.Message.Usage; r.Message.ID != "" && r.Message.ID != c.counted {
		c.counted = r.Message.ID
		c.tokens += amount(u.Input) + amount(u.CacheWrite) + amount(u.CacheRead) + amount(u.Output)
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
		if !c.ended {
			c.end(r.Timestamp.Time)
		}
		c.touch(r.Timestamp.Time)
		return true
	case "compact_boundary":
		if c.running { // the model has summed up the conversation; what it is asked next is another call
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

// claudeRetry is an error of the API after which the CLI tries again by itself.
func claudeRetry(r *claudeRecord) Failure {
	var e struct {
		Status    int    `json:"status"`
		Message   string `json:"message"`
		Formatted string `json:"formatted"`
	}
	decode(r.Error, &e)
	text := e.Formatted
	if text == "" {
		text = e.Message
	}
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

// claudeFailure is the error that stands in the place of the model's answer and ends the turn.
func claudeFailure(r *claudeRecord, text string) Failure {
	var word string
	decode(r.Error, &word)
	f := Failure{Kind: failureKind(r.APIStatus, text+" "+r.ErrorDetails), Status: r.APIStatus, Text: text, At: r.Timestamp.Time, Final: true}
	switch word {
	case "rate_limit": // also an empty purse, which does not pass by itself
		if f.Kind != CreditEmpty {
			f.Kind = RateLimited
		}
	case "billing_error":
		f.Kind = CreditEmpty
	case "authentication_failed", "oauth_org_not_allowed":
		f.Kind = AuthFailure
	case "overloaded", "server_error":
		f.Kind = APIFailure
	}
	if f.Kind == RateLimited {
		f.Until = limitLifted(text, f.At, time.Local)
	}
	return f
}

func claudeCall(b claudeBlock, at time.Time) call {
	c := call{id: b.ID, tool: b.Name, input: inputText(b.Input), asks: Tool, key: digest(b.Name, compact(b.Input)), at: at}
	switch b.Name {
	case "AskUserQuestion":
		c.asks = Question
	case "ExitPlanMode":
		c.asks = Plan
	case "Edit", "MultiEdit", "Write", "NotebookEdit":
		c.edits = true
	case "TaskOutput", "BashOutput", "AgentOutputTool", "KillShell", "TaskStop":
		c.polls, c.input = true, taskAsked(b.Input, c.input)
	case "Bash":
		c.edits, c.polls = commits(c.input), waiting.MatchString(c.input)
	}
	return c
}

// commits says whether a command commits.
func commits(command string) bool {
	return strings.Contains(command, "git commit") || strings.Contains(command, "git push")
}

// claudeContent is the content of a message: a text, or blocks.
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

// contentText is the text of a result: a text, or blocks with texts.
func contentText(content json.RawMessage) string {
	text, blocks := claudeContent(content)
	for _, b := range blocks {
		text += b.Text
	}
	return text
}

// decode reads JSON as far as it fits: a member of another type than known is left empty, and the rest still counts.
func decode(text []byte, into any) bool {
	err := json.Unmarshal(text, into)
	var other *json.UnmarshalTypeError
	return err == nil || errors.As(err, &other)
}

// stamp is a time as JSON has it; anything else than RFC 3339 text is not a time.
type stamp struct{ time.Time }

// UnmarshalJSON never fails: a broken time is no reason to lose a record.
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

// millis is a time in Unix milliseconds; zero for what cannot be one.
func millis(ms float64) time.Time {
	if ms < 1e11 || ms > 1e14 {
		return time.Time{}
	}
	return time.UnixMilli(int64(ms)).UTC()
}
