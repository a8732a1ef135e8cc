package notify

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// notebook writes down what was asked for, in the transaction it gets.
type notebook struct {
	answer string
	fail   error
}

const notebookSchema = `CREATE TABLE IF NOT EXISTS done (what TEXT NOT NULL)`

func (n *notebook) write(ctx context.Context, tx *sql.Tx, f From, what string) error {
	what = fmt.Sprintf("%d %s by %s in %d: %s of %s/%s", f.Update, what, f.Name, f.Chat, f.Ref, f.Channel, f.Thread)
	if _, err := tx.ExecContext(ctx, `INSERT INTO done VALUES (?)`, what); err != nil {
		return err
	}
	return n.fail
}

func (n *notebook) Press(ctx context.Context, tx *sql.Tx, p Press) (string, error) {
	return n.answer, n.write(ctx, tx, p.From, p.Callback.Verb+" "+p.Callback.Nonce)
}

func (n *notebook) Reply(ctx context.Context, tx *sql.Tx, r Reply) error {
	return n.write(ctx, tx, r.From, r.Text)
}

func (n *notebook) Say(ctx context.Context, tx *sql.Tx, s Said) error {
	return n.write(ctx, tx, s.From, fmt.Sprintf("/%s %s", s.Command, s.Text))
}

func done(t *testing.T, db *sql.DB) string {
	t.Helper()
	var list sql.NullString
	if err := db.QueryRow(`SELECT group_concat(what, '; ') FROM (SELECT what FROM done ORDER BY rowid)`).Scan(&list); err != nil {
		t.Fatal(err)
	}
	return list.String
}

// logs is what was logged.
type logs struct {
	mu  sync.Mutex
	buf strings.Builder
}

func (l *logs) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

func (l *logs) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}

// listener is an Updates on a database of its own, and what it logs.
func listener(t *testing.T, db *sql.DB, client *http.Client, api string, a Applier) (*Updates, *logs) {
	t.Helper()
	var log logs
	u, err := NewUpdates(UpdatesOptions{
		Token: "123:abc", APIURL: api, Client: client, DB: db, Channels: []string{"night", "me"}, Chats: []int64{42}, LockDir: t.TempDir(),
		Applier: a, Logger: slog.New(slog.NewTextHandler(&log, nil)),
	})
	if err != nil {
		t.Fatal(err)
	}
	return u, &log
}

func listenable(t *testing.T) *sql.DB {
	db := database(t)
	if _, err := db.Exec(Schema + notebookSchema); err != nil {
		t.Fatal(err)
	}
	return db
}

const ack = "v1:inc00001:ack:aaaaaa"

// What a human presses and writes arrives with what it is about, is answered, and never comes again.
func TestAnswersArrive(t *testing.T) {
	f, db := newFakeTelegram(t), listenable(t)
	o := outbox(t, db, map[string]Channel{"me": f.channel(t)})
	put(t, o, "me", Message{Key: "k", Thread: "incident/1", Text: Text{Body: "stalled"}, Buttons: [][]Button{{{Label: "Ack", Callback: Callback{"inc00001", "ack", "aaaaaa"}}}}})
	run(t, o, "me", 3)
	woken := 0
	u, log := listener(t, db, f.Client(), f.URL, &notebook{answer: strings.Repeat("ü", 300) + " password=hunter2"})
	u.opts.Changed = func() { woken++ }
	f.press(7, 5, 42, 1, ack)
	f.reply(8, 5, 42, 1, "yes, go on")
	f.reply(9, 5, 42, 77, "to what is forgotten")
	f.press(10, 5, 42, 1, "page:2") // of an earlier life of the bot
	f.press(11, 6, 43, 1, ack)      // a stranger
	f.reply(12, 6, 43, 1, "hello")
	if err := u.step(t.Context()); err != nil {
		t.Fatal(err)
	}
	want := "7 ack aaaaaa by @ada in 42: 42/1 of me/incident/1; 8 yes, go on by Ada in 42: 42/1 of me/incident/1; 9 to what is forgotten by Ada in 42: 42/77 of /"
	if got := done(t, db); got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
	answers := map[string][]string{"call7": {strings.Repeat("ü", 199) + "…"}, "call10": {answerUnknown}, "call11": {answerStranger}}
	if d := cmp.Diff(answers, f.answers); d != "" {
		t.Error(d)
	}
	if woken != 6 || strings.Count(log.String(), "chat=43 user=6 name=@ada") != 1 || strings.Count(log.String(), "chat=43 user=6 name=Ada") != 1 {
		t.Errorf("woken %d times; %s", woken, log)
	}
	again, _ := listener(t, db, f.Client(), f.URL, &notebook{})
	if err := again.step(t.Context()); err != nil || done(t, db) != want {
		t.Errorf("%v; %s", err, done(t, db))
	}
	if d := cmp.Diff([]int64{0, 13}, f.offsets); d != "" || len(f.updates) != 0 {
		t.Error("offsets", d, f.updates)
	}
}

