package agentcli

import (
	"bytes"
	"cmp"
	"encoding/json"
	"slices"
	"strings"
	"time"
)

// geminiRecord is a line of a chat of Gemini CLI: its head, a change of the head, or a message, which is written
// again when its calls have ended.
type geminiRecord struct {
	SessionID string `json:"sessionId"`
	Kind      string `json:"kind"` // main or subagent
	Set       *struct {
		Messages []struct {
			Timestamp stamp `json:"timestamp"`
		} `json:"messages"` // from now on these are all; nil: as they were
	} `json:"$set"`
	RewindTo string `json:"$rewindTo"` // the id of the first message that is taken back

	ID        string          `json:"id"`
	Type      string          `json:"type"` // user, gemini, info, warning, error
	Timestamp stamp           `json:"timestamp"`
	Content   json.RawMessage `json:"content"`
	ToolCalls []geminiCall    `json:"toolCalls"`
	Tokens    struct {
		Total int64 `json:"total"`
	} `json:"tokens"`
}

type geminiCall struct {
	ID        string          `json:"id"`
	Name      string          `json:"name"`
	Args      json.RawMessage `json:"args"`
	Status    string          `json:"status"`
	Timestamp stamp           `json:"timestamp"`
	Result    json.RawMessage `json:"result"`
}

// geminiTools are those of Qwen Code, too.
var geminiTools = tools{
	question: []string{"ask_user", "ask_user_question"}, plan: []string{"exit_plan_mode"},
	edits: []string{"replace", "write_file", "edit"}, shell: []string{"run_shell_command"},
}

// output is what the call has given back, without its id: the same again is the same text.
func (made *geminiCall) output() (text string) {
	var parts []struct {
		Of struct {
			Response json.RawMessage `json:"response"`
		} `json:"functionResponse"`
	}
	decode(made.Result, &parts)
	for _, p := range parts {
		var said struct {
			Output string `json:"output"`
			Error  string `json:"error"`
		}
		decode(p.Of.Response, &said)
		text += cmp.Or(said.Output+said.Error, compact(p.Of.Response))
	}
	return text
}

// geminiRemembered is how many calls and messages are remembered as counted.
const geminiRemembered = 256

// geminiTranscript reads the lines of one chat.
type geminiTranscript struct {
	about
	turn
	asked   time.Time // when the turn's prompt was written; zero: not seen
	copying bool      // the lines repeat the history
	seen    []string  // ids of answers, of calls and of messages whose tokens are counted
}

func (g *geminiTranscript) line(text []byte) bool {
	var r geminiRecord
	switch {
	case !decode(text, &r):
		return false
	case r.SessionID != "":
		g.learn(r.SessionID, "")
		g.subagent = r.Kind == "subagent"
		return true
	case r.RewindTo != "": // by a person
		g.interrupted(time.Time{})
		return true
	case r.Set != nil:
		return g.replaced(&r)
	}
	return !g.copied(&r) && g.message(&r)
}

// replaced handles a new list of all messages. One that ends before the turn's prompt takes that back, since the model
// has failed or a person has cancelled. Others shorten the history, or begin a session that is resumed.
func (g *geminiTranscript) replaced(r *geminiRecord) bool {
	all := r.Set.Messages
	if all == nil {
		return false
	}
	g.copying = false
	if g.Ended || g.asked.IsZero() {
		return false
	}
	if n := len(all); n > 0 && (all[n-1].Timestamp.IsZero() || !all[n-1].Timestamp.Before(g.asked)) {
		return false
	}
	g.end(time.Time{})
	return true
}

// surroundings is how a history begins: with the description of the environment.
const surroundings = "<session_context>"

// copied reports whether a line only repeats the history. To shorten old results the CLI writes all messages again, as
// parts, and then a new list of them.
func (g *geminiTranscript) copied(r *geminiRecord) bool {
	switch {
	case bytes.HasPrefix(r.Content, []byte(`"`)): // a text, and no parts
		g.copying = false
	case r.Type == "user" && !g.copying:
		text, _, _ := geminiContent(r.Content)
		g.copying = strings.HasPrefix(text, surroundings)
	}
	return g.copying
}

func (g *geminiTranscript) message(r *geminiRecord) bool {
	at := r.Timestamp.Time
	text, calls, responds := geminiContent(r.Content)
	switch r.Type {
	case "user":
		return g.user(text, responds, at)
	case "gemini":
		return g.gemini(r, text, calls)
	case "error":
		if !beginsWith(text, geminiGaveUp...) {
			return false
		}
		g.failed(geminiFailure(text, at))
		return true
	case "info":
		return g.told(text, at)
	}
	return false
}

// geminiGaveUp is how errors begin that end a turn. Others are about a command of the CLI, or a server.
var geminiGaveUp = []string{geminiAPIError, "The model returned ", "The model response ", "Model response ", "Model stream ", "Invalid stream "}

const geminiAPIError = "[API Error: "

// told handles what the CLI tells a person at its terminal. Without one it writes neither that nor errors.
func (g *geminiTranscript) told(text string, at time.Time) bool {
	switch {
	case beginsWith(text, "Request cancelled", "User cancelled the request"):
		g.interrupted(at)
	case g.Ended:
		return false
	case beginsWith(text, "Agent execution stopped", "A potential loop was detected"):
		g.end(at)
	case strings.HasPrefix(text, "The session has reached the maximum number of turns"):
		g.failed(Failure{Kind: ExecutionFailed, Text: text, At: at, Final: true})
	case strings.HasPrefix(text, "Sending this message ("): // and that it would not fit
		g.failed(Failure{Kind: ContextFull, Text: text, At: at, Final: true})
	default:
		return false
	}
	return true
}

