package hooks

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

func drain(t *testing.T, dir string) []Event {
	t.Helper()
	var events []Event
	err := Drain(dir, func(e []Event, dropped bool) error {
		if events = e; dropped {
			t.Error("events were dropped")
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return events
}

func TestEventsComeOnceAndInOrder(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "hooks")
	if got := drain(t, dir); got != nil {
		t.Errorf("events of a home that is not there: %v", got)
	}
	var want []Event
	for i := range 3 {
		want = append(want, Event{Time: noon.Add(time.Duration(i) * time.Second), Vendor: "claude", Name: "Stop", Session: fmt.Sprint(i)})
	}
	for _, i := range []int{2, 0, 1} {
		if err := Drop(dir, want[i]); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff(want, drain(t, dir)); diff != "" {
		t.Error(diff)
	}
	if got := drain(t, dir); got != nil {
		t.Errorf("came again: %v", got)
	}
}

// A monitor that dies between taking and writing down gets the events again.
func TestEventsNotTakenComeAgain(t *testing.T) {
	dir := t.TempDir()
	e := Event{Time: noon, Vendor: "claude", Name: "Stop"}
	if err := Drop(dir, e); err != nil {
		t.Fatal(err)
	}
	full := errors.New("the disk is full")
	if err := Drain(dir, func([]Event, bool) error { return full }); !errors.Is(err, full) {
		t.Errorf("error %v", err)
	}
	if diff := cmp.Diff([]Event{e}, drain(t, dir)); diff != "" {
		t.Error(diff)
	}
}

func TestManyWritersLoseNothing(t *testing.T) {
	dir := t.TempDir()
	var writers sync.WaitGroup
	for w := range 16 {
		writers.Go(func() {
			for i := range 20 {
				if err := Drop(dir, Event{Time: noon, Vendor: "codex", Name: "Stop", Session: fmt.Sprint(w, "-", i)}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	done := make(chan struct{})
	go func() { writers.Wait(); close(done) }()
	seen := map[string]int{}
	for last := false; !last; {
		select {
		case <-done:
			last = true
		default:
		}
		for _, e := range drain(t, dir) {
			seen[e.Session]++
		}
	}
	if len(seen) != 320 {
		t.Errorf("%d of 320 events", len(seen))
	}
	for session, n := range seen {
		if n != 1 {
			t.Errorf("%s came %d times", session, n)
		}
	}
}

func TestOldEventsGoWhenNobodyTakesThem(t *testing.T) {
	dir := t.TempDir()
	for i := range maxEvents + 50 {
		if err := Drop(dir, Event{Time: noon.Add(time.Duration(i) * time.Second), Vendor: "codex", Name: "Stop", Session: fmt.Sprint(i)}); err != nil {
			t.Fatal(err)
		}
	}
	var events []Event
	full := errors.New("the disk is full")
	for _, failure := range []error{full, nil} { // that events were dropped is not forgotten before it was taken
		err := Drain(dir, func(e []Event, dropped bool) error {
			if events = e; !dropped {
				t.Error("nobody says that events were dropped")
			}
			return failure
		})
		if !errors.Is(err, failure) {
			t.Fatal(err)
		}
	}
	if more := drain(t, dir); more != nil {
		t.Errorf("came again: %v", more)
	}
	if n := len(events); n > maxEvents || n < maxEvents-room {
		t.Errorf("%d events are left", n)
	}
	if last := events[len(events)-1].Session; last != fmt.Sprint(maxEvents+49) {
		t.Errorf("the newest is %s", last)
	}
}

func TestWhatIsNoEventIsSaidAndRemoved(t *testing.T) {
	dir := t.TempDir()
	if _, err := Prepare(dir); err != nil {
		t.Fatal(err)
	}
	folder := filepath.Join(dir, eventsFolder)
	secret := filepath.Join(t.TempDir(), "secret")
	write := func(path, text string) {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(secret, `{"name":"Stop"}`)
	write(filepath.Join(folder, "1.json"), "{")
	write(filepath.Join(folder, "2.json"), strings.Repeat(" ", maxFile+1))
	if err := os.Symlink(secret, filepath.Join(folder, "3.json")); err != nil {
		t.Skip("no symbolic links for this user: ", err) // Windows needs a right for them
	}
	write(filepath.Join(folder, ".half"), "{")
	old := time.Now().Add(-2 * halfLife)
	write(filepath.Join(folder, ".killed"), "{")
	if err := os.Chtimes(filepath.Join(folder, ".killed"), old, old); err != nil {
		t.Fatal(err)
	}
	if err := Drop(dir, Event{Time: noon, Name: "Stop"}); err != nil {
		t.Fatal(err)
	}
	var got []Event
	err := Drain(dir, func(e []Event, _ bool) error { got = e; return nil })
	if len(got) != 1 || err == nil {
		t.Errorf("%v, error %v", got, err)
	}
	for _, name := range []string{"1.json", "2.json", "3.json"} {
		if !strings.Contains(fmt.Sprint(err), name) {
			t.Errorf("the error does not name %s: %v", name, err)
		}
	}
	left, _ := namesIn(folder)
	if !slices.Equal(left, []string{".half"}) {
		t.Errorf("left %v: only what is being written stays", left)
	}
	if _, err := os.Stat(secret); err != nil {
		t.Error("the link was followed: ", err)
	}
}
