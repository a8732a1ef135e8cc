package overview

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/outlive-mcp/outlive/internal/gateway/gateway"
	"github.com/outlive-mcp/outlive/internal/line/backend"
	"github.com/outlive-mcp/outlive/internal/record/event"
	"github.com/outlive-mcp/outlive/internal/view/control"
)

var noon = time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)

// ago is a time before noon.
func ago(d time.Duration) time.Time { return noon.Add(-d) }

// run is an instance with one server that has run for a day.
func run(name string, pid int, s backend.Status) Instance {
	s.Name, s.Command = name, []string{name}
	return Instance{Instance: control.Instance{Name: name, PID: pid}, Status: control.Status{Status: s, PID: pid, StartedAt: ago(2 * Day)}}
}

func TestHowServersStand(t *testing.T) {
	exit := &backend.LastExit{Code: 3, Why: "exit status 3", Stderr: []string{"no key"}}
	for _, tt := range []struct {
		name   string
		status backend.Status
		health Health
		why    string
	}{
		{"ready", backend.Status{State: "ready"}, Good, ""},
		{"ready, and crashed before", backend.Status{State: "ready", LastExit: exit}, Good, ""},
		{"starting", backend.Status{State: "starting"}, Busy, ""},
		{"asleep", backend.Status{State: "asleep"}, Idle, ""},
		{"is down, and tried again", backend.Status{State: "backoff", LastExit: exit}, Warn, "exit status 3\nno key"},
		{"given up", backend.Status{State: "failed", LastExit: exit}, Bad, "exit status 3\nno key"},
		{"elsewhere, failing", backend.Status{State: "ready", Failing: "503"}, Warn, "503"},
		{"a reload failed", backend.Status{State: "ready", ReloadFailed: &backend.ReloadTrouble{Error: "syntax"}}, Warn, "the last planned restart came to nothing: syntax"},
	} {
		s := Of(Input{At: noon, Instances: []Instance{run("x", 1, tt.status)}})
		if got := s.Servers[0]; got.Health != tt.health || got.Why != tt.why {
			t.Errorf("%s: %s, %q; want %s, %q", tt.name, got.Health, got.Why, tt.health, tt.why)
		}
		if tt.status.Failing != "" && s.Servers[0].State != "failing" {
			t.Errorf("%s: %s", tt.name, s.Servers[0].State)
		}
		want := 0
		if tt.health.Wrong() {
			want = 1
		}
		if s.Wrong != want {
			t.Errorf("%s: %d are wrong", tt.name, s.Wrong)
		}
	}
	silent := Of(Input{At: noon, Instances: []Instance{{Instance: control.Instance{Name: "x", PID: 1}, Silent: true, Status: control.Status{LogPath: "/log"}}}})
	if one := silent.Servers[0]; one.Health != Bad || one.State != "no answer" || one.LogPath != "/log" || silent.Wrong != 1 {
		t.Errorf("without an answer: %+v", one)
	}
}

func TestServersBehindAGateway(t *testing.T) {
	calls := func(n int64) backend.Counters {
		return backend.Counters{Calls: []backend.Calls{{Method: "tools/call", Tool: "do", OK: n}}, Restarts: map[string]int64{"crash": n}}
	}
	link := func(client, state string, pid int) gateway.LinkStatus {
		return gateway.LinkStatus{Client: client, Phase: "ready", Status: backend.Status{State: state, ServerPID: pid, RSS: 10, RestartCount: 1, Counters: calls(1), Client: "somebody 1"}}
	}
	i := Instance{Instance: control.Instance{Name: "g", PID: 7}, Status: control.Status{Config: "x.yaml", PID: 7, StartedAt: ago(time.Hour), Servers: []control.Member{
		{ServerStatus: gateway.ServerStatus{Name: "files", Links: []gateway.LinkStatus{link("a", "ready", 1), link("", "ready", 2)}, Past: calls(3)}},
		{ServerStatus: gateway.ServerStatus{Name: "idle"}},
		{ServerStatus: gateway.ServerStatus{Name: "sick", Standing: "unusable", Trouble: "no such file"}},
	}}}
	s := Of(Input{At: noon, Instances: []Instance{i}})
	var got []string
	for _, one := range s.Servers {
		got = append(got, fmt.Sprintf("%s %s %s %q %d %d", one.Key, one.Health, one.State, one.Why, one.Memory, len(one.Processes)))
	}
	want := []string{
		`g@7 warn  "not all of its servers are well" 20 0`, `g@7/sick bad unusable "no such file" 0 0`, `g@7/files good ready "" 20 2`, `g@7/idle idle idle "" 0 0`,
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("servers (-want +got):\n%s", d)
	}
	if files := s.Servers[2]; files.Calls[0].OK != 5 || files.Causes[0] != (Count{"crash", 5}) || files.Instance.Server != "files" || !cmp.Equal(files.Clients, []string{"a"}) {
		t.Errorf("files: %+v", files)
	}
	if s.Wrong != 1 {
		t.Errorf("%d are wrong: the gateway of a sick server is not another one", s.Wrong)
	}
}

