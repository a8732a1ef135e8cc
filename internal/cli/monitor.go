package cli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/outlive-mcp/outlive/internal/monitor"
	"github.com/outlive-mcp/outlive/internal/notify"
)

const monitorLong = `Watch the agents that beat into registry.yaml, tell a stalled one from a working one, end and restart it, and ask a
human by Telegram when that does not help. It goes on until SIGINT or SIGTERM; one cycle's result is one line on stdout.

In the home it reads registry.yaml and the projects' .agents/manifest.yaml, and keeps improvement-log.md,
supervisor.pid and monitor.db, where everything that must outlast a run is.

ENVIRONMENT
  TELEGRAM_BOT_TOKEN, TELEGRAM_CHAT_ID  who tells whom; without them only the improvement log is written
  TELEGRAM_API_URL                      a Bot API server of your own
  PIV_MONITOR_INTERVAL_MS               between two cycles; 900000
  PIV_HEARTBEAT_STALE_MS                age at which a heartbeat is stale; 900000, at least 360000
  PIV_MAX_RESTART_ATTEMPTS              occurrence of a stall in one phase that a human is told of; 3
  PIV_REGISTRY_PATH, PIV_IMPROVEMENT_LOG_PATH, PIV_SUPERVISOR_PID_PATH  instead of those in the home
  CLAUDE_CONFIG_DIR                     where Claude Code keeps its sessions; ~/.claude

EXIT STATUS
  0  ended by a signal; with --once: the cycle was done, whatever it found; with --dry-run: everything was looked at
  1  another monitor has this home (its PID is named), or the cycle could not be done
  2  the command line or the environment is wrong`

// monitorFlags are the flags of `outlive monitor` as they were given.
type monitorFlags struct {
	home     string
	once     bool
	dryRun   bool
	logLevel string
}

func newMonitor(io streams) *cobra.Command {
	var f monitorFlags
	cmd := &cobra.Command{
		Use:   "monitor [flags]",
		Short: "Watch unattended agents, restart those that stall, tell a human of the rest",
		Long:  monitorLong,
		Example: "  outlive monitor                  # watches ~/.piv\n" +
			"  outlive monitor --dry-run        # says what it would do, and does nothing",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return runMonitor(cmd.Context(), io, f) },
	}
	fl := cmd.Flags()
	fl.SortFlags = false
	fl.StringVar(&f.home, "home", "~/.piv", "directory of the registry and of what the monitor keeps")
	fl.BoolVar(&f.once, "once", false, "run a single cycle and exit")
	fl.BoolVar(&f.dryRun, "dry-run", false, "say what a cycle would do, change nothing and exit")
	fl.StringVar(&f.logLevel, "log-level", "info", "least level told on stderr: debug, info, warn or error")
	return cmd
}

// runMonitor is `outlive monitor`.
func runMonitor(ctx context.Context, io streams, f monitorFlags) error {
	o, telegram, err := monitorOptions(io, f)
	if err != nil {
		return &exitError{exitUsage, err}
	}
	if ctx == nil {
		ctx = context.Background()
	}
	if f.dryRun {
		return previewMonitor(ctx, io, o, telegram)
	}
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	m, err := monitor.Open(ctx, o)
	if err != nil {
		return &exitError{exitFailure, err}
	}
	if f.once {
		_, err = m.Once(ctx)
	} else {
		err = m.Run(ctx)
	}
	if err = errors.Join(err, m.Close()); err != nil {
		return &exitError{exitFailure, err}
	}
	return nil
}

// previewMonitor is --dry-run.
func previewMonitor(ctx context.Context, io streams, o monitor.Options, telegram *notify.Telegram) error {
	list, lost, err := monitor.Preview(ctx, o)
	if err != nil {
		return &exitError{exitFailure, err}
	}
	if lost != "" {
		fmt.Fprintln(io.out, "registry: "+lost+" -> escalate; the last good copy, if there is one, is used")
	}
	for _, finding := range list {
		fmt.Fprintln(io.out, finding)
	}
	if telegram == nil {
		fmt.Fprintln(io.out, "Telegram: not configured, nobody would be told")
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	name, err := telegram.Check(ctx)
	if err != nil {
		fmt.Fprintln(io.out, "Telegram:", err)
		return nil
	}
	fmt.Fprintln(io.out, "Telegram: would tell as @"+name)
	return nil
}

// monitorOptions maps flags and environment. telegram is nil when it is not configured.
func monitorOptions(io streams, f monitorFlags) (o monitor.Options, telegram *notify.Telegram, err error) {
	var level slog.Level
	if err := level.UnmarshalText([]byte(f.logLevel)); err != nil {
		return o, nil, fmt.Errorf("--log-level %q: debug, info, warn or error", f.logLevel)
	}
	if f.once && f.dryRun {
		return o, nil, errors.New("--once acts and --dry-run does not: choose one")
	}
	home, err := expandHome(f.home)
	if err != nil {
		return o, nil, err
	}
	o = monitor.Options{
		Home: home, Registry: os.Getenv("PIV_REGISTRY_PATH"), Log: os.Getenv("PIV_IMPROVEMENT_LOG_PATH"),
		PIDFile: os.Getenv("PIV_SUPERVISOR_PID_PATH"), Environ: agentEnviron(os.Environ()),
		Chat: os.Getenv("TELEGRAM_CHAT_ID"), ClaudeDir: monitor.ClaudeDir(os.Getenv("CLAUDE_CONFIG_DIR")),
		Out: io.out, Logger: slog.New(slog.NewTextHandler(io.err, &slog.HandlerOptions{Level: level})),
	}
	var interval, stale int
	err = errors.Join(
		positive("PIV_MONITOR_INTERVAL_MS", &interval), positive("PIV_HEARTBEAT_STALE_MS", &stale),
		positive("PIV_MAX_RESTART_ATTEMPTS", &o.Restarts))
	if err != nil {
		return o, nil, err
	}
	o.Interval, o.Stale = time.Duration(interval)*time.Millisecond, time.Duration(stale)*time.Millisecond
	token := os.Getenv("TELEGRAM_BOT_TOKEN")
	if token == "" || o.Chat == "" {
		if token != o.Chat {
			o.Logger.Warn("Telegram is not configured: both TELEGRAM_BOT_TOKEN and TELEGRAM_CHAT_ID are needed")
		}
		return o, nil, nil
	}
	telegram, err = notify.NewTelegram(notify.TelegramOptions{Token: token, ChatID: o.Chat, APIURL: os.Getenv("TELEGRAM_API_URL")})
	if err != nil {
		return o, nil, err
	}
	o.Sender = telegram
	return o, telegram, nil
}

// positive reads a whole number above 0 from the environment; nothing there leaves n as it is.
func positive(name string, n *int) error {
	text := strings.TrimSpace(os.Getenv(name))
	if text == "" {
		return nil
	}
	v, err := strconv.ParseInt(text, 10, 32)
	if err != nil || v <= 0 {
		return fmt.Errorf("%s=%q: a whole number above 0 is wanted", name, text)
	}
	*n = int(v)
	return nil
}

// expandHome is a directory as a shell would have it, also where none has looked at it: in a service's file.
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

// agentEnviron is what a restarted agent gets: everything but what would make it look like a server of ours, which is
// ended with us.
func agentEnviron(environ []string) []string {
	var kept []string
	for _, kv := range environ {
		if !strings.HasPrefix(kv, "OUTLIVE_COOKIE=") && !strings.HasPrefix(kv, "OUTLIVE_AGENT_RUN=") {
			kept = append(kept, kv)
		}
	}
	return kept
}
