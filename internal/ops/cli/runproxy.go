package cli

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime/debug"
	"time"

	"github.com/outlive-mcp/outlive/internal/gateway/sharing"
	"github.com/outlive-mcp/outlive/internal/keep/child"
	"github.com/outlive-mcp/outlive/internal/keep/supervise"
	"github.com/outlive-mcp/outlive/internal/line/host"
	"github.com/outlive-mcp/outlive/internal/line/proxy"
	"github.com/outlive-mcp/outlive/internal/record/audit"
	"github.com/outlive-mcp/outlive/internal/record/event"
	"github.com/outlive-mcp/outlive/internal/record/logline"
	"github.com/outlive-mcp/outlive/internal/record/tap"
	"github.com/outlive-mcp/outlive/internal/view/control"
)

// sinks are where the events of a run go.
type sinks struct {
	log   *logline.Writer
	kept  *logline.Kept
	audit *audit.Log    // nil: none wanted
	feed  *control.Feed // for those who watch
	tap   *tap.Tap      // likewise, for the messages; nil: outlive does not see them
	start time.Time

	server string // of a gateway: whose events these are
}

// openSinks starts the log, the audit log and the file with the server's stderr. None of them can block or end a run:
// failures to write are reported once and counted. o says whose log it is.
func openSinks(io streams, s *settings, o logline.Options) (k *sinks, err error) {
	k = &sinks{start: time.Now(), feed: control.NewFeed()}
	if !o.Inherit {
		k.tap = &tap.Tap{}
	}
	o.Format, o.Level, o.Command, o.Executable, o.Dir = s.logFormat, s.logLevel, s.backend.Command, s.executable, s.dir
	o.PID, o.Elsewhere = os.Getpid(), s.remote != nil
	k.log = logline.NewWriter(io.err, o)
	k.kept = logline.OpenKept(s.stderrLog, logline.KeptOptions{
		Pass: k.log.Raw, PassRoom: k.log.Room, OnFailure: k.lost("server log cannot be written"),
	})
	if s.audit == "" {
		return k, nil
	}
	if k.audit, err = audit.Open(s.audit, k.lost("audit log cannot be written")); err != nil {
		return k, fail(exitUsage, "%w", err)
	}
	return k, nil
}

// of are those of one of a gateway's servers, whose stderr is kept there.
func (k *sinks) of(server string, kept *logline.Kept) *sinks {
	return &sinks{log: k.log, kept: kept, audit: k.audit, feed: k.feed, tap: k.tap, server: server}
}

// lost reports that something cannot be stored.
func (k *sinks) lost(what string) func(error) {
	return func(err error) {
		e := event.Event{Type: event.ServerLogLost, Time: time.Now(), Level: slog.LevelWarn,
			Message: fmt.Sprintf("%s: %v; going on without", what, err)}
		k.log.Emit(e)
		k.feed.Emit(e)
	}
}

// Emit gives events the levels that people and programs see.
func (k *sinks) Emit(e event.Event) {
	e.Level = event.LevelOf(e)
	if k.server != "" {
		e.Attrs = append(e.Attrs[:len(e.Attrs):len(e.Attrs)], slog.String(event.KeyServer, k.server))
		e.Message = k.server + ": " + e.Message
	}
	k.log.Emit(e)
	k.feed.Emit(e)
	if k.audit != nil {
		k.audit.Emit(e)
	}
}

// say emits an event about outlive itself.
func (k *sinks) say(t event.Type, message string, attrs ...slog.Attr) {
	k.Emit(event.Event{Type: t, Time: time.Now(), Level: slog.LevelInfo, Message: message, Attrs: attrs})
}

// warn emits an event about outlive itself that says that something is wrong.
func (k *sinks) warn(t event.Type, message string, attrs ...slog.Attr) {
	k.Emit(event.Event{Type: t, Time: time.Now(), Level: slog.LevelWarn, Message: message, Attrs: attrs})
}

