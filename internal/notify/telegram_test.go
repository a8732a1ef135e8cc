package notify

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
	"pgregory.net/rapid"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// S4 Task 12: what agents say arrives as it is, whatever it looks like; only what is ours is bold.
func TestNothingIsMarkup(t *testing.T) {
	f := newFakeTelegram(t)
	var text Text
	text.WriteBold("🔴 Über")
	text.Write("\n<b>&amp; *x* _y_ [z](u) \xff ")
	text.WriteBold("Details:")
	if id, err := f.sender(t).Send(t.Context(), "42", text); err != nil || id != 1 {
		t.Fatal(id, err)
	}
	want := []message{{Chat: "42", Text: "🔴 Über\n<b>&amp; *x* _y_ [z](u) \uFFFD Details:", Bold: []string{"🔴 Über", "Details:"}}}
	if d := cmp.Diff(want, f.messages()); d != "" {
		t.Error(d)
	}
}

func TestCheck(t *testing.T) {
	f := newFakeTelegram(t)
	if name, err := f.sender(t).Check(t.Context()); err != nil || name != "night_bot" {
		t.Errorf("%q, %v", name, err)
	}
	f.token = "other"
	var failure *SendError
	if _, err := f.sender(t).Check(t.Context()); !errors.As(err, &failure) || failure.Failure != Refused {
		t.Errorf("a dead token: %v", err)
	}
	for _, o := range []TelegramOptions{{Token: "t"}, {ChatID: "1"}} {
		if _, err := NewTelegram(o); err == nil {
			t.Errorf("%+v is no error", o)
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
		{"migrated", apiError(400, "Bad Request: group chat was upgraded", `"migrate_to_chat_id":-1001`), SendError{Failure: Moved, Chat: "-1001"}},
		{"500", apiError(500, "Internal Server Error", ""), SendError{Failure: Unreachable}},
		{"a proxy's page", func(w http.ResponseWriter) bool { w.WriteHeader(502); _, _ = w.Write([]byte("<html>")); return true }, SendError{Failure: Unreachable}},
		{"no answer", unanswered, SendError{Failure: Unreachable, Unsure: true}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			f := newFakeTelegram(t)
			f.then(tc.answer)
			_, err := f.sender(t).Send(t.Context(), "42", Text{Body: "x"})
			var got *SendError
			if !errors.As(err, &got) {
				t.Fatalf("error %v", err)
			}
			if strings.Contains(err.Error(), "123:abc") {
				t.Errorf("the token is in %q", err)
			}
			if d := cmp.Diff(tc.want, SendError{Failure: got.Failure, RetryAfter: got.RetryAfter, Chat: got.Chat, Unsure: got.Unsure}); d != "" {
				t.Error(d)
			}
		})
	}
	f := newFakeTelegram(t)
	s := f.sender(t)
	f.Close()
	var got *SendError
	if _, err := s.Send(t.Context(), "42", Text{Body: "x"}); !errors.As(err, &got) || got.Failure != Unreachable || got.Unsure {
		t.Errorf("nobody listens: %+v", got)
	}
}

// S4 Task 12: a long message is split at ends of lines, each part fits, and nothing is lost but the white space between.
func TestSplit(t *testing.T) {
	var long Text
	for range 300 {
		long.WriteBold("Details:")
		long.Write(" twenty characters .\n")
	}
	parts := long.Split(MessageLimit)
	if len(parts) != 3 {
		t.Errorf("%d parts", len(parts))
	}
	for _, p := range parts {
		if !strings.HasPrefix(p.Body, "Details:") || !strings.HasSuffix(p.Body, ".") {
			t.Errorf("a line was cut: %.20q … %q", p.Body, p.Body[len(p.Body)-20:])
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		var text Text
		for range rapid.IntRange(0, 8).Draw(t, "pieces") {
			s := rapid.StringOf(rapid.SampledFrom([]rune("ab \n😀é<"))).Draw(t, "piece")
			if rapid.Bool().Draw(t, "bold") {
				text.WriteBold(s)
			} else {
				text.Write(s)
			}
		}
		limit := rapid.IntRange(2, 20).Draw(t, "limit")
		all, bold := "", 0
		for _, p := range text.Split(limit) {
			if n := units(p.Body); n == 0 || n > limit || !utf8.ValidString(p.Body) || strings.TrimSpace(p.Body) != p.Body {
				t.Fatalf("a part of %d units: %q", n, p.Body)
			}
			for _, b := range p.Bold {
				bold += len(strings.Join(strings.Fields(p.Body[b.Start:b.End]), ""))
			}
			all += p.Body
		}
		squeeze := func(s string) string { return strings.Join(strings.Fields(s), "") }
		if squeeze(all) != squeeze(text.Body) {
			t.Fatalf("%q became %q", text.Body, all)
		}
		want := 0
		for _, b := range text.Bold {
			want += len(squeeze(text.Body[b.Start:b.End]))
		}
		if bold != want {
			t.Fatalf("%d bytes are bold, want %d", bold, want)
		}
	})
}
