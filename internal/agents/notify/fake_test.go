package notify

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf16"
)

// fakeTelegram is as strict as the Bot API where it matters to us: path and token, 1 to 4096 UTF-16 code units, entities
// inside the text, 64 bytes of callback_data, callback queries that exist, the shape of every error.
type fakeTelegram struct {
	*httptest.Server
	token string

	mu      sync.Mutex
	shown   map[int]*message // by number
	topics  map[int]string   // where they were sent, by number
	numbers int
	next    []func(w http.ResponseWriter) bool // what happens instead of success; false: go on as usual afterwards
	edits   int
	updates []map[string]any
	offsets []int64 // that were asked for
	open    map[string]bool
	answers map[string][]string // by callback query
	more    chan struct{}       // an update has come; with room for one
}

type message struct {
	Chat string
	Text string
	Bold []string
	Data []string // of the buttons
}

func newFakeTelegram(t *testing.T) *fakeTelegram {
	f := newFakeWithoutNetwork()
	f.Server = httptest.NewServer(http.HandlerFunc(f.serve))
	t.Cleanup(f.Close)
	return f
}

// newFakeWithoutNetwork is for tests in which time is not real: the requests come by RoundTrip.
func newFakeWithoutNetwork() *fakeTelegram {
	return &fakeTelegram{
		token: "123:abc", shown: map[int]*message{}, topics: map[int]string{}, open: map[string]bool{}, answers: map[string][]string{}, more: make(chan struct{}, 1),
	}
}

// RoundTrip makes the fake an http.RoundTripper.
func (f *fakeTelegram) RoundTrip(r *http.Request) (answer *http.Response, err error) {
	defer func() {
		if recover() != nil {
			err = errors.New("the connection broke")
		}
	}()
	w := httptest.NewRecorder()
	if f.serve(w, r); r.Context().Err() != nil {
		return nil, r.Context().Err()
	}
	return w.Result(), nil
}

func (f *fakeTelegram) channel(t *testing.T) *Telegram {
	t.Helper()
	s, err := NewTelegram(TelegramOptions{Token: "123:abc", ChatID: "42", APIURL: f.URL + "/", Client: f.Client()})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// then queues what happens to the next requests but polls, in order.
func (f *fakeTelegram) then(steps ...func(http.ResponseWriter) bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.next = append(f.next, steps...)
}

func (f *fakeTelegram) messages() []message {
	f.mu.Lock()
	defer f.mu.Unlock()
	var list []message
	for i := 1; i <= f.numbers; i++ {
		if m := f.shown[i]; m != nil {
			list = append(list, *m)
		}
	}
	return list
}

// polls is how many polls have begun, answered how many presses have an answer.
func (f *fakeTelegram) polls() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.offsets)
}

func (f *fakeTelegram) answered() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.answers)
}

// press lets a human press a button, reply lets one write.
func (f *fakeTelegram) press(update int, user, chat, message int64, data string) {
	call := fmt.Sprint("call", update)
	f.mu.Lock()
	f.open[call] = true
	f.mu.Unlock()
	f.happen(map[string]any{"update_id": update, "callback_query": map[string]any{
		"id": call, "from": map[string]any{"id": user, "username": "ada"}, "data": data,
		"message": map[string]any{"message_id": message, "date": 1, "chat": map[string]any{"id": chat}},
	}})
}

func (f *fakeTelegram) reply(update int, user, chat, message int64, text string) {
	f.happen(map[string]any{"update_id": update, "message": map[string]any{
		"message_id": 900 + update, "date": 1, "chat": map[string]any{"id": chat}, "from": map[string]any{"id": user, "first_name": "Ada"}, "text": text,
		"reply_to_message": map[string]any{"message_id": message, "date": 1, "chat": map[string]any{"id": chat}, "from": map[string]any{"id": 123}},
	}})
}

func (f *fakeTelegram) happen(update map[string]any) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.updates = append(f.updates, update)
	select {
	case f.more <- struct{}{}:
	default:
	}
}

// apiError is an answer of the Bot API that says no.
func apiError(code int, description, parameters string) func(http.ResponseWriter) bool {
	return func(w http.ResponseWriter) bool {
		w.WriteHeader(code)
		fmt.Fprintf(w, `{"ok":false,"error_code":%d,"description":%q,"parameters":{%s}}`, code, description, parameters)
		return true
	}
}

// unanswered takes the message and breaks the connection.
func unanswered(http.ResponseWriter) bool { return false }

