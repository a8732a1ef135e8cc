// Package faketelegram is a Bot API server on the loopback for tests: as strict as Telegram where a client can go wrong.
//
// It checks the token, 1 to 4096 UTF-16 code units of text, entities within the text, 1 to 64 bytes of callback_data, 200
// characters of an answer, callback queries that exist; it keeps updates until an offset confirms them, holds a long poll
// open, ends it with 409 when another begins or a webhook is set, says "message is not modified", and can limit rates with
// 429 and retry_after.
//
// Goroutines: those of net/http, which Close ends.
package faketelegram

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"time"
)

// Message is what a chat shows.
type Message struct {
	ID      int
	Chat    string
	Text    string
	Bold    []string // the parts that are bold
	Buttons []Button
	Silent  bool
	Edits   int
}

// Button is one of a message's buttons.
type Button struct{ Label, Data string }

// Answer says that something goes wrong with a request: the Bot API's own error, or a broken connection.
type Answer struct {
	Method      string // which request; "": the next, whatever it is
	Code        int    // 0: the connection breaks
	Description string
	RetryAfter  int   // seconds
	MigrateTo   int64 // the chat's new number
	Done        bool  // the request is carried out all the same: only its answer is lost
}

// Server is the Bot API with one bot.
type Server struct {
	Token string // of the bot; its number comes first
	// Webhook says that one is set: nobody can poll then.
	Webhook bool
	// Limits turns on the limits of rates: one message a second to a chat, 20 a minute to a group.
	Limits bool

	http *httptest.Server

	mu       sync.Mutex
	changed  chan struct{} // closed, and replaced, when something has changed
	messages []*Message
	lastSent map[string][]time.Time
	planned  []Answer
	updates  []update
	nextID   int64
	calls    map[string]bool     // callback queries that can be answered
	answers  map[string][]string // what they were answered
	poll     int                 // the poll that is open, or was last
	requests []string
}

type update struct {
	id   int64
	body map[string]any
}

// New starts a server. Close ends it.
func New(token string) *Server {
	s := &Server{
		Token: token, changed: make(chan struct{}), lastSent: map[string][]time.Time{}, nextID: 1000,
		calls: map[string]bool{}, answers: map[string][]string{},
	}
	s.http = httptest.NewServer(http.HandlerFunc(s.serve))
	return s
}

// URL is what TELEGRAM_API_URL is set to.
func (s *Server) URL() string { return s.http.URL }

// Close ends the server and the polls that are open.
func (s *Server) Close() {
	s.http.CloseClientConnections()
	s.http.Close()
}

// Plan lets something go wrong with the next request of a method.
func (s *Server) Plan(a ...Answer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.planned = append(s.planned, a...)
}

// Messages is what all chats show, oldest first.
func (s *Server) Messages() []Message {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := make([]Message, len(s.messages))
	for i, m := range s.messages {
		list[i] = *m
	}
	return list
}

// Delete lets a human delete a message.
func (s *Server) Delete(id int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, m := range s.messages {
		if m.ID == id {
			s.messages = append(s.messages[:i:i], s.messages[i+1:]...)
			break
		}
	}
	s.change()
}

// Press lets a user press a button of a message, and returns the callback query.
func (s *Server) Press(user int64, message int, data string) (call string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	call = fmt.Sprint("call-", s.nextID)
	s.calls[call] = true
	s.happen(map[string]any{"callback_query": map[string]any{
		"id": call, "chat_instance": "1", "from": person(user), "message": s.reference(message), "data": data,
	}})
	return call
}

// Expire makes a callback query too old to be answered.
func (s *Server) Expire(call string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.calls, call)
}

// Reply lets a user reply to a message.
func (s *Server) Reply(user int64, message int, text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	to := s.reference(message)
	s.happen(map[string]any{"message": map[string]any{
		"message_id": 1_000_000 + s.nextID, "date": time.Now().Unix(), "chat": to["chat"], "from": person(user), "text": text, "reply_to_message": to,
	}})
}

// Write lets a user write in a chat by themselves.
func (s *Server) Write(user int64, to, text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.happen(map[string]any{"message": map[string]any{
		"message_id": 1_000_000 + s.nextID, "date": time.Now().Unix(), "chat": chat(to), "from": person(user), "text": text,
	}})
}

// Answers are the texts that a callback query was answered with.
func (s *Server) Answers(call string) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.answers[call]...)
}

// Pending is how many updates are not confirmed.
func (s *Server) Pending() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.updates)
}

// Requests are the methods that were called, in order.
func (s *Server) Requests() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.requests...)
}

// Wait waits until the server shows what is wanted, or the time is over; it looks after every change.
func (s *Server) Wait(limit time.Duration, wanted func() bool) bool {
	end := time.After(limit)
	for {
		s.mu.Lock()
		changed := s.changed
		s.mu.Unlock()
		if wanted() {
			return true
		}
		select {
		case <-changed:
		case <-end:
			return wanted()
		}
	}
}

// change is called with mu held.
func (s *Server) change() {
	close(s.changed)
	s.changed = make(chan struct{})
}

// happen is called with mu held.
func (s *Server) happen(body map[string]any) {
	body["update_id"] = s.nextID
	s.updates = append(s.updates, update{s.nextID, body})
	s.nextID++
	s.change()
}

func person(id int64) map[string]any {
	return map[string]any{"id": id, "is_bot": false, "first_name": fmt.Sprint("User ", id)}
}

// reference is a message as an update shows it. It is called with mu held.
func (s *Server) reference(id int) map[string]any {
	for _, m := range s.messages {
		if m.ID == id {
			return map[string]any{
				"message_id": id, "date": 1, "chat": chat(m.Chat), "text": m.Text,
				"from": map[string]any{"id": s.bot(), "is_bot": true, "first_name": "night", "username": "night_bot"},
			}
		}
	}
	return map[string]any{"message_id": id, "date": 0, "chat": chat("0")} // Telegram's "inaccessible message"
}

func chat(name string) map[string]any {
	var id int64
	_, _ = fmt.Sscan(name, &id)
	kind := "private"
	if id < 0 {
		kind = "supergroup"
	}
	return map[string]any{"id": id, "type": kind}
}

func (s *Server) bot() json.Number {
	number, _, _ := strings.Cut(s.Token, ":")
	return json.Number(number)
}
