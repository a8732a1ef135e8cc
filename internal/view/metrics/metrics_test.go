package metrics

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/outlive-mcp/outlive/internal/gateway/gateway"
	"github.com/outlive-mcp/outlive/internal/line/backend"
	"github.com/outlive-mcp/outlive/internal/record/latency"
	"github.com/outlive-mcp/outlive/internal/view/control"
	"github.com/outlive-mcp/outlive/internal/view/overview"
)

// read is what Prometheus' own parser makes of a text: by metric, by labels, a value; of a histogram the number of observations.
func read(t *testing.T, text []byte) map[string]map[string]float64 {
	t.Helper()
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(bytes.NewReader(text))
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	all := map[string]map[string]float64{}
	for name, family := range families {
		if family.GetHelp() == "" {
			t.Errorf("%s has no help", name)
		}
		all[name] = map[string]float64{}
		for _, m := range family.GetMetric() {
			labels := ""
			for _, l := range m.GetLabel() {
				labels += l.GetName() + "=" + l.GetValue() + " "
			}
			switch {
			case m.GetHistogram() != nil:
				h := m.GetHistogram()
				all[name][labels] = float64(h.GetSampleCount())
				last := uint64(0)
				for _, b := range h.GetBucket() {
					if b.GetCumulativeCount() < last {
						t.Errorf("%s %s: a bucket has less than the one before", name, labels)
					}
					last = b.GetCumulativeCount()
				}
			case m.GetCounter() != nil:
				all[name][labels] = m.GetCounter().GetValue()
			default:
				all[name][labels] = m.GetGauge().GetValue()
			}
		}
	}
	return all
}

func linkIn(phase string, restarts, inFlight, queued int, rss int64) gateway.LinkStatus {
	l := gateway.LinkStatus{Phase: phase}
	l.Counters.Restarts = map[string]int64{"crash": int64(restarts)}
	l.RestartCount, l.InFlight, l.Queued, l.RSS = restarts, inFlight, queued, rss
	return l
}

