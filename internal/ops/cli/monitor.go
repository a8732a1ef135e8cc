package cli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/outlive-mcp/outlive/internal/agents/agentcli"
	"github.com/outlive-mcp/outlive/internal/agents/monitor"
)

func monitorLong() string {
	return `Watch unattended agents, tell a stalled one from a working one, help it, and ask a human when that does not
help. It goes on until SIGINT or SIGTERM; one cycle's result is one line on stdout.

A home holds registry.yaml, improvement-log.md and monitor.db, where everything that must outlast a run is. A registry
with "version: 2" declares agents (outlive agent add); one of the PIV supervisor's is read and kept as that does.

ENVIRONMENT
  TELEGRAM_BOT_TOKEN, TELEGRAM_CHAT_ID  who tells whom; without them, and without channels in the registry, only the
                                        improvement log is written
  TELEGRAM_USER_IDS                     in a group: numbers of the users who may allow, restart, stop and answer; without
                                        them nobody may from a group
  TELEGRAM_API_URL                      a Bot API server of your own
  ` + strings.Join(agentcli.Variables(), ", ") + `
                                        where agent CLIs keep their sessions
  PIV_MONITOR_INTERVAL_MS               between two cycles; 900000
  PIV_HEARTBEAT_STALE_MS                PIV: age at which a heartbeat is stale; 900000, at least 360000
  PIV_MAX_RESTART_ATTEMPTS              PIV: occurrence of a stall in one phase that a human is told of; 3
  PIV_REGISTRY_PATH, PIV_IMPROVEMENT_LOG_PATH, PIV_SUPERVISOR_PID_PATH  instead of those in the home

EXIT STATUS
  0  ended by a signal; with --once: the cycle was done, whatever it found; with --dry-run: everything was looked at;
     with --test-channels: every channel has sent its message
  1  another monitor has this home (its PID is named), or the cycle could not be done; with --test-channels: a channel
     does not work, or there is none
  2  the command line or the environment is wrong`
}

// monitorGC is the monitor's GOGC (Go's default: 100). With 2,000 agents it saves 8 MB of 50, and costs 0.3 % of a core.
// GOGC in the environment overrides it.
const monitorGC = 50

// monitorFlags are the flags of `outlive monitor` as they were given.
type monitorFlags struct {
	home        string
	once        bool
	dryRun      bool
	test        bool
	answers     string
	permissions bool
	logLevel    string
}

// newMonitorFlags have the defaults.
func newMonitorFlags() monitorFlags { return monitorFlags{answers: "auto", logLevel: "info"} }

// table is what can be set, in the order that help shows it in. The defaults are those of f.
func (f *monitorFlags) table() []setting {
	return []setting{
		{name: "home", to: &f.home, usage: "directory of the registry and of what the monitor keeps (default: " + shownHome + ", or ~/.piv if only that has a registry)"},
		{name: "once", to: &f.once, usage: "run a single cycle and exit"},
		{name: "dry-run", to: &f.dryRun, usage: "say what a cycle would do, change nothing and exit"},
		{name: "test-channels", to: &f.test, usage: "send a message by each channel, show what the service answers, and exit"},
		{name: "answers", to: &f.answers, usage: "hear buttons and replies on Telegram: on, off, or auto: not in place of the PIV supervisor, whose bot may listen itself", words: []string{"on", "off", "auto"}},
		{name: "permissions", to: &f.permissions, usage: "have permission requests of agents' hooks (outlive hooks install --ask) answered by those buttons"},
		{name: "log-level", to: &f.logLevel, usage: "minimum level logged to stderr: debug, info, warn or error", words: logLevels},
	}
}

func newMonitor(io streams) *cobra.Command {
	f := newMonitorFlags()
	cmd := &cobra.Command{
		Use:         "monitor [flags]",
		Annotations: map[string]string{keepsAlive: "yes"},
		Short:       "Watch unattended agents, restart those that stall, tell a human of the rest",
		Long:        monitorLong(),
		Example: "  outlive monitor                  # watches the agents that outlive agent add has declared\n" +
			"  outlive monitor --home ~/.piv    # in place of the PIV supervisor\n" +
			"  outlive monitor --dry-run        # says what it would do, and does nothing",
		Args: takes(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error { return runMonitor(cmd.Context(), io, f) },
	}
	define(cmd.Flags(), f.table())
	return cmd
}

// runMonitor is `outlive monitor`.
func runMonitor(ctx context.Context, io streams, f monitorFlags) error {
	o, err := monitorOptions(io, f)
	if err != nil {
		return &exitError{exitUsage, err}
	}
	if f.dryRun {
		return previewMonitor(ctx, io, o)
	}
	if f.test {
		return testChannels(ctx, io, o)
	}
	ctx, stop := untilInterrupted(ctx)
	defer stop()
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(monitorGC)
	}
	watchdog, err := newMonitorWatchdog(o.Logger, o.Home)
	if err != nil {
		return &exitError{exitUsage, err}
	}
	o.Looked, o.Acting = watchdog.looked, watchdog.acting
	open := monitor.Await
	if f.once { // a single look should not wait
		open = monitor.Open
	}
	m, err := open(ctx, o)
	if errors.Is(err, context.Canceled) && !f.once { // a signal ended it while it was starting
		return nil
	}
	if err != nil {
		return &exitError{exitFailure, err}
	}
	if f.once {
		_, err = m.Once(ctx)
	} else {
		err = watchdog.run(ctx, m)
	}
	return asFailure(errors.Join(err, m.Close()))
}