// close writes what is queued; each sink bounds its own wait.
func (k *sinks) close() {
	_, _ = k.log.Close(), k.kept.Close() // stderr may be what failed: there is nobody left to tell
	if k.audit != nil {
		_ = k.audit.Close() // likewise
	}
}

// flush writes what is queued; each sink bounds its own wait.
func (k *sinks) flush() {
	_, _ = k.kept.Flush(), k.log.Flush() // what was not written is lost with us
	if k.audit != nil {
		_ = k.audit.Flush() // likewise
	}
}

// makeState makes a server's state directory.
func (k *sinks) makeState(dir string) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		k.say(event.ServerLogLost, fmt.Sprintf("state directory: %v; going on without", err))
	}
}

// clearAway removes old logs and leftover processes of earlier runs. What cannot be removed now is tried again by the next one.
func (k *sinks) clearAway() {
	_ = logline.Prune(filepath.Join(stateDir(), "log"), time.Now(), logline.PruneTotal, logline.PruneAge, ofTheLiving)
	if report, err := child.SweepStrays(context.Background()); err == nil && len(report.Found) > 0 {
		k.say(event.StraysSwept, "Left over by an earlier run: "+report.String(),
			slog.Int(event.KeyCount, len(report.Found)))
	}
}

// tellFatal turns a panic into the watchdog's last lines: the fatal error with its trace, and exit status 1.
func tellFatal(k *sinks, err *error) {
	problem := recover()
	if problem == nil {
		return
	}
	trace := debug.Stack()
	k.say(event.FatalError, "Fatal error", slog.String(event.KeyError, fmt.Sprint(problem)))
	k.log.Raw(append(trace, '\n'))
	k.say(event.ProxyStopped, "MCP Proxy stopped", slog.Int(event.KeyExitCode, exitFailure))
	*err = &exitError{code: exitFailure}
}

// proxyRun is a run in its usual mode.
type proxyRun struct {
	*proxy.Proxy
	image  *image
	member *sharing.Member // nil: the server is not shared
	stays  error           // why it is not upgraded in place; nil: it is
}

// Restart replaces the server; one that belongs to the daemon, for all runs that share it.
func (r *proxyRun) Restart(ctx context.Context, source supervise.Source, reason string) error {
	if r.member != nil {
		return r.member.Restart(ctx, source, reason)
	}
	return r.Proxy.Restart(ctx, source, reason)
}

// Upgrade waits for a quiet moment, no longer than wait. It returns only if the upgrade is not possible; then everything goes
// on. Any goroutine.
func (r *proxyRun) Upgrade(ctx context.Context, wait time.Duration) error {
	return r.image.upgrade(ctx, wait, r.stays, func(ctx context.Context) error {
		r.image.sinks.flush() // a slow reader is waited for here, so that it need not be on the loop's goroutine
		return r.HandOver(ctx, func(s *proxy.Saved) error { return r.image.become(&legacy{Proxy: s}, []int{s.In, s.Out}) })
	})
}

// begin makes the proxy: a new one, or the one that an earlier version in this process has left.
func begin(io streams, s *settings, k *sinks, opts proxy.Options, from *legacy) (*proxyRun, error) {
	i, err := newImage(k, from)
	if err != nil {
		return nil, err
	}
	r := &proxyRun{image: i}
	if from != nil {
		k.start = from.Started
		if r.Proxy, err = proxy.Resume(opts, from.Proxy); err != nil {
			return nil, err
		}
		k.tellUpgraded(from)
		return r, nil
	}
	if opts.In, opts.Out, err = takeStreams(io); err != nil {
		return nil, fmt.Errorf("take over stdin and stdout: %w", err)
	}
	if r.Proxy, err = proxy.New(opts); err != nil {
		return nil, err
	}
	k.makeState(s.serverState)
	go k.clearAway()
	k.say(event.ProxyStarted, "MCP Proxy starting")
	for _, text := range s.warnings {
		k.warn(event.ConfigLoaded, text)
	}
	return r, nil
}

