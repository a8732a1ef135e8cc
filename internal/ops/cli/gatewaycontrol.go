package cli

import (
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/outlive-mcp/outlive/internal/gateway/gateway"
	"github.com/outlive-mcp/outlive/internal/keep/supervise"
	"github.com/outlive-mcp/outlive/internal/line/backend"
	"github.com/outlive-mcp/outlive/internal/record/logline"
	"github.com/outlive-mcp/outlive/internal/view/control"
	"github.com/outlive-mcp/outlive/internal/view/overview"
)

// reachableGateway implements control.Source for a running gateway.
type reachableGateway struct{ *endpoint }

func (r reachableGateway) Status() control.Status {
	ctx, cancel := context.WithTimeout(context.Background(), askPatience)
	defer cancel()
	s := r.sinks.status(backend.Status{Name: r.flags.name, State: "serving"})
	s.URL, s.Upgrades, s.ClientProcess, s.DamagedSessions = r.url, r.image.upgrades, r.client.status(), r.sessions.damaged()
	s.PeersAt, s.SessionsAway = r.others.status()
	if s.Config = r.begun.Name; r.path != "" {
		s.Config, _ = filepath.Abs(r.path) // it fails only without a working directory
	}
	servers, err := r.endpoint.Status(ctx)
	if err != nil {
		s.State = endingOrLate(ctx)
	}
	for _, one := range servers {
		addServer(&s, control.Member{ServerStatus: one}, r.served.keptOf(one.Name))
	}
	return s
}

// addServer adds a server to the status of the gateway or daemon that has it. kept is its stderr; nil: there is none.
func addServer(s *control.Status, server control.Member, kept *logline.Kept) {
	if kept != nil {
		server.LogPath = kept.Path()
		s.Lost.Log += kept.Lost()
	}
	s.Servers = append(s.Servers, server)
	s.RestartCount += overview.RestartsOf(server.ServerStatus)
	for _, l := range server.Links {
		s.InFlight += l.InFlight
		s.Queued += l.Queued
	}
}

func (r reachableGateway) Used() control.Status {
	ctx, cancel := context.WithTimeout(context.Background(), askPatience)
	defer cancel()
	s := control.Status{Status: backend.Status{Name: r.flags.name}}
	all, _ := r.endpoint.Used(ctx) // without an answer there are none
	for _, one := range all {
		s.Servers = append(s.Servers, control.Member{ServerStatus: one})
	}
	return s
}

// whichServer is the error for a missing or unknown server name.
func (r reachableGateway) whichServer(server string) error {
	names := slices.Sorted(maps.Keys(r.served.current()))
	for i := range names {
		names[i] = r.flags.name + "/" + names[i]
	}
	if server == "" {
		return fmt.Errorf("say which of its servers: %s", strings.Join(names, ", "))
	}
	return fmt.Errorf("no server %q; must be one of %s", server, strings.Join(names, ", "))
}

// meant returns the server for a name, which may be omitted if there is only one.
func (r reachableGateway) meant(server string) string {
	if all := slices.Collect(maps.Keys(r.served.current())); server == "" && len(all) == 1 {
		return all[0]
	}
	return server
}

func (r reachableGateway) Restart(ctx context.Context, o control.Order) (control.Result, error) {
	server := r.meant(o.Server)
	if _, known := r.served.current()[server]; !known {
		return control.Result{}, r.whichServer(server)
	}
	return restartServer(ctx, r.Runner, server, sourceOf(o), o.Reason)
}

// restartServer replaces the processes of one of a gateway's servers, and returns when that is done. Those that sleep, or wait for their first
// call, are started anew anyway.
func restartServer(ctx context.Context, r *gateway.Runner, server string, source supervise.Source, reason string) (control.Result, error) {
	if links, err := linksOf(ctx, r, server); err != nil || !slices.ContainsFunc(links, awake) {
		return control.Result{}, err
	}
	begun := time.Now()
	if err := r.Restart(ctx, server, source, reason); err != nil {
		return control.Result{}, err
	}
	links, err := linksOf(ctx, r, server)
	result := control.Result{TookMS: time.Since(begun).Milliseconds(), Processes: len(links)}
	for _, l := range links {
		result.Generation, result.ServerPID = l.Generation, l.ServerPID
	}
	return result, err
}

// linksOf are the processes of one of a gateway's servers.
func linksOf(ctx context.Context, r *gateway.Runner, server string) ([]gateway.LinkStatus, error) {
	all, err := r.Status(ctx)
	for _, s := range all {
		if s.Name == server {
			return s.Links, err
		}
	}
	return nil, err
}

// awake reports whether a process runs, or is about to.
func awake(l gateway.LinkStatus) bool { return l.State != "stopped" && l.State != "asleep" }
