package cli

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/outlive-mcp/outlive/internal/monitor"
)

// monitorCare is what keeps a running monitor itself under watch, and lets agents reach it.
type monitorCare struct {
	logger *slog.Logger
}

func newMonitorCare(logger *slog.Logger) *monitorCare { return &monitorCare{logger: logger} }

// looked is told of each look.
func (c *monitorCare) looked(error) {}

// run runs the monitor with its intake of pings.
func (c *monitorCare) run(ctx context.Context, m *monitor.Monitor) error {
	stop, err := c.listen(ctx, m)
	if err != nil {
		return err
	}
	defer stop()
	return m.Run(ctx)
}

// Times of the intake.
const (
	pingHeaders  = 5 * time.Second
	pingShutdown = 2 * time.Second
)

// listen takes pings where the registry says.
func (c *monitorCare) listen(ctx context.Context, m *monitor.Monitor) (stop func(), err error) {
	r := m.Registry()
	if r == nil || r.Listen == "" {
		return func() {}, nil
	}
	var config net.ListenConfig
	l, err := config.Listen(ctx, "tcp", r.Listen)
	if err != nil {
		return nil, fail(exitFailure, "listen for pings: %w", err)
	}
	server := &http.Server{Handler: m.Intake(), ReadHeaderTimeout: pingHeaders, ReadTimeout: 2 * pingHeaders}
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
