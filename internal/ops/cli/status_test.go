package cli

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/outlive-mcp/outlive/internal/files/fileerror"
	"github.com/outlive-mcp/outlive/internal/gateway/config"
	"github.com/outlive-mcp/outlive/internal/gateway/gateway"
	"github.com/outlive-mcp/outlive/internal/gateway/sharing"
	"github.com/outlive-mcp/outlive/internal/line/backend"
	"github.com/outlive-mcp/outlive/internal/record/logline"
	"github.com/outlive-mcp/outlive/internal/view/control"
	"github.com/outlive-mcp/outlive/internal/view/metrics"
	"github.com/outlive-mcp/outlive/internal/view/overview"
	"github.com/outlive-mcp/outlive/internal/view/terminal"
)

func member(name string, links ...gateway.LinkStatus) control.Member {
	return control.Member{ServerStatus: gateway.ServerStatus{Name: name, Links: links}}
}

func link(phase, state string, pid int) gateway.LinkStatus {
	return gateway.LinkStatus{Phase: phase, Status: backend.Status{State: state, ServerPID: pid}}
}

func restartsOf(n int64) backend.Counters {
	return backend.Counters{Restarts: map[string]int64{"crash": n}}
}

// A call of which nothing is heard is named, with its age; one that is only slow is not.
func TestStatusNamesSilentCalls(t *testing.T) {
	now := time.Now()
	s := control.Status{Status: backend.Status{Name: "srv", State: "ready", InFlight: 2, Unanswered: []backend.Call{
		{Method: "tools/call", Tool: "build", Since: now.Add(-6 * time.Minute), Silent: true}, {Method: "tools/call", Tool: "quick", Since: now},
	}}}
	var out strings.Builder
	if err := printStatus(&out, []control.Status{s}, now); err != nil {
		t.Fatal(err)
	}
	if text := out.String(); !strings.Contains(text, "\nsrv: silent: build has run for 6m0s, and nothing is heard of it\n") || strings.Contains(text, "quick") {
		t.Error(text)
	}
}

// A server behind a gateway may have been restarted as processes that are not kept any more: every view has them all.
func TestRestartsAreTheSameInEveryView(t *testing.T) {
	now := time.Now()
	l := link("ready", "ready", 13)
	l.RestartCount, l.Counters = 9, restartsOf(9)
	m := member("a", l)
	m.Past = restartsOf(6)
	s := control.Status{Status: backend.Status{Name: "gw", State: "serving"}, PID: 9, Config: "/outlive.yaml", StartedAt: now.Add(-time.Hour), Servers: []control.Member{m}}
	var out strings.Builder
	if err := printStatus(&out, []control.Status{s}, now); err != nil {
		t.Fatal(err)
	}
	instance := overview.Instance{Instance: control.Instance{Name: "gw", PID: 9}, Status: s}
	plain := terminal.Lines(overview.Of(overview.Input{At: now, Instances: []overview.Instance{instance}}))
	for where, check := range map[string]struct{ text, want string }{
		"status":  {out.String(), `(?m)^gw/a +ready +13 +15 `},
		"top":     {strings.Join(plain, "\n"), `(?m)^Server gw@9/a: .*restarted it 15 ×`},
		"metrics": {string(metrics.TextOf("1", s)), `(?m)^outlive_server_restarts\{.*\} 15$`},
		"counter": {string(metrics.TextOf("1", s)), `(?m)^outlive_server_restarts_total\{.*cause="crash"\} 15$`},
	} {
		if !regexp.MustCompile(check.want).MatchString(check.text) {
			t.Errorf("%s has not %s:\n%s", where, check.want, check.text)
		}
	}
	if strings.Contains(plain[1], "restarted") || !regexp.MustCompile(`(?m)^gw +serving +9 +- +- `).MatchString(out.String()) {
		t.Errorf("the gateway itself was not restarted:\n%s\n%s", out.String(), plain[1])
	}
}

