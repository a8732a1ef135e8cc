package faketelegram

import (
	"encoding/json"
	"fmt"
	"mime"
	"net/http"
	"strconv"
	"strings"
	"time"
	"unicode/utf16"
)

// refusal is an answer that says no.
type refusal struct {
	code        int
	description string
	parameters  map[string]any
}

func bad(description string) *refusal {
	return &refusal{code: 400, description: "Bad Request: " + description}
}

func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	token, method, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/bot"), "/")
	s.mu.Lock()
	s.requests = append(s.requests, method)
	s.mu.Unlock()
	if token != s.Token {
		write(w, nil, &refusal{code: 401, description: "Unauthorized"})
		return
	}
	p, err := parameters(r)
	if err != nil {
		write(w, nil, bad(err.Error()))
		return
	}
	plan, planned := s.plan(method)
	if planned && !plan.Done {
		write(w, nil, plan.refusal())
		return
	}
	result, no := s.call(r, method, p)
	if planned { // it is done, and nobody hears of it
		no = plan.refusal()
	}
	write(w, result, no)
}

// parameters reads any of the forms in which the Bot API takes them.
func parameters(r *http.Request) (map[string]string, error) {
	p := map[string]string{}
	kind, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if kind == "application/json" {
		var raw map[string]json.RawMessage
		if err := json.NewDecoder(r.Body).Decode(&raw); err != nil {
			return nil, err
		}
		for name, v := range raw {
			var text string
			if json.Unmarshal(v, &text) != nil {
				text = string(v)
			}
			p[name] = text
		}
		return p, nil
	}
	if kind == "multipart/form-data" {
		if err := r.ParseMultipartForm(1 << 20); err != nil && r.ContentLength != 0 && !strings.Contains(err.Error(), "EOF") {
			return nil, err
		}
	} else if err := r.ParseForm(); err != nil {
		return nil, err
	}
	for name := range r.Form {
		p[name] = r.Form.Get(name)
	}
	return p, nil
}

// plan takes out what was planned for a method.
func (s *Server) plan(method string) (Answer, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, a := range s.planned {
		if a.Method == "" || a.Method == method {
			s.planned = append(s.planned[:i:i], s.planned[i+1:]...)
			return a, true
		}
	}
	return Answer{}, false
}

func (a Answer) refusal() *refusal {
	no := &refusal{code: a.Code, description: a.Description, parameters: map[string]any{}}
	if a.RetryAfter > 0 {
		no.parameters["retry_after"] = a.RetryAfter
	}
	if a.MigrateTo != 0 {
		no.parameters["migrate_to_chat_id"] = a.MigrateTo
	}
	return no
}

// write answers; a refusal without a code breaks the connection.
func write(w http.ResponseWriter, result any, no *refusal) {
	w.Header().Set("Content-Type", "application/json")
	if no == nil {
		_ = json.NewEncoder(w).Encode(map[string]any{"ok": true, "result": result})
		return
	}
	if no.code == 0 {
		panic(http.ErrAbortHandler)
	}
	body := map[string]any{"ok": false, "error_code": no.code, "description": no.description}
	if len(no.parameters) > 0 {
		body["parameters"] = no.parameters
	}
	w.WriteHeader(no.code)
	_ = json.NewEncoder(w).Encode(body)
}

