package cli

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"strings"

	"github.com/VictoriaMetrics/metrics"

	"github.com/outlive-mcp/outlive/internal/gateway/gateway"
)

// expositionFormat is the content type of Prometheus' text format.
const expositionFormat = "text/plain; version=0.0.4; charset=utf-8"

// metrics serves the servers' present state to Prometheus.
func (g *endpoint) metrics() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), askPatience)
		defer cancel()
		all, err := g.Status(ctx)
		if err != nil {
			http.Error(w, "the gateway does not answer", http.StatusInternalServerError)
			return
		}
		w.Header().Set("Content-Type", expositionFormat)
		_, _ = w.Write(exposition(all)) // the client may have disconnected
	})
}

// gauges are the metrics of each server, in the order of their names.
var gauges = [...]struct {
	name, help string
	of         func(gateway.ServerStatus) int64
}{
	{"outlive_server_failed", "Processes of the server whose handshake failed; at least 1 while the server cannot be used.", failedLinks},
	{"outlive_server_requests_in_flight", "Requests the server is working on.",
		sumOf(func(l gateway.LinkStatus) int64 { return int64(l.InFlight) })},
	{"outlive_server_requests_queued", "Requests that wait for the server.",
		sumOf(func(l gateway.LinkStatus) int64 { return int64(l.Queued) })},
	{"outlive_server_resident_bytes", "Memory of the server's processes and all they started.",
		sumOf(func(l gateway.LinkStatus) int64 { return l.RSS })},
	{"outlive_server_restarts", "Restarts of the server's processes that are kept now.",
		sumOf(func(l gateway.LinkStatus) int64 { return int64(l.RestartCount) })},
	{"outlive_server_tools", "Tools the server shows.", func(s gateway.ServerStatus) int64 { return int64(s.Tools) }},
	{"outlive_server_up", "Processes of the server that answer.", linksIn("ready")},
}

// sumOf adds up a number over all links.
func sumOf(number func(gateway.LinkStatus) int64) func(gateway.ServerStatus) int64 {
	return func(s gateway.ServerStatus) (sum int64) {
		for _, l := range s.Links {
			sum += number(l)
		}
		return sum
	}
}

// failedLinks counts the links whose handshake failed. A server that never answers has none, but cannot be used
// either.
func failedLinks(s gateway.ServerStatus) int64 {
	failed := linksIn("failed")(s)
	if s.Standing == "unusable" {
		failed = max(failed, 1)
	}
	return failed
}

// linksIn counts the links in a phase.
func linksIn(phase string) func(gateway.ServerStatus) int64 {
	return sumOf(func(l gateway.LinkStatus) int64 {
		if l.Phase == phase {
			return 1
		}
		return 0
	})
}

// exposition formats the servers for Prometheus. Each gauge is written separately, after our own HELP line, because
// the library's HELP lines have no text.
func exposition(all []gateway.ServerStatus) []byte {
	if len(all) == 0 {
		return nil // no servers, no metrics
	}
	var text bytes.Buffer
	for _, g := range gauges {
		fmt.Fprintf(&text, "# HELP %s %s\n# TYPE %s gauge\n", g.name, g.help, g.name)
		set := metrics.NewSet()
		for _, s := range all {
			set.GetOrCreateGauge(g.name+`{server="`+labelValue(s.Name)+`"}`, func() float64 { return float64(g.of(s)) })
		}
		set.WritePrometheus(&text)
	}
	return text.Bytes()
}

// labelValue formats the value of a label: valid UTF-8, with these three characters escaped and no others.
func labelValue(s string) string {
	return strings.NewReplacer(`\`, `\\`, "\n", `\n`, `"`, `\"`).Replace(strings.ToValidUTF8(s, "\uFFFD"))
}
