package overview

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/outlive-mcp/outlive/internal/record/event"
)

func TestWhichEventsAreShown(t *testing.T) {
	list := map[string]Event{
		"run":     {Level: "WARNING", Instance: "one@7", Message: "Connection lost: refused"},
		"gateway": {Level: "INFO", Instance: "gw@8", Server: "github", Message: "github: Server ready"},
		"agent":   {Level: "ERROR", Agent: "shop", Message: "shop has crashed"},
		"far run": {Level: "INFO", Host: "far", Instance: "far/one@9", Message: "Server ready"},
		"far":     {Level: "WARNING", Host: "far", Message: "far does not answer"},
		"scoped":  {Level: "DEBUG", Instance: "@acme/shop@10", Message: "x"},
		"debug":   {Level: "DEBUG", Instance: "one@7", Message: "Answer dropped"},
	}
	for filter, want := range map[string]string{
		"||":                 "agent debug far far run gateway run scoped",
		"@acme/shop||":       "scoped",
		"one||":              "debug far run run",
		"one@7||":            "debug run",
		"far/one||":          "far run",
		"far||":              "far far run",
		"gw||":               "gateway",
		"github||":           "gateway",
		"gw/github||":        "gateway",
		"gw@8/github||":      "gateway",
		"gw/git||":           "",
		"shop,gw||":          "agent gateway",
		"|INFO|":             "agent far far run gateway run",
		"|WARNING|":          "agent far run",
		"|ERROR|":            "agent",
		"one|WARNING|":       "run",
		"||server READY":     "far run gateway",
		"one||connection l":  "run",
		"nobody|INFO|":       "",
		"|ERROR|server read": "",
	} {
		part := strings.Split(filter, "|")
		f := Filter{Level: part[1], Text: part[2]}
		if part[0] != "" {
			f.About = strings.Split(part[0], ",")
		}
		var got []string
		for _, name := range []string{"agent", "debug", "far", "far run", "gateway", "run", "scoped"} {
			if f.Shows(list[name]) {
				got = append(got, name)
			}
		}
		if text := strings.Join(got, " "); text != want {
			t.Errorf("%s shows %q, want %q", filter, text, want)
		}
	}
}

// A crash and the restart after it are two lines for a person, and not the steps in between; a restart that was asked for says why.
func TestTheStepsOfARestart(t *testing.T) {
	at := time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)
	var all []Event
	for n, e := range []Event{
		{Type: event.ServerExited}, {Type: event.ServerCrashed, Level: "WARNING"}, {Type: event.RestartInitiated, Source: "none"}, {Type: event.RestartDelayed}, {Type: event.ServerStarting},
		{Type: event.ServerSpawned}, {Type: event.InitializeReplayed}, {Type: event.RestartCompleted}, {Type: event.RestartInitiated, Source: "tool"},
		{Type: event.ServerStarting, Level: "DEBUG"},
	} {
		if e.At = at.Add(time.Duration(n) * time.Second); e.Level == "" {
			e.Level = "INFO"
		}
		all = append(all, e)
	}
	types := func(only Filter, most int) (list []event.Type) {
		for _, e := range Newest(all, only, most, at.Add(time.Minute)) {
			list = append(list, e.Type)
		}
		return list
	}
	want := []event.Type{event.RestartInitiated, event.RestartCompleted, event.ServerCrashed}
	if d := cmp.Diff(want, types(Filter{Brief: true}, 9)); d != "" {
		t.Errorf("in short (-want +got):\n%s", d)
	}
	if list := types(Filter{}, 99); len(list) != 9 {
		t.Errorf("each step: %v", list)
	}
	if d := cmp.Diff(want[:2], types(Filter{Brief: true}, 2)); d != "" {
		t.Errorf("the last two (-want +got):\n%s", d)
	}
}