func (s *Server) call(r *http.Request, method string, p map[string]string) (any, *refusal) {
	if method == "getUpdates" {
		return s.getUpdates(r, p)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch method {
	case "getMe":
		return map[string]any{"id": s.bot(), "is_bot": true, "first_name": "night", "username": "night_bot"}, nil
	case "sendMessage":
		return s.send(p)
	case "editMessageText":
		return s.edit(p)
	case "answerCallbackQuery":
		return s.answer(p)
	}
	return nil, &refusal{code: 404, description: "Not Found"}
}

func (s *Server) send(p map[string]string) (any, *refusal) {
	m := &Message{Chat: p["chat_id"], Silent: p["disable_notification"] == "true"}
	if no := m.read(p); no != nil {
		return nil, no
	}
	if no := s.limit(m.Chat, time.Now()); no != nil {
		return nil, no
	}
	m.ID = 1
	if n := len(s.messages); n > 0 {
		m.ID = s.messages[n-1].ID + 1
	}
	s.messages = append(s.messages, m)
	s.change()
	return s.reference(m.ID), nil
}

func (s *Server) edit(p map[string]string) (any, *refusal) {
	id, _ := strconv.Atoi(p["message_id"])
	for _, m := range s.messages {
		if m.ID != id || m.Chat != p["chat_id"] {
			continue
		}
		next := &Message{ID: m.ID, Chat: m.Chat, Silent: m.Silent, Edits: m.Edits}
		if no := next.read(p); no != nil {
			return nil, no
		}
		if fmt.Sprint(*next) == fmt.Sprint(*m) {
			return nil, bad("message is not modified: specified new message content and reply markup are exactly the same as a current content and reply markup of the message")
		}
		next.Edits++
		*m = *next
		s.change()
		return s.reference(id), nil
	}
	return nil, bad("message to edit not found")
}

// read checks and takes over what is to be shown.
func (m *Message) read(p map[string]string) *refusal {
	if m.Chat == "" {
		return bad("chat_id is empty")
	}
	m.Text = p["text"]
	text := utf16.Encode([]rune(m.Text))
	if strings.TrimSpace(m.Text) == "" {
		return bad("message text is empty")
	}
	if len(text) > 4096 {
		return bad("message is too long")
	}
	var entities []struct {
		Type           string
		Offset, Length int
	}
	if e := p["entities"]; e != "" && json.Unmarshal([]byte(e), &entities) != nil {
		return bad("can't parse entities: expected an array")
	}
	for _, e := range entities {
		if e.Offset < 0 || e.Length <= 0 || e.Offset+e.Length > len(text) {
			return bad("entity beyond the end of the text")
		}
		if e.Type == "bold" {
			m.Bold = append(m.Bold, string(utf16.Decode(text[e.Offset:e.Offset+e.Length])))
		}
	}
	var markup struct {
		Rows [][]struct {
			Text string
			Data string `json:"callback_data"`
		} `json:"inline_keyboard"`
	}
	if k := p["reply_markup"]; k != "" && json.Unmarshal([]byte(k), &markup) != nil {
		return bad("can't parse reply keyboard markup JSON object")
	}
	for _, row := range markup.Rows {
		for _, b := range row {
			if b.Text == "" || len(b.Data) < 1 || len(b.Data) > 64 {
				return bad("BUTTON_DATA_INVALID")
			}
			m.Buttons = append(m.Buttons, Button{b.Text, b.Data})
		}
	}
	return nil
}

// limit is what Telegram's FAQ says: one message a second to a chat, 20 a minute to a group.
func (s *Server) limit(chat string, now time.Time) *refusal {
	if !s.Limits {
		return nil
	}
	sent := s.lastSent[chat]
	wait := time.Duration(0)
	if n := len(sent); n > 0 {
		wait = time.Second - now.Sub(sent[n-1])
		if group := strings.HasPrefix(chat, "-"); group && n >= 20 {
			wait = max(wait, time.Minute-now.Sub(sent[n-20]))
		}
	}
	if wait > 20*time.Millisecond { // clocks and the network are not that exact
		seconds := int((wait + time.Second - 1) / time.Second)
		return &refusal{
			code: 429, description: fmt.Sprintf("Too Many Requests: retry after %d", seconds), parameters: map[string]any{"retry_after": seconds},
		}
	}
	s.lastSent[chat] = append(sent, now)
	return nil
}

func (s *Server) answer(p map[string]string) (any, *refusal) {
	call := p["callback_query_id"]
	if !s.calls[call] {
		return nil, bad("query is too old and response timeout expired or query ID is invalid")
	}
	if len(utf16.Encode([]rune(p["text"]))) > 200 {
		return nil, bad("MESSAGE_TOO_LONG")
	}
	s.answers[call] = append(s.answers[call], p["text"])
	s.change()
	return true, nil
}
