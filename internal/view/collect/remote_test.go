package collect

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/outlive-mcp/outlive/internal/line/backend"
	"github.com/outlive-mcp/outlive/internal/record/event"
	"github.com/outlive-mcp/outlive/internal/view/control"
	"github.com/outlive-mcp/outlive/internal/view/overview"
)

// there is another machine, whose connections a test scripts: each says lines, and ends when it is told to.
type there struct {
	lines chan string
	end   chan error
}

func (r there) Name() string { return "far" }

func (r there) Follow(ctx context.Context, each func([]byte)) (string, error) {
	for {
		select {
		case l := <-r.lines:
			each([]byte(l))
		case err := <-r.end:
			return "no connection", err
		case <-ctx.Done():
			return "", ctx.Err()
		}
	}
}

func stateOf(t *testing.T, state string, at time.Time, events ...overview.Event) string {
	t.Helper()
	s := overview.Snapshot{
		Version: "2", At: at, Events: events,
		Instances: []overview.Instance{{Instance: control.Instance{Name: "x", PID: 7}, Status: control.Status{PID: 7, StartedAt: at, Status: backend.Status{Name: "x", Command: []string{"x"}, State: state}}}},
		Home: &overview.Home{
			Monitor: 3, At: at, Agents: []overview.Agent{{Key: "shop", Name: "shop", Health: overview.Bad, Class: "crashed", State: "has crashed"}},
			Incidents: []overview.Incident{{ID: "i1", Agent: "shop", Members: []string{"shop"}, Title: "shop has crashed", State: "open", Opened: at, Buttons: []overview.Button{{Verb: "ack", Label: "Acknowledge"}}}},
		},
	}
	line, err := StateLine(s, false)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Replace(string(line), `"version"`, `"of_a_later_version":{"a":[1]},"version"`, 1)
}

func TestAnotherMachine(t *testing.T) {
	far := there{make(chan string), make(chan error)}
	heard := make(chan overview.Event, 16)
	c := New(Options{
		Remotes: []Remote{far}, Version: "1", History: true, Every: 10 * time.Millisecond,
		OnEvent: func(e overview.Event, line []byte) { heard <- e },
	})
	defer c.Close()
	shows(t, c, "at first", func(s overview.State) bool {
		return len(s.Hosts) == 1 && s.Hosts[0].State == "connecting" && s.Hosts[0].Health == overview.Busy && s.Wrong == 0
	})
	now := time.Now()
	past := overview.Event{At: now.Add(-time.Hour), Level: "INFO", Type: event.ServerReady, Message: "ready", PID: 7, Instance: "x@7"}
	far.lines <- "no JSON"
	far.lines <- stateOf(t, "ready", now, past)
	if e := <-heard; e.Type != event.HostConnected || e.Host != "far" || e.Message != "connected; outlive is 2 there, and 1 here" {
		t.Errorf("heard %+v", e)
	}
	shows(t, c, "connected", func(s overview.State) bool {
		return len(s.Servers) == 1 && s.Servers[0].Key == "far/x@7" && s.Servers[0].Host == "far" && s.Servers[0].Health == overview.Good &&
			s.Agents[0].Key == "far/shop" && s.Incidents[0].ID == "far/i1" && s.Incidents[0].Agent == "far/shop" && s.Incidents[0].Members[0] == "far/shop" && len(s.Incidents[0].Buttons) == 1 &&
			s.Hosts[0].State == "connected" && strings.Contains(s.Hosts[0].Why, "2 there") && len(c.Events(overview.Filter{About: []string{"far/x@7"}}, 9)) == 1
	})

	far.lines <- `{"instance":"x@7","timestamp":"` + now.UTC().Format(time.RFC3339Nano) + `","level":"WARNING","message":"crashed","event_type":"server_crashed","proxy_pid":7,"new":1}`
	if e := <-heard; e.Instance != "far/x@7" || e.Host != "far" || e.Type != event.ServerCrashed {
		t.Errorf("heard %+v", e)
	}
	far.lines <- stateOf(t, "backoff", now.Add(-time.Hour))
	shows(t, c, "after the crash", func(s overview.State) bool {
		return s.Servers[0].State == "backoff" && strings.Contains(s.Hosts[0].Why, "its clock is 1h0m0s behind")
	})

	far.end <- errors.New("the link is\ndown")
	if e := <-heard; e.Type != event.HostLost || e.Message != "no connection: the link is; down" {
		t.Errorf("heard %+v", e)
	}
	shows(t, c, "lost", func(s overview.State) bool {
		return s.Hosts[0].Health == overview.Bad && s.Hosts[0].State == "no connection" && s.Servers[0].Health == overview.Unknown && len(s.Incidents[0].Buttons) == 0
	})
	// It is tried again by itself; what was known of the past comes once.
	far.lines <- stateOf(t, "ready", now, past)
	if e := <-heard; e.Type != event.HostConnected {
		t.Errorf("heard %+v", e)
	}
	shows(t, c, "connected again", func(s overview.State) bool {
		return len(c.Events(overview.Filter{Text: "ready"}, 9)) == 1 && s.Servers[0].Health == overview.Good
	})
}

// A machine whose state is not read says so, and is seen as soon as it can be read.
func TestAMachineThatSaysTooMuch(t *testing.T) {
	far := there{make(chan string), make(chan error)}
	heard := make(chan overview.Event, 16)
	c := New(Options{Remotes: []Remote{far}, Every: 10 * time.Millisecond, OnEvent: func(e overview.Event, line []byte) { heard <- e }})
	defer c.Close()
	tooMuch := string(stateLine) + `{"trouble":[` + strings.Repeat(`"",`, 1_000_000) + `""]}}`
	expect := func(kind event.Type, state string, h overview.Health) {
		t.Helper()
		if e := <-heard; e.Type != kind {
			t.Errorf("heard %+v", e)
		}
		shows(t, c, state, func(s overview.State) bool { return s.Hosts[0].State == state && s.Hosts[0].Health == h })
	}
	far.lines <- tooMuch
	expect(event.HostLost, "not understood", overview.Bad)
	far.lines <- tooMuch // it is told once
	far.lines <- stateOf(t, "ready", time.Now())
	expect(event.HostConnected, "connected", overview.Good)
	far.lines <- tooMuch
	expect(event.HostLost, "not understood", overview.Bad)
}

// An event that another outlive watch has written is the same one here.
func TestEventsTravel(t *testing.T) {
	e := overview.Event{
		At: time.Now().UTC().Truncate(time.Millisecond), Level: "INFO", Type: event.RestartCompleted, Message: "m", PID: 1, Instance: "x@1", Server: "s", ServerPID: 2,
		Generation: 3, Cause: "crash", Source: "exit", Reason: "r", Took: 40 * time.Millisecond,
	}
	for _, e := range []overview.Event{e, {At: e.At, Type: event.AgentChanged, Agent: "a", PID: 9}} {
		text, err := json.Marshal(e)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := overview.ParseEvent(text); err != nil || got != e {
			t.Errorf("%s became %+v: %v", text, got, err)
		}
	}
}