// happened is an event of the running outlive 1.
func happened(d time.Duration, kind event.Type) Event {
	return Event{At: ago(d), Type: kind, PID: 1, Level: "INFO"}
}

func TestStripOfADay(t *testing.T) {
	events := []Event{
		happened(30*time.Hour, event.ServerReady),
		happened(10*time.Hour, event.ServerCrashed), happened(10*time.Hour, event.RestartInitiated), happened(10*time.Hour-time.Second, event.ServerReady),
		happened(4*time.Hour, event.ServerCrashed), happened(4*time.Hour-time.Minute, event.BreakerOpened), happened(2*time.Hour, event.ServerReady),
	}
	type span struct {
		Hours    float64
		Health   Health
		Restarts int
	}
	var got []span
	for _, s := range pastOf(dayOf(nil, events, ago(6*time.Hour)), ago(40*time.Hour), noon, Good).strip {
		got = append(got, span{s.To.Sub(s.From).Hours(), s.Health, s.Restarts})
	}
	want := []span{{14, Good, 0}, {0.25, Good, 1}, {5.75, Good, 0}, {2, Bad, 0}, {2, Good, 0}}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("strip (-want +got):\n%s", d)
	}
	fresh := historyOf(nil, ago(time.Hour), noon, Good)
	if s := stripOf(fresh, nil, noon, Good); len(s) != 2 || s[0].Health != Unknown || s[1].From != ago(time.Hour) {
		t.Errorf("of a server that runs for an hour: %+v", s)
	}
}

// A server elsewhere that is away for hours, and tried again each minute, is not starting all the while.
func TestStripOfAServerThatIsAway(t *testing.T) {
	for name, tt := range map[string]struct {
		given event.Type // what is told once
		want  Health
	}{"of a run": {event.ConnectionLost, Warn}, "behind a gateway": {event.ServerUnusable, Bad}} {
		events := []Event{happened(20*time.Hour, event.ServerReady), happened(6*time.Hour, event.ConnectionLost), happened(6*time.Hour-time.Second, tt.given)}
		for m := 6*60 - 1; m > 60; m-- {
			at := time.Duration(m) * time.Minute
			events = append(events, happened(at, event.ServerStarting), happened(at, event.ConnectionLost))
		}
		events = append(events, happened(time.Hour, event.ServerReady))
		var got []string
		for _, s := range pastOf(dayOf(nil, events, noon), ago(20*time.Hour), noon, Good).strip {
			got = append(got, fmt.Sprint(s.To.Sub(s.From).Hours(), " ", s.Health))
		}
		if d := cmp.Diff([]string{"4 unknown", "14 good", "5 " + tt.want.String(), "1 good"}, got); d != "" {
			t.Errorf("%s (-want +got):\n%s", name, d)
		}
	}
}

