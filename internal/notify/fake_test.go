package notify

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"unicode/utf16"
)

// fakeTelegram is as strict as the Bot API where it matters to us: path and token, 1 to 4096 UTF-16 code units, entities
// inside the text, the shape of every error.
type fakeTelegram struct {
	*httptest.Server
	token string

	mu   sync.Mutex
	got  []message
	next []func(w http.ResponseWriter) bool // what happens instead of success; false: go on as usual afterwards
}

type message struct {
	Chat string
	Text string
	Bold []string
}

func newFakeTelegram(t *testing.T) *fakeTelegram {
	f := &fakeTelegram{token: "123:abc"}
	f.Server = httptest.NewServer(http.HandlerFunc(f.serve))
	t.Cleanup(f.Close)
	return f
}

func (f *fakeTelegram) sender(t *testing.T) *Telegram {
	t.Helper()
	s, err := NewTelegram(TelegramOptions{Token: "123:abc", ChatID: "42", APIURL: f.URL + "/", Client: f.Client()})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// then queues what happens to the next requests, in order.
func (f *fakeTelegram) then(steps ...func(http.ResponseWriter) bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.next = append(f.next, steps...)
}

func (f *fakeTelegram) messages() []message {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]message(nil), f.got...)
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
	f.mu.Lock()
	defer f.mu.Unlock()
	var instead func(http.ResponseWriter) bool
	if len(f.next) > 0 {
		instead, f.next = f.next[0], f.next[1:]
	}
	switch {
	case !strings.HasPrefix(r.URL.Path, "/bot"+f.token+"/"):
		apiError(401, "Unauthorized", "")(w)
	case strings.HasSuffix(r.URL.Path, "/getMe"):
		fmt.Fprint(w, `{"ok":true,"result":{"id":123,"is_bot":true,"first_name":"n","username":"night_bot"}}`)
	case !strings.HasSuffix(r.URL.Path, "/sendMessage"):
		apiError(404, "Not Found", "")(w)
	default:
		f.send(w, r, instead)
	}
}

func (f *fakeTelegram) send(w http.ResponseWriter, r *http.Request, instead func(http.ResponseWriter) bool) {
	_ = r.ParseMultipartForm(1 << 20)
	if instead != nil {
		if instead(w) {
			return
		}
		defer panic(http.ErrAbortHandler)
	}
	m := message{Chat: r.FormValue("chat_id"), Text: r.FormValue("text")}
	text := utf16.Encode([]rune(m.Text))
	if len(text) == 0 || len(text) > 4096 || r.FormValue("parse_mode") != "" {
		apiError(400, "Bad Request: message is too long", "")(w)
		return
	}
	var entities []struct {
		Type           string
		Offset, Length int
	}
	if s := r.FormValue("entities"); s != "" && json.Unmarshal([]byte(s), &entities) != nil {
		apiError(400, "Bad Request: can't parse entities", "")(w)
		return
	}
	for _, e := range entities {
		if e.Type != "bold" || e.Offset < 0 || e.Length <= 0 || e.Offset+e.Length > len(text) {
			apiError(400, "Bad Request: entity beyond the message", "")(w)
			return
		}
		m.Bold = append(m.Bold, string(utf16.Decode(text[e.Offset:e.Offset+e.Length])))
	}
	f.got = append(f.got, m)
	fmt.Fprintf(w, `{"ok":true,"result":{"message_id":%d,"date":1,"chat":{"id":42,"type":"private"},"text":"x"}}`, len(f.got))
}