func TestTheServerOfAnIncident(t *testing.T) {
	s := State{
		Servers: []Server{
			{Key: "till@7", Health: Bad}, {Key: "gw@8", Gateway: true, Health: Warn}, {Key: "gw@8/till", Health: Bad}, {Key: "far/till@9", Host: "far", Health: Bad},
			{Key: "@acme/shop@10", Health: Warn},
		},
		Incidents: []Incident{{Server: "till"}, {Server: "gw/till", State: "acknowledged"}, {Server: "till", Host: "far", Resolved: time.Unix(1, 0)}, {Server: "@acme/shop"}, {Agent: "till"}},
	}
	var look []string
	for _, one := range s.Attention().Servers {
		look = append(look, one.Key)
	}
	if diff := cmp.Diff([]string{"gw@8/till", "far/till@9"}, look); diff != "" {
		t.Errorf("beside the incidents that wait (-want +got):\n%s", diff)
	}
	if s.countWrong(); s.Wrong != 2 || s.Waiting != 3 {
		t.Errorf("%d are wrong, %d wait", s.Wrong, s.Waiting)
	}
}

// What happens to one server again and again takes one line; what happens to others in between does not matter.
func TestRepeatsAreFolded(t *testing.T) {
	at := time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)
	var list []Event // the newest first
	add := func(minute int, instance string, kind event.Type, message, reason string) {
		list = append([]Event{{At: at.Add(time.Duration(minute) * time.Minute), Level: "INFO", Instance: instance, Type: kind, Message: message, Reason: reason}}, list...)
	}
	add(0, "far@1", event.ServerReady, "Server ready", "")
	for n := range 3 {
		add(1+2*n, "far@1", event.ConnectionLost, fmt.Sprintf("Connection lost: refused; next try in %ds", n), "refused")
		add(2+2*n, "near@2", event.StdoutNoise, fmt.Sprintf("noise %d", n), "")
	}
	add(7, "far@1", event.ConnectionLost, "Connection lost: no route", "no route")
	add(8, "far@1", event.ServerReady, "Server ready", "")
	var got []string
	for _, r := range Fold(list) {
		got = append(got, fmt.Sprintf("%s %s %d × %s-%s", r.Last.Instance, r.Last.Message, r.Times, r.First.Format("04"), r.Last.At.Format("04")))
	}
	want := []string{
		"far@1 Server ready 1 × 08-08", "far@1 Connection lost: no route 1 × 07-07", "near@2 noise 2 1 × 06-06",
		"far@1 Connection lost: refused; next try in 2s 3 × 01-05", "near@2 noise 1 1 × 04-04", "near@2 noise 0 1 × 02-02", "far@1 Server ready 1 × 00-00",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// Whoever opens the page or top sees first what is wrong; a gateway's servers stay below it.
func TestTheWorstFirst(t *testing.T) {
	list := worstFirst([]Server{
		{Key: "a@1", Health: Good}, {Key: "gw@2", Gateway: true, Health: Warn}, {Key: "gw@2/well", Of: "gw@2", Health: Good}, {Key: "gw@2/sick", Of: "gw@2", Health: Bad},
		{Key: "b@3", Health: Warn}, {Key: "c@4", Health: Idle}, {Key: "d@5", Health: Bad},
	})
	var keys []string
	for _, s := range list {
		keys = append(keys, s.Key)
	}
	if diff := cmp.Diff([]string{"gw@2", "gw@2/sick", "gw@2/well", "d@5", "b@3", "a@1", "c@4"}, keys); diff != "" {
		t.Errorf("servers (-want +got):\n%s", diff)
	}
	at := time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)
	var ids []string
	for _, i := range ordered([]Incident{
		{ID: "info", Severity: "info", Opened: at.Add(3 * time.Minute)}, {ID: "old", Severity: "critical", Opened: at}, {ID: "new", Severity: "critical", Opened: at.Add(time.Minute)},
		{ID: "over", Severity: "critical", Resolved: at}, {ID: "seen", Severity: "critical", State: "acknowledged"}, {ID: "warning", Severity: "warning", Opened: at},
	}) {
		ids = append(ids, i.ID)
	}
	if diff := cmp.Diff([]string{"new", "old", "warning", "info", "seen", "over"}, ids); diff != "" {
		t.Errorf("incidents (-want +got):\n%s", diff)
	}
}