// geminiTells is how texts begin that the CLI adds for the model without asking it.
var geminiTells = []string{
	surroundings, "I ran the following shell command:\n", "Here is the user's editor context as a JSON object", "Here is a summary of changes in the user's editor context",
	"- **Workspace Directories:**", "User has manually exited Plan Mode.",
}

// geminiAsks are texts with which the CLI itself asks the model to go on.
var geminiAsks = []string{"Please continue.", "System: Please continue."}

// user handles what a person has typed, or what the program sends in the same role. After results the model is asked,
// unless a person has cancelled their calls.
func (g *geminiTranscript) user(text string, responds bool, at time.Time) bool {
	_, behind, hooked := strings.Cut(text, "</hook_context>")
	switch {
	case responds && g.Interrupted, text == "" && !responds, beginsWith(text, geminiTells...):
		return false
	case hooked && strings.HasPrefix(text, "<hook_context>") && strings.TrimSpace(behind) == "":
		return false
	case responds:
		g.closeAll()
		g.resume(at)
		g.model = g.LastAt
		return true
	case slices.Contains(geminiAsks, text), strings.HasPrefix(text, "System: Potential loop detected."):
		g.begin(at)
	default:
		g.prompted(text, at)
	}
	g.asked = g.LastAt
	return true
}

// gemini handles an answer of the model. Its calls are written when all of them have ended. Until then an answer
// without a text is known to have some, and one with a text looks like the end of the turn.
func (g *geminiTranscript) gemini(r *geminiRecord, text string, calls bool) bool {
	if g.Interrupted { // a call that a person has cancelled
		return false
	}
	at := r.Timestamp.Time
	if r.Tokens.Total > 0 && g.first("message "+r.ID) {
		g.Tokens += amount(r.Tokens.Total)
	}
	if r.ID == "" || g.first("answer "+r.ID) {
		g.closeAll()
		g.say(text, at)
		switch {
		case len(r.ToolCalls) > 0:
		case calls || string(r.Content) == `""`:
			g.called(call{id: r.ID, tool: "a tool", asks: Tool, at: at})
		case text != "" || string(r.Content) == "[]": // or nothing more to say
			g.end(at)
		}
	}
	if len(r.ToolCalls) > 0 {
		g.closeAll()
	}
	for _, made := range r.ToolCalls {
		if g.first("call " + made.ID) {
			g.called(geminiTools.call(made.ID, made.Name, made.Args, at))
			g.returned(made.ID, made.output(), made.Status != "success", made.Timestamp.Time)
		}
	}
	return true
}

// first reports whether an id is seen for the first time.
func (g *geminiTranscript) first(what string) bool {
	if slices.Contains(g.seen, what) {
		return false
	}
	if len(g.seen) == geminiRemembered {
		g.seen = g.seen[1:]
	}
	g.seen = append(g.seen, what)
	return true
}

// geminiContent reads a content: a string, a part, or parts. The text is without the model's thoughts; calls and
// responds say whether there are calls of tools, or their results.
func geminiContent(content json.RawMessage) (text string, calls, responds bool) {
	if json.Unmarshal(content, &text) == nil {
		return text, false, false
	}
	type part struct {
		Text     string          `json:"text"`
		Thought  bool            `json:"thought"`
		Call     json.RawMessage `json:"functionCall"`
		Response json.RawMessage `json:"functionResponse"`
	}
	var parts []part
	if decode(content, &parts); len(parts) == 0 {
		parts = make([]part, 1)
		decode(content, &parts[0])
	}
	for _, p := range parts {
		if !p.Thought {
			text += p.Text
		}
		calls, responds = calls || len(p.Call) > 0, responds || len(p.Response) > 0
	}
	return text, calls, responds
}

// geminiFailure reads "[API Error: …]". Within are words, or the provider's answer: {"error":{"code":400,"message":…}},
// of a streamed one once more as the message. Behind it may be a line about limits.
func geminiFailure(text string, at time.Time) Failure {
	f := Failure{Kind: APIFailure, Text: text, At: at, Final: true}
	if !strings.HasPrefix(text, geminiAPIError) {
		return f // an answer that was empty, cut off or blocked
	}
	said := text
	for range 2 {
		var e struct {
			Error struct {
				Code    int    `json:"code"`
				Message string `json:"message"`
			} `json:"error"`
		}
		_, body, _ := strings.Cut(said, "{")
		if json.NewDecoder(strings.NewReader("{"+body)).Decode(&e) != nil || e.Error.Message == "" {
			break
		}
		said = e.Error.Message
		f.Status, f.Text = cmp.Or(e.Error.Code, f.Status), said
	}
	f.Kind = failureKind(f.Status, text)
	if f.Kind == RateLimited {
		f.Until = limitLifted(text, at, time.Local)
	}
	return f
}

// geminiTold reads the error of `gemini -p --output-format stream-json`.
func geminiTold(text string, at time.Time) (f Failure, ok bool) {
	return geminiFailure(text, at), strings.HasPrefix(text, geminiAPIError)
}
