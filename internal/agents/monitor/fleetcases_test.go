package monitor

import (
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/outlive-mcp/outlive/internal/agents/fleetcases"
	"github.com/outlive-mcp/outlive/internal/agents/incident"
	"github.com/outlive-mcp/outlive/internal/agents/notify"
	"github.com/outlive-mcp/outlive/internal/agents/registry"
)

// has writes what the fleet has this machine tell of.
func (w *world) has(cases ...fleetcases.Case) {
	w.t.Helper()
	w.opts.FleetCases = filepath.Join(w.home, "cases.json")
	if err := fleetcases.Write(w.opts.FleetCases, cases); err != nil {
		w.t.Fatal(err)
	}
}

// stands is how the incident of the fleet stands.
func (w *world) stands() (state incident.State, channels int) {
	w.t.Helper()
	view, err := InspectSince(w.t.Context(), w.opts, w.wall.Add(-time.Hour))
	if err != nil {
		w.t.Fatal(err)
	}
	for _, i := range append(view.Incidents, view.Past...) {
		if i.Facts.Case != "" {
			return i.State, view.Channels
		}
	}
	return "", view.Channels
}

var silentMachine = fleetcases.Case{ID: "c1", Agent: "machine:build1", Class: "machine_gone", Name: "The machine build1", Details: "its connection was closed"}

// What the fleet has this machine tell of is one incident from its beginning to its end, whoever is killed, and needs no agent.
func TestFleetCase(t *testing.T) {
	for name, head := range map[string]string{"no agents": "version: 2\nagents: {}\n", "no registry": ""} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			if head != "" {
				w.write("registry.yaml", head)
			}
			w.has(silentMachine)
			for range 3 {
				w.cycle()
				w.pass(10 * time.Second)
			}
			if len(w.said) != 1 || !strings.Contains(w.said[0], "build1") {
				t.Fatalf("people are told %q", w.said)
			}
			if state, channels := w.stands(); state != incident.Notified || channels != 1 {
				t.Errorf("it is %s, told by %d channels", state, channels)
			}
			over := silentMachine
			over.Over, over.Recovered = "it is heard again", true
			w.has(over)
			for range 3 {
				w.cycle()
			}
			if state, _ := w.stands(); state != incident.Resolved || len(w.said) != 2 {
				t.Errorf("it is %s, and people are told %q", state, w.said)
			}
		})
	}
}

// A machine that has left the fleet does not go on telling of it.
func TestFleetCaseLeft(t *testing.T) {
	w := newWorld(t)
	w.write("registry.yaml", "version: 2\nagents: {}\n")
	w.has(silentMachine)
	w.cycle()
	w.has()
	w.cycle()
	if state, _ := w.stands(); state != incident.Resolved || len(w.said) != 1 {
		t.Errorf("it is %s, and people are told %q", state, w.said)
	}
}

// What another machine tells of because this one could not is not told later.
func TestFleetCaseWithdrawn(t *testing.T) {
	w := newWorld(t)
	w.write("registry.yaml", "version: 2\nagents: {}\n")
	w.sendErr = &notify.SendError{Failure: notify.Refused, Err: errors.New("401")}
	w.has(silentMachine)
	w.cycle()
	gone := silentMachine
	gone.Over, gone.Withdrawn = "another machine tells of it", true
	w.has(gone)
	w.cycle()
	w.sendErr = nil
	for range 3 {
		w.pass(time.Hour)
		w.cycle()
	}
	if state, _ := w.stands(); len(w.said) != 0 || !slices.Contains([]incident.State{incident.Resolved, ""}, state) {
		t.Errorf("it is %q, and people are told %q", state, w.said)
	}
}

// A registry that declares channels and no agents tells by all of them.
func TestChannelsWithoutAgents(t *testing.T) {
	w := newWorld(t)
	w.opts.Channels = nil
	w.opts.OpenChannel = func(registry.Channel) (notify.Channel, error) { return w, nil }
	w.write("registry.yaml", "version: 2\nchannels: {me: \"exec:tell\"}\nagents: {}\n")
	w.has(silentMachine)
	w.cycle()
	if _, channels := w.stands(); len(w.said) != 1 || channels != 1 {
		t.Errorf("people are told %q, by %d channels", w.said, channels)
	}
}
