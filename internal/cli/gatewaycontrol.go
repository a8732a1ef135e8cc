package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/outlive-mcp/outlive/internal/backend"
	"github.com/outlive-mcp/outlive/internal/control"
	"github.com/outlive-mcp/outlive/internal/event"
	"github.com/outlive-mcp/outlive/internal/supervise"
)

// reachableGateway is a running gateway as the control socket offers it.
type reachableGateway struct{ *endpoint }

// serveGatewayControl opens the control socket, and closes it when the returned function is called.
func serveGatewayControl(g *endpoint) (closeIt func()) {
	srv, err := control.Listen(socketDir(), g.flags.name, os.Getpid(), reachableGateway{g})
	if err != nil {
		g.sinks.say(event.ServerLogLost, fmt.Sprintf("control socket: %v; outlive status cannot see this gateway", err))
		return func() {}
	}
	return func() { _ = srv.Close() } // the socket's file is looked after by the next discovery
}

// Status implements control.Source.
func (r reachableGateway) Status() control.Status {
	ctx, cancel := context.WithTimeout(context.Background(), askPatience)
	defer cancel()
	s := control.Status{
		Status: backend.Status{Name: r.flags.name, State: "serving"}, PID: os.Getpid(), StartedAt: r.sinks.start, Version: version(),
		URL: r.url, Lost: control.Lost{Stderr: r.sinks.log.Lost()},
	}
	s.Config, _ = filepath.Abs(r.path)
	var err error
	if s.Servers, err = r.endpoint.Status(ctx); err != nil {
		s.State = "ending"
	}
	for _, one := range s.Servers {
		for _, l := range one.Links {
			s.RestartCount += l.RestartCount
			s.InFlight += l.InFlight
			s.Queued += l.Queued
		}
	}
	if r.sinks.audit != nil {
		s.AuditPath, s.Lost.Audit = r.sinks.audit.Path(), r.sinks.audit.Lost()
	}
	return s
}

// errWhichServer is the answer to those who do not say which server they mean.
var errWhichServer = errors.New("say which of its servers: NAME/SERVER")

// Restart implements control.Source.
func (r reachableGateway) Restart(ctx context.Context, server, reason string) (control.Result, error) {
	if server == "" {
		return control.Result{}, errWhichServer
	}
	begun := time.Now()
	if err := r.endpoint.Restart(ctx, server, supervise.SourceControl, reason); err != nil {
		return control.Result{}, err
	}
	result := control.Result{TookMS: time.Since(begun).Milliseconds()}
	all, err := r.endpoint.Status(ctx)
	for _, s := range all {
		if s.Name == server && len(s.Links) > 0 {
			result.Generation, result.ServerPID = s.Links[0].Generation, s.Links[0].ServerPID
		}
	}
	return result, err
}

// Upgrade implements control.Source.
func (r reachableGateway) Upgrade(context.Context) error {
	return errors.New("a gateway cannot be upgraded in place yet: start the new version beside it")
}

// Log implements control.Source.
func (r reachableGateway) Log(ctx context.Context, server string, w io.Writer, follow bool) error {
	kept := r.served.keptOf(server)
	if kept == nil {
		return errWhichServer
	}
	return copyLog(ctx, w, kept, follow)
}
