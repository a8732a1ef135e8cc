package agentcli

import (
	"encoding/json"
	"errors"
	"path/filepath"
	"slices"
	"strings"
)

// qwenRecord is a line of a chat of Qwen Code (recorded: 0.15.10), a fork of Gemini CLI: its parts are Gemini's, the
// rest is its own format.
type qwenRecord struct {
	SessionID string `json:"sessionId"`
	Dir       string `json:"cwd"`
	Type      string `json:"type"`    // user, assistant, tool_result, system
	Subtype   string `json:"subtype"` // in a user's line: it is not from a person; in a system's line: its kind
	Timestamp stamp  `json:"timestamp"`
	Message   struct {
		Parts []qwenPart `json:"parts"`
	} `json:"message"`
	Usage struct {
		Total int64 `json:"totalTokenCount"`
	} `json:"usageMetadata"`
	Result struct {
		Status string `json:"status"`
	} `json:"toolCallResult"`
	Payload struct {
		Event struct {
			Name   string `json:"event.name"`
			Status int    `json:"status_code"`
			Error  string `json:"error_message"`
		} `json:"uiEvent"`
	} `json:"systemPayload"`
}

type qwenPart struct {
	Text     string      `json:"text"`
	Thought  bool        `json:"thought"`
	Call     *geminiCall `json:"functionCall"`
	Response *struct {
		ID       string          `json:"id"`
		Response json.RawMessage `json:"response"`
	} `json:"functionResponse"`
}

// qwenTranscript reads the lines of one chat. A line is written when an answer is complete, and before its calls run:
// a call that waits for a permission looks like one that runs.
type qwenTranscript struct {
	about
	turn
	refused int // errors of the model since its last answer
}

func newQwen() parser { return &qwenTranscript{} }

func (q *qwenTranscript) line(text []byte) bool {
	var r qwenRecord
	if !decode(text, &r) || r.SessionID == "" {
		return false
	}
	q.learn(r.SessionID, r.Dir)
	at := r.Timestamp.Time
	switch {
	case r.Type == "system":
		return q.system(&r)
	case len(r.Message.Parts) == 0:
		return false
	case r.Type == "user" && r.Subtype != "": // from a background task, or a timer
		q.begin(at)
	case r.Type == "user":
		q.prompted(qwenText(r.Message.Parts), at)
	case r.Type == "assistant":
		q.assistant(&r)
	case r.Type == "tool_result":
		for _, p := range r.Message.Parts {
			if p.Response != nil {
				q.returned(p.Response.ID, compact(p.Response.Response), r.Result.Status != "success", at)
			}
		}
	default:
		return false
	}
	q.refused = 0
	return true
}

func (q *qwenTranscript) assistant(r *qwenRecord) {
	at := r.Timestamp.Time
	q.answersAnew()
	q.answered(at)
	if text := qwenText(r.Message.Parts); text != "" {
		q.say(text, at)
	}
	q.Tokens += amount(r.Usage.Total)
	calls := false
	for _, p := range r.Message.Parts {
		if p.Call != nil {
			q.called(geminiTools.call(p.Call.ID, p.Call.Name, p.Call.Args, at))
			calls = true
		}
	}
	if !calls && q.LastText != "" {
		q.end(at)
	}
}

// system handles the errors of the model. The CLI retries after too many requests and after the provider's own
// failures (recorded: 429); it does not record that it has given up.
func (q *qwenTranscript) system(r *qwenRecord) bool {
	e := r.Payload.Event
	if r.Subtype != "ui_telemetry" || e.Name != "qwen-code.api_error" {
		return false
	}
	q.refused++
	f := Failure{Kind: failureKind(e.Status, e.Error), Status: e.Status, Text: e.Error, At: r.Timestamp.Time}
	if f.Final = e.Status >= 400 && e.Status < 500 && e.Status != 429; !f.Final {
		f.Kind, f.Attempt = retried(f.Kind), q.refused
	}
	if f.Kind == RateLimited {
		f.Until = limitLifted(e.Error, f.At, r.Timestamp.Location())
	}
	q.failed(f)
	return true
}

// qwenText is the text of parts, without the model's thoughts.
func qwenText(parts []qwenPart) string {
	var text strings.Builder
	for _, p := range parts {
		if !p.Thought {
			text.WriteString(p.Text)
		}
	}
	return text.String()
}

// qwenFiles are the chats of Qwen Code: projects/<directory>/chats/<session>.jsonl.
type qwenFiles struct{ source }

func newQwenFiles(s source) files { return &qwenFiles{s} }

// sessions returns the sessions of Qwen Code in or below the wanted directories, or in those of its processes.
func (r *qwenFiles) sessions(w *wanted) ([]Session, error) {
	projects := filepath.Join(r.place, "projects")
	f, err := r.list(projects)
	roots := w.roots
	for _, p := range w.Processes {
		if len(w.roots) == 0 && p.Kind == Qwen && p.Dir != "" {
			roots = append(roots, p.Dir)
		}
	}
	var all []Session
	errs := []error{err}
	for _, name := range f.names {
		if !slices.ContainsFunc(roots, func(root string) bool {
			return strings.HasPrefix(strings.ToLower(name), strings.ToLower(claudeFolder(root)))
		}) {
			continue // folder names are like Claude Code's, in lower case on Windows
		}
		chats, err := r.listNewest(filepath.Join(projects, name, "chats"), isTranscript)
		errs = append(errs, err)
		found, err := r.readNewest(w, Qwen, chats, nil, newQwen)
		errs = append(errs, err)
		for _, t := range found {
			all = append(all, t.session(Qwen))
		}
	}
	return all, errors.Join(errs...)
}
