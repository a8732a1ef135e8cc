package cli

import (
	"time"

	"github.com/spf13/pflag"
)

// runFlags are the flags of `outlive run` as they were given.
type runFlags struct {
	name string
	mode string

	backoff      string
	maxRestarts  int
	restartDelay time.Duration
	compat       string
	restartOn    string
	failOn       string
	startTimeout time.Duration
	drain        time.Duration

	reload      string
	standby     int
	retire      time.Duration
	watch       []string
	lazy        bool
	idleTimeout time.Duration
	noFastStart bool
	replayCalls []string
	killMode    string
	health      string
	callTimeout time.Duration
	maxRSS      string
	maxAge      time.Duration
	maxCalls    int

	noTools    bool
	surrogates string
	lostCalls  string
	distrust   bool
	retryTools []string
	queueFor   time.Duration
	maxMessage string
	bridge     string

	logLevel  string
	logFormat string
	audit     string
}

// define adds the flags in the groups that help shows them in.
func (f *runFlags) define(fl *pflag.FlagSet) {
	fl.SortFlags = false
	f.generalFlags(fl)
	f.restartFlags(fl)
	f.reloadFlags(fl)
	f.healthFlags(fl)
	f.messageFlags(fl)
}

// generalFlags says what is run and where it is told.
func (f *runFlags) generalFlags(fl *pflag.FlagSet) {
	fl.StringVar(&f.name, "name", "", "name in status and logs (default: made from CMD)")
	fl.StringVar(&f.mode, "mode", "proxy", "proxy, or inherit: CMD gets our descriptors, outlive copies nothing")
	fl.StringVar(&f.logLevel, "log-level", "info", "least level told on stderr: debug, info, warn or error")
	fl.StringVar(&f.logFormat, "log-format", "text", "text or json")
	fl.StringVar(&f.audit, "audit", "", "audit log (default: under the state directory); \"none\" for none")
}

// restartFlags are about when a server that ended is started again.
func (f *runFlags) restartFlags(fl *pflag.FlagSet) {
	fl.StringVar(&f.backoff, "backoff", "transparent", "delay after a crash: transparent, exponential or tiered")
	fl.IntVar(&f.maxRestarts, "max-restarts", 0, "crashes tolerated before giving up; 0: unlimited (default: as --backoff says)")
	fl.DurationVar(&f.restartDelay, "restart-delay", 0, "wait exactly this long after every crash (default: as --backoff says)")
	fl.StringVar(&f.compat, "compat", "", "watchdog: every number of the watchdog supervisor at once")
	fl.StringVar(&f.restartOn, "restart-on", "", "exit codes that ask for a restart, besides 42: 75,100-110")
	fl.StringVar(&f.failOn, "fail-on", "", "exit codes that no restart can mend: 2,78")
	fl.DurationVar(&f.startTimeout, "start-timeout", 30*time.Second, "how long a server may take to answer its handshake")
}

// reloadFlags are about planned restarts, and servers that wait for their turn.
func (f *runFlags) reloadFlags(fl *pflag.FlagSet) {
	fl.DurationVar(&f.drain, "drain", time.Second, "how long calls in flight may finish before a planned restart")
	fl.StringVar(&f.reload, "reload", "overlap", "planned restarts: overlap (the new server is up before the old one goes), or replace (servers that hold a port or a lock)")
	fl.IntVar(&f.standby, "standby", 0, "how many initialised spare servers to keep: a crash then costs a switch, not a start")
	fl.DurationVar(&f.retire, "retire", 10*time.Minute, "how long a replaced server may finish the calls it has")
	fl.StringArrayVar(&f.watch, "watch", nil, "restart when these files change: a glob such as 'src/**/*.py', repeated; \"auto\": CMD's own code; \"!glob\" excludes")
	fl.BoolVar(&f.lazy, "lazy", false, "start the server at the first call; what an earlier run has shown is answered until then")
	fl.DurationVar(&f.idleTimeout, "idle-timeout", 0, "end the server when it was not used this long; the next call starts it (default: never)")
	fl.BoolVar(&f.noFastStart, "no-fast-start", false, "answer nothing from what earlier runs of CMD have shown")
	fl.StringArrayVar(&f.replayCalls, "replay-call", nil, "tool call repeated to each new server before it serves: 'login {\"profile\":\"x\"}', or 'login': the last one")
}

// healthFlags are about servers that run and should not.
func (f *runFlags) healthFlags(fl *pflag.FlagSet) {
	fl.StringVar(&f.killMode, "kill-mode", "tree", "what ends with a server: tree (all it started), or group (servers that start daemons on purpose)")
	fl.StringVar(&f.health, "health", "on", "on: a server that hangs is restarted; off: it is not looked at")
	fl.DurationVar(&f.callTimeout, "call-timeout", 0, "how long a call may go without progress before it is answered with an error (default: no limit)")
	fl.StringVar(&f.maxRSS, "max-rss", "", "memory of the server and all it starts, like 512MiB: above it, it is replaced")
	fl.DurationVar(&f.maxAge, "max-age", 0, "how long one server process may serve before it is replaced")
	fl.IntVar(&f.maxCalls, "max-calls", 0, "how many calls one server process may get before it is replaced")
}

// messageFlags are about what passes through.
func (f *runFlags) messageFlags(fl *pflag.FlagSet) {
	fl.BoolVar(&f.noTools, "no-tools", false, "do not add restart_server, verify_server_restarted and server_status")
	fl.StringVar(&f.surrogates, "surrogates", "reject", "lone surrogates from the client: reject, replace or pass")
	fl.StringVar(&f.lostCalls, "lost-calls", "tool-result", "answer calls of unknown outcome with: tool-result or error")
	fl.BoolVar(&f.distrust, "distrust-annotations", false, "do not repeat calls of tools that say they are read-only or idempotent")
	fl.StringSliceVar(&f.retryTools, "retry-tool", nil, "names of tools whose calls may be repeated after a crash")
	fl.DurationVar(&f.queueFor, "queue-timeout", 25*time.Second, "how long a request waits for the server to come back")
	fl.StringVar(&f.bridge, "bridge", "auto", "auto: translate where client and server speak eras of the protocol that the other one does not; off: never")
	fl.StringVar(&f.maxMessage, "max-message", "", "longest message in both directions, like 32MiB (default 10MiB to the client, 16MiB to the server)")
}