// What is remembered of one overview changes nothing in the next.
func TestAnOverviewWithMemoryIsTheSame(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	kinds := []event.Type{event.ServerReady, event.ServerCrashed, event.RestartInitiated, event.RestartDelayed, event.ServerStarting, event.RestartCompleted, event.BreakerOpened, event.ServerSlept}
	var w Memory
	var events []Event
	homes := []*Home{
		{At: noon, Monitor: 9, Watched: []Period{{ago(20 * time.Hour), noon}}, Agents: []Agent{{Key: "a", Health: Good, History: []Standing{{From: ago(9 * time.Hour), Health: Bad}, {From: ago(time.Hour), Health: Good}}}, {Key: "b", Health: Warn}}},
		{At: noon, Agents: []Agent{{Key: "b", Health: Bad, Since: ago(time.Minute)}}},
		nil,
	}
	at, started := noon, ago(30*time.Hour)
	for range 400 {
		at = at.Add(time.Duration(rnd.IntN(400)) * time.Second)
		for range rnd.IntN(3) {
			events = append(events, Event{At: at.Add(-time.Duration(rnd.IntN(90)) * time.Second), Type: kinds[rnd.IntN(len(kinds))], PID: 1 + rnd.IntN(3), Level: "INFO", Server: []string{"", "in"}[rnd.IntN(2)], Cause: "crash"})
		}
		events = events[max(0, len(events)-60):]
		in := Input{At: at, Home: homes[rnd.IntN(len(homes))], Events: events, Instances: []Instance{
			run("x", 1, backend.Status{State: []string{"ready", "backoff", "failed"}[rnd.IntN(3)]}),
			{Instance: control.Instance{Name: "g", PID: 2}, Status: control.Status{StartedAt: started, Config: "c", Servers: []control.Member{{ServerStatus: gateway.ServerStatus{Name: "in"}}}}},
		}, Machines: []Machine{{Name: "m", Answers: true, Heard: at, Seen: Snapshot{At: at, Home: homes[rnd.IntN(len(homes))]}}}}
		want := Of(in)
		in.Memory = &w
		if d := cmp.Diff(want, Of(in)); d != "" {
			t.Fatalf("at %s (-without +with):\n%s", at, d)
		}
	}
}

// Behind a gateway with many servers, the events of each are not looked for among those of all.
func TestAnOverviewOfManyServers(t *testing.T) {
	const servers, each = 200, 100
	i := Instance{Instance: control.Instance{Name: "g", PID: 2}, Status: control.Status{StartedAt: ago(2 * time.Hour), Config: "c"}}
	var events []Event
	for n := range servers {
		name := fmt.Sprint("server", n)
		i.Status.Servers = append(i.Status.Servers, control.Member{ServerStatus: gateway.ServerStatus{Name: name}})
		for m := range each {
			events = append(events, Event{At: ago(time.Duration(m) * time.Second), Type: event.RestartInitiated, PID: 2, Level: "INFO", Server: name, Cause: "crash"})
		}
	}
	allocations := func(events []Event) float64 {
		in := Input{At: noon, Instances: []Instance{i}, Events: events, Memory: &Memory{}}
		if one := Of(in).Servers[1]; len(one.Renewals) != len(events)/servers {
			t.Errorf("%s has %d restarts", one.Key, len(one.Renewals))
		}
		return testing.AllocsPerRun(5, func() { Of(in) })
	}
	if with, without := allocations(events), allocations(nil); with > without {
		t.Errorf("%v allocations with events, %v without", with, without)
	}
}