// A list of users keeps out the others of the same group; a group that has moved is still the same one.
func TestWhoMayAnswer(t *testing.T) {
	f, db := newFakeTelegram(t), listenable(t)
	u, _ := listener(t, db, f.Client(), f.URL, &notebook{})
	u.opts.Users = []int64{5}
	if _, err := db.Exec(`INSERT INTO outbox_channel (name, moved_from, moved_to) VALUES ('me', '42', '-7')`); err != nil {
		t.Fatal(err)
	}
	f.press(1, 5, -7, 1, ack)
	f.press(2, 6, 42, 1, ack)
	f.press(3, 5, -8, 1, ack)
	if err := u.step(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := done(t, db); got != "1 ack aaaaaa by @ada in -7: -7/1 of /" {
		t.Error(got)
	}
}

// A press is answered also when its message is too old to be shown, and an answer that comes too late is given up.
func TestLatePresses(t *testing.T) {
	f, db := newFakeTelegram(t), listenable(t)
	u, _ := listener(t, db, f.Client(), f.URL, &notebook{answer: "already resolved 02:14"})
	f.press(1, 5, 42, 1, ack)
	f.updates[0]["callback_query"].(map[string]any)["message"].(map[string]any)["date"] = 0
	f.press(2, 5, 42, 1, ack)
	f.open["call2"] = false
	if err := u.step(t.Context()); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(map[string][]string{"call1": {"already resolved 02:14"}}, f.answers); d != "" {
		t.Error(d)
	}
	if err := u.step(t.Context()); err != nil {
		t.Error(err)
	}
}

// What cannot be applied is tried again with nothing left behind, and does not hold up the rest for ever.
func TestAnUpdateThatCannotBeApplied(t *testing.T) {
	f, db := newFakeTelegram(t), listenable(t)
	n := &notebook{fail: errors.New("no")}
	u, log := listener(t, db, f.Client(), f.URL, n)
	f.press(1, 5, 42, 1, ack)
	f.press(2, 5, 42, 1, ack)
	for range applyTries - 1 {
		if err := u.step(t.Context()); err == nil || done(t, db) != "" {
			t.Fatalf("%v; %s", err, done(t, db))
		}
	}
	if err := u.step(t.Context()); err == nil { // the second of them
		t.Fatal("no error")
	}
	n.fail, n.answer = nil, "done"
	if err := u.step(t.Context()); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(map[string][]string{"call1": {answerFailed}, "call2": {"done"}}, f.answers); d != "" || !strings.Contains(log.String(), "ignored") {
		t.Error(d, log)
	}
}

// Telegram begins to count anywhere after a week of silence: a number far behind is news, one just behind is not.
func TestNumbersBeginAnew(t *testing.T) {
	f, db := newFakeTelegram(t), listenable(t)
	u, _ := listener(t, db, f.Client(), f.URL, &notebook{})
	f.press(900001, 5, 42, 1, ack)
	if err := u.step(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, raw := range []string{`{"update_id":12}`, `{"update_id":12}`, `{"update_id":13,"message":{"chat":7}}`} {
		next, err := u.offset(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := u.apply(t.Context(), []byte(raw), next); err != nil {
			t.Error(err)
		}
	}
	if next, err := u.offset(t.Context()); next != 14 || err != nil {
		t.Errorf("offset %d, %v", next, err)
	}
	if _, err := u.apply(t.Context(), []byte(`{"message":{}}`), 14); err == nil {
		t.Error("an update without a number is not an error")
	}
}

func TestAfterPoll(t *testing.T) {
	for _, tc := range []struct {
		err   error
		tries int
		pause time.Duration
		leave bool
	}{
		{&pollError{Code: 409}, 0, conflictWait, true},
		{&pollError{Code: 401}, 0, time.Hour, true},
		{&pollError{Code: 404}, 0, time.Hour, true},
		{&pollError{Code: 429, RetryAfter: 7}, 3, 7 * time.Second, false},
		{&pollError{Code: 429}, 3, time.Second, false},
		{&pollError{Code: 500}, 0, time.Second, false},
		{errors.New("no route"), 2, 4 * time.Second, false},
		{errors.New("no route"), 70, time.Minute, false},
	} {
		if pause, leave := afterPoll(tc.err, tc.tries); pause != tc.pause || leave != tc.leave {
			t.Errorf("%v: %v %v", tc.err, pause, leave)
		}
	}
}

// Somebody else polls the bot: sending goes on, one warning, and later another try.
func TestSomebodyElsePolls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, db := newFakeWithoutNetwork(), listenable(t)
		u, log := listener(t, db, &http.Client{Transport: f}, "", &notebook{answer: "ok"})
		for range 3 {
			f.then(apiError(409, "Conflict: terminated by other getUpdates request; make sure that only one bot instance is running", ""))
		}
		ctx, cancel := context.WithCancel(t.Context())
		end := make(chan struct{})
		go func() {
			defer close(end)
			u.Run(ctx)
		}()
		f.press(1, 5, 42, 1, ack)
		time.Sleep(25 * time.Minute)
		synctest.Wait()
		if u.Hears() || done(t, db) != "" || strings.Count(log.String(), "WARN") != 1 || f.polls() != 3 {
			t.Errorf("%d polls; %s", f.polls(), log)
		}
		time.Sleep(6 * time.Minute)
		synctest.Wait()
		if !u.Hears() || done(t, db) == "" || !strings.Contains(log.String(), "are heard") {
			t.Errorf("it does not listen again: %s", log)
		}
		time.Sleep(10 * time.Minute) // nothing happens: one poll is open, for 50 s
		synctest.Wait()
		polls := f.polls()
		if polls != 3+1+14 { // in the way, what waited, 11 minutes
			t.Errorf("%d polls", polls)
		}
		f.press(2, 5, 42, 1, ack)
		synctest.Wait()
		if f.polls() != polls+1 || f.answered() != 2 {
			t.Errorf("%d polls, %d answers", f.polls()-polls, f.answered())
		}
		cancel()
		<-end
	})
}

