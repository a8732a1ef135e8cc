package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/outlive-mcp/outlive/internal/files/atomicfile"
	"github.com/outlive-mcp/outlive/internal/files/peer"
	"github.com/outlive-mcp/outlive/internal/record/event"
	"github.com/outlive-mcp/outlive/internal/record/latency"
	"github.com/outlive-mcp/outlive/internal/view/control"
	"github.com/outlive-mcp/outlive/internal/view/metrics"
	"github.com/outlive-mcp/outlive/internal/view/overview"
)

const metricsLong = `Print everything outlive keeps alive for this user on this machine as metrics for Prometheus: servers, requests by tool,
restarts, agents, incidents. The counters never fall: what ended runs have counted is kept in metrics.json of the state directory,
from the first time that metrics are asked for.

With --output FILE the text is put into that file, whole at any time and readable by all, for the textfile collector of
Prometheus' node exporter: run it every 15 seconds or so. The same is at /metrics of outlive dashboard, gateway and monitor. Names,
alert rules and a Grafana dashboard: https://github.com/outlive-mcp/outlive/blob/main/docs/METRICS.md

EXIT STATUS
  0  printed
  1  the sockets could not be read, or the file could not be written`

func newMetrics(io streams) *cobra.Command {
	var home, output string
	cmd := &cobra.Command{
		Use:     "metrics",
		Short:   "Print metrics of all servers and agents for Prometheus",
		Long:    metricsLong,
		Example: "  outlive metrics\n  outlive metrics --output /var/lib/prometheus/node-exporter/outlive.prom",
		Args:    takes(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			text, err := metricsText(cmd.Context(), home)
			switch {
			case err != nil:
			case output == "":
				_, err = io.out.Write(text)
			default:
				err = putForAll(output, text)
			}
			return asFailure(err)
		},
	}
	cmd.Flags().StringVar(&output, "output", "", "put the text into `FILE` instead, such as outlive.prom")
	defineHome(cmd.Flags(), &home)
	return cmd
}

// putForAll replaces a file that other users read: the collector runs as another one.
func putForAll(path string, text []byte) error {
	if st, err := os.Stat(path); err == nil && st.IsDir() {
		return fmt.Errorf("--output %s: it is a directory: name a file in it, such as %s", path, filepath.Join(path, "outlive.prom"))
	}
	if _, err := os.Stat(filepath.Dir(path)); errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("--output %s: there is no directory %s: make it, or name another one", path, filepath.Dir(path))
	}
	return atomicfile.WriteForAll(path, text)
}

// ledgerPath is where the counts are that outlast the outlives which have counted.
func ledgerPath() string { return filepath.Join(stateDir(), "metrics.json") }

// metricsText is everything on the machine. What cannot be looked at is counted in the text.
func metricsText(ctx context.Context, home string) ([]byte, error) {
	all, err := askAll(ctx)
	if err != nil {
		return nil, err
	}
	in := metrics.Input{Version: version()}
	for _, r := range all {
		one := overview.Instance{Instance: r.Instance, Status: r.status, Silent: r.status.State == noAnswer}
		if one.Silent {
			in.Trouble++
		}
		in.Running = append(in.Running, one)
	}
	if in.Home, err = (&homeWatch{given: home}).look(ctx); err != nil {
		in.Trouble++
	}
	in.Ledger, err = metrics.Update(ledgerPath(), true, func(l *metrics.Ledger) { l.See(time.Now(), in.Running, in.Home) })
	if err != nil {
		return nil, err
	}
	return metrics.Text(in), nil
}

// serveMetrics answers with everything on the machine.
func serveMetrics(home string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		text, err := metricsText(r.Context(), home)
		sendMetrics(w, text, err)
	})
}

func sendMetrics(w http.ResponseWriter, text []byte, err error) {
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", metrics.ContentType)
	_, _ = w.Write(text) // the client may have gone
}

// metrics is what Prometheus reads of a gateway: everything on the machine where only this user can ask, otherwise the gateway's
// own servers.
func (g *endpoint) metrics() http.Handler {
	if g.front.Peer != nil {
		return serveMetrics("")
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), askPatience)
		defer cancel()
		all, err := g.Status(ctx)
		sendMetrics(w, metrics.TextOf(version(), metrics.ServersOf(g.flags.name, all)), err)
	})
}

// ownMetrics is /metrics beside another handler, for this user only; where the system does not tell whose a connection is, for this
// machine.
func ownMetrics(home string, others http.Handler) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("/", others)
	mux.HandleFunc("GET /metrics", func(w http.ResponseWriter, r *http.Request) {
		if err := ownConnection(r); err != nil {
			http.Error(w, "Forbidden: "+err.Error(), http.StatusForbidden)
			return
		}
		serveMetrics(home).ServeHTTP(w, r)
	})
	return mux
}

func ownConnection(r *http.Request) error {
	local, _ := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	remote, err := net.ResolveTCPAddr("tcp", r.RemoteAddr)
	switch {
	case err != nil || local == nil || !remote.IP.IsLoopback():
		return fmt.Errorf("metrics are for this machine only: ask at a loopback address")
	case peer.TellsTCP():
		return ownUserOnly(local, remote)
	}
	return nil
}

// countLast adds what this outlive has counted to what outlasts it, if anybody reads metrics.
func (k *sinks) countLast(upgrades int, s control.Status) {
	s.PID, s.StartedAt = os.Getpid(), k.start
	counted := metrics.CountedBy(s)
	if one, ok := counted[s.Name]; ok && s.Servers == nil {
		one.Sessions = &latency.Histogram{}
		one.Sessions.Add(time.Since(k.start))
		counted[s.Name] = one
	}
	_, err := metrics.Update(ledgerPath(), false, func(l *metrics.Ledger) {
		l.End(time.Now(), metrics.Key(s.PID, s.StartedAt, upgrades), counted)
	})
	if err != nil {
		k.warn(event.ServerLogLost, err.Error()+"; what this run has counted is missing in metrics")
	}
}