func TestRestartsWithCauseGapAndAsker(t *testing.T) {
	events := []Event{
		{At: ago(4 * time.Hour), Type: event.RestartInitiated, PID: 1, Cause: "crash", Reason: "exit 3"},
		{At: ago(3 * time.Hour), Type: event.RestartInitiated, PID: 1, Cause: "crash", Reason: "exit 3"},
		{At: ago(3 * time.Hour), Type: event.RestartCompleted, PID: 1, Cause: "crash", Took: 80 * time.Millisecond},
		{At: ago(time.Hour), Type: event.RestartInitiated, PID: 1, Cause: "requested", Source: "tool", Reason: "new code"},
	}
	s := Of(Input{At: noon, Instances: []Instance{run("x", 1, backend.Status{State: "ready"})}, Events: events})
	want := []Renewal{
		{At: ago(time.Hour), Cause: "requested", Source: "tool", Reason: "new code"},
		{At: ago(3 * time.Hour), Took: 80 * time.Millisecond, Done: true, Cause: "crash", Reason: "exit 3"},
		{At: ago(4 * time.Hour), Failed: true, Cause: "crash", Reason: "exit 3"},
	}
	if d := cmp.Diff(want, s.Servers[0].Renewals); d != "" {
		t.Errorf("restarts (-want +got):\n%s", d)
	}
}

// A restart is announced when the server has crashed, and counts when the new process is started: until then outlive has not restarted it.
func TestARestartThatWaits(t *testing.T) {
	seconds := func(n int, kind event.Type) Event {
		e := happened(time.Duration(n)*time.Second, kind)
		e.Cause = "crash"
		return e
	}
	events := []Event{
		seconds(6, event.ServerCrashed), seconds(6, event.RestartInitiated), seconds(6, event.ServerStarting),
		seconds(5, event.ServerCrashed), seconds(5, event.RestartInitiated), seconds(5, event.RestartDelayed), seconds(4, event.ServerStarting),
		seconds(3, event.ServerCrashed), seconds(3, event.RestartInitiated), seconds(3, event.RestartDelayed),
	}
	next := noon.Add(2 * time.Second)
	i := run("x", 1, backend.Status{State: "backoff", Since: ago(6 * time.Second), NextTryAt: &next, RestartCount: 3, Counters: backend.Counters{Restarts: map[string]int64{"crash": 3}}})
	s := Of(Input{At: noon, Instances: []Instance{i}, Events: events}).Servers[0]
	if marks := s.Strip[len(s.Strip)-1].Restarts; s.Restarts != 2 || len(s.Renewals) != 2 || marks != 2 || !cmp.Equal(s.Causes, []Count{{"crash", 2}}) {
		t.Errorf("%d restarts, of which %d of the last day, %d in the strip, %v", s.Restarts, len(s.Renewals), marks, s.Causes)
	}
	if want := "has restarted it 2 × since then, last at " + Clock(ago(4*time.Second), noon) + ", and starts it again at " + Clock(next, noon); s.Tried(noon) != want {
		t.Errorf("outlive %s; want %s", s.Tried(noon), want)
	}
	i.Status.State, i.Status.NextTryAt = "starting", nil
	events = append(events, happened(-2*time.Second, event.ServerStarting))
	if s := Of(Input{At: next, Instances: []Instance{i}, Events: events}).Servers[0]; s.Restarts != 3 || len(s.Renewals) != 3 || !s.Renewals[0].Begun.Equal(next) {
		t.Errorf("once it is started: %d restarts, %+v", s.Restarts, s.Renewals)
	}
}

// A server that is ready again after each crash, and crashes again and again, is not well. What it was restarted for on purpose is no crash.
func TestAServerThatCrashesAgainAndAgain(t *testing.T) {
	restarts := func(n int, source string) (list []Event) {
		for k := range n {
			e := happened(time.Duration(n-k)*3*time.Minute, event.RestartInitiated)
			e.Cause, e.Source, e.Reason = "crash", source, "exit 137"
			list = append(list, e)
		}
		return list
	}
	for _, tt := range []struct {
		name   string
		events []Event
		state  string
		health Health
		why    string
	}{
		{"three crashes", restarts(3, "none"), "ready", Good, ""},
		{"four", restarts(4, "none"), "ready", Warn, "has stopped working 4 × in the last 15 minutes: exit 137"},
		{"hours of it", restarts(40, "none"), "starting", Warn, "has stopped working 5 × in the last 15 minutes: exit 137"},
		{"somebody asked", restarts(9, "tool"), "ready", Good, ""},
		{"not needed now", restarts(9, "none"), "asleep", Idle, ""},
	} {
		s := Of(Input{At: noon, Instances: []Instance{run("x", 1, backend.Status{State: tt.state})}, Events: tt.events})
		if one := s.Servers[0]; one.Health != tt.health || one.Why != tt.why || (s.Wrong == 1) != tt.health.Wrong() {
			t.Errorf("%s: %s, %q, %d are wrong; want %s, %q", tt.name, one.Health, one.Why, s.Wrong, tt.health, tt.why)
		}
	}
}