// Two processes of ours never poll one bot; the second takes over when the first has ended.
func TestOneListenerPerBot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFakeWithoutNetwork()
		first, _ := listener(t, listenable(t), &http.Client{Transport: f}, "", &notebook{})
		var log logs
		second, err := NewUpdates(UpdatesOptions{
			Token: "123:abc", Client: &http.Client{Transport: f}, DB: listenable(t), LockDir: first.opts.LockDir, Applier: &notebook{},
			Logger: slog.New(slog.NewTextHandler(&log, nil)),
		})
		if err != nil {
			t.Fatal(err)
		}
		if filepath.Dir(second.lock.Path()) != first.opts.LockDir || strings.Contains(second.lock.Path(), "abc") {
			t.Errorf("the lock is %s", second.lock.Path())
		}
		ctx, cancel := context.WithCancel(t.Context())
		firstCtx, endFirst := context.WithCancel(ctx)
		ends := make(chan struct{}, 2)
		run := func(ctx context.Context, u *Updates) {
			u.Run(ctx)
			ends <- struct{}{}
		}
		go run(firstCtx, first)
		synctest.Wait()
		go run(ctx, second)
		time.Sleep(5 * time.Minute)
		synctest.Wait()
		if !first.Hears() || second.Hears() || strings.Count(log.String(), "another process listens") != 1 {
			t.Errorf("first %v, second %v; %s", first.Hears(), second.Hears(), log.String())
		}
		endFirst()
		<-ends
		time.Sleep(lockRetry + time.Second)
		synctest.Wait()
		if !second.Hears() {
			t.Errorf("the second does not take over: %s", log.String())
		}
		cancel()
		<-ends
	})
}