func TestPrintStatus(t *testing.T) {
	now := time.Now()
	soon := now.Add(3 * time.Second)
	waits := gateway.LinkStatus{Phase: "failed", HandshakeError: "it failed\nlast stderr lines:\nboom", Client: "codex",
		Status: backend.Status{State: "backoff", NextTryAt: &soon, Counters: restartsOf(2), LastExit: &backend.LastExit{Code: 1, Stderr: []string{"boom"}}}}
	busy := gateway.LinkStatus{Phase: "ready", Client: "codex", Status: backend.Status{State: "ready", ServerPID: 12, UptimeMS: 61_000, InFlight: 2, Counters: restartsOf(1),
		Era: "legacy", ServerEra: "modern", Bridge: "legacy client, modern server"}}
	all := []control.Status{
		{Status: backend.Status{Name: "alone", State: "ready", ServerPID: 7, UptimeMS: 1000, Client: "x 1", Era: "modern", ServerEra: "modern"}, PID: 6},
		{Status: backend.Status{Name: "far", State: "ready", UptimeMS: 1000, Failing: "the connection broke off"}, PID: 8},
		{Status: backend.Status{Name: "gateway", State: "serving"}, PID: 9, Config: "/outlive.yaml", URL: "http://127.0.0.1:8080/mcp",
			Servers: []control.Member{member("a", busy, link("ready", "ready", 13)), member("b", waits), member("c")}},
	}
	var out strings.Builder
	if err := printStatus(&out, all, now); err != nil {
		t.Fatal(err)
	}
	want := strings.Join([]string{
		"NAME       STATE    OUTLIVE  SERVER  RESTARTS  UP    IN FLIGHT  QUEUED  ERA            CLIENT",
		"alone      ready    6        7       0         1s    0          0       modern         x 1",
		"far        failing  8        -       0         1s    0          0",
		"gateway    serving  9        -       -         -     0          0                      http://127.0.0.1:8080/mcp",
		"gateway/a  ready             12,13   1         1m1s  2          0       legacy>modern  codex",
		"gateway/b  backoff           -       2         -     0          0                      codex",
		"gateway/c  idle              -       0         -     0          0",
		"far: failing: the connection broke off",
		"gateway/b: cannot be used: it failed",
		"  last stderr lines:",
		"  boom",
		"gateway/b: next start in 3s",
		"",
	}, "\n")
	if d := cmp.Diff(want, out.String()); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

// What clients and servers call themselves, and what servers write, neither drives the terminal nor makes rows of its own.
func TestPrintStatusIsTame(t *testing.T) {
	const evil = "\x1b[31mx\nforged  ready\t1\u009b2J\u202e"
	failed := gateway.LinkStatus{Phase: "failed", HandshakeError: "it says\n" + evil, Client: evil, Status: backend.Status{State: "failed", LastExit: &backend.LastExit{Stderr: []string{evil}}}}
	all := []control.Status{
		{Status: backend.Status{Name: evil, State: "ready", Client: evil}},
		{Status: backend.Status{Name: "gateway", State: "serving"}, Config: "/outlive.yaml", Servers: []control.Member{member("a", failed)}},
	}
	var out strings.Builder
	if err := printStatus(&out, all, time.Now()); err != nil {
		t.Fatal(err)
	}
	if strings.ContainsAny(out.String(), "\x1b\u009b\u202e") {
		t.Errorf("raw: %q", out.String())
	}
	table, _, _ := strings.Cut(out.String(), "\n"+logline.Printable(evil)+":")
	if strings.Contains(table, "\nforged") || !strings.Contains(table, `\x1b[31mx\nforged`) {
		t.Errorf("table:\n%s", table)
	}
}

// A gateway that is one of several says where the others reach it, and why it has no sessions.
func TestPrintStatusOfOneOfSeveral(t *testing.T) {
	one := control.Status{Status: backend.Status{Name: "gateway", State: "serving"}, PID: 9, Config: "/outlive.yaml", URL: "http://10.0.0.1:8080/mcp",
		PeersAt: "10.0.0.1:7420", SessionsAway: "the fleet\ncannot be asked"}
	var out strings.Builder
	if err := printStatus(&out, []control.Status{one}, time.Now()); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(out.String(), "\ngateway: takes what other gateways pass on at 10.0.0.1:7420\n") || !strings.Contains(out.String(), "\ngateway: no sessions can be had here: the fleet\\ncannot be asked\n") {
		t.Errorf("%s", out.String())
	}
}

func TestStateOf(t *testing.T) {
	for want, links := range map[string][]gateway.LinkStatus{
		"idle":               nil,
		"ready":              {link("ready", "ready", 1)},
		"asleep":             {link("ready", "asleep", 0)},
		"unusable":           {link("failed", "ready", 1)},
		"failed":             {link("failed", "failed", 0)},
		"2 ready, 1 leaving": {link("ready", "ready", 1), link("ready", "ready", 2), link("retired", "ready", 3)},
	} {
		if got := overview.StateOf(gateway.ServerStatus{Links: links}); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	down := gateway.ServerStatus{Standing: "unusable", Links: []gateway.LinkStatus{link("failed", "ready", 1), link("greeting", "backoff", 0)}}
	if got := overview.StateOf(down); got != "unusable" { // not "1 unusable, 1 backoff"
		t.Errorf("a server that cannot be used is %q", got)
	}
}

// A server with several processes is waited for until one of them is ready, or none can become so.
func TestWaitForOneOfSeveralProcesses(t *testing.T) {
	end := time.Now().Add(time.Minute)
	late, soon := end.Add(time.Hour), end.Add(-time.Second)
	paused, tried := link("ready", "backoff", 0), link("ready", "backoff", 0)
	paused.NextTryAt, tried.NextTryAt = &late, &soon
	for what, tc := range map[string]struct {
		links        []gateway.LinkStatus
		ready, never bool
	}{
		"one ready, one asleep":         {[]gateway.LinkStatus{link("ready", "ready", 1), link("ready", "asleep", 0)}, true, false},
		"one ready, one replaced":       {[]gateway.LinkStatus{link("ready", "ready", 1), link("retired", "ready", 2)}, true, false},
		"one ready, one failed":         {[]gateway.LinkStatus{link("failed", "failed", 0), link("ready", "ready", 1)}, true, false},
		"one ready, one paused":         {[]gateway.LinkStatus{paused, link("ready", "ready", 1)}, true, false},
		"one starting, one paused":      {[]gateway.LinkStatus{link("greeting", "ready", 1), paused}, false, false},
		"one tried soon, one paused":    {[]gateway.LinkStatus{tried, paused}, false, false},
		"all paused":                    {[]gateway.LinkStatus{paused, paused}, false, true},
		"one starting, one is replaced": {[]gateway.LinkStatus{link("greeting", "ready", 1), link("retired", "ready", 2)}, false, false},
	} {
		s := control.Status{Servers: []control.Member{member("a", tc.links...)}}
		if got := standing(s, "a", end); got.ready != tc.ready || got.never != tc.never {
			t.Errorf("%s: %+v", what, got)
		}
	}
}

// A name finds what a person means by it, and nothing if that is not clear.
func TestWanted(t *testing.T) {
	all := []running{
		{control.Instance{Name: "a", PID: 1, Path: "a.1.sock"}, control.Status{}},
		{control.Instance{Name: "g", PID: 2, Path: "g.2.sock"}, control.Status{Config: "x", Servers: []control.Member{member("a"), member("b")}}},
		{control.Instance{Name: "g", PID: 3, Path: "g.3.sock"}, control.Status{Config: "x", Servers: []control.Member{member("c")}}},
	}
	for name, want := range map[string]string{
		"a": "a@1, g@2/a", "a@1": "a@1", "b": "g@2/b", "g": "g@2, g@3", "g@3": "g@3", "g/c": "g@3/c", "g/a": "g@2/a", "g@2/a": "g@2/a",
		"g@3/a": "", "g/x": "", "a/x": "", "x": "", "b@2": "",
	} {
		w, err := parseWanted(name)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		match, hint := w.among(all)
		if got := labels(match); got != want || want == "" && hint == "" {
			t.Errorf("%s: %q, want %q (hint %q)", name, got, want, hint)
		}
	}
	busy := []running{{control.Instance{Name: "g", PID: 2, Path: "g.2.sock"}, control.Status{Status: backend.Status{Name: "g", State: noAnswer}}}}
	if match, hint := (wanted{name: "g", server: "a"}).among(busy); match != nil || hint != ": g does not answer, so its servers are not known" {
		t.Errorf("a server of a gateway that does not answer: %v%s", match, hint)
	}
	for _, name := range []string{"", "/a", "a/", "a@", "a@x", "a@-1"} {
		if _, err := parseWanted(name); err == nil {
			t.Errorf("%q is taken", name)
		}
	}
}

// A run and the daemon's server that it uses are one server, and no question which is meant.
func TestWantedOfASharedServer(t *testing.T) {
	shared, other := member("files"), member("notes")
	shared.Runs, other.Runs = []sharing.Run{{Name: "files", PID: 1}}, []sharing.Run{{Name: "mine", PID: 2}}
	all := []running{
		{control.Instance{Name: "files", PID: 1, Path: "files.1.sock"}, control.Status{}},
		{control.Instance{Name: "mine", PID: 2, Path: "mine.2.sock"}, control.Status{}},
		{control.Instance{Name: "notes", PID: 3, Path: "notes.3.sock"}, control.Status{}},
		{control.Instance{Name: "shared", PID: 4, Path: "shared.4.sock"}, control.Status{Servers: []control.Member{shared, other}}},
	}
	for name, want := range map[string]string{"files": "files@1", "shared/files": "shared@4/files", "mine": "mine@2", "notes": "notes@3, shared@4/notes"} {
		w, err := parseWanted(name)
		if err != nil {
			t.Fatal(err)
		}
		match, _ := w.among(all)
		if got := labels(match); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}

// A server that runs share is restarted once, and its daemon, which is no server, never.
func TestRestartOfManyWithSharedServers(t *testing.T) {
	shared := member("files", link("ready", "ready", 11))
	shared.Runs = []sharing.Run{{Name: "files", PID: 1}, {Name: "other", PID: 2}}
	daemon := running{control.Instance{Name: "shared", PID: 4}, control.Status{Status: backend.Status{Name: "shared", State: "serving"}}}
	all := []running{
		{control.Instance{Name: "files", PID: 1}, control.Status{Status: backend.Status{State: "ready"}}},
		{control.Instance{Name: "other", PID: 2}, control.Status{Status: backend.Status{State: "ready"}}},
		{control.Instance{Name: "own", PID: 3}, control.Status{Status: backend.Status{State: "failed"}}},
		daemon,
	}
	for _, tc := range []struct {
		set     restartSet
		members []control.Member
		want    string
	}{
		{restartSet{all: true}, []control.Member{shared}, "own@3, shared@4/files"},
		{restartSet{all: true}, nil, "files@1, other@2, own@3"}, // the next server has not been asked for
		{restartSet{failed: true}, []control.Member{shared}, "own@3"},
		{restartSet{failed: true}, []control.Member{member("files", link("failed", "failed", 0))}, "own@3, shared@4/files"},
	} {
		all[3].status.Servers = tc.members
		meant, unknown := tc.set.among(all)
		if got := labels(meant); got != tc.want || len(unknown) != 0 {
			t.Errorf("%s: %q, want %q (%v)", tc.set.flag(), got, tc.want, unknown)
		}
	}
}

// A server is replaced when anything about it is configured differently, and not because it stands elsewhere in the file.
func TestDigestOf(t *testing.T) {
	configured := func() config.Server {
		return config.Server{Name: "a", URL: "https://x", Auth: &config.Credentials{OAuth: &config.OAuth{ClientID: "me"}},
			Policy: []config.Setting{{Key: "lazy", Values: []string{"true"}, Pos: fileerror.Pos{Line: 3}}}, Pos: fileerror.Pos{Line: 2}}
	}
	digest := func(change func(*config.Server)) string {
		s := configured()
		change(&s)
		d, err := digestOf(s)
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	same := digest(func(*config.Server) {})
	if moved := digest(func(s *config.Server) { s.Pos.Line, s.Policy[0].Pos.Line = 20, 30 }); moved != same {
		t.Error("further down it is another server")
	}
	for what, change := range map[string]func(*config.Server){
		"authorization": func(s *config.Server) { s.Auth.OAuth.ClientID = "you" },
		"policy":        func(s *config.Server) { s.Policy[0].Values = []string{"false"} },
		"headers":       func(s *config.Server) { s.Headers = map[string]string{"X": "1"} },
	} {
		if digest(change) == same {
			t.Errorf("another %s makes no difference", what)
		}
	}
}

func TestManyProcessesStayReadable(t *testing.T) {
	for want, n := range map[string]int{"": 0, "1": 1, "1,2,3,4": 4, "1,2,3 +2": 5, "1,2,3 +29": 32} {
		var numbers []string
		for i := range n {
			numbers = append(numbers, fmt.Sprint(i+1))
		}
		if got := someOf(numbers); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// A gateway whose machine has slept finds out at once that others may have its sessions: each system has a clock that goes on meanwhile.
func TestClockThatGoesOnWhileTheMachineSleeps(t *testing.T) {
	up := upWithSleep()
	if up == nil {
		t.Fatal("there is none")
	}
	if first := up(); first <= 0 || up() < first {
		t.Errorf("it says %v", first)
	}
}