// What outlive has tried says when: restarts within seconds are not those of a day.
func TestWhatWasTried(t *testing.T) {
	at := func(ago ...time.Duration) (list []Renewal) {
		for _, d := range ago {
			list = append(list, Renewal{At: noon.Add(-d)})
		}
		return list
	}
	last := Clock(ago(time.Minute), noon)
	for want, s := range map[string]Server{
		"": {Since: ago(time.Hour)},
		"has restarted it once since then, last at " + last:                            {Since: ago(time.Minute), Renewals: at(time.Minute)},
		"has restarted it 2 × since then, last at " + last + " (3 × in the last 24 h)": {Since: ago(2 * time.Minute), Renewals: at(time.Minute, 2*time.Minute, 9*time.Hour)},
		"has restarted it 2 × in the last 24 h, last at " + last:                       {Since: ago(time.Second), Renewals: at(time.Minute, 9*time.Hour)},
		"does not start it again by itself":                                            {State: "failed", Since: ago(time.Hour)},
	} {
		if got := s.Tried(noon); got != want {
			t.Errorf("%q; want %q", got, want)
		}
	}
}

// Beside the last start stands since when it is up, and how often it was not for a moment: a strip that is green for hours contradicts neither.
func TestWellThroughRestarts(t *testing.T) {
	strip := []Span{{From: ago(Day), To: ago(16 * time.Hour)}, {ago(16 * time.Hour), ago(2 * time.Hour), Good, 1}, {ago(2 * time.Hour), noon, Good, 0}}
	for name, tt := range map[string]struct {
		strip []Span
		since time.Time
		want  string
	}{
		"restarted just now": {strip, ago(time.Minute), "up since about " + Minute(ago(16*time.Hour), noon) + ", but for a short restart"},
		"never restarted":    {strip, ago(16*time.Hour - 14*time.Minute), ""},
		"well all day":       {strip[1:], ago(time.Minute), "up for 24 h, but for a short restart"},
		"three crashes":      {[]Span{{From: ago(Day), To: ago(Day - time.Hour)}, {ago(Day - time.Hour), ago(time.Hour), Good, 2}, {ago(time.Hour), noon, Good, 1}}, ago(time.Minute), "up since about " + Minute(ago(Day-time.Hour), noon) + ", but for 3 short restarts"},
		"seen anew only":     {[]Span{{From: ago(Day), To: noon, Health: Good}}, ago(time.Minute), "up for 24 h"},
		"not well":           {strip[:1], ago(time.Minute), ""},
		"nothing is known":   {nil, ago(time.Minute), ""},
	} {
		if got := WellText(tt.strip, tt.since, noon); got != tt.want {
			t.Errorf("%s: %q, want %q", name, got, tt.want)
		}
	}
}