// hostOptions are the settings of the server in the host's words.
func hostOptions(s *settings, k *sinks) host.Options {
	opts := s.backend
	opts.Tap, opts.Trace = k.tap, traceSource()
	return host.Options{
		Backend: opts, Remote: s.remoteOptions(k), KillMode: s.killMode, MaxToClient: s.longest,
		MarkerPath: s.markerPath, StateDir: s.serverState, Stderr: k.kept, Sink: k,
		Remember: keepKnowledge(s.known, func(err error) { k.say(event.ServerLogLost, err.Error()) }),
	}
}

// runProxy is `outlive run` in its usual mode.
func runProxy(io streams, s *settings) (err error) {
	child.CloseInheritedOnExec()
	from, err := predecessor()
	if err != nil {
		return fail(exitFailure, "%w", err)
	}
	if from == nil && s.share == nil { // of a shared run, the daemon has the keeper
		child.Prepare()
	}
	k, err := openSinks(io, s, logline.Options{})
	if err != nil {
		return err
	}
	defer k.close()
	defer tellFatal(k, &err)
	opts := proxy.Options{MaxToServer: s.longest, Options: hostOptions(s, k)}
	var member *sharing.Member
	if s.share != nil {
		// The shared server's stderr is kept and passed on like that of a server of our own. A sink counts its own losses.
		said := func(p []byte) { _, _ = k.kept.Write(p) }
		member = sharing.NewMember(sharing.MemberOptions{Request: *s.share, Dial: dialDaemon, Said: said})
		defer member.Close()
		opts.Join = member.Join
	}
	p, err := begin(io, s, k, opts, from)
	if err != nil {
		return fail(exitFailure, "%w", err)
	}
	switch {
	case member != nil:
		p.member, p.stays = member, errSharedStays
	case opts.Remote != nil:
		p.stays = errRemoteStays
	}
	stop := handleSignals(k, signalled{p.Interrupt, hangUp(p), p.Upgrade})
	defer stop()
	if from != nil {
		admitSignals()
		child.Prepare() // no sooner: whatever it starts would not hear those signals
	}
	unwatch, err := watchFiles(s.watch, k, p.Restart)
	if err != nil {
		return fail(exitUsage, "--watch: %w", err)
	}
	defer unwatch()
	done := listenControl(k, s.backend.Name, "this run", reachable{p, s, k, p, ourClient()})
	defer done()
	k.startTelemetry()
	code := p.Run()
	last := p.Last()
	k.countLast(p.image.upgrades, control.Status{Status: last})
	k.Emit(event.Event{Type: event.ProxyStopped, Time: time.Now(), Message: "MCP Proxy stopped",
		RestartCount: last.RestartCount, Attrs: []slog.Attr{slog.Int(event.KeyExitCode, code)}})
	return exitWith(code)
}

// runInherit is `outlive run --mode inherit`: the watchdog to the letter (WD-7). The program has our three descriptors.
func runInherit(io streams, s *settings) (err error) {
	child.CloseInheritedOnExec()
	child.PrepareToInherit()
	k, err := openSinks(io, s, logline.Options{Inherit: true})
	if err != nil {
		return err
	}
	defer k.close()
	defer tellFatal(k, &err)
	h, err := proxy.NewInherited(proxy.InheritOptions{
		Command: s.backend.Command, Name: s.backend.Name, StateDir: s.serverState,
		KillMode: s.killMode, Supervise: s.backend.Supervise, Sink: k,
	})
	if err != nil {
		return err
	}
	k.makeState(s.serverState)
	go k.clearAway()
	k.say(event.ProxyStarted, "Watchdog supervisor starting")
	stop := handleSignals(k, signalled{interrupt: h.Interrupt, renew: hangUp(h)})
	defer stop()
	done := listenControl(k, s.backend.Name, "this run", reachable{server: h, settings: s, sinks: k, client: ourClient()})
	defer done()
	code := h.Run()
	k.say(event.ProxyStopped, "Watchdog supervisor stopped", slog.Int(event.KeyExitCode, code))
	return exitWith(code)
}
