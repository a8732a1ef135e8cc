package notify

import (
	"testing"
)

// A text that replies to nothing is heard where there is somebody who may, and who speaks to us.
func TestTextsArrive(t *testing.T) {
	message := func(chat, user int64, more map[string]any) map[string]any {
		m := map[string]any{"message_id": 9, "date": 0, "chat": map[string]any{"id": chat, "type": "private"}, "from": map[string]any{"id": user, "first_name": "Ada"}}
		for k, v := range more {
			m[k] = v
		}
		return m
	}
	for name, tt := range map[string]struct {
		chats []int64
		users []int64
		own   string
		m     map[string]any
		want  string
	}{
		"a command":                      {m: message(42, 5, map[string]any{"text": "/Status@night_bot  shop "}), want: "7 /status shop by Ada in 42:  of me/"},
		"a text":                         {m: message(42, 5, map[string]any{"text": " hello\n"}), want: "7 / hello by Ada in 42:  of me/"},
		"in a group":                     {chats: []int64{-42}, m: message(-42, 5, map[string]any{"text": "hello all"})},
		"a command in a group":           {chats: []int64{-42}, m: message(-42, 5, map[string]any{"text": "/status"}), want: "7 /status  by Ada in -42:  of me/"},
		"from a stranger":                {m: message(43, 6, map[string]any{"text": "/status"})},
		"from somebody not on the list":  {users: []int64{5}, m: message(42, 6, map[string]any{"text": "/status"})},
		"from somebody on the list":      {users: []int64{5}, m: message(42, 5, map[string]any{"text": "/status"}), want: "7 /status  by Ada in 42:  of me/"},
		"from a bot":                     {m: message(42, 5, map[string]any{"text": "/status", "from": map[string]any{"id": 5, "is_bot": true, "first_name": "Bot"}})},
		"in the name of a channel":       {m: message(42, 5, map[string]any{"text": "/status", "sender_chat": map[string]any{"id": -9, "type": "channel"}})},
		"a picture":                      {m: message(42, 5, nil)},
		"where there is nowhere to tell": {own: "-", m: message(42, 5, map[string]any{"text": "/status"})},
	} {
		t.Run(name, func(t *testing.T) {
			f, db := newFakeTelegram(t), listenable(t)
			u, _ := listener(t, db, f.Client(), f.URL, &notebook{})
			u.opts.Users = tt.users
			if tt.chats != nil {
				u.opts.Chats = tt.chats
			}
			if tt.own != "-" {
				u.opts.Own = "me"
			}
			f.happen(map[string]any{"update_id": 7, "message": tt.m})
			if err := u.step(t.Context()); err != nil {
				t.Fatal(err)
			}
			if got := done(t, db); got != tt.want {
				t.Errorf("heard %q, want %q", got, tt.want)
			}
		})
	}
}
