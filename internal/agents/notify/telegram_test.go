package notify

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func text(body string) Message { return Message{Key: "k", Text: Text{Body: body}} }

// PIV-11: what agents say arrives as it is, whatever it looks like; only what is ours is bold.
func TestNothingIsMarkup(t *testing.T) {
	f := newFakeTelegram(t)
	m := Message{Key: "k", Buttons: [][]Button{{{Label: "Ack", Callback: Callback{"inc00001", "ack", "aaaaaa"}}}, {}, {{Label: "Stop", Callback: Callback{"inc00001", "stop", "bbbbbb"}}}}}
	m.Text.WriteBold("🔴 Über")
	m.Text.Write("\n<b>&amp; *x* _y_ [z](u) \xff ")
	m.Text.WriteBold("Details:")
	if ref, err := f.channel(t).Send(t.Context(), m); err != nil || ref != "42/1" {
		t.Fatal(ref, err)
	}
	want := []message{{
		Chat: "42", Text: "🔴 Über\n<b>&amp; *x* _y_ [z](u) \uFFFD Details:", Bold: []string{"🔴 Über", "Details:"},
		Data: []string{"v1:inc00001:ack:aaaaaa", "v1:inc00001:stop:bbbbbb"},
	}}
	if d := cmp.Diff(want, f.messages()); d != "" {
		t.Error(d)
	}
}

// A message is changed where it stands, and its buttons go when they are no use any more.
func TestUpdateInPlace(t *testing.T) {
	f := newFakeTelegram(t)
	c := f.channel(t)
	first := Message{Key: "a", Text: Text{Body: "stalled"}, Buttons: [][]Button{{{Label: "Ack", Callback: Callback{"inc00001", "ack", "aaaaaa"}}}}}
	ref, err := c.Send(t.Context(), first)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 { // the second time it is not modified
		if err := c.Update(t.Context(), ref, text("recovered")); err != nil {
			t.Fatal(err)
		}
	}
	if d := cmp.Diff([]message{{Chat: "42", Text: "recovered"}}, f.messages()); d != "" || f.edits != 1 {
		t.Error(d, f.edits)
	}
	var gone *SendError
	for _, ref := range []string{"42/7", "-7/1", "what"} {
		if err := c.Update(t.Context(), ref, text("x")); !errors.As(err, &gone) || gone.Failure != Gone {
			t.Errorf("%s: %v", ref, err)
		}
	}
}

func TestCheck(t *testing.T) {
	f := newFakeTelegram(t)
	if name, err := f.channel(t).Check(t.Context()); err != nil || name != "night_bot" {
		t.Errorf("%q, %v", name, err)
	}
	f.token = "other"
	var failure *SendError
	if _, err := f.channel(t).Check(t.Context()); !errors.As(err, &failure) || failure.Failure != Refused {
		t.Errorf("a dead token: %v", err)
	}
	for _, o := range []TelegramOptions{{Token: "t"}, {ChatID: "1"}, {Token: "t", ChatID: "me"}} {
		if _, err := NewTelegram(o); err == nil {
			t.Errorf("%+v is not an error", o)
		}
	}
}

func TestFailuresMeanWhatTheBotAPISays(t *testing.T) {
	for _, tc := range []struct {
		name   string
		answer func(http.ResponseWriter) bool
		want   SendError
	}{
		{"429", apiError(429, "Too Many Requests: retry after 7", `"retry_after":7`), SendError{Failure: Limited, RetryAfter: 7 * time.Second}},
		{"401", apiError(401, "Unauthorized", ""), SendError{Failure: Refused}},
		{"403", apiError(403, "Forbidden: bot was blocked by the user", ""), SendError{Failure: Refused}},
		{"chat not found", apiError(400, "Bad Request: chat not found", ""), SendError{Failure: Refused}},
		{"400", apiError(400, "Bad Request: can't parse entities", ""), SendError{Failure: Rejected}},
		{"the topic is gone", apiError(400, "Bad Request: message thread not found", ""), SendError{Failure: Refused}},
		{"migrated", apiError(400, "Bad Request: group chat was upgraded", `"migrate_to_chat_id":-1001`), SendError{Failure: Moved, Address: "-1001"}},
		{"500", apiError(500, "Internal Server Error", ""), SendError{Failure: Unreachable}},
		{"a proxy's page", func(w http.ResponseWriter) bool { w.WriteHeader(502); _, _ = w.Write([]byte("<html>")); return true }, SendError{Failure: Unreachable}},
		{"no answer", unanswered, SendError{Failure: Unreachable, Unsure: true}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			f := newFakeTelegram(t)
			f.then(tc.answer)
			_, err := f.channel(t).Send(t.Context(), text("x"))
			var got *SendError
			if !errors.As(err, &got) {
				t.Fatalf("error %v", err)
			}
			if strings.Contains(err.Error(), "123:abc") {
				t.Errorf("the token is in %q", err)
			}
			if d := cmp.Diff(tc.want, SendError{Failure: got.Failure, RetryAfter: got.RetryAfter, Address: got.Address, Unsure: got.Unsure}); d != "" {
				t.Error(d)
			}
		})
	}
	f := newFakeTelegram(t)
	s := f.channel(t)
	f.Close()
	var got *SendError
	if _, err := s.Send(t.Context(), text("x")); !errors.As(err, &got) || got.Failure != Unreachable || got.Unsure {
		t.Errorf("nobody listens: %+v", got)
	}
}

