package cli

import (
	"context"
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// metrics serves what Prometheus scrapes.
func (g *endpoint) metrics() http.Handler {
	reg := prometheus.NewRegistry()
	reg.MustRegister(gauges{g})
	return promhttp.HandlerFor(reg, promhttp.HandlerOpts{})
}

// gauges tell how the servers stand at the moment of a scrape.
type gauges struct{ endpoint *endpoint }

var (
	metricUp       = prometheus.NewDesc("outlive_server_up", "Processes of the server that answer.", []string{"server"}, nil)
	metricFailed   = prometheus.NewDesc("outlive_server_failed", "Processes of the server whose handshake failed.", []string{"server"}, nil)
	metricRestarts = prometheus.NewDesc("outlive_server_restarts", "Restarts of the server's processes that are kept now.", []string{"server"}, nil)
	metricInFlight = prometheus.NewDesc("outlive_server_requests_in_flight", "Requests the server is working on.", []string{"server"}, nil)
	metricQueued   = prometheus.NewDesc("outlive_server_requests_queued", "Requests that wait for the server.", []string{"server"}, nil)
	metricRSS      = prometheus.NewDesc("outlive_server_resident_bytes", "Memory of the server's processes and all they started.", []string{"server"}, nil)
	metricTools    = prometheus.NewDesc("outlive_server_tools", "Tools the server shows.", []string{"server"}, nil)
)

// Describe implements prometheus.Collector.
func (g gauges) Describe(to chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{metricUp, metricFailed, metricRestarts, metricInFlight, metricQueued, metricRSS, metricTools} {
		to <- d
	}
}

// Collect implements prometheus.Collector.
func (g gauges) Collect(to chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), askPatience)
	defer cancel()
	all, err := g.endpoint.Status(ctx)
	if err != nil {
		to <- prometheus.NewInvalidMetric(metricUp, err)
		return
	}
	for _, s := range all {
		var up, failed, restarts, inFlight, queued int
		var rss int64
		for _, l := range s.Links {
			if l.Phase == "ready" {
				up++
			}
			if l.Phase == "failed" {
				failed++
			}
			restarts += l.RestartCount
			inFlight += l.InFlight
			queued += l.Queued
			rss += l.RSS
		}
		for _, m := range []struct {
			desc  *prometheus.Desc
			value float64
		}{
			{metricUp, float64(up)}, {metricFailed, float64(failed)}, {metricRestarts, float64(restarts)},
			{metricInFlight, float64(inFlight)}, {metricQueued, float64(queued)}, {metricRSS, float64(rss)}, {metricTools, float64(s.Tools)},
		} {
			to <- prometheus.MustNewConstMetric(m.desc, prometheus.GaugeValue, m.value, s.Name)
		}
	}
}
