package cli

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"os"
	"runtime/debug"
	"sync"
	"time"

	"github.com/outlive-mcp/outlive/internal/agents/monitor"
	"github.com/outlive-mcp/outlive/internal/agents/notify"
	"github.com/outlive-mcp/outlive/internal/agents/registry"
	"github.com/outlive-mcp/outlive/internal/ops/service"
)

// monitorWatchdog keeps the monitor itself watched, and accepts agents' pings.
type monitorWatchdog struct {
	logger   *slog.Logger
	home     string
	notifier *service.Notifier // nil: systemd has not started us
	deadman  *service.Deadman  // nil: no dead man's switch
	trim     sync.Once         // memory is given back after the first look, which learns everything and needs the most

	registry     func() *registry.Registry // as it is now; nil: not known yet
	began, known onceRead                  // of the registry at the start, and at the last look
}

// onceRead is what of a registry is read only when the monitor starts.
type onceRead struct {
	listen  string
	deadman registry.Deadman
}

func onceReadOf(r *registry.Registry) onceRead {
	if r == nil {
		return onceRead{}
	}
	return onceRead{r.Listen, r.Deadman}
}

// newMonitorWatchdog reads the service manager's environment.
func newMonitorWatchdog(logger *slog.Logger, home string) (*monitorWatchdog, error) {
	n, err := service.NewNotifier(os.Getenv)
	if err != nil {
		return nil, err
	}
	return &monitorWatchdog{logger: logger, home: home, notifier: n}, nil
}

// looked is told of each look. A failed look is a sign of life, too; the dead man's ping reports the failure.
func (c *monitorWatchdog) looked(err error) {
	c.trim.Do(debug.FreeOSMemory)
	c.complain(c.notifier.Alive(time.Now()))
	if c.deadman != nil {
		trouble := ""
		if err != nil {
			trouble = notify.Redact(err.Error())
		}
		c.deadman.Alive(trouble)
	}
	if c.registry == nil {
		return
	}
	if now := onceReadOf(c.registry()); now != c.known {
		if c.known = now; now != c.began {
			c.logger.Warn("listen and deadman of the registry are read only at the start: start the monitor again")
		}
	}
}

// follow compares the registry with what it is now, at each look.
func (c *monitorWatchdog) follow(r func() *registry.Registry) {
	c.registry = r
	c.began = onceReadOf(r())
	c.known = c.began
}

// acting is told before each act of a look, by the loop itself.
func (c *monitorWatchdog) acting() { c.complain(c.notifier.Alive(time.Now())) }

func (c *monitorWatchdog) complain(err error) {
	if err != nil {
		c.logger.Warn("the service manager does not receive notifications", slog.Any("error", err))
	}
}

// run runs the monitor, accepts pings for its agents, and reports that it is alive.
func (c *monitorWatchdog) run(ctx context.Context, m *monitor.Monitor) error {
	stop, err := c.listen(ctx, m)
	if err != nil {
		return err
	}
	defer stop()
	if err := c.startDeadman(ctx, m); err != nil {
		return err
	}
	if c.deadman != nil {
		defer c.deadman.Close()
	}
	c.startTelemetry(ctx)
	c.follow(m.Registry)
	c.complain(c.notifier.Ready("watching"))
	defer func() { c.complain(c.notifier.Stopping()) }()
	return m.Run(ctx)
}

// startTelemetry has what happens in the home exported if OTEL_… asks for it, until ctx ends.
func (c *monitorWatchdog) startTelemetry(ctx context.Context) {
	if telemetryKey() == "" {
		return
	}
	program, err := programPath()
	if err != nil {
		c.logger.Warn("OpenTelemetry: nothing is exported", slog.Any("error", err))
		return
	}
	go func() {
		if err := runTelemetry(ctx, "--program", program, "--home", c.home); err != nil && ctx.Err() == nil {
			c.logger.Warn("OpenTelemetry: nothing is exported", slog.Any("error", err))
		}
	}()
}

// startDeadman pings the address of the registry, if it names one.
func (c *monitorWatchdog) startDeadman(ctx context.Context, m *monitor.Monitor) error {
	r := m.Registry()
	if r == nil || r.Deadman.URL == "" {
		return nil
	}
	address, err := registry.Expand(r.Deadman.URL, os.LookupEnv)
	if err != nil {
		return fail(exitUsage, "deadman: %w", err)
	}
	d := &service.Deadman{URL: address, Every: r.Deadman.Every, Logger: c.logger}
	if err := d.Start(context.WithoutCancel(ctx)); err != nil {
		return fail(exitUsage, "deadman: %w", err)
	}
	c.deadman = d
	return nil
}

// Times of the intake.
const (
	pingHeaders  = 5 * time.Second
	pingShutdown = 2 * time.Second
)

// listen accepts pings at the registry's address.
func (c *monitorWatchdog) listen(ctx context.Context, m *monitor.Monitor) (stop func(), err error) {
	r := m.Registry()
	if r == nil || r.Listen == "" {
		return func() {}, nil
	}
	var config net.ListenConfig
	l, err := config.Listen(ctx, "tcp", r.Listen)
	if err != nil {
		return nil, fail(exitFailure, "listen for pings: %w", err)
	}
	server := &http.Server{Handler: ownMetrics(c.home, m.Intake()), ReadHeaderTimeout: pingHeaders, ReadTimeout: 2 * pingHeaders}
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			c.logger.Error("pings are not taken any more", slog.Any("error", err))
		}
	}()
	c.logger.Info("pings are taken", slog.String("address", l.Addr().String()))
	return func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), pingShutdown)
		defer cancel()
		_ = server.Shutdown(ctx)
		<-done
	}, nil
}