func TestCallback(t *testing.T) {
	longest := Callback{"abcdEF12", strings.Repeat("v", 24), "A2b3C4"}
	if s := longest.String(); len(s) > 64 || longest.Valid() != nil {
		t.Errorf("%d bytes, %v", len(s), longest.Valid())
	}
	for _, s := range []string{"", "v1:abcdEF12:ack:A2b3C", "v2:abcdEF12:ack:A2b3C4", "v1:abcdEF12::A2b3C4", "v1:abcdEF1:ack:A2b3C4", "v1:abcdEF12:a k:A2b3C4", "v1:abcdEF12:ack:A2b3C4:x"} {
		if c, err := ParseCallback(s); !errors.Is(err, ErrCallback) {
			t.Errorf("%q became %v", s, c)
		}
	}
}

func FuzzParseCallback(f *testing.F) {
	f.Add("v1:abcdEF12:ack:A2b3C4")
	f.Add("v1::::")
	f.Fuzz(func(t *testing.T, s string) {
		if c, err := ParseCallback(s); err == nil && (c.String() != s || len(s) > 64) {
			t.Errorf("%q became %q", s, c.String())
		}
	})
}

func TestPace(t *testing.T) {
	begin := time.Date(2026, 3, 2, 2, 0, 0, 0, time.UTC)
	p := Pace{Gap: time.Second, PerMinute: 20}
	var sent []time.Time
	now := begin
	for range 60 {
		if due := p.next(sent); due.After(now) {
			now = due
		}
		sent = append(sent, now)
	}
	for i := range sent {
		if i >= 20 && sent[i].Sub(sent[i-20]) < time.Minute || i >= 1 && sent[i].Sub(sent[i-1]) < time.Second {
			t.Fatalf("message %d after %v", i, sent[i].Sub(begin))
		}
	}
	if took := now.Sub(begin); took != 2*time.Minute+19*time.Second {
		t.Errorf("60 messages took %v", took)
	}
	for chat, want := range map[string]int{"42": 0, "-100": 20, "@c": 20} {
		c, err := NewTelegram(TelegramOptions{Token: "1:t", ChatID: chat})
		if err != nil || c.Pace().PerMinute != want {
			t.Errorf("%s: %v, %v", chat, c.Pace(), err)
		}
	}
}

func TestOpen(t *testing.T) {
	for url, want := range map[string]string{
		"telegram://1:t@telegram?chats=42":                                  "*notify.Telegram",
		"telegram://1:t@127.0.0.1:8081?chats=@c&disabletls=yes":             "*notify.Telegram",
		"ntfy://host/topic":                                                 "*notify.Shoutrrr",
		"slack://hook:T00000000-B00000000-XXXXXXXXXXXXXXXXXXXXXXXX@webhook": "*notify.Shoutrrr",
		"discord://token@123456789":                                         "*notify.Shoutrrr",
		"telegram://1:t@telegram?chats=1,2":                                 "telegram: one chat for each channel",
		"telegram://1:t@telegram?chats=-100:7":                              "*notify.Telegram",
		"telegram://1:t@telegram?chats=-100:x":                              "telegram: behind chats=<chat>: belongs the number of a topic",
		"telegram://1:t@telegram":                                           "telegram: the chat is missing",
		"me":                                                                "this is not a URL: must be telegram:// or a Shoutrrr address",
		"carrier-pigeon://x":                                                `shoutrrr: unknown service: "carrier-pigeon"`,
		"ntfy://s3cret\x7f":                                                 "this is not a URL",
	} {
		c, err := Open(url, 0)
		got := fmt.Sprintf("%T", c)
		if err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%s: %s, want %s", url, got, want)
		}
	}
}
