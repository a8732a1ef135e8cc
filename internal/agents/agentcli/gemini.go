package agentcli

import (
	"encoding/json"
	"strings"
	"time"
)

// geminiRecord is a line of a chat of Gemini CLI: its head, a change of the head, or a message, which is written
// again when its calls have ended.
type geminiRecord struct {
	SessionID string `json:"sessionId"`
	Kind      string `json:"kind"` // main or subagent
	Set       *struct {
		LastUpdated stamp `json:"lastUpdated"`
	} `json:"$set"`

	ID        string          `json:"id"`
	Type      string          `json:"type"` // user, gemini, info, warning, error
	Timestamp stamp           `json:"timestamp"`
	Content   json.RawMessage `json:"content"`
	ToolCalls []geminiCall    `json:"toolCalls"`
	Tokens    struct {
		Total int64 `json:"total"`
	} `json:"tokens"`

	Messages []json.RawMessage `json:"messages"` // old versions write one object with everything
}

type geminiCall struct {
	ID        string          `json:"id"`
	Name      string          `json:"name"`
	Args      json.RawMessage `json:"args"`
	Status    string          `json:"status"`
	Timestamp stamp           `json:"timestamp"`
	Result    json.RawMessage `json:"result"`
}

// call converts a call for the turn.
func (made *geminiCall) call(at time.Time) call {
	c := call{id: made.ID, tool: made.Name, input: inputText(made.Args), asks: Tool, key: digest(made.Name, compact(made.Args)), at: at}
	switch made.Name {
	case "replace", "write_file", "edit":
		c.edits = true
	case "run_shell_command":
		c.edits, c.polls = commits(c.input), waiting.MatchString(c.input)
	case "ask_user", "ask_user_question":
		c.asks = Question
	case "exit_plan_mode":
		c.asks = Plan
	}
	return c
}

// geminiRemembered is how many calls and messages are remembered as counted.
const geminiRemembered = 256

// geminiTranscript reads the lines of one chat.
type geminiTranscript struct {
	about
	turn
	seen []string // ids of calls that have ended and of messages whose tokens are counted
}

func (g *geminiTranscript) now() *turn { return &g.turn }

func (g *geminiTranscript) line(text []byte) bool {
	var r geminiRecord
	if !decode(text, &r) {
		return false
	}
	if r.SessionID != "" {
		g.learn(r.SessionID, "", "")
		g.subagent = r.Kind == "subagent"
		for _, text := range r.Messages {
			var message geminiRecord
			if decode(text, &message) {
				g.message(&message)
			}
		}
		return true
	}
	return g.message(&r)
}

func (g *geminiTranscript) message(r *geminiRecord) bool {
	at := r.Timestamp.Time
	switch r.Type {
	case "user":
		return g.user(r.Content, at)
	case "gemini":
		g.gemini(r)
	case "error":
		g.failed(geminiFailure(geminiText(r.Content), at))
	case "info":
		if !strings.HasPrefix(geminiText(r.Content), "Request cancelled") {
			return false
		}
		g.interrupted(at)
	default:
		return false
	}
	return true
}

// user handles what a person has typed, or what the program sends in the same role: results and the description of
// the environment.
func (g *geminiTranscript) user(content json.RawMessage, at time.Time) bool {
	var parts []struct {
		Response json.RawMessage `json:"functionResponse"`
	}
	if decode(content, &parts) && len(parts) > 0 && len(parts[0].Response) > 0 {
		g.closeAll()
		g.resume(at)
		g.model = g.lastAt
		return true
	}
	text := geminiText(content)
	if text == "" || strings.HasPrefix(text, "<session_context>") {
		return false
	}
	g.prompted(text, at)
	return true
}

// gemini handles an answer of the model. Calls are written only when they have ended, so that an answer with a
// running call looks like the end of the turn.
func (g *geminiTranscript) gemini(r *geminiRecord) {
	at := r.Timestamp.Time
	if r.ID != "" && g.first("answer "+r.ID) {
		g.answersAnew()
	}
	if text := geminiText(r.Content); text != "" {
		g.say(text, at)
	} else {
		g.answered(at)
	}
	if r.Tokens.Total > 0 && g.first("message "+r.ID) {
		g.tokens += amount(r.Tokens.Total)
	}
	if len(r.ToolCalls) == 0 {
		if g.text != "" {
			g.end(at)
		}
		return
	}
	for _, made := range r.ToolCalls {
		g.toolCall(made, at)
	}
}

func (g *geminiTranscript) toolCall(made geminiCall, at time.Time) {
	c := made.call(at)
	done := made.Status == "success" || made.Status == "error" || made.Status == "cancelled"
	if made.Status == "awaiting_approval" && c.asks == Tool {
		c.asks = Permission
	}
	if g.first("call " + made.ID + " " + string(c.asks)) {
		g.called(c)
	}
	if done && g.first("result "+made.ID) {
		g.returned(made.ID, compact(made.Result), made.Status != "success", made.Timestamp.Time)
	}
}

// first reports whether an id is seen for the first time.
func (g *geminiTranscript) first(what string) bool {
	for _, known := range g.seen {
		if known == what {
			return false
		}
	}
	if len(g.seen) == geminiRemembered {
		g.seen = g.seen[1:]
	}
	g.seen = append(g.seen, what)
	return true
}

// geminiText is the text of a content: a string, a part, or parts.
func geminiText(content json.RawMessage) string {
	var one struct {
		Text string `json:"text"`
	}
	if json.Unmarshal(content, &one) == nil {
		return one.Text
	}
	return contentText(content)
}

// geminiFailure is "[API Error: {"error":{"code":400,"message":…}}]".
func geminiFailure(text string, at time.Time) Failure {
	f := Failure{Text: text, At: at, Final: true}
	body := strings.TrimSuffix(strings.TrimPrefix(text, "[API Error: "), "]")
	var e struct {
		Error struct {
			Code    int    `json:"code"`
			Message string `json:"message"`
		} `json:"error"`
	}
	if decode([]byte(body), &e) && e.Error.Message != "" {
		f.Status, f.Text = e.Error.Code, e.Error.Message
	}
	f.Kind = failureKind(f.Status, text)
	if f.Kind == RateLimited {
		f.Until = limitLifted(text, at, time.Local)
	}
	return f
}