// Wherever the database or the network fails, and wherever we are killed: what was asked for happens once, and whoever
// asked gets an answer.
func TestListeningFailsAtEveryStep(t *testing.T) {
	everyFault(t, func(t *testing.T, f *fault) {
		server, path := newFakeTelegram(t), filepath.Join(t.TempDir(), "o.db")
		if _, err := openDatabase(t, "sqlite", path).Exec(Schema + notebookSchema); err != nil {
			t.Fatal(err)
		}
		server.press(1, 5, 42, 1, ack)
		server.reply(2, 5, 42, 1, "go on")
		server.press(3, 5, 42, 1, ack)
		for _, now := range []*fault{f, nil} {
			faulty.fault = now
			db, client := openDatabase(t, "faulty", path), server.Client()
			if now != nil {
				client = &http.Client{Transport: now}
			}
			u, _ := listener(t, db, client, server.URL, &notebook{answer: "ok"})
			for range 4 {
				_ = u.step(t.Context())
			}
			_ = db.Close()
		}
		want := "1 ack aaaaaa by @ada in 42: 42/1 of /; 2 go on by Ada in 42: 42/1 of /; 3 ack aaaaaa by @ada in 42: 42/1 of /"
		if got := done(t, openDatabase(t, "sqlite", path)); got != want {
			t.Errorf("%s\nwant %s", got, want)
		}
		for _, call := range []string{"call1", "call3"} {
			if got := server.answers[call]; len(got) == 0 || got[0] != "ok" {
				t.Errorf("%s was answered with %q", call, got)
			}
		}
	})
}

func FuzzUpdate(f *testing.F) {
	f.Add([]byte(`{"update_id":1,"callback_query":{"id":"c","from":{"id":5},"data":"v1:inc00001:ack:aaaaaa","message":{"message_id":1,"date":1,"chat":{"id":42}}}}`))
	f.Add([]byte(`{"update_id":2,"message":{"message_id":1,"date":1,"chat":{"id":42},"text":"x","reply_to_message":{"message_id":1,"from":{"id":123}}}}`))
	f.Add([]byte(`{"update_id":-1,"callback_query":{}}`))
	db, err := sql.Open("sqlite", ":memory:")
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { _ = db.Close() })
	db.SetMaxOpenConns(1)
	if _, err := db.Exec(Schema + notebookSchema); err != nil {
		f.Fatal(err)
	}
	server := newFakeWithoutNetwork()
	u, err := NewUpdates(UpdatesOptions{Token: "123:abc", Client: &http.Client{Transport: server}, DB: db, Chats: []int64{42}, LockDir: f.TempDir(), Applier: &notebook{}})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		before, err := u.offset(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		applied, err := u.apply(t.Context(), raw, before)
		if after, _ := u.offset(t.Context()); err != nil && (applied || after != before) {
			t.Errorf("%q: %v, and the offset is %d after %d", raw, err, after, before)
		}
	})
}

// hasty is a Bot API server that knows no long polls.
type hasty struct{ polls atomic.Int64 }

func (h *hasty) RoundTrip(*http.Request) (*http.Response, error) {
	h.polls.Add(1)
	return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(strings.NewReader(`{"ok":true,"result":[]}`))}, nil
}

// A server that does not wait is not asked all the time.
func TestAServerThatDoesNotWait(t *testing.T) {
	db := listenable(t)
	synctest.Test(t, func(t *testing.T) {
		var h hasty
		u, _ := listener(t, db, &http.Client{Transport: &h}, "http://bot.example", &notebook{})
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		u.Run(ctx)
		if n := h.polls.Load(); n < 9 || n > 12 {
			t.Errorf("%d polls in ten seconds", n)
		}
	})
}