// The sign of an agent in trouble says whose turn it was. In its strip only a start is a restart.
func TestSignsOfAnAgentsDay(t *testing.T) {
	crashed := func(hours int) Standing {
		return Standing{From: ago(time.Duration(hours) * time.Hour), Health: Warn, State: "has crashed"}
	}
	well := func(hours int) Standing {
		return Standing{From: ago(time.Duration(hours) * time.Hour), Health: Good, State: "well"}
	}
	h := &Home{At: noon, Monitor: 9, Watched: []Period{{ago(20 * time.Hour), noon}}, Agents: []Agent{
		{Key: "a", Health: Good, History: []Standing{well(20), crashed(9), well(8), crashed(6), well(5), crashed(3), well(2)}, Acts: []Act{
			{At: ago(9 * time.Hour), Step: "restart", Again: ago(8 * time.Hour)}, {At: ago(3 * time.Hour), Step: "nudge", Again: ago(2 * time.Hour)}}},
	}, Incidents: []Incident{
		{ID: "1", Agent: "a", Opened: ago(5*time.Hour + time.Minute), Began: ago(6 * time.Hour), Resolved: ago(5 * time.Hour)},
		{ID: "2", Members: []string{"b", "a"}, Opened: ago(3 * time.Hour), Resolved: ago(2 * time.Hour)},
	}}
	one := Of(Input{At: noon, Home: h}).Agents[0]
	var signs, marks []string
	for _, s := range one.History {
		signs = append(signs, s.Health.String())
	}
	for _, s := range one.Strip {
		if s.Restarts > 0 {
			marks = append(marks, fmt.Sprint(noon.Sub(s.From).Hours()))
		}
	}
	if d := cmp.Diff([]string{"good", "warn", "good", "bad", "good", "bad", "good"}, signs); d != "" {
		t.Errorf("signs (-want +got):\n%s", d)
	}
	if d := cmp.Diff([]string{"9"}, marks); d != "" {
		t.Errorf("restarts, by how many hours ago (-want +got):\n%s", d)
	}
}

// Two processes of one server behind a gateway are restarted at once: each restart has its own end.
func TestRestartsThatOverlap(t *testing.T) {
	at := func(s int) time.Time { return noon.Add(time.Duration(s) * time.Second) }
	begun := func(s, generation int) *Event {
		return &Event{At: at(s), Type: event.RestartInitiated, Cause: "requested", Generation: generation}
	}
	done := func(s, generation, took int) *Event {
		return &Event{At: at(s), Type: event.RestartCompleted, Cause: "requested", Generation: generation, Took: time.Duration(took) * time.Second}
	}
	for name, events := range map[string][]*Event{
		"of several generations": {begun(0, 3), begun(1, 7), done(5, 4, 5), done(8, 8, 7)},
		"of one generation":      {begun(0, 0), begun(1, 0), done(5, 1, 5), done(8, 1, 7)},
	} {
		t.Run(name, func(t *testing.T) {
			want := []Renewal{{At: at(1), Took: 7 * time.Second, Done: true, Cause: "requested"}, {At: at(0), Took: 5 * time.Second, Done: true, Cause: "requested"}}
			got, _ := renewalsOf(events)
			if d := cmp.Diff(want, got); d != "" {
				t.Errorf("restarts (-want +got):\n%s", d)
			}
		})
	}
}

func TestEventsOfTheDay(t *testing.T) {
	line := `{"timestamp":"2026-05-04T11:00:00.000Z","level":"INFO","logger":"mcp_proxy","message":"Restart completed in 80ms","event_type":"restart_completed","proxy_pid":1,"server_pid":2,"restart_count":1,"generation":1,"restart_duration_ms":80,"cause":"crash","server":"files"}`
	e, err := ParseEvent([]byte(line))
	want := Event{At: ago(time.Hour), Level: "INFO", Type: event.RestartCompleted, Message: "Restart completed in 80ms", PID: 1, Server: "files",
		ServerPID: 2, Generation: 1, Cause: "crash", Took: 80 * time.Millisecond}
	if d := cmp.Diff(want, e); d != "" || err != nil {
		t.Errorf("event (-want +got):\n%s%v", d, err)
	}
	if _, err := ParseEvent([]byte("{")); err == nil {
		t.Error("half a line was taken")
	}
	debug := e
	debug.Level = "DEBUG"
	old := e
	old.At = ago(25 * time.Hour)
	if list := Newest([]Event{debug, old, e}, Filter{}, 9, noon); len(list) != 1 {
		t.Errorf("shown: %+v", list)
	}
}

