package agentcli

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/outlive-mcp/outlive/internal/files/lazyregexp"
)

// codexRecord is a line of a rollout of Codex (recorded: 0.169.0).
type codexRecord struct {
	Timestamp stamp        `json:"timestamp"`
	Type      string       `json:"type"`
	Payload   codexPayload `json:"payload"`
}

// codexPayload has the members of all types of payloads.
type codexPayload struct {
	Type string `json:"type"`

	// session_meta and turn_context
	ID        string          `json:"id"`
	Dir       string          `json:"cwd"`
	Source    json.RawMessage `json:"source"`
	Thread    string          `json:"thread_source"`
	Approvals string          `json:"approval_policy"`
	Reviewer  string          `json:"approvals_reviewer"`

	// response_item
	Role      string `json:"role"`
	Name      string `json:"name"`
	CallID    string `json:"call_id"`
	Arguments string `json:"arguments"`
	Input     string `json:"input"`
	Action    struct {
		Command []string `json:"command"`
	} `json:"action"`
	Output  json.RawMessage `json:"output"`
	Content []struct {
		Text string `json:"text"`
	} `json:"content"`

	// event_msg
	LastMessage string          `json:"last_agent_message"`
	Message     string          `json:"message"`
	Error       *codexError     `json:"error"`
	ErrorInfo   json.RawMessage `json:"codex_error_info"`
	Success     bool            `json:"success"`
	Item        struct {
		Type   string `json:"type"`
		Status string `json:"status"`
	} `json:"item"`
	Info struct {
		Total codexUsage `json:"total_token_usage"`
	} `json:"info"`
	Limits struct {
		Primary   codexLimit `json:"primary"`
		Secondary codexLimit `json:"secondary"`
	} `json:"rate_limits"`
	ThreadUsage codexUsage `json:"thread_token_usage"`
}

type codexUsage struct {
	Input  int64 `json:"input_tokens"`
	Output int64 `json:"output_tokens"`
}

type codexLimit struct {
	Used     float64 `json:"used_percent"`
	ResetsAt float64 `json:"resets_at"` // Unix seconds
}

type codexError struct {
	Message string          `json:"message"`
	Info    json.RawMessage `json:"codex_error_info"`
}

// codexTranscript reads the lines of one rollout.
type codexTranscript struct {
	about
	turn
	replied bool      // an answer of the model is complete: what it says next is another one
	askless bool      // it never asks: the policy forbids it, or a program answers
	lifted  time.Time // when the exhausted limit ends
}

func (c *codexTranscript) line(text []byte) bool {
	var r codexRecord
	if !decode(text, &r) {
		return false
	}
	p, at := &r.Payload, r.Timestamp.Time
	switch r.Type {
	case "session_meta":
		c.learn(p.ID, p.Dir)
		var word string
		c.subagent = p.Thread == "subagent" || len(p.Source) > 0 && json.Unmarshal(p.Source, &word) != nil
	case "turn_context":
		c.askless = p.Approvals == "never" || p.Reviewer != "" && p.Reviewer != "user"
		return false
	case "response_item":
		return c.item(p, at)
	case "event_msg":
		return c.event(p, at)
	case "token_usage_record":
		c.count(p.ThreadUsage)
		c.replied = true
		return false
	case "compacted":
	default:
		return false
	}
	c.touch(at)
	return true
}

// count records the tokens of the whole thread.
func (c *codexTranscript) count(u codexUsage) {
	c.Tokens = max(c.Tokens, amount(u.Input)+amount(u.Output))
}

// replies handles an item of the model's answer. Codex records what an answer has used behind its last item, and before
// the results of its calls (recorded: 0.169.0).
func (c *codexTranscript) replies() {
	if c.replied {
		c.replied = false
		c.answersAnew()
	}
}

func (c *codexTranscript) item(p *codexPayload, at time.Time) bool {
	switch p.Type {
	case "function_call", "custom_tool_call", "local_shell_call", "tool_search_call":
		if p.CallID == "" {
			return false
		}
		c.replies()
		c.called(c.call(p, at))
	case "function_call_output", "custom_tool_call_output", "tool_search_output", "mcp_tool_call_output":
		output := codexOutput(p.Output)
		c.returned(p.CallID, output, codexFailed(output), at)
	case "message":
		if p.Role != "assistant" {
			return false
		}
		c.replies()
		for _, part := range p.Content {
			c.say(part.Text, at)
		}
	case "reasoning", "web_search_call", "image_generation_call":
		c.replies()
		c.answered(at)
	default:
		return false
	}
	return true
}

// escalated matches the arguments of a call that asks for more rights, in plain JSON or within the program of the
// "exec" tool.
var escalated = lazyregexp.New(`sandbox_permissions\\*"?\s*:\s*\\*"require_escalated|with_escalated_permissions\\*"?\s*:\s*true`)

// codexSleep matches a pause that the model has asked for: the tool "clock.sleep" (0.169.0), at most twelve hours.
var codexSleep = lazyregexp.New(`(?:^|[\W_])sleep\W[^)]{0,40}?duration_ms\W{1,6}(\d{1,8})\b`)

// codexCommand matches the command within the program of the "exec" tool.
var codexCommand = lazyregexp.New(`"cmd"\s*:\s*("(?:[^"\\]|\\.)*")`)

