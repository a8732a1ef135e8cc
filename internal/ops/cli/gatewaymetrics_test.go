package cli

import (
	"bytes"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/outlive-mcp/outlive/internal/gateway/gateway"
	"github.com/outlive-mcp/outlive/internal/line/backend"
)

// reading is what Prometheus makes of one gauge: its text, and a value for each server.
type reading struct {
	Help    string
	Servers map[string]float64
}

// scraped reads an exposition with Prometheus' own parser.
func scraped(t *testing.T, text []byte) map[string]reading {
	t.Helper()
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(bytes.NewReader(text))
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	got := map[string]reading{}
	for name, family := range families {
		if family.GetType().String() != "GAUGE" {
			t.Errorf("%s is a %s", name, family.GetType())
		}
		r := reading{Help: family.GetHelp(), Servers: map[string]float64{}}
		for _, m := range family.GetMetric() {
			if len(m.GetLabel()) != 1 || m.GetLabel()[0].GetName() != "server" {
				t.Errorf("%s has the labels %v", name, m.GetLabel())
				continue
			}
			r.Servers[m.GetLabel()[0].GetValue()] = m.GetGauge().GetValue()
		}
		got[name] = r
	}
	return got
}

func TestPrometheusReadsTheMetrics(t *testing.T) {
	const odd = "a \"quoted\"\\ name,\n{with=\"all\"} of it \\"
	link := func(phase string, restarts, inFlight, queued int, rss int64) gateway.LinkStatus {
		l := gateway.LinkStatus{Phase: phase}
		l.RestartCount, l.InFlight, l.Queued, l.RSS = restarts, inFlight, queued, rss
		return l
	}
	got := scraped(t, exposition([]gateway.ServerStatus{
		{Name: "zebra", Tools: 7, Links: []gateway.LinkStatus{
			link("ready", 2, 1, 3, 5<<30+1), link("ready", 1, 0, 0, 1), link("failed", 0, 0, 4, 0), link("greeting", 0, 0, 0, 0),
		}},
		{Name: odd, Tools: 1, Standing: "unusable"},
		{Name: "broken \xff text", Links: []gateway.LinkStatus{link("failed", 0, 0, 0, 0)}},
	}))
	values := func(zebra, quoted, broken float64) map[string]float64 {
		return map[string]float64{"zebra": zebra, odd: quoted, "broken \uFFFD text": broken}
	}
	want := map[string]reading{
		"outlive_server_up":                 {"Processes of the server that answer.", values(2, 0, 0)},
		"outlive_server_failed":             {"Processes of the server whose handshake failed; at least 1 while the server cannot be used.", values(1, 1, 1)},
		"outlive_server_restarts":           {"Restarts of the server's processes that are kept now.", values(3, 0, 0)},
		"outlive_server_requests_in_flight": {"Requests the server is working on.", values(1, 0, 0)},
		"outlive_server_requests_queued":    {"Requests that wait for the server.", values(7, 0, 0)},
		"outlive_server_resident_bytes":     {"Memory of the server's processes and all they started.", values(5<<30+2, 0, 0)},
		"outlive_server_tools":              {"Tools the server shows.", values(7, 1, 0)},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestNoServerIsNoMetric(t *testing.T) {
	if text := exposition(nil); len(scraped(t, text)) != 0 {
		t.Errorf("%s", text)
	}
}

// A server without a process is down, and not missing.
func TestAServerWithoutLinksIsShown(t *testing.T) {
	var idle backend.Status
	got := scraped(t, exposition([]gateway.ServerStatus{{Name: "a", Links: []gateway.LinkStatus{{Phase: "retired", Status: idle}}}, {Name: "b"}}))
	if diff := cmp.Diff(map[string]float64{"a": 0, "b": 0}, got["outlive_server_up"].Servers); diff != "" {
		t.Error(diff)
	}
}
