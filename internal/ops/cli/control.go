package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/outlive-mcp/outlive/internal/agents/process"
	"github.com/outlive-mcp/outlive/internal/files/secret"
	"github.com/outlive-mcp/outlive/internal/keep/supervise"
	"github.com/outlive-mcp/outlive/internal/line/backend"
	"github.com/outlive-mcp/outlive/internal/record/event"
	"github.com/outlive-mcp/outlive/internal/view/control"
)

// askPatience is how long a running outlive may take to report its status. Scripts of tests set more.
var askPatience = 2 * time.Second

// keptAlive is one server, in either mode.
type keptAlive interface {
	Status(ctx context.Context) (backend.Status, error)
	Used(ctx context.Context) (backend.Status, error)
	Restart(ctx context.Context, source supervise.Source, reason string) error
}

// reachable is a running server as the control socket offers it: it implements control.Source.
type reachable struct {
	server   keptAlive
	settings *settings
	sinks    *sinks
	proxy    *proxyRun // nil in inherit mode
	client   clientProcess
}

// clientProcess is the process at the other end of stdin and stdout: the one that has started us.
type clientProcess process.Identity

// ourClient returns it. It is asked at the start: once it has ended, another process is our parent.
func ourClient() clientProcess {
	p, err := process.System{}.Look(os.Getppid())
	if err != nil || p.PID <= 1 {
		return clientProcess{}
	}
	return clientProcess(p.Identity)
}

// status is what the control socket tells of it: nothing once it has ended.
func (c clientProcess) status() *control.Peer {
	if c.PID == 0 || c.PID != os.Getppid() {
		return nil
	}
	return &control.Peer{PID: c.PID, Start: c.Start, Boot: c.Boot}
}

// listenControl opens a control socket, and closes it when the returned function is called. The socket is optional: without it
// everything goes on, with a warning of what cannot be seen.
func listenControl(k *sinks, name, unseen string, source control.Source) (closeIt func()) {
	srv, err := control.Listen(socketDir(), name, os.Getpid(), k.feed, k.tap, source)
	if err != nil {
		k.say(event.ServerLogLost, fmt.Sprintf("control socket: %v; outlive status cannot see %s", err, unseen))
		return func() {}
	}
	return func() { _ = srv.Close() } // its file is removed by who listens next, or by the next discovery
}

// status is what every process tells of itself.
func (k *sinks) status(b backend.Status) control.Status {
	s := control.Status{
		Status: b, PID: os.Getpid(), StartedAt: k.start, Version: version(), Telemetry: telemetryKey(), Lost: control.Lost{Stderr: k.log.Lost()},
	}
	if k.audit != nil {
		s.AuditPath, s.Lost.Audit = k.audit.Path(), k.audit.Lost()
	}
	return s
}

func (r reachable) Status() control.Status {
	ctx, cancel := context.WithTimeout(context.Background(), askPatience)
	defer cancel()
	b, err := r.server.Status(ctx)
	if err != nil {
		b.Name, b.Command, b.State = r.settings.backend.Name, secret.Words(r.settings.backend.Command), endingOrLate(ctx)
	}
	s := r.sinks.status(b)
	s.Dir, s.ClientProcess, s.Lost.Log = r.settings.dir, r.client.status(), r.sinks.kept.Lost()
	if r.proxy != nil {
		s.Upgrades, s.LogPath = r.proxy.image.upgrades, r.sinks.kept.Path()
	}
	return s
}

func (r reachable) Used() control.Status {
	ctx, cancel := context.WithTimeout(context.Background(), askPatience)
	defer cancel()
	b, _ := r.server.Used(ctx) // without an answer it is as zero as that of one that nobody uses
	b.Name = r.settings.backend.Name
	return control.Status{Status: b}
}

// endingOrLate is the state of what has not told how it stands before ctx has ended, or ends and cannot.
func endingOrLate(ctx context.Context) string {
	if ctx.Err() != nil {
		return noAnswer
	}
	return "ending"
}

func (r reachable) Restart(ctx context.Context, o control.Order) (control.Result, error) {
	begun := time.Now()
	if err := r.server.Restart(ctx, sourceOf(o), o.Reason); err != nil {
		return control.Result{}, err
	}
	s, err := r.server.Status(ctx)
	if err != nil {
		return control.Result{}, err
	}
	return control.Result{Generation: s.Generation, ServerPID: s.ServerPID, TookMS: time.Since(begun).Milliseconds(), Unasked: s.State == supervise.Starting.String()}, nil
}

// sourceOf is who wants a restart, for the records.
func sourceOf(o control.Order) supervise.Source {
	if o.Stalled {
		return supervise.SourceMonitor
	}
	return supervise.SourceControl
}

func (r reachable) Reload() error {
	return errors.New("there is nothing to reload: only a gateway has a configuration")
}

func (r reachable) Upgrade(ctx context.Context, wait time.Duration) error {
	if r.proxy == nil {
		return errors.New("not possible with --mode inherit: restart the client instead")
	}
	return r.proxy.Upgrade(ctx, wait)
}