func (c *codexTranscript) call(p *codexPayload, at time.Time) call {
	args := cmp.Or(p.Arguments, p.Input)
	made := call{id: p.CallID, tool: p.Name, input: inputText(json.RawMessage(args)), asks: Tool, key: digest(p.Name, args), at: at}
	if len(p.Action.Command) > 0 {
		args = strings.Join(p.Action.Command, " ")
		made.tool, made.input, made.key = "local_shell", excerpt(args, inputKept), digest(args)
	}
	if m := codexCommand.FindStringSubmatch(args); p.Type == "custom_tool_call" && m != nil {
		var command string
		if json.Unmarshal([]byte(m[1]), &command) == nil {
			made.input = excerpt(command, inputKept)
		}
	}
	switch {
	case p.Name == "request_user_input", strings.Contains(args, "tools.request_user_input("):
		made.asks = Question
	case !c.askless && escalated.MatchString(args):
		made.asks = Permission
	}
	made.edits = p.Name == "apply_patch" || strings.Contains(args, "apply_patch") || commits(args)
	made.polls = p.Name == "wait" || p.Name == "write_stdin" || p.Name == "wait_agent" || waiting.MatchString(made.input)
	if m := codexSleep.FindStringSubmatch(p.Name + " " + args); m != nil {
		ms, _ := strconv.Atoi(m[1]) // at most eight digits
		made.sleeps, made.polls = time.Duration(ms)*time.Millisecond, true
	}
	return made
}

// codexOutput is the text of a result: a string, parts with texts, or an object with one.
func codexOutput(output json.RawMessage) string {
	var object struct {
		Content string `json:"content"`
		Output  string `json:"output"`
	}
	if json.Unmarshal(output, &object) == nil {
		return object.Content + object.Output
	}
	return contentText(output)
}

// codexBad matches the results of failed calls.
var codexBad = lazyregexp.New(`(?m)^(?:Process exited with code [1-9]|Script failed|Script error:|Exit code: [1-9])|"exit_code":[1-9]|^failed in sandbox`)

func codexFailed(output string) bool {
	return codexBad.MatchString(output[:min(len(output), 4096)])
}

func (c *codexTranscript) event(p *codexPayload, at time.Time) bool {
	switch p.Type {
	case "task_started", "turn_started":
		c.prompt(at)
	case "task_complete", "turn_complete":
		if p.LastMessage != "" {
			c.say(p.LastMessage, at)
		}
		if p.Error != nil {
			c.failed(c.failureOf(p.Error.Message, p.Error.Info, at, true))
			break
		}
		c.end(at)
	case "turn_aborted":
		c.interrupted(at)
	case "error":
		c.failed(c.failureOf(p.Message, p.ErrorInfo, at, false))
	case "stream_error":
		f := c.failureOf(p.Message, p.ErrorInfo, at, false)
		f.Kind = retried(f.Kind)
		_, _ = fmt.Sscanf(p.Message, "Reconnecting... %d/%d", &f.Attempt, &f.Max) // without numbers it is still a retry
		c.failed(f)
	case "token_count":
		c.count(p.Info.Total)
		c.limits(p.Limits.Primary, p.Limits.Secondary)
		return false
	case "item_completed":
		if p.Item.Type == "FileChange" && p.Item.Status != "failed" && p.Item.Status != "declined" {
			c.ProgressAt = c.when(at)
		}
		c.proposed = c.proposed || p.Item.Type == "Plan"
		c.touch(at)
	case "patch_apply_end":
		if p.Success {
			c.ProgressAt = c.when(at)
		}
		c.touch(at)
	case "user_message":
		c.ordered = c.ordered || ordersRepetition.MatchString(p.Message)
		c.touch(at)
	case "context_compacted":
		if c.running { // the model has summarised the conversation; the next request is a new call
			c.answered(at)
		}
		c.touch(at)
	case "agent_message", "agent_reasoning":
		c.touch(at)
	default:
		return false
	}
	return true
}

// limits records when an exhausted limit ends.
func (c *codexTranscript) limits(all ...codexLimit) {
	c.lifted = time.Time{}
	for _, l := range all {
		if at := millis(l.ResetsAt * 1000); l.Used >= 100 && at.After(c.lifted) {
			c.lifted = at
		}
	}
}

// failureOf classifies an error by its text and by Codex' code: a string, or an object with one member that may have
// the status.
func (c *codexTranscript) failureOf(text string, info json.RawMessage, at time.Time, final bool) Failure {
	var word string
	status := 0
	if json.Unmarshal(info, &word) != nil {
		var object map[string]struct {
			Status int `json:"http_status_code"`
		}
		decode(info, &object)
		for name, detail := range object { // it has one member
			word, status = name, detail.Status
		}
	}
	if word == "bad_request" && status == 0 {
		status = 400
	}
	f := Failure{Status: status, Text: text, At: at, Final: final}
	switch word {
	case "context_window_exceeded":
		f.Kind = ContextFull
	case "usage_limit_exceeded", "rate_limit_exceeded":
		f.Kind = RateLimited
		if creditEmpty(status, strings.ToLower(text)) { // Codex has no code of its own for missing credit
			f.Kind = CreditEmpty
		}
	case "unauthorized":
		f.Kind = AuthFailure
	case "server_overloaded", "internal_server_error":
		f.Kind = APIFailure
	default:
		f.Kind = failureKind(status, text)
		if f.Kind == ExecutionFailed && statusOf(status, text) == 0 && containsAny(word, "connection", "stream", "too_many_failed") {
			f.Kind = APIFailure
		}
	}
	if f.Kind == RateLimited {
		if f.Until = limitLifted(text, at, time.Local); f.Until.IsZero() {
			f.Until = c.lifted
		}
	}
	return f
}