// previewMonitor is --dry-run.
func previewMonitor(ctx context.Context, io streams, o monitor.Options) error {
	view, err := lookedAt(ctx, io, o, " -> escalate")
	if err != nil {
		return err
	}
	for _, finding := range view.Findings {
		fmt.Fprintln(io.out, finding)
	}
	checkChannels(ctx, io, o, view)
	return nil
}

// monitorOptions maps flags and environment.
func monitorOptions(io streams, f monitorFlags) (o monitor.Options, err error) {
	if err := checkEach(f.table()); err != nil {
		return o, err
	}
	var level slog.Level
	if err := level.UnmarshalText([]byte(f.logLevel)); err != nil {
		return o, fmt.Errorf("--log-level: %w", err)
	}
	if f.once && f.dryRun {
		return o, errors.New("--once acts and --dry-run does not: choose one")
	}
	if f.test && (f.once || f.dryRun) {
		return o, errors.New("--test-channels sends its messages and nothing more: give it alone")
	}
	if o, err = lookOptions(f.home); err != nil {
		return o, err
	}
	o.Out, o.Logger = io.out, slog.New(slog.NewTextHandler(io.err, &slog.HandlerOptions{Level: level}))
	o.Record, o.Answer = filepath.Join(o.Home, "evidence.jsonl"), f.permissions
	if usual, err := monitorHome(""); err == nil && usual == o.Home { // of several monitors here one tells
		o.FleetCases, o.Fleet = fleetCases(), memberHere()
	}
	var interval int
	if err := positive("PIV_MONITOR_INTERVAL_MS", &interval); err != nil {
		return o, err
	}
	o.Interval = time.Duration(interval) * time.Millisecond
	return o, addChannels(&o, f.answers)
}

// positive reads a whole number above 0 from the environment; nothing there leaves n as it is.
func positive(name string, n *int) error {
	text := strings.TrimSpace(os.Getenv(name))
	if text == "" {
		return nil
	}
	v, err := strconv.ParseInt(text, 10, 32)
	if err != nil || v <= 0 {
		return fmt.Errorf("%s=%q: must be a whole number greater than 0", name, text)
	}
	*n = int(v)
	return nil
}

// monitorHome is the given home; otherwise that of declared agents, unless only the PIV supervisor's has a registry.
func monitorHome(given string) (string, error) {
	if given != "" {
		return expandHome(given)
	}
	home, err := agentsHome("")
	if err != nil {
		return "", err
	}
	piv, err := expandHome("~/.piv")
	if err != nil || isRegistered(home) || !isRegistered(piv) {
		return home, nil
	}
	return piv, nil
}

func isRegistered(home string) bool {
	_, err := os.Stat(filepath.Join(home, "registry.yaml"))
	return err == nil
}

// expandHome expands ~ as a shell would, for places without a shell, such as a service file.
func expandHome(dir string) (string, error) {
	if rest, ok := strings.CutPrefix(dir, "~"); ok && (rest == "" || os.IsPathSeparator(rest[0])) {
		home, err := os.UserHomeDir()
		if err != nil {
			return "", fmt.Errorf("--home %s: %w", dir, err)
		}
		dir = filepath.Join(home, rest)
	}
	return filepath.Abs(dir)
}

// agentEnviron is the environment of a restarted agent: without what would make it look like a server of ours, which is
// ended with us, and without variables that are only for us.
func agentEnviron(environ []string) []string {
	return withoutVars(environ, []string{"OUTLIVE_COOKIE", "OUTLIVE_AGENT_RUN", "NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID"})
}

// withoutVars is an environment without the variables of those names.
func withoutVars(environ, names []string) []string {
	return slices.DeleteFunc(slices.Clone(environ), func(kv string) bool {
		name, _, _ := strings.Cut(kv, "=")
		return slices.Contains(names, name)
	})
}
