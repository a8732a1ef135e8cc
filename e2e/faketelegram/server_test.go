package faketelegram

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"
)

// call makes a request and returns the status and the answer as JSON.
func call(t *testing.T, s *Server, token, method string, p map[string]any) string {
	t.Helper()
	b, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	r, err := http.Post(s.URL()+"/bot"+token+"/"+method, "application/json", bytes.NewReader(b))
	if err != nil {
		return "broken"
	}
	defer r.Body.Close()
	var answer any
	if err := json.NewDecoder(r.Body).Decode(&answer); err != nil {
		return "broken"
	}
	out, _ := json.Marshal(answer)
	return fmt.Sprint(r.StatusCode, " ", string(out))
}

// The server refuses what Telegram refuses, in its words.
func TestStrict(t *testing.T) {
	s := New("7:t")
	defer s.Close()
	long := strings.Repeat("😀", 2048) // 4096 UTF-16 code units
	keys := func(data string) map[string]any {
		return map[string]any{"inline_keyboard": [][]any{{map[string]any{"text": "Ack", "callback_data": data}}}}
	}
	press := s.Press(5, 1, "x")
	for _, tc := range []struct {
		token, method string
		p             map[string]any
		want          string
	}{
		{"8:t", "getMe", nil, `"Unauthorized"`},
		{"7:t", "getMe", nil, `"username":"night_bot"`},
		{"7:t", "sendPhoto", nil, `404 `},
		{"7:t", "sendMessage", map[string]any{"chat_id": 42, "text": long}, `"message_id":1`},
		{"7:t", "sendMessage", map[string]any{"chat_id": 42, "text": long + "x"}, `message is too long`},
		{"7:t", "sendMessage", map[string]any{"chat_id": 42, "text": " "}, `message text is empty`},
		{"7:t", "sendMessage", map[string]any{"text": "x"}, `chat_id is empty`},
		{"7:t", "sendMessage", map[string]any{"chat_id": 42, "text": "😀b", "entities": []any{map[string]any{"type": "bold", "offset": 2, "length": 1}}}, `"message_id":2`},
		{"7:t", "sendMessage", map[string]any{"chat_id": 42, "text": "😀b", "entities": []any{map[string]any{"type": "bold", "offset": 2, "length": 2}}}, `entity beyond`},
		{"7:t", "sendMessage", map[string]any{"chat_id": 42, "text": "x", "reply_markup": keys(strings.Repeat("d", 64))}, `"message_id":3`},
		{"7:t", "sendMessage", map[string]any{"chat_id": 42, "text": "x", "reply_markup": keys(strings.Repeat("ü", 33))}, `BUTTON_DATA_INVALID`},
		{"7:t", "editMessageText", map[string]any{"chat_id": 42, "message_id": 3, "text": "x", "reply_markup": keys(strings.Repeat("d", 64))}, `message is not modified`},
		{"7:t", "editMessageText", map[string]any{"chat_id": 42, "message_id": 3, "text": "x"}, `"message_id":3`},
		{"7:t", "editMessageText", map[string]any{"chat_id": 42, "message_id": 9, "text": "x"}, `message to edit not found`},
		{"7:t", "answerCallbackQuery", map[string]any{"callback_query_id": press, "text": strings.Repeat("ü", 201)}, `MESSAGE_TOO_LONG`},
		{"7:t", "answerCallbackQuery", map[string]any{"callback_query_id": press, "text": "done"}, `"result":true`},
		{"7:t", "answerCallbackQuery", map[string]any{"callback_query_id": "other"}, `query is too old`},
	} {
		if got := call(t, s, tc.token, tc.method, tc.p); !strings.Contains(got, tc.want) {
			t.Errorf("%s %.120v: %s, want %s", tc.method, tc.p, got, tc.want)
		}
	}
	list := s.Messages()
	if len(list) != 3 || len(list[1].Bold) != 1 || list[1].Bold[0] != "b" || len(list[2].Buttons) != 0 || list[2].Edits != 1 {
		t.Errorf("%+v", list)
	}
}

// Updates stay until an offset confirms them; a poll waits for the next; another one ends it.
func TestPolls(t *testing.T) {
	s := New("7:t")
	defer s.Close()
	poll := func(offset, timeout int) string {
		return call(t, s, "7:t", "getUpdates", map[string]any{"offset": offset, "timeout": timeout})
	}
	if got := poll(0, 0); got != `200 {"ok":true,"result":[]}` {
		t.Error(got)
	}
	s.Press(5, 1, "first")
	for range 2 {
		if got := poll(0, 0); !strings.Contains(got, `"first"`) {
			t.Error(got)
		}
	}
	answers := make(chan string, 2)
	go func() { answers <- poll(1001, 60) }()
	if !s.Wait(10*time.Second, func() bool { return s.Pending() == 0 }) {
		t.Fatal("the offset confirms nothing")
	}
	go func() { answers <- poll(1001, 60) }()
	if got := <-answers; !strings.Contains(got, "409") || !strings.Contains(got, "terminated by other getUpdates") {
		t.Error(got)
	}
	s.Reply(5, 1, "second")
	if got := <-answers; !strings.Contains(got, `"second"`) {
		t.Error(got)
	}
	s.Webhook = true
	if got := poll(0, 0); !strings.Contains(got, "webhook is active") {
		t.Error(got)
	}
}

// What is planned happens once; limits of rates are told with the time to wait.
func TestTrouble(t *testing.T) {
	s := New("7:t")
	defer s.Close()
	send := func(chat int) string {
		return call(t, s, "7:t", "sendMessage", map[string]any{"chat_id": chat, "text": "x"})
	}
	s.Plan(Answer{Method: "sendMessage", Code: 400, Description: "Bad Request: upgraded", MigrateTo: -9}, Answer{Done: true}, Answer{Code: 429, Description: "later", RetryAfter: 3})
	for _, want := range []string{`"migrate_to_chat_id":-9`, "broken", `"retry_after":3`, `"message_id":2`} {
		if got := send(42); !strings.Contains(got, want) {
			t.Errorf("%s, want %s", got, want)
		}
	}
	s.Limits = true
	if got := send(-1); !strings.Contains(got, `"ok":true`) {
		t.Error(got)
	}
	if got := send(-1); !strings.Contains(got, `"retry_after":1`) {
		t.Error(got)
	}
	now := time.Now()
	for i := range 19 {
		if no := s.limit("-1", now.Add(time.Duration(i+2)*time.Second)); no != nil {
			t.Errorf("message %d: %v", i, no)
		}
	}
	if no := s.limit("-1", now.Add(30*time.Second)); no == nil || no.parameters["retry_after"].(int) < 25 {
		t.Errorf("the 21st in a minute: %+v", no)
	}
}