// An incident of several agents is the monitor's, too, and its process no outlive's.
func TestWhoseEventsAre(t *testing.T) {
	for kind, want := range map[event.Type]string{event.IncidentOpened: `"monitor_pid":9`, event.AgentChanged: `"monitor_pid":9`, event.ProxyLost: `"proxy_pid":9`} {
		e := Event{At: noon, Type: kind, PID: 9, Message: "m"}
		text, err := json.Marshal(e)
		if err != nil || !strings.Contains(string(text), want) || strings.Count(string(text), "_pid") != 1 {
			t.Errorf("%s: %s, %v", kind, text, err)
		}
		if back, err := ParseEvent(text); err != nil || !back.At.Equal(e.At) || back.PID != e.PID || back.Type != e.Type {
			t.Errorf("%s: read back it is %+v, %v", text, back, err)
		}
	}
}

func TestAgentsAndIncidents(t *testing.T) {
	h := &Home{Path: "/h", Monitor: 9, Watched: []Period{{ago(20 * time.Hour), noon}}, At: noon, Agents: []Agent{
		{Key: "a", Health: Good, Acts: []Act{{At: ago(5 * time.Hour), Step: "restart", Helped: ago(4 * time.Hour)}}},
		{Key: "b", Health: Bad, Since: ago(time.Hour)},
	}, Incidents: []Incident{
		{ID: "1", Agent: "a", Opened: ago(10 * time.Hour), Resolved: ago(9 * time.Hour)},
		{ID: "2", Agent: "b", Opened: ago(30 * time.Minute), State: "acknowledged"},
		{ID: "3", Agent: "b", Opened: ago(50 * time.Minute), State: "notified"},
	}}
	s := Of(Input{At: noon, Home: h})
	if s.Incidents[0].ID != "3" || s.Incidents[1].ID != "2" || s.Incidents[2].ID != "1" || s.Waiting != 1 || s.Wrong != 0 {
		t.Errorf("incidents %+v, %d wait, %d are wrong", s.Incidents, s.Waiting, s.Wrong)
	}
	var healths []Health
	for _, span := range s.Agents[1].Strip {
		healths = append(healths, span.Health)
	}
	if d := cmp.Diff([]Health{Unknown, Good, Bad, Good, Warn, Warn, Good}, healths); d != "" {
		t.Errorf("strip of a (-want +got):\n%s", d)
	}
}

// What the monitor has written down is an agent's night; nothing is known of the time in which none looked.
func TestNightOfAnAgent(t *testing.T) {
	h := &Home{At: noon, Monitor: 9, Watched: []Period{{ago(30 * time.Hour), ago(10 * time.Hour)}, {ago(8 * time.Hour), noon}}, Agents: []Agent{{Key: "a", Health: Good, History: []Standing{
		{From: ago(29 * time.Hour), Health: Good, State: "works"},
		{From: ago(20 * time.Hour), Health: Warn, State: "has crashed", Why: "exit 1"},
		{From: ago(19 * time.Hour), Health: Good, State: "works"},
		{From: ago(9 * time.Hour), Health: Idle, State: "paused"}, // another program's: no monitor looked
		{From: ago(2 * time.Hour), Health: Good, State: "works"},
	}}}}
	one := Of(Input{At: noon, Home: h}).Agents[0]
	var night []string
	for _, s := range one.History {
		night = append(night, fmt.Sprintf("%g to %g: %s, %v", noon.Sub(s.From).Hours(), noon.Sub(s.To).Hours(), s.State, s.Watched))
	}
	want := []string{"24 to 20: works, true", "20 to 19: has crashed, true", "19 to 10: works, true", "10 to 8: , false", "8 to 2: paused, true", "2 to 0: works, true"}
	if d := cmp.Diff(want, night); d != "" {
		t.Errorf("history (-want +got):\n%s", d)
	}
	var strip []string
	for _, s := range one.Strip {
		strip = append(strip, fmt.Sprintf("%g to %g: %s", noon.Sub(s.From).Hours(), noon.Sub(s.To).Hours(), s.Health))
	}
	want = []string{"24 to 20: good", "20 to 19: warn", "19 to 10: good", "10 to 8: unknown", "8 to 2: idle", "2 to 0: good"}
	if d := cmp.Diff(want, strip); d != "" {
		t.Errorf("strip (-want +got):\n%s", d)
	}
}

