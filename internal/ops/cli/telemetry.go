package cli

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/outlive-mcp/outlive/internal/protocol/tracecontext"
	"github.com/outlive-mcp/outlive/internal/record/event"
)

// otelProgram is the helper that exports by OpenTelemetry. It is a program of its own because its libraries would cost every start
// and every idle run, also where nobody wants them.
const otelProgram = "outlive-otel"

// telemetryEnd is how long the helper may take to export the rest when it is asked to end.
const telemetryEnd = 5 * time.Second

// telemetryKey tells which runs are exported with the same settings: one helper serves them all. "": OTEL_… asks for nothing.
func telemetryKey() string {
	var set []string
	wanted := false
	for _, kv := range os.Environ() {
		name, value, _ := strings.Cut(kv, "=")
		if !strings.HasPrefix(name, "OTEL_") || value == "" {
			continue
		}
		set = append(set, kv)
		switch {
		case name == "OTEL_SDK_DISABLED" && strings.EqualFold(value, "true"):
			return ""
		case name == "OTEL_EXPORTER_OTLP_ENDPOINT", asksForSignal(name) && value != "none":
			wanted = true
		}
	}
	if !wanted {
		return ""
	}
	slices.Sort(set)
	sum := sha256.Sum256([]byte(strings.Join(set, "\n")))
	return hex.EncodeToString(sum[:8])
}

// asksForSignal reports whether a variable asks for traces, metrics or logs.
func asksForSignal(name string) bool {
	return slices.ContainsFunc([]string{"TRACES", "METRICS", "LOGS"}, func(signal string) bool {
		return name == "OTEL_"+signal+"_EXPORTER" || name == "OTEL_EXPORTER_OTLP_"+signal+"_ENDPOINT"
	})
}

// traceSource makes spans if traces are exported; nil: messages stay as they are.
var traceSource = sync.OnceValue(func() *tracecontext.Source {
	exporter := os.Getenv("OTEL_TRACES_EXPORTER")
	wanted := cmp.Or(exporter, os.Getenv("OTEL_EXPORTER_OTLP_ENDPOINT"), os.Getenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")) != ""
	if telemetryKey() == "" || !wanted || exporter == "none" {
		return nil
	}
	s := &tracecontext.Source{Random: func(b []byte) { _, _ = rand.Read(b) }} // it never fails
	sampler, apart := strings.CutPrefix(os.Getenv("OTEL_TRACES_SAMPLER"), "parentbased_")
	s.Alone = !apart && sampler != ""
	switch sampler {
	case "always_off":
	case "traceidratio":
		share, err := strconv.ParseFloat(os.Getenv("OTEL_TRACES_SAMPLER_ARG"), 64)
		if s.Share = share; err != nil || share < 0 || share > 1 {
			s.Share = 1
		}
	default:
		s.Share = 1
	}
	return s
})

// startTelemetry starts the helper if OTEL_… asks for it, and says once if it cannot be. It finds us by our control socket and serves
// every outlive of the same settings, so it ends at once where one of them runs already.
func (k *sinks) startTelemetry() {
	if telemetryKey() == "" {
		return
	}
	go func() {
		if err := runTelemetry(context.Background()); err != nil {
			k.warn(event.ServerLogLost, fmt.Sprintf("OpenTelemetry: %v; nothing is exported", err))
		}
	}()
}

// runTelemetry returns when the helper has ended. With more arguments the helper is ours alone, and ends when ctx does.
func runTelemetry(ctx context.Context, more ...string) error {
	program, err := findHelper(otelProgram)
	if err != nil {
		return fmt.Errorf("OTEL_… is set, and %w", err)
	}
	logPath := filepath.Join(stateDir(), "log", otelProgram+".log")
	if err := os.MkdirAll(filepath.Dir(logPath), 0o700); err != nil {
		return err
	}
	log, err := os.OpenFile(logPath, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	args := []string{"--key", telemetryKey(), "--state", stateDir(), "--release", version()}
	for _, dir := range socketDirs() {
		args = append(args, "--dir", dir)
	}
	cmd := exec.CommandContext(ctx, program, append(args, more...)...)
	if len(more) > 0 { // it ends with us, and not with the last outlive of its settings
		in, err := cmd.StdinPipe()
		if err != nil {
			return err
		}
		cmd.Cancel, cmd.WaitDelay = in.Close, telemetryEnd
	}
	cmd.Stdout, cmd.Stderr, cmd.Dir = log, log, stateDir()
	cmd.Env = withoutVars(os.Environ(), []string{handoverVar, "OUTLIVE_COOKIE", "OUTLIVE_AGENT", "OUTLIVE_AGENT_RUN", "NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID"})
	cmd.SysProcAttr = ofItsOwn()
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start %s: %w", program, err)
	}
	if err := cmd.Wait(); err != nil {
		return fmt.Errorf("%s has failed (%w); see %s", otelProgram, err, logPath)
	}
	return nil
}

// findHelper is another program of the same release: beside this one, or on PATH.
func findHelper(program string) (string, error) {
	name := program + exeSuffix
	if own, err := programPath(); err == nil {
		if real, err := filepath.EvalSymlinks(own); err == nil {
			own = real
		}
		if beside := filepath.Join(filepath.Dir(own), name); fileThere(beside) {
			return beside, nil
		}
	}
	path, err := exec.LookPath(name)
	if !errors.Is(err, exec.ErrNotFound) {
		return path, err
	}
	from := "npm, pip and the image do not bring it; take it from the archive of outlive " + version()
	if program == fleetProgram {
		from = "no package brings it yet; build it in a clone of outlive " + version() + ": (cd outlive-fleet && go build)"
	}
	return "", fmt.Errorf("the program %s is missing: %s and put it beside outlive or on PATH", program, from)
}
