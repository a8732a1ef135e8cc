package supervise

import (
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/outlive-mcp/outlive/internal/record/event"
)

// said collects what is told as type and text.
func said(tell func(Emit)) []string {
	var lines []string
	tell(func(t event.Type, _ slog.Level, message string, _ ...slog.Attr) {
		lines = append(lines, string(t)+": "+message)
	})
	return lines
}

// toldBy is what is told because of these actions, in order.
func toldBy(actions []Action) []string {
	var lines []string
	for _, a := range actions {
		switch a := a.(type) {
		case Report:
			lines = append(lines, said(func(e Emit) { a.Tell(End{Text: "Server crashed (exit 1)", Code: 1}, e) })...)
		case Throttled:
			lines = append(lines, said(a.Tell)...)
		case SpawnSpare:
			lines = append(lines, said(a.Tell)...)
		}
	}
	return lines
}

func TestEachRestartIsToldOfOnce(t *testing.T) {
	crash := []string{"server_crashed: Server crashed (exit 1)", "restart_initiated: Restart initiated: exit 1"}
	for name, c := range map[string]struct {
		before, events []Event
		wait           time.Duration
		want           []string
	}{
		"reload":           {nil, []Event{overlap, SpareReady{2}}, 0, []string{"restart_initiated: Restart initiated: new code"}},
		"reload, standby":  {[]Event{overlap, SpareReady{2}}, []Event{SpareReady{3}}, time.Hour, nil},
		"crash":            {nil, []Event{Exited{Code: 1}, TreeGone{}}, 0, crash},
		"crash, then wait": {nil, []Event{Exited{Code: 1}, TreeGone{}}, time.Second, crash},
		"exit 42": {nil, []Event{Exited{Code: 42}, TreeGone{}, SpareReady{2}}, 0,
			[]string{"restart_initiated: Restart initiated: exit 42"}},
		"limit": {nil, []Event{limit}, 0, []string{"restart_initiated: Restart initiated: too old"}},
		"held up": {[]Event{marked, SpareReady{2}, SpareReady{3}}, []Event{marked}, time.Second, []string{
			"restart_throttled: Restart throttle triggered (max 1/sec)", "restart_initiated: Restart initiated: restart marker"}},
		"again": {[]Event{overlap, SpareReady{2}, SpareReady{3}}, []Event{overlap, overlap}, time.Second, []string{
			"restart_throttled: Restart throttle triggered (max 1/sec)", "restart_initiated: Restart initiated: new code"}},
		"sleep": {nil, []Event{Sleep{0, "no call for 10m0s"}, Exited{Code: 143, Signalled: true}, TreeGone{}}, 0,
			[]string{"server_slept: Server is asleep: no call for 10m0s"}},
		"sleep, a call": {nil, []Event{Sleep{0, "no call for 10m0s"}, Exited{}, TreeGone{}, Start{}}, 0,
			[]string{"server_slept: Server is asleep: no call for 10m0s"}},
		"sleep, a wish": {nil, []Event{Sleep{0, "no call for 10m0s"}, overlap, Exited{}, TreeGone{}}, 0, []string{
			"server_slept: Server is asleep: no call for 10m0s", "restart_initiated: Restart initiated: new code"}},
		"unhealthy": {nil, []Event{MarkUnhealthy{Cause: Unhealthy, Reason: "no answer"}, Exited{Code: 137, Signalled: true}, TreeGone{}}, 0,
			[]string{"server_crashed: Server crashed (exit 1)", "restart_initiated: Restart initiated: no answer"}},
		"stop": {nil, []Event{Stop{Signal}, Exited{Code: 143, Signalled: true}, TreeGone{}}, 0,
			[]string{"clean_shutdown: Clean shutdown requested"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := standby(t, Options{}).tell(c.before...)
			var actions []Action
			for _, ev := range c.events {
				actions = append(actions, s.Step(s.now, 0, ev)...)
			}
			for end := s.now.Add(c.wait); !s.Deadline().IsZero() && !s.Deadline().After(end); {
				s.now = s.Deadline()
				actions = append(actions, s.Tick(s.now, 0)...)
			}
			if diff := cmp.Diff(c.want, toldBy(actions)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestAThrottledRestartIsToldOfWhenItsSecondHasPassed: the watchdog's log has the warning, then the wait, then the request,
// then the pause and the start.
func TestAThrottledRestartIsToldOfWhenItsSecondHasPassed(t *testing.T) {
	s := begin(t, preset(t, "tiered")).up().exit(42).pass(500 * time.Millisecond).up()
	s.tell(Exited{Gen: 1, Code: 42})
	if diff := cmp.Diff([]string{"restart_throttled: Restart throttle triggered (max 1/sec)"}, toldBy(s.Step(s.now, 0, TreeGone{1}))); diff != "" {
		t.Errorf("at once (-want +got):\n%s", diff)
	}
	if next := s.Snapshot().NextTry.Sub(s.now); next != time.Second {
		t.Errorf("the next start is in %s", next)
	}
	s.now = s.now.Add(500 * time.Millisecond)
	want := []string{"restart_initiated: Restart initiated: exit 42", "restart_delayed: Restart in 500ms"}
	if diff := cmp.Diff(want, toldBy(s.Tick(s.now, 0))); diff != "" {
		t.Errorf("after the throttle (-want +got):\n%s", diff)
	}
	s.expect(Backoff, 2).pass(500*time.Millisecond).expect(Starting, 2)
}

// A connection to a remote server that is lost is told of in one line, which says when it is tried again; nothing has crashed.
func TestALostConnectionIsToldOfOnce(t *testing.T) {
	s := New(Options{})
	now := t0
	var told []string
	hear := func(actions []Action) {
		for _, a := range actions {
			if r, ok := a.(Report); ok {
				told = append(told, said(func(e Emit) { r.Tell(End{Text: "Connection lost: refused", Code: -1, Connection: true}, e) })...)
			}
		}
	}
	hear(s.Step(now, 0, Start{}))
	for range 11 {
		hear(s.Step(now, 0, Exited{Gen: s.Generation(), Code: 1, Reason: "refused"}))
		hear(s.Step(now, 0, TreeGone{s.Generation()}))
		for s.State() == Backoff {
			now = s.Deadline()
			hear(s.Tick(now, 0))
		}
	}
	want := []string{"connection_lost: Connection lost: refused; connecting again"}
	for _, delay := range []string{"250ms", "500ms", "1s", "2s", "4s", "8s", "16s", "30s", "30s"} {
		want = append(want, "connection_lost: Connection lost: refused; next try in "+delay)
	}
	want = append(want, "connection_lost: Connection lost: refused; next try in 1m0s", "breaker_opened: Connections keep failing; next try in 1m0s")
	if diff := cmp.Diff(want, told); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// What counts as a restart is told as one: whoever adds up what was told has the number that status shows.
func TestAsManyRestartsAreToldOfAsAreCounted(t *testing.T) {
	s := New(preset(t, "transparent"))
	now, told := t0, 0
	hear := func(actions []Action) {
		for _, line := range toldBy(actions) {
			if strings.HasPrefix(line, string(event.RestartInitiated)) {
				told++
			}
		}
	}
	hear(s.Step(now, 0, Start{}))
	for failed := 0; failed < 3; {
		hear(s.Step(now, 0, Exited{Gen: s.Generation(), Code: 3}))
		hear(s.Step(now, 0, TreeGone{s.Generation()}))
		if s.State() == Failed {
			failed++
		}
		now = s.Deadline()
		hear(s.Tick(now, 0))
	}
	if told != s.Restarts() {
		t.Errorf("%d restarts are told of, and %d counted", told, s.Restarts())
	}
}