// A strip changes with the clock's quarters of an hour, and not at each look.
func TestStripStaysForAQuarter(t *testing.T) {
	h := &Home{At: noon, Agents: []Agent{{Key: "a", Health: Good}}, Watched: []Period{{ago(3 * time.Hour), noon}}}
	h.Monitor = 9
	late := Of(Input{At: noon.Add(3 * time.Second), Home: &Home{At: noon, Monitor: 9, Watched: h.Watched, Agents: []Agent{{Key: "a", Health: Good, History: []Standing{{From: ago(time.Hour), Health: Good}}}}}})
	if list := late.Agents[0].History; len(list) != 1 || !list[0].To.Equal(late.At) {
		t.Errorf("what goes on ends at the last look of the home: %v", list)
	}
	strip := func(at time.Time) []Span { return Of(Input{At: at, Home: h}).Agents[0].Strip }
	if d := cmp.Diff(strip(noon.Add(time.Minute)), strip(noon.Add(14*time.Minute))); d != "" {
		t.Errorf("within a quarter it changes:\n%s", d)
	}
	if got := strip(noon.Add(time.Minute)); got[len(got)-1].To != noon.Add(15*time.Minute) {
		t.Errorf("the last part ends at %s", got[len(got)-1].To)
	}
}

func TestChangesOfAHome(t *testing.T) {
	was := &Home{At: ago(time.Minute), Agents: []Agent{{Key: "a", Class: "working"}}, Incidents: []Incident{{ID: "1", Title: "a waits", Agent: "a"}, {ID: "2", Title: "b", Agent: "b"}}}
	is := &Home{At: noon, Agents: []Agent{{Key: "a", Class: "crashed", State: "has crashed", Why: "PID 7", Health: Bad, Acts: []Act{{At: noon, Text: "restarted it"}}}},
		Incidents: []Incident{{ID: "1", Title: "a waits", Agent: "a", Resolved: noon, Ending: "it works again"}, {ID: "2", Title: "b", Agent: "b", State: "acknowledged", By: "me"}, {ID: "3", Title: "a has crashed", Agent: "a"}}}
	var got []string
	for _, e := range Changes(was, is) {
		got = append(got, string(e.Type)+" "+e.Message)
	}
	want := []string{
		"agent_changed a: has crashed: PID 7", "agent_acted a: restarted it", "incident_resolved a waits: over: it works again",
		"incident_acknowledged b: acknowledged by me", "incident_opened a has crashed: it waits for a person",
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("changes (-want +got):\n%s", d)
	}
	if Changes(nil, is) != nil || Changes(is, is) != nil {
		t.Error("something has changed without a change")
	}
}

// outlive itself knows since when a server stands so; events tell of each try.
func TestSinceWhenAServerStands(t *testing.T) {
	i := run("x", 1, backend.Status{State: "failed", Since: ago(3 * time.Hour)})
	events := []Event{
		happened(3*time.Hour, event.ServerStarting), happened(2*time.Hour, event.BreakerOpened),
		happened(time.Minute, event.ServerStarting), happened(time.Second, event.BreakerOpened),
	}
	if got := Of(Input{At: noon, Instances: []Instance{i}, Events: events}).Servers[0].Since; !got.Equal(ago(3 * time.Hour)) {
		t.Errorf("since %s, want %s: it never worked", got, ago(3*time.Hour))
	}
	i = Instance{Instance: control.Instance{Name: "g", PID: 1}, Status: control.Status{Config: "x.yaml", PID: 1, StartedAt: ago(Day), Servers: []control.Member{
		{ServerStatus: gateway.ServerStatus{Name: "sick", Standing: "unusable", Trouble: "no such file", Since: ago(3 * time.Hour)}},
	}}}
	if got := Of(Input{At: noon, Instances: []Instance{i}}).Servers[1].Since; !got.Equal(ago(3 * time.Hour)) {
		t.Errorf("behind a gateway: since %s, want %s", got, ago(3*time.Hour))
	}
}
