package notify

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

// inGroup is a channel into a topic of one group.
func inGroup(t *testing.T, f *fakeTelegram, topic int) *Telegram {
	t.Helper()
	c, err := NewTelegram(TelegramOptions{Token: "123:abc", ChatID: "-42", Topic: topic, APIURL: f.URL, Client: f.Client()})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// Channels into one group together send no more than the group may get in any minute, also when they are opened anew.
func TestAGroupHasOnePace(t *testing.T) {
	f, db := newFakeTelegram(t), database(t)
	channels := func() map[string]Channel { return map[string]Channel{"me": inGroup(t, f, 0), "team": inGroup(t, f, 7)} }
	o := outbox(t, db, channels())
	for n := range 30 {
		put(t, o, []string{"me", "team"}[n%2], Message{Key: fmt.Sprint(n), Text: Text{Body: fmt.Sprint(n)}})
	}
	var sent []time.Duration
	now := begin
	for step := range 1000 {
		next := time.Time{}
		for _, name := range o.Channels() {
			before := len(f.messages())
			due, err := o.Deliver(t.Context(), name, now)
			if err != nil {
				t.Fatal(err)
			}
			if len(f.messages()) > before {
				sent = append(sent, now.Sub(begin))
			}
			if !due.IsZero() && (next.IsZero() || due.Before(next)) {
				next = due
			}
		}
		if next.IsZero() {
			break
		}
		if now = next; step == 9 { // a channel was added to the registry
			again := outbox(t, db, channels())
			again.KeepPace(o)
			o = again
		}
	}
	if len(sent) != 30 {
		t.Fatalf("%d messages were sent", len(sent))
	}
	for i, at := range sent {
		if i >= 18 && at-sent[i-18] < time.Minute || i > 0 && at-sent[i-1] < time.Second {
			t.Errorf("message %d after %v: %v", i, at, sent)
		}
	}
}

// Who asks is answered before what waits, also when the minute is full; but not while the service wants nothing at all.
func TestAnAnswerGoesFirst(t *testing.T) {
	f, db := newFakeTelegram(t), database(t)
	o := outbox(t, db, map[string]Channel{"me": inGroup(t, f, 0)})
	for n := range 40 {
		put(t, o, "me", Message{Key: fmt.Sprint(n), Text: Text{Body: fmt.Sprint(n)}})
	}
	now := begin
	for {
		next, err := o.Deliver(t.Context(), "me", now)
		if err != nil {
			t.Fatal(err)
		}
		if next.Sub(now) > 2*time.Second {
			break // the minute is full
		}
		now = next
	}
	asked := now.Add(time.Second)
	put(t, o, "me", Message{Key: "status/1", Text: Text{Body: "status"}, Asked: true})
	if _, err := o.Deliver(t.Context(), "me", asked); err != nil || !strings.HasSuffix(bodies(f), "-42 status") {
		t.Fatalf("%v: %s", err, bodies(f))
	}
	if n := len(f.messages()); n != 19 {
		t.Errorf("%d messages, want 18 and the answer", n)
	}
	f.then(apiError(429, "Too Many Requests", `"retry_after":30`))
	later := begin.Add(5 * time.Minute)
	if _, err := o.Deliver(t.Context(), "me", later); err == nil {
		t.Fatal("no 429")
	}
	put(t, o, "me", Message{Key: "status/2", Text: Text{Body: "status 2"}, Asked: true})
	if next, err := o.Deliver(t.Context(), "me", later.Add(time.Second)); err != nil || next.Sub(later) != 30*time.Second {
		t.Errorf("next after %v, %v", next.Sub(later), err)
	}
	if _, err := o.Deliver(t.Context(), "me", later.Add(30*time.Second)); err != nil || !strings.HasSuffix(bodies(f), "-42 status 2") {
		t.Errorf("%v: %s", err, bodies(f))
	}
	run(t, o, "me", 200)
	var order []string
	for _, m := range f.messages() {
		if !strings.HasPrefix(m.Text, "status") {
			order = append(order, m.Text)
		}
	}
	want := make([]string, 40)
	for n := range want {
		want[n] = fmt.Sprint(n)
	}
	if !slices.Equal(order, want) {
		t.Errorf("the others came as %q", order)
	}
}