func TestPrometheusReadsAGateway(t *testing.T) {
	const odd = "a \"quoted\"\\ name,\n{with=\"all\"} of it \\"
	got := read(t, TextOf("1", ServersOf("gw", []gateway.ServerStatus{
		{Name: "zebra", Tools: 7, Links: []gateway.LinkStatus{
			linkIn("ready", 2, 1, 3, 5<<30+1), linkIn("ready", 1, 0, 0, 1), linkIn("failed", 0, 0, 4, 0), linkIn("greeting", 0, 0, 0, 0),
		}},
		{Name: odd, Tools: 1, Standing: "unusable"},
		{Name: "broken \xff text", Links: []gateway.LinkStatus{linkIn("failed", 0, 0, 0, 0)}},
		{Name: "idle"},
	})))
	for name := range got {
		if strings.HasSuffix(name, "_total") {
			delete(got, name) // nothing was counted
		}
	}
	values := func(zebra, quoted, broken, idle float64) map[string]float64 {
		return map[string]float64{"server=gw/zebra ": zebra, "server=gw/" + odd + " ": quoted, "server=gw/broken \uFFFD text ": broken, "server=gw/idle ": idle}
	}
	want := map[string]map[string]float64{
		"outlive_build_info":                {"version=1 ": 1},
		"outlive_server_up":                 values(2, 0, 0, 0),
		"outlive_server_failed":             values(1, 1, 1, 0),
		"outlive_server_restarts":           values(3, 0, 0, 0),
		"outlive_server_requests_in_flight": values(1, 0, 0, 0),
		"outlive_server_requests_queued":    values(7, 0, 0, 0),
		"outlive_server_resident_bytes":     values(5<<30+2, 0, 0, 0),
		"outlive_server_tools":              values(7, 1, 0, 0),
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func took(times ...time.Duration) *latency.Histogram {
	h := &latency.Histogram{}
	for _, d := range times {
		h.Add(d)
	}
	return h
}

// run is a running outlive that has counted.
func run(name string, pid int, started time.Time, crashes int64, calls ...backend.Calls) overview.Instance {
	i := overview.Instance{Instance: control.Instance{Name: name, PID: pid, Path: "/nowhere/" + name}}
	i.Status.Name, i.Status.PID, i.Status.StartedAt, i.Status.State, i.Status.Command = name, pid, started, "ready", []string{"x"}
	i.Status.Counters = backend.Counters{
		Calls: calls, Restarts: map[string]int64{"crash": crashes}, Events: map[string]int64{"server_crashed": crashes, "server_spawned": crashes + 1},
		Gaps: took(20 * time.Millisecond), Lives: took(time.Hour),
	}
	return i
}

var start = time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)

func echoes(ok, toolErrors int64) backend.Calls {
	c := backend.Calls{Method: "tools/call", Tool: "echo", OK: ok, ToolError: toolErrors}
	for range ok {
		c.Latency.Add(30 * time.Millisecond)
	}
	for range toolErrors {
		c.Latency.Add(3 * time.Second)
	}
	if toolErrors > 0 {
		c.LatencyToolErrors = took(slices.Repeat([]time.Duration{3 * time.Second}, int(toolErrors))...)
	}
	c.Served = took(25 * time.Millisecond)
	return c
}

func TestOperationsAreNamedAsTheConventionsHaveThem(t *testing.T) {
	got := read(t, Text(Input{Version: "1", Running: []overview.Instance{run("a", 7, start, 0, echoes(5, 2))}, Ledger: seen(run("a", 7, start, 0, echoes(5, 2)))}))
	well := "server=a mcp_method_name=tools/call gen_ai_tool_name=echo "
	want := map[string]float64{well: 5, well + "error_type=tool_error ": 2}
	if diff := cmp.Diff(want, got["mcp_server_operation_duration_seconds"]); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(map[string]float64{well: 1}, got["mcp_client_operation_duration_seconds"]); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(map[string]float64{well + "outcome=ok ": 5, well + "outcome=tool_error ": 2}, got["outlive_requests_total"]); diff != "" {
		t.Error(diff)
	}
	if got["mcp_client_session_duration_seconds"]["server=a "] != 1 || got["outlive_server_restart_duration_seconds"]["server=a "] != 1 {
		t.Errorf("%v", got)
	}
}

// One that does not tell how it stands may do well.
func TestOfWhatDoesNotAnswerNothingIsSaid(t *testing.T) {
	late := run("a", 7, start, 0)
	late.Silent, late.Status.State = true, control.NoAnswer
	got := read(t, Text(Input{Version: "1", Running: []overview.Instance{late}}))
	if got["outlive_instances"]["kind=silent "] != 1 || got["outlive_server_up"] != nil || got["outlive_server_restarts"] != nil {
		t.Errorf("%v", got)
	}
}

func seen(running ...overview.Instance) *Ledger {
	l, err := readLedger("/nowhere/metrics.json")
	if err != nil {
		panic(err)
	}
	l.See(start, running, nil)
	return l
}

// crashes is the counter as Prometheus sees it.
func crashes(t *testing.T, l *Ledger, server string) float64 {
	t.Helper()
	return read(t, Text(Input{Ledger: l}))["outlive_server_crashes_total"]["server="+server+" "]
}

func TestCountersNeverFall(t *testing.T) {
	l := seen(run("a", 1, start, 3), run("a", 2, start, 4), run("b", 3, start, 1))
	want := func(n float64, when string) {
		t.Helper()
		if got := crashes(t, l, "a"); got != n {
			t.Errorf("%s: %v crashes, want %v", when, got, n)
		}
	}
	want(7, "two runs")
	l.See(start, []overview.Instance{run("a", 2, start, 5)}, nil)
	want(8, "the first was killed, the second goes on")
	l.End(start, Key(2, start, 0), CountedBy(run("a", 2, start, 6).Status))
	want(9, "the second has ended by itself")
	l.See(start, []overview.Instance{run("a", 2, start, 5)}, nil)
	want(9, "it was asked before it ended")
	l.End(start, Key(4, start, 0), CountedBy(run("a", 4, start, 2).Status))
	want(11, "one that nobody has seen")
	l.See(start, []overview.Instance{run("a", 2, start.Add(time.Second), 1)}, nil)
	want(12, "another one with a PID of before")
	silent := run("a", 2, start, 0)
	silent.Silent, silent.Status = true, control.Status{}
	l.See(start, []overview.Instance{silent}, nil)
	want(12, "it does not answer")
	l.See(start, []overview.Instance{run("a", 2, start.Add(time.Second), 3)}, nil)
	want(14, "it answers again")
	l.See(start, []overview.Instance{run("a", 2, start.Add(time.Second), 1)}, nil)
	want(15, "a server that was configured anew")
	ending := run("a", 2, start, 0)
	ending.Status.StartedAt, ending.Status.State, ending.Status.Counters = start.Add(time.Second), "ending", backend.Counters{}
	l.See(start, []overview.Instance{ending}, nil)
	want(15, "it is ending, and does not tell what it has counted")
	l.End(start, Key(2, start.Add(time.Second), 0), CountedBy(run("a", 2, start, 1).Status))
	want(15, "it has ended")
	l.See(start.Add(2*closedKept), nil, nil)
	want(15, "all are gone")
	if len(l.Live)+len(l.Closed) > 2 {
		t.Errorf("%d and %d are kept", len(l.Live), len(l.Closed))
	}
}

// One that listens where nobody has looked is no ended one.
func TestWhatListensElsewhereGoesOn(t *testing.T) {
	elsewhere := run("a", 1, start, 3)
	elsewhere.Path = filepath.Join(t.TempDir(), "a.1.sock")
	if err := os.WriteFile(elsewhere.Path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	l := seen(elsewhere)
	l.See(start, nil, nil)
	elsewhere.Status = run("a", 1, start, 4).Status
	l.See(start, []overview.Instance{elsewhere}, nil)
	if got := crashes(t, l, "a"); got != 4 {
		t.Errorf("%v crashes, want 4", got)
	}
}

func TestTheLedgerIsAFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state", "metrics.json")
	if l, err := Update(path, false, func(*Ledger) { t.Error("there is nothing to change") }); l != nil || err != nil {
		t.Errorf("%v, %v", l, err)
	}
	for n := range 2 {
		l, err := Update(path, true, func(l *Ledger) { l.See(start, []overview.Instance{run("a", 1, start, int64(n+3), echoes(5, 2))}, nil) })
		if err != nil {
			t.Fatal(err)
		}
		if got := crashes(t, l, "a"); got != float64(n+3) {
			t.Errorf("%v crashes, want %d", got, n+3)
		}
	}
	l, err := Update(path, false, func(l *Ledger) { l.End(start, Key(1, start, 0), nil) })
	if err != nil || crashes(t, l, "a") != 4 {
		t.Errorf("%v, %v", l, err)
	}
	if err := os.WriteFile(path, []byte("{broken"), 0o600); err != nil {
		t.Fatal(err)
	}
	if l, err = Update(path, false, func(l *Ledger) { l.See(start, nil, nil) }); err != nil || len(l.Ended) != 0 {
		t.Errorf("%v, %v", l, err)
	}
	if err := os.Truncate(path, ledgerLimit+1); err != nil {
		t.Fatal(err)
	}
	if l, err = Update(path, false, func(l *Ledger) { l.See(start, nil, nil) }); err != nil || len(l.Ended) != 0 {
		t.Errorf("a file that is too long: %v, %v", l, err)
	}
	if err := os.WriteFile(path, []byte(`{"version":2}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err = Update(path, false, func(*Ledger) { t.Error("a newer file was changed") }); err == nil {
		t.Error("a newer file was read")
	}
}

func TestAgentsAreCounted(t *testing.T) {
	home := func(acts []overview.Act, incidents ...overview.Incident) *overview.Home {
		return &overview.Home{Path: "/home", Monitor: 5, Incidents: incidents,
			Agents: []overview.Agent{{Key: "shop", Class: "model_silent", Health: overview.Warn, Acts: acts}, {Key: "nightly", Class: "working", Health: overview.Good}}}
	}
	at := func(n int) time.Time { return start.Add(time.Duration(n) * time.Minute) }
	l := seen()
	l.See(at(0), nil, home([]overview.Act{{At: at(-5), Step: "nudge", Helped: at(-4)}})) // before counting began
	first := home([]overview.Act{{At: at(1), Step: "nudge"}}, overview.Incident{ID: "1", Class: "model_silent", Severity: "high", Opened: at(1), Untold: true})
	l.See(at(2), nil, first)
	l.See(at(3), nil, first)
	last := home([]overview.Act{{At: at(1), Step: "nudge"}, {At: at(3), Step: "restart", Helped: at(4)}},
		overview.Incident{ID: "1", Class: "model_silent", Severity: "high", Opened: at(1), Resolved: at(4)})
	got := read(t, Text(Input{Home: first, Ledger: l}))
	if got["outlive_incidents_open"]["severity=high "] != 1 || got["outlive_incidents_waiting"][""] != 1 || got["outlive_incidents_untold"][""] != 1 {
		t.Errorf("%v", got)
	}
	l.See(at(5), nil, last)
	got = read(t, Text(Input{Home: last, Ledger: l}))
	for metric, want := range map[string]map[string]float64{
		"outlive_agent_recoveries_total":        {"agent=shop step=nudge ": 1, "agent=shop step=restart ": 1},
		"outlive_agent_recoveries_proved_total": {"agent=shop step=restart ": 1},
		"outlive_incidents_opened_total":        {"class=model_silent ": 1},
		"outlive_incidents_resolved_total":      {"class=model_silent ": 1},
		"outlive_incidents_waiting":             {"": 0},
		"outlive_agent_trouble":                 {"agent=shop ": 1, "agent=nightly ": 0},
		"outlive_agent_state":                   {"agent=shop state=model_silent ": 1, "agent=nightly state=working ": 1},
		"outlive_monitor_up":                    {"": 1},
	} {
		if diff := cmp.Diff(want, got[metric]); diff != "" {
			t.Errorf("%s: %s", metric, diff)
		}
	}
}

// Every metric stands in the document, and the alert rules and the dashboard know no others.
func TestNamesInOtherFiles(t *testing.T) {
	source, err := os.ReadFile("exposition.go")
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	for _, m := range regexp.MustCompile(`name: "([a-z_]+)"`).FindAllStringSubmatch(string(source), -1) {
		names[m[1]] = true
	}
	page, err := os.ReadFile("../../../docs/METRICS.md")
	if err != nil {
		t.Fatal(err)
	}
	for name := range names {
		if !bytes.Contains(page, []byte("`"+name+"`")) {
			t.Errorf("docs/METRICS.md does not name %s", name)
		}
	}
	for _, file := range []string{"outlive.rules.yml", "outlive.rules.test.yml", "grafana.json"} {
		text, err := os.ReadFile("../../../packaging/metrics/" + file)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range regexp.MustCompile(`\b(outlive|mcp)_[a-z_]+\b`).FindAllString(string(text), -1) {
			if name != "mcp_method_name" && !names[name] && !names[strings.TrimSuffix(name, "_bucket")] {
				t.Errorf("%s uses %s, which there is not", file, name)
			}
		}
	}
}