func (f *fakeTelegram) serve(w http.ResponseWriter, r *http.Request) {
	method := r.URL.Path[strings.LastIndex(r.URL.Path, "/")+1:]
	if method == "getUpdates" {
		f.getUpdates(w, r)
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	_ = r.ParseMultipartForm(1 << 20)
	if len(f.next) > 0 {
		instead := f.next[0]
		f.next = f.next[1:]
		if instead(w) {
			return
		}
		defer panic(http.ErrAbortHandler)
	}
	switch {
	case r.URL.Path != "/bot"+f.token+"/"+method:
		apiError(401, "Unauthorized", "")(w)
	case method == "getMe":
		fmt.Fprint(w, `{"ok":true,"result":{"id":123,"is_bot":true,"first_name":"n","username":"night_bot"}}`)
	case method == "sendMessage", method == "editMessageText":
		f.show(w, r, method == "editMessageText")
	case method == "answerCallbackQuery":
		f.answer(w, r)
	default:
		apiError(404, "Not Found", "")(w)
	}
}

func (f *fakeTelegram) show(w http.ResponseWriter, r *http.Request, edit bool) {
	m, complaint := readMessage(r)
	if complaint != "" {
		apiError(400, "Bad Request: "+complaint, "")(w)
		return
	}
	number := f.numbers + 1
	if edit {
		_, _ = fmt.Sscan(r.FormValue("message_id"), &number)
		was := f.shown[number]
		if was == nil || was.Chat != m.Chat {
			apiError(400, "Bad Request: message to edit not found", "")(w)
			return
		}
		if fmt.Sprint(*was) == fmt.Sprint(m) {
			apiError(400, "Bad Request: message is not modified: specified new message content and reply markup are exactly the same", "")(w)
			return
		}
		f.edits++
	} else {
		f.numbers, f.topics[number] = number, r.FormValue("message_thread_id")
	}
	f.shown[number] = &m
	fmt.Fprintf(w, `{"ok":true,"result":{"message_id":%d,"date":1,"chat":{"id":42,"type":"private"},"text":"x"}}`, number)
}

// readMessage checks what is to be shown.
func readMessage(r *http.Request) (m message, complaint string) {
	m = message{Chat: r.FormValue("chat_id"), Text: r.FormValue("text")}
	text := utf16.Encode([]rune(m.Text))
	if len(text) == 0 || len(text) > 4096 || r.FormValue("parse_mode") != "" {
		return m, "message is too long"
	}
	var entities []struct {
		Type           string
		Offset, Length int
	}
	if s := r.FormValue("entities"); s != "" && json.Unmarshal([]byte(s), &entities) != nil {
		return m, "can't parse entities"
	}
	for _, e := range entities {
		if e.Type != "bold" || e.Offset < 0 || e.Length <= 0 || e.Offset+e.Length > len(text) {
			return m, "entity beyond the message"
		}
		m.Bold = append(m.Bold, string(utf16.Decode(text[e.Offset:e.Offset+e.Length])))
	}
	var keys struct {
		Rows [][]struct {
			Text string
			Data string `json:"callback_data"`
		} `json:"inline_keyboard"`
	}
	if s := r.FormValue("reply_markup"); s != "" && (json.Unmarshal([]byte(s), &keys) != nil || len(keys.Rows) == 0) {
		return m, "object expected as reply markup"
	}
	for _, row := range keys.Rows {
		for _, b := range row {
			if b.Text == "" || len(b.Data) < 1 || len(b.Data) > 64 {
				return m, "BUTTON_DATA_INVALID"
			}
			m.Data = append(m.Data, b.Data)
		}
	}
	return m, ""
}

func (f *fakeTelegram) answer(w http.ResponseWriter, r *http.Request) {
	call, text := r.FormValue("callback_query_id"), r.FormValue("text")
	if !f.open[call] || len(utf16.Encode([]rune(text))) > 200 {
		apiError(400, "Bad Request: query is too old and response timeout expired or query ID is invalid", "")(w)
		return
	}
	f.answers[call] = append(f.answers[call], text)
	fmt.Fprint(w, `{"ok":true,"result":true}`)
}

// getUpdates forgets what is confirmed, and waits when nothing is left.
func (f *fakeTelegram) getUpdates(w http.ResponseWriter, r *http.Request) {
	var ask struct {
		Offset  int64 `json:"offset"`
		Timeout int   `json:"timeout"`
	}
	if r.URL.Path != "/bot"+f.token+"/getUpdates" || json.NewDecoder(r.Body).Decode(&ask) != nil {
		apiError(401, "Unauthorized", "")(w)
		return
	}
	f.mu.Lock()
	f.offsets = append(f.offsets, ask.Offset)
	f.mu.Unlock()
	timeout := time.After(time.Duration(ask.Timeout) * time.Second)
	for {
		f.mu.Lock()
		if len(f.next) > 0 {
			instead := f.next[0]
			f.next = f.next[1:]
			f.mu.Unlock()
			if !instead(w) {
				panic(http.ErrAbortHandler)
			}
			return
		}
		var left []map[string]any
		for _, u := range f.updates {
			if int64(u["update_id"].(int)) >= ask.Offset {
				left = append(left, u)
			}
		}
		f.updates = left
		f.mu.Unlock()
		if len(left) > 0 || ask.Timeout == 0 {
			if left == nil {
				left = []map[string]any{}
			}
			b, _ := json.Marshal(left)
			fmt.Fprintf(w, `{"ok":true,"result":%s}`, b)
			return
		}
		select {
		case <-r.Context().Done():
			return
		case <-f.more:
		case <-timeout:
			ask.Timeout = 0
		}
	}
}
