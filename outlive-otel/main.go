package main

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/gofrs/flock"
	"go.opentelemetry.io/contrib/exporters/autoexport"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	sdklog "go.opentelemetry.io/otel/sdk/log"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/outlive-mcp/outlive/internal/view/overview"
)

const (
	// idleFor is how long it goes on without an outlive of its settings: clients start their servers again.
	idleFor = 10 * time.Second
	// lastExport is how long exporting the rest may take at the end.
	lastExport = 4 * time.Second
)

// settings are what outlive says.
type settings struct {
	key, state, release, home, program string
	dirs                               []string
}

func main() {
	var s settings
	flag.StringVar(&s.key, "key", "", "which outlives are exported: those that say the same in their status")
	flag.StringVar(&s.state, "state", "", "outlive's state directory, for the lock")
	flag.StringVar(&s.release, "release", "", "outlive's version")
	flag.StringVar(&s.home, "home", "", "export what happens in this monitor's home instead, until stdin ends")
	flag.StringVar(&s.program, "program", "outlive", "outlive itself; with --home")
	flag.Func("dir", "directory of control sockets; may be given several times", func(dir string) error { s.dirs = append(s.dirs, dir); return nil })
	flag.Parse()
	if s.key == "" || s.state == "" {
		fmt.Fprintln(os.Stderr, "outlive-otel: outlive starts this if OTEL_… asks for it, see docs/METRICS.md")
		os.Exit(2)
	}
	if err := run(s); err != nil {
		fmt.Fprintln(os.Stderr, "outlive-otel:", err)
		os.Exit(1)
	}
}

func run(s settings) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if s.home != "" {
		return export(ctx, s, s.watchHome)
	}
	dir := filepath.Join(s.state, "otel")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	lock := flock.New(filepath.Join(dir, s.key+".lock"), flock.SetPermissions(0o600))
	for {
		if held, err := lock.TryLock(); err != nil || !held {
			return err // another one exports
		}
		err := export(ctx, s, s.watchRunning)
		_ = lock.Unlock()
		// An outlive that started meanwhile has found the lock held, and relies on us.
		if err != nil || ctx.Err() != nil || len(s.find(ctx, nil)) == 0 {
			return err
		}
	}
}

// export sets the SDK up, has what happens recorded, and exports the rest.
func export(ctx context.Context, s settings, record func(context.Context, *recorder) error) (err error) {
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) { fmt.Fprintln(os.Stderr, time.Now().UTC().Format(time.RFC3339), err) }))
	chooseSignals()
	about, err := resource.New(ctx, resource.WithAttributes(attribute.String("service.name", "outlive"), attribute.String("service.version", s.release)),
		resource.WithHost(), resource.WithOS(), resource.WithTelemetrySDK(), resource.WithFromEnv())
	if err != nil && !errors.Is(err, resource.ErrPartialResource) {
		return err
	}
	spans, err := autoexport.NewSpanExporter(ctx)
	if err != nil {
		return fmt.Errorf("traces: %w", err)
	}
	reader, err := autoexport.NewMetricReader(ctx)
	if err != nil {
		return fmt.Errorf("metrics: %w", err)
	}
	logs, err := autoexport.NewLogExporter(ctx)
	if err != nil {
		return fmt.Errorf("logs: %w", err)
	}
	// Which traces are recorded was decided by outlive, which has told the servers.
	traces := sdktrace.NewTracerProvider(sdktrace.WithBatcher(spans), sdktrace.WithResource(about), sdktrace.WithIDGenerator(givenIDs{}), sdktrace.WithSampler(sdktrace.AlwaysSample()))
	meters := sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader), sdkmetric.WithResource(about))
	loggers := sdklog.NewLoggerProvider(sdklog.WithProcessor(sdklog.NewBatchProcessor(logs)), sdklog.WithResource(about))
	defer func() {
		last, cancel := context.WithTimeout(context.Background(), lastExport)
		defer cancel()
		for _, shut := range []func(context.Context) error{traces.Shutdown, meters.Shutdown, loggers.Shutdown} {
			if e := shut(last); e != nil {
				otel.Handle(e)
			}
		}
	}()
	r, err := newRecorder(traces.Tracer(scope), meters.Meter(scope), loggers.Logger(scope))
	if err != nil {
		return err
	}
	return record(ctx, r)
}

// chooseSignals exports only what was asked for: an endpoint of one signal asks for no other one.
func chooseSignals() {
	if os.Getenv("OTEL_EXPORTER_OTLP_ENDPOINT") != "" {
		return
	}
	for _, signal := range []string{"TRACES", "METRICS", "LOGS"} {
		if os.Getenv("OTEL_"+signal+"_EXPORTER") == "" && os.Getenv("OTEL_EXPORTER_OTLP_"+signal+"_ENDPOINT") == "" {
			_ = os.Setenv("OTEL_"+signal+"_EXPORTER", "none") // the name is a valid one
		}
	}
}

// watchHome records what outlive watch tells of a monitor's home, until stdin ends.
func (s settings) watchHome(ctx context.Context, r *recorder) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin) // the monitor holds the other end
		stop()
	}()
	cmd := exec.CommandContext(ctx, s.program, "watch", "--json", "--home", s.home)
	cmd.Env = append(os.Environ(), "OTEL_SDK_DISABLED=true")
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		if e, err := overview.ParseEvent(lines.Bytes()); err == nil && e.OfMonitor() {
			r.event("", e)
		}
	}
	if err := cmd.Wait(); ctx.Err() == nil {
		return fmt.Errorf("outlive watch has ended: %w", errors.Join(err, lines.Err()))
	}
	return nil
}
