package control

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/outlive-mcp/outlive/internal/record/event"
	"github.com/outlive-mcp/outlive/internal/testing/await"
	"github.com/outlive-mcp/outlive/internal/testing/tier"
)

// followed is what one follower has heard.
type followed struct {
	news  chan News
	ended chan error
	leave context.CancelFunc
}

func follow(t *testing.T, i Instance, after string) followed {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	f := followed{make(chan News, 2*feedEvents), make(chan error, 1), cancel}
	go func() {
		f.ended <- i.Follow(ctx, after, func() {}, func(n News) {
			n.Line = append([]byte(nil), n.Line...)
			f.news <- n
		})
	}()
	t.Cleanup(func() {
		cancel()
		<-f.ended
		f.ended <- nil
	})
	return f
}

func (f followed) next(t *testing.T) (n News, message string) {
	t.Helper()
	select {
	case n = <-f.news:
	case <-time.After(2 * time.Minute):
		t.Fatal("no event came")
	}
	var line struct{ Message string }
	if n.Line != nil {
		if err := json.Unmarshal(n.Line, &line); err != nil {
			t.Fatalf("%s: %v", n.Line, err)
		}
	}
	return n, line.Message
}

func say(f *Feed, message string) {
	f.Emit(event.Event{Type: event.ServerReady, Time: time.Unix(1700000000, 0), Message: message})
}

// awaitFollowers waits until so many listen.
func awaitFollowers(t *testing.T, f *Feed, want int) {
	t.Helper()
	await.Value(t, fmt.Sprintf("%d followers", want), func() (int, bool) {
		f.mu.Lock()
		defer f.mu.Unlock()
		return len(f.followers), len(f.followers) == want
	})
}

func TestEventsAreFollowedAndResumed(t *testing.T) {
	dir := shortDir(t)
	src := newFake("x")
	listen(t, dir, "x", 1, src)
	i := discover(t, dir)[0]
	say(src.feed, "before")

	live := follow(t, i, "")
	awaitFollowers(t, src.feed, 1)
	say(src.feed, "first")
	n, message := live.next(t)
	if message != "first" || !strings.Contains(string(n.Line), `"event_type":"server_ready"`) {
		t.Errorf("the first event is %s", n.Line)
	}
	live.leave()
	awaitFollowers(t, src.feed, 0)
	say(src.feed, "while away")

	again := follow(t, i, n.ID)
	if _, message := again.next(t); message != "while away" {
		t.Errorf("resumed with %q", message)
	}
	all := follow(t, i, "0")
	for _, want := range []string{"before", "first", "while away"} {
		if _, message := all.next(t); message != want {
			t.Errorf("from the beginning: %q, want %q", message, want)
		}
	}
	// An id of an earlier run says nothing about this one.
	if _, message := follow(t, i, "other-7").next(t); message != "before" {
		t.Errorf("with an id of another run: %q", message)
	}
}

func TestFeedIsBounded(t *testing.T) {
	dir := shortDir(t)
	src := newFake("x")
	listen(t, dir, "x", 1, src)
	for n := range feedEvents + 10 {
		say(src.feed, fmt.Sprint(n))
	}
	_, lost, l := src.feed.follow("0")
	if src.feed.leave(l); lost != 10 {
		t.Errorf("%d are not kept", lost)
	}
	late := follow(t, discover(t, dir)[0], "0")
	if n, _ := late.next(t); n.Line != nil {
		t.Errorf("in place of the gap there is %s", n.Line)
	}
	if _, message := late.next(t); message != "10" {
		t.Errorf("the oldest is %q", message)
	}
	for range 200 {
		say(src.feed, strings.Repeat("long", 1000))
	}
	if src.feed.bytes > feedBytes {
		t.Errorf("%d bytes are kept", src.feed.bytes)
	}
}

// Whoever does not read is dropped, and those who emit never wait.
func TestSlowFollowerIsDropped(t *testing.T) {
	f := NewFeed()
	_, _, slow := f.follow("")
	begun := time.Now()
	for range feedBehind + 1 {
		say(f, "news")
	}
	tier.Within(t, "emitting", time.Since(begun), time.Second)
	n := 0
	for range slow.news { // it is closed
		n++
	}
	if n != feedBehind || len(f.followers) != 0 {
		t.Errorf("%d events were handed on, %d followers are left", n, len(f.followers))
	}
}

func TestFollowEndsWithTheInstance(t *testing.T) {
	dir := shortDir(t)
	src := newFake("x")
	s := listen(t, dir, "x", 1, src)
	i := discover(t, dir)[0]
	f := follow(t, i, "")
	awaitFollowers(t, src.feed, 1)
	_ = s.Close()
	if err := <-f.ended; err != nil {
		t.Errorf("end: %v", err)
	}
	f.ended <- nil
	if err := i.Follow(t.Context(), "", func() {}, func(News) {}); !errors.Is(err, ErrGone) {
		t.Errorf("afterwards: %v", err)
	}
}

// What an outlive says last is heard, too.
func TestTheLastEventsAreHeard(t *testing.T) {
	src := newFake("x")
	dir := shortDir(t)
	s := listen(t, dir, "x", 1, src)
	f := follow(t, discover(t, dir)[0], "")
	awaitFollowers(t, src.feed, 1)
	for n := range feedBehind / 2 {
		say(src.feed, fmt.Sprint(n))
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	for n := range feedBehind / 2 {
		if _, got := f.next(t); got != fmt.Sprint(n) {
			t.Fatalf("heard %q, want %d", got, n)
		}
	}
}
