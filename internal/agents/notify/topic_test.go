package notify

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"testing"
)

// A channel's messages go to its topic, an answer to the topic of the question; General has no number of its own in a request.
func TestMessagesGoToTheirTopic(t *testing.T) {
	f := newFakeTelegram(t)
	for i, tc := range []struct {
		channel, message int
		want             string
	}{{0, 0, ""}, {7, 0, "7"}, {7, 9, "9"}, {7, 1, ""}, {1, 0, ""}, {0, 9, "9"}} {
		c, err := NewTelegram(TelegramOptions{Token: "123:abc", ChatID: "-42", Topic: tc.channel, APIURL: f.URL, Client: f.Client()})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.Send(t.Context(), Message{Key: "k", Text: Text{Body: "x"}, Topic: tc.message}); err != nil {
			t.Fatal(err)
		}
		if got := f.topics[i+1]; got != tc.want {
			t.Errorf("channel in topic %d, message for topic %d: sent to %q, want %q", tc.channel, tc.message, got, tc.want)
		}
	}
	for url, want := range map[string]int{"telegram://1:t@telegram?chats=-100:7": 7, "telegram://1:t@telegram?chats=-100": 0} {
		c, err := Open(url, 0)
		if telegram, ok := c.(*Telegram); err != nil || !ok || telegram.topic != want || telegram.Address() != "-100" {
			t.Errorf("%s: %+v, %v", url, c, err)
		}
	}
	if c, err := Open("telegram://1:t@telegram?chats=-100:7", 9); err != nil || c.(*Telegram).topic != 9 {
		t.Errorf("the registry's topic: %+v, %v", c, err)
	}
	if _, err := Open("ntfy://host/x", 9); err == nil {
		t.Error("ntfy has a topic of Telegram's")
	}
}

// A topic that is gone stops the channel whose it is; an answer to a question in it is given up alone.
func TestAnAnswerIntoATopicThatIsGone(t *testing.T) {
	f, db := newFakeTelegram(t), database(t)
	o := outbox(t, db, map[string]Channel{"me": f.channel(t)})
	put(t, o, "me", Message{Key: "status/1", Text: Text{Body: "status"}, Topic: 7, Asked: true})
	put(t, o, "me", Message{Key: "a", Text: Text{Body: "a"}})
	gone := apiError(400, "Bad Request: message thread not found", "")
	f.then(gone, gone)
	run(t, o, "me", 10)
	if got := bodies(f); got != "42 a" {
		t.Errorf("arrived: %s", got)
	}
}

// places remembers in which topic people wrote.
type places []string

func (p *places) Press(context.Context, *sql.Tx, Press) (string, error) {
	return "", errors.New("nothing was pressed")
}

func (p *places) Reply(_ context.Context, _ *sql.Tx, r Reply) error {
	*p = append(*p, fmt.Sprintf("reply in %d", r.Topic))
	return nil
}

func (p *places) Say(_ context.Context, _ *sql.Tx, s Said) error {
	*p = append(*p, fmt.Sprintf("/%s in %d", s.Command, s.Topic))
	return nil
}

// Where a question was asked is known. What is written in a topic replies to the notice of its creation, also the bot's own.
func TestTheTopicOfAQuestion(t *testing.T) {
	group := map[string]any{"id": -42, "type": "supergroup", "is_forum": true}
	bot := map[string]any{"id": 123, "is_bot": true, "first_name": "n"}
	for name, tc := range map[string]struct {
		more map[string]any
		want string
	}{
		"in a topic": {map[string]any{"chat": group, "message_thread_id": 7, "is_topic_message": true}, "/status in 7"},
		"in a topic of the bot's": {map[string]any{"chat": group, "message_thread_id": 7, "is_topic_message": true, "reply_to_message": map[string]any{
			"message_id": 7, "date": 1, "chat": group, "from": bot, "forum_topic_created": map[string]any{"name": "x", "icon_color": 1},
		}}, "/status in 7"},
		"in General":                {map[string]any{"chat": group}, "/status in 1"},
		"in a group without topics": {map[string]any{"chat": map[string]any{"id": -42, "type": "supergroup"}, "message_thread_id": 3}, "/status in 0"},
		"a reply in a topic": {map[string]any{"chat": group, "message_thread_id": 7, "is_topic_message": true, "reply_to_message": map[string]any{
			"message_id": 3, "date": 1, "chat": group, "from": bot,
		}}, "reply in 7"},
	} {
		t.Run(name, func(t *testing.T) {
			f, db, heard := newFakeTelegram(t), listenable(t), &places{}
			u, _ := listener(t, db, f.Client(), f.URL, heard)
			u.opts.Chats, u.opts.Own = []int64{-42}, "me"
			m := map[string]any{"message_id": 9, "date": 1, "from": map[string]any{"id": 5, "first_name": "Ada"}, "text": "/status"}
			for k, v := range tc.more {
				m[k] = v
			}
			f.happen(map[string]any{"update_id": 7, "message": m})
			if err := u.step(t.Context()); err != nil {
				t.Fatal(err)
			}
			if len(*heard) != 1 || (*heard)[0] != tc.want {
				t.Errorf("heard %q, want %q", *heard, tc.want)
			}
		})
	}
}
