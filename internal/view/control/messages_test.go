package control

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/outlive-mcp/outlive/internal/record/tap"
)

// watched is a running outlive, found by its socket.
func watched(t *testing.T, f *fake) (*Server, Instance) {
	t.Helper()
	dir := shortDir(t)
	s := listen(t, dir, "srv", 4, f)
	return s, discover(t, dir)[0]
}

// watchMessages watches an instance; what it sees comes over the channel, and the end of the watching over the other.
func watchMessages(t *testing.T, i Instance, bodies bool) (seen chan string, ended chan error) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	seen, ended = make(chan string, 100), make(chan error, 1)
	watching := make(chan struct{})
	go func() {
		ended <- i.Messages(ctx, bodies, func() { close(watching) }, func(line []byte, _ bool) error {
			seen <- string(line)
			return nil
		})
	}()
	t.Cleanup(func() {
		cancel()
		<-ended
		ended <- nil
	})
	select {
	case <-watching:
	case err := <-ended:
		ended <- nil
		t.Fatal(err)
	}
	return seen, ended
}

func nextMessage(t *testing.T, seen chan string) tap.Record {
	t.Helper()
	select {
	case line := <-seen:
		m, err := tap.Parse([]byte(line))
		if err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		return m
	case <-time.After(2 * time.Minute):
		t.Fatal("no message came")
	}
	return tap.Record{}
}

func TestMessagesAreHandedOn(t *testing.T) {
	f := newFake("srv")
	s, i := watched(t, f)
	one, _ := watchMessages(t, i, false)
	of := i
	of.Server = "b"
	two, ended := watchMessages(t, of, true)
	for _, server := range []string{"a", "b"} {
		f.tap.Put(&tap.Message{At: time.Unix(1700000000, 0), Server: server, ID: []byte("7"), Body: []byte(`{"token":"x"}`)})
	}
	if m := nextMessage(t, one); m.Server != "a" || m.Body != nil {
		t.Errorf("%+v", m)
	}
	if m := nextMessage(t, one); m.Server != "b" || m.Body != nil {
		t.Errorf("%+v", m)
	}
	if m := nextMessage(t, two); m.Server != "b" || string(m.Body) != `{"token":"[redacted]"}` {
		t.Errorf("%+v", m)
	}
	// What has passed when outlive ends is still told.
	f.tap.Put(&tap.Message{Server: "b", ID: []byte("8")})
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if m := nextMessage(t, two); string(m.ID) != "8" {
		t.Errorf("%+v", m)
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
	ended <- nil
	if f.tap.On() {
		t.Error("still watched")
	}
}

// A reader that does not read holds nobody up, and learns how many messages it has missed.
func TestMessagesThatASlowReaderMissed(t *testing.T) {
	f := newFake("srv")
	_, i := watched(t, f)
	hold, held := make(chan struct{}), make(chan struct{})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	watching, result := make(chan struct{}), make(chan error, 1)
	var seen, leftOut int
	const all = 200000
	go func() {
		result <- i.Messages(ctx, false, func() { close(watching) }, func(line []byte, _ bool) error {
			if seen == 0 {
				close(held)
				<-hold
			}
			m, err := tap.Parse(line)
			if err != nil {
				return fmt.Errorf("%s: %w", line, err)
			}
			if leftOut += m.LeftOut; m.LeftOut == 0 {
				seen++
			}
			if seen+leftOut == all+1 {
				cancel()
			}
			return nil
		})
	}()
	<-watching
	f.tap.Put(&tap.Message{ID: []byte("0")})
	<-held
	for n := range all {
		f.tap.Put(&tap.Message{ID: fmt.Append(nil, n)})
	}
	close(hold)
	if err := <-result; err != nil {
		t.Fatal(err)
	}
	if leftOut == 0 || seen+leftOut != all+1 {
		t.Errorf("%d seen, %d left out of %d", seen, leftOut, all+1)
	}
}

func TestNoMessagesWithInheritedStreams(t *testing.T) {
	f := newFake("srv")
	f.tap = nil
	_, i := watched(t, f)
	err := i.Messages(t.Context(), false, func() { t.Error("watching") }, nil)
	if err == nil || !strings.Contains(err.Error(), "--mode inherit") {
		t.Errorf("%v", err)
	}
}
