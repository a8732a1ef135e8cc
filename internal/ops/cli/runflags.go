package cli

import (
	"time"

	"github.com/spf13/pflag"

	"github.com/outlive-mcp/outlive/internal/files/fileerror"
	"github.com/outlive-mcp/outlive/internal/keep/backoff"
	"github.com/outlive-mcp/outlive/internal/keep/child"
	"github.com/outlive-mcp/outlive/internal/line/backend"
	"github.com/outlive-mcp/outlive/internal/record/logline"
)

// runFlags are the flags of `outlive run`. Most are settings as they are given; what has to be read first is here.
type runFlags struct {
	settings

	mode   string
	level  string // of the log
	shared bool

	backoff      string
	maxRestarts  int
	restartDelay time.Duration
	compat       string
	restartOn    string
	failOn       string

	globs       []string
	replayCalls []string
	health      string
	maxRSS      string
	lostCalls   string
	maxMessage  string
	bridge      string
}

// table is what can be set, in the order that help shows it in. The defaults are those of f.
func (f *runFlags) table() []setting {
	presets := backoff.PresetNames()
	b, sup := &f.backend, &f.backend.Supervise
	return []setting{
		{name: "name", to: &b.Name, usage: "name in status and logs (default: made from CMD)", own: true, inherit: true},
		{name: "mode", to: &f.mode, usage: "proxy, or inherit: CMD gets our descriptors, outlive copies nothing", words: []string{"proxy", "inherit"}, own: true, inherit: true},
		{name: "shared", to: &f.shared, usage: "use one process together with all runs of this user that have the same CMD, directory, environment and flags", own: true},
		{name: "log-level", to: &f.level, usage: "minimum level logged to stderr: debug, info, warn or error", words: logLevels, own: true, inherit: true},
		{name: "log-format", to: (*string)(&f.logFormat), usage: "text or json", words: []string{"text", "json"}, optional: true, own: true, inherit: true},
		{name: "audit", to: &f.audit, usage: "audit log (default: under the state directory); \"none\" for none", own: true, inherit: true},
		{name: "backoff", to: &f.backoff, usage: "delay after a crash: " + fileerror.Alternatives(presets), words: presets, inherit: true},
		{name: "max-restarts", to: &f.maxRestarts, usage: "crashes tolerated before giving up; 0: unlimited (default: as --backoff says)", inherit: true},
		{name: "restart-delay", to: &f.restartDelay, usage: "wait exactly this long after every crash (default: as --backoff says)", inherit: true},
		{name: "compat", to: &f.compat, usage: "watchdog: every number of the watchdog supervisor at once", words: []string{"watchdog"}, optional: true, inherit: true},
		{name: "restart-on", to: &f.restartOn, usage: "exit codes that ask for a restart, besides 42: 75,100-110", inherit: true},
		{name: "fail-on", to: &f.failOn, usage: "exit codes after which there is no restart: 2,78", inherit: true},
		{name: "start-timeout", to: &sup.StartTimeout, usage: "how long a server may take to answer its handshake", positive: true},
		{name: "drain", to: &sup.DrainFor, usage: "how long calls in flight may finish before a planned restart", positive: true},
		{name: "reload", to: (*string)(&b.Reload), usage: "planned restarts: overlap (the new server is up before the old one goes), or replace (servers that hold a port or a lock)", words: []string{"overlap", "replace"}},
		{name: "standby", to: &sup.Standby, usage: "how many initialised spare servers to keep: after a crash one of them takes over at once", most: mostSpares},
		{name: "retire", to: &sup.RetireFor, usage: "how long a replaced server may finish the calls it has", positive: true},
		{name: "watch", to: &f.globs, usage: "restart when these files change: a glob such as 'src/**/*.py', repeated; \"auto\": the code beside CMD's script and in its project; \"!glob\" excludes"},
		{name: "lazy", to: &b.Lazy, usage: "start the server at the first call; what an earlier run has shown is answered until then"},
		{name: "idle-timeout", to: &b.IdleFor, usage: "end the server when it was not used this long; the next call starts it (default: never)", natural: true},
		{name: "no-fast-start", to: &b.NoFastStart, usage: "answer nothing from what earlier runs of CMD have shown"},
		{name: "replay-call", to: &f.replayCalls, usage: "tool call repeated to each new server before it serves: 'login {\"profile\":\"x\"}', or 'login': the last one"},
		{name: "kill-mode", to: (*string)(&f.killMode), usage: "what ends with a server: tree (all it started), or group (servers that start daemons on purpose)", words: []string{"tree", "group"}, inherit: true},
		{name: "health", to: &f.health, usage: "on: a server that hangs is restarted; off: it is not looked at", words: []string{"on", "off"}},
		{name: "call-timeout", to: &b.Health.CallTimeout, usage: "how long a call may go without progress before it is answered with an error (default: no limit)", natural: true},
		{name: "call-patience", to: &b.CallPatience, usage: "how long a client that wants progress is told that a silent call still runs; 0: it is not", natural: true},
		{name: "max-rss", to: &f.maxRSS, usage: "memory of the server and all it starts, like 512MiB: above it, it is replaced", size: true},
		{name: "max-age", to: &b.Limits.MaxAge, usage: "how long one server process may serve before it is replaced", natural: true},
		{name: "max-calls", to: &b.Limits.MaxCalls, usage: "how many calls one server process may get before it is replaced", natural: true},
		{name: "no-tools", to: &b.NoTools, usage: "do not add restart_server, verify_server_restarted and server_status", own: true},
		{name: "surrogates", to: (*string)(&b.Surrogates), usage: "lone surrogates from the client: reject, replace or pass", words: []string{"reject", "replace", "pass"}},
		{name: "lost-calls", to: &f.lostCalls, usage: "answer calls of unknown outcome with: tool-result or error", words: []string{"tool-result", "error"}},
		{name: "distrust-annotations", to: &b.Distrust, usage: "do not repeat calls of tools that say they are read-only or idempotent"},
		{name: "retry-tool", to: &b.RetryTools, usage: "names of tools whose calls may be repeated after a crash", commas: true},
		{name: "queue-timeout", to: &b.QueueFor, usage: "how long a request waits for the server to come back", positive: true},
		{name: "bridge", to: &f.bridge, usage: "auto: translate where client and server speak eras of the protocol that the other one does not; off: never", words: []string{"auto", "off"}},
		{name: "max-message", to: &f.maxMessage, usage: "longest message in both directions, like 32MiB (default 10MiB to the client, 16MiB to the server)", size: true},
	}
}

// startTimeout is longer than most clients wait. A server that is ended sooner than its client gives up would never come up.
const startTimeout = 2 * time.Minute

// newRunFlags have the defaults.
func newRunFlags() *runFlags {
	f := &runFlags{
		mode: "proxy", level: "info", backoff: backoff.PresetNames()[0], health: "on", lostCalls: "tool-result", bridge: "auto",
		settings: settings{logFormat: logline.Text, killMode: child.KillTree},
	}
	b := &f.backend
	b.Supervise.StartTimeout, b.Supervise.DrainFor, b.Supervise.RetireFor = startTimeout, time.Second, 10*time.Minute
	b.Reload, b.Surrogates, b.QueueFor, b.CallPatience = backend.OverlapReload, backend.RejectSurrogates, 25*time.Second, 10*time.Minute
	return f
}

// flagSet are the flags of a server that has no command line of its own.
func (f *runFlags) flagSet() *pflag.FlagSet {
	fl := pflag.NewFlagSet("run", pflag.ContinueOnError)
	define(fl, f.table())
	return fl
}
