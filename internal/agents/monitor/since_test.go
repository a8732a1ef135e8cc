package monitor

import (
	"testing"
	"time"

	"github.com/outlive-mcp/outlive/internal/agents/heartbeat"
)

// since is for how long the only agent has stood as it does, as a list shows it.
func (w *world) since() time.Duration {
	w.t.Helper()
	view, err := Inspect(w.t.Context(), w.opts)
	if err != nil {
		w.t.Fatal(err)
	}
	return w.wall.Sub(view.Findings[0].Since)
}

// A beat says that the agent still does what it did: since when is when it began, not when that was said last.
func TestSinceTheFirstBeat(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.declare("", w.agent("shop", "kind: command\nexpect: {beat: 1m}\n"))
	for _, tt := range []struct {
		state   heartbeat.State
		minutes int
	}{{heartbeat.Working, 10}, {heartbeat.Waiting, 5}, {heartbeat.Idle, 3}, {heartbeat.Working, 4}, {heartbeat.Stuck, 2}} {
		for range tt.minutes {
			w.beats("shop", tt.state)
			w.cycle() // each is a monitor of its own
			w.pass(time.Minute)
		}
		if got := w.since(); got != time.Duration(tt.minutes)*time.Minute {
			t.Errorf("%s for %d minutes: since %s", tt.state, tt.minutes, got)
		}
	}
}

// An agent that ran before the first look has worked since its start, as far as anybody knows; one that was replaced has not.
func TestSinceTheStartOfTheProcess(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.declare("", w.agent("shop", "kind: command\nmatch: {pidfile: pid}\nexpect: {beat: 1m}\n"))
	w.process(1001, w.dir("shop"), 20*time.Minute)
	w.write("projects/shop/pid", "1001\n")
	beats := func(minutes int) {
		for range minutes {
			w.beats("shop", heartbeat.Working)
			w.cycle()
			w.pass(time.Minute)
		}
	}
	beats(3)
	if got := w.since(); got != 23*time.Minute {
		t.Errorf("it has worked for 23 minutes: since %s", got)
	}
	delete(w.living, 1001)
	w.process(1002, w.dir("shop"), 0)
	w.write("projects/shop/pid", "1002\n")
	beats(2)
	if got := w.since(); got != 2*time.Minute {
		t.Errorf("another process has worked for 2 minutes: since %s", got)
	}
}

// The night tells when an agent went wrong, not when the monitor saw it, and so does whoever asks now.
func TestTroubleSinceItBegan(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.declare("", w.agent("shop", "kind: command\n"))
	w.beats("shop", heartbeat.Working)
	w.cycle()
	w.pass(time.Minute)
	w.beats("shop", heartbeat.Stuck)
	began := w.wall
	w.pass(4 * time.Second)
	w.cycle()
	w.pass(time.Minute)
	w.beats("shop", heartbeat.Stuck) // still
	w.cycle()
	view, err := InspectSince(t.Context(), w.opts, began.Add(-time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	if since := view.Findings[0].Since; !since.Equal(began) {
		t.Errorf("stuck since %s, and not %s", since, began)
	}
	list := view.Verdicts["shop"]
	if len(list) != 2 || list[1].Standing != Wrong || !list[1].At.Equal(began) {
		t.Errorf("the night has %+v, and it was stuck at %s", list, began)
	}
	if len(view.Incidents) != 1 || !view.Incidents[0].Began().Equal(began) || !view.Incidents[0].Opened.After(began) {
		t.Errorf("the incident is of %s: %+v", began, view.Incidents)
	}
}
