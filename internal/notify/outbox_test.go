package notify

import (
	"context"
	"database/sql"
	"errors"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	_ "modernc.org/sqlite"
)

func database(t *testing.T) *sql.DB {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+filepath.Join(t.TempDir(), "o.db"))
	if err != nil {
		t.Fatal(err)
	}
	db.SetMaxOpenConns(1)
	t.Cleanup(func() { _ = db.Close() })
	if _, err := db.Exec(Schema); err != nil {
		t.Fatal(err)
	}
	return db
}

func put(t *testing.T, db *sql.DB, key, body string) {
	t.Helper()
	tx, err := db.Begin()
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(Put(t.Context(), tx, key, Text{Body: body}), tx.Commit()); err != nil {
		t.Fatal(err)
	}
}

// run delivers until nothing waits, and returns the pauses it was told to make, added up.
func run(t *testing.T, db *sql.DB, s Sender, steps int) time.Duration {
	t.Helper()
	o, err := NewOutbox(t.Context(), db, "42")
	if err != nil {
		t.Fatal(err)
	}
	begin := time.Date(2026, 3, 2, 2, 0, 0, 0, time.UTC)
	now := begin
	for range steps {
		next, _ := o.Deliver(t.Context(), now, s)
		if next.IsZero() {
			break
		}
		if next.Before(now) {
			t.Fatalf("the next try is in the past: %v", next)
		}
		now = next
	}
	return now.Sub(begin)
}

func bodies(f *fakeTelegram) string {
	var list []string
	for _, m := range f.messages() {
		list = append(list, m.Chat+" "+strings.ReplaceAll(m.Text, again, " (again)"))
	}
	return strings.Join(list, "; ")
}

// Whatever happens on the way, every message arrives, in order, once; twice only when the first one's fate is unknown,
// and then it says so.
func TestEveryMessageArrives(t *testing.T) {
	for _, tc := range []struct {
		name  string
		chaos func(f *fakeTelegram)
		want  string
		least time.Duration // how long it takes
	}{
		{"nothing happens", func(*fakeTelegram) {}, "42 a; 42 b; 42 c", 2 * time.Second},
		{"429", func(f *fakeTelegram) { f.then(apiError(429, "Too Many Requests", `"retry_after":30`)) }, "42 a; 42 b; 42 c", 32 * time.Second},
		{"5xx for a while", func(f *fakeTelegram) {
			for range 4 {
				f.then(apiError(502, "Bad Gateway", ""))
			}
		}, "42 a; 42 b; 42 c", 30 * time.Second},
		{"a dead token, later a living one", func(f *fakeTelegram) { f.then(apiError(401, "Unauthorized", "")) }, "42 a; 42 b; 42 c", time.Hour},
		{"the group has moved", func(f *fakeTelegram) { f.then(apiError(400, "Bad Request: upgraded", `"migrate_to_chat_id":-7`)) }, "-7 a; -7 b; -7 c", 3 * time.Second},
		{"a formatting it does not like", func(f *fakeTelegram) { f.then(apiError(400, "Bad Request: can't parse entities", "")) }, "42 a; 42 b; 42 c", 3 * time.Second},
		{"a message it never takes", func(f *fakeTelegram) {
			f.then(apiError(400, "Bad Request: text", ""), apiError(400, "Bad Request: text", ""))
		}, "42 b; 42 c", 3 * time.Second},
		{"the answer is lost", func(f *fakeTelegram) { f.then(unanswered) }, "42 a; 42 a (again); 42 b; 42 c", 2 * time.Second},
	} {
		t.Run(tc.name, func(t *testing.T) {
			f, db := newFakeTelegram(t), database(t)
			for _, s := range []string{"a", "b", "c", "a"} { // the last is put a second time
				put(t, db, "incident/"+s, s)
			}
			tc.chaos(f)
			took := run(t, db, f.sender(t), 50)
			if got := bodies(f); got != tc.want {
				t.Errorf("arrived: %s\nwant:    %s", got, tc.want)
			}
			if took < tc.least {
				t.Errorf("it took %v, want at least %v", took, tc.least)
			}
		})
	}
}

// A part of a long message that was sent is not sent again for the sake of the others.
func TestALongMessageIsNotBegunAgain(t *testing.T) {
	f, db := newFakeTelegram(t), database(t)
	put(t, db, "long", strings.Repeat(strings.Repeat("x", 99)+"\n", 100))
	run(t, db, f.sender(t), 1)
	f.then(apiError(429, "Too Many Requests", `"retry_after":1`), apiError(502, "Bad Gateway", ""))
	run(t, db, f.sender(t), 20)
	total := 0
	for _, m := range f.messages() {
		total += strings.Count(m.Text, "x")
	}
	if len(f.messages()) != 3 || total != 9900 {
		t.Errorf("%d messages with %d characters, want 3 with 9900", len(f.messages()), total)
	}
}

// killed dies while it sends: the message may have gone out, or not.
type killed struct{ f Sender }

func (k killed) Send(ctx context.Context, chat string, text Text) (int, error) {
	if k.f != nil {
		_, _ = k.f.Send(ctx, chat, text)
	}
	runtime.Goexit() // nothing is written down any more
	return 0, nil
}

func TestAKillWhileSendingLosesNothing(t *testing.T) {
	for name, tc := range map[string]struct {
		sent bool
		want string
	}{"before it went out": {false, "42 a (again); 42 b"}, "after it went out": {true, "42 a; 42 a (again); 42 b"}} {
		t.Run(name, func(t *testing.T) {
			f, db := newFakeTelegram(t), database(t)
			put(t, db, "a", "a")
			put(t, db, "b", "b")
			var s Sender
			if tc.sent {
				s = f.sender(t)
			}
			done := make(chan struct{})
			go func() {
				defer close(done)
				o, err := NewOutbox(t.Context(), db, "42")
				if err == nil {
					_, _ = o.Deliver(t.Context(), time.Now(), killed{s})
				}
			}()
			<-done
			o, err := NewOutbox(t.Context(), db, "42")
			if n, err2 := o.Waiting(t.Context()); err != nil || err2 != nil || n != 2 {
				t.Errorf("%d wait, %v %v", n, err, err2)
			}
			run(t, db, f.sender(t), 10)
			if got := bodies(f); got != tc.want {
				t.Errorf("arrived: %s\nwant:    %s", got, tc.want)
			}
		})
	}
}

// What was refused is tried again at once by a new start: somebody may have set the right token.
func TestANewStartTriesAgain(t *testing.T) {
	f, db := newFakeTelegram(t), database(t)
	put(t, db, "a", "a")
	f.then(apiError(403, "Forbidden", ""))
	o, err := NewOutbox(t.Context(), db, "42")
	if err != nil {
		t.Fatal(err)
	}
	now := time.Date(2026, 3, 2, 2, 0, 0, 0, time.UTC)
	if next, err := o.Deliver(t.Context(), now, f.sender(t)); err == nil || next.Sub(now) != time.Hour {
		t.Errorf("next %v, %v", next, err)
	}
	if err := o.Retry(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := o.Deliver(t.Context(), now, f.sender(t)); err != nil || bodies(f) != "42 a" {
		t.Errorf("%s, %v", bodies(f), err)
	}
}
