package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/outlive-mcp/outlive/internal/files/peer"
	"github.com/outlive-mcp/outlive/internal/gateway/catalog"
	"github.com/outlive-mcp/outlive/internal/gateway/gateway"
	"github.com/outlive-mcp/outlive/internal/gateway/sharing"
	"github.com/outlive-mcp/outlive/internal/keep/child"
	"github.com/outlive-mcp/outlive/internal/keep/supervise"
	"github.com/outlive-mcp/outlive/internal/line/backend"
	"github.com/outlive-mcp/outlive/internal/record/event"
	"github.com/outlive-mcp/outlive/internal/record/logline"
	"github.com/outlive-mcp/outlive/internal/view/control"
)

const (
	// sharedVerb is the command by which a run starts the daemon.
	sharedVerb = "shared-daemon"
	// sharedName is the daemon's name in status and logs.
	sharedName = "shared"
	// sharedIdle is how long a server, and the daemon, continue without runs that use them.
	sharedIdle = 5 * time.Minute
	// sharedIdleVar is the environment variable with another time, set for the process that starts the daemon.
	sharedIdleVar = "OUTLIVE_SHARED_IDLE"
	// readyWord is what the daemon writes to stdout when it listens.
	readyWord = "ready"
)

func newSharedDaemon(io streams) *cobra.Command {
	var idle time.Duration
	cmd := &cobra.Command{
		Use:         sharedVerb,
		Annotations: map[string]string{keepsAlive: "yes"},
		Short:       "Keep the servers that runs with --shared use together (outlive run --shared starts this)",
		Hidden:      true,
		Args:        takes(0, 0),
		RunE:        interruptibly(func(ctx context.Context, _ []string) error { return runSharedDaemon(ctx, io, idle) }),
	}
	cmd.Flags().DurationVar(&idle, "idle", sharedIdle, "how long a server goes on without runs that use it")
	return cmd
}

// startDaemon starts the daemon, and returns when it listens. The caller holds the lock.
func startDaemon(ctx context.Context) error {
	idle := sharedIdle
	if text := os.Getenv(sharedIdleVar); text != "" {
		var err error
		if idle, err = time.ParseDuration(text); err != nil {
			return fmt.Errorf("%s: %w", sharedIdleVar, err)
		}
	}
	program, err := programPath()
	if err != nil {
		return err
	}
	logPath := filepath.Join(stateDir(), "log", sharedVerb+".log")
	if err := os.MkdirAll(filepath.Dir(logPath), 0o700); err != nil {
		return err
	}
	log, err := os.OpenFile(logPath, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	hears, says, err := os.Pipe()
	if err != nil {
		return err
	}
	defer hears.Close()
	cmd := exec.Command(program, sharedVerb, "--idle", idle.String())
	cmd.Stdout, cmd.Stderr, cmd.Dir = says, log, stateDir()
	cmd.Env = withoutVars(os.Environ(), []string{handoverVar, sharedIdleVar, "OUTLIVE_COOKIE", "OUTLIVE_AGENT", "OUTLIVE_AGENT_RUN"})
	cmd.SysProcAttr = ofItsOwn()
	err = cmd.Start()
	_ = says.Close()
	if err != nil {
		return err
	}
	go func() { _ = cmd.Wait() }() // it continues; if it has ended, the pipe shows that
	if at, ok := ctx.Deadline(); ok {
		_ = hears.SetReadDeadline(at) // a pipe has one
	}
	word := make([]byte, len(readyWord))
	if _, err := io.ReadFull(hears, word); err != nil || string(word) != readyWord {
		return fmt.Errorf("it did not come up; see %s", logPath)
	}
	return nil
}

// sharedDaemon is the daemon: the handler for runs, and the servers' options.
type sharedDaemon struct {
	*sharing.Daemon
	sinks *sinks

	mu      sync.Mutex
	servers map[string]*sharedServer    // by name
	past    map[string]backend.Counters // by name: what servers that have ended had counted
	running sync.WaitGroup
}

// sharedServer is one server: a gateway with this server only. It implements sharing.Server.
type sharedServer struct {
	*gateway.Runner
	name string
	kept *logline.Kept
}

// runSharedDaemon is the hidden verb.
func runSharedDaemon(ctx context.Context, io streams, idle time.Duration) (err error) {
	child.CloseInheritedOnExec()
	child.Prepare()
	listener, err := control.ListenAt(sharedSocket())
	if err != nil {
		return fail(exitFailure, "%w", err)
	}
	listener.SetUnlinkOnClose(false) // by then it may belong to the next daemon
	f := newGatewayFlags()
	f.name = sharedName
	k, err := openGatewaySinks(io, f)
	if err != nil {
		return err
	}
	defer k.close()
	defer tellFatal(k, &err)
	d := &sharedDaemon{sinks: k, servers: map[string]*sharedServer{}, past: map[string]backend.Counters{}}
	d.Daemon = sharing.NewDaemon(sharing.Options{Open: d.open, Idle: idle})
	k.say(event.ProxyStarted, fmt.Sprintf("Daemon of shared servers starting (PID=%d)", os.Getpid()))
	closeControl := listenControl(d.sinks, sharedName, "the shared servers", reachableDaemon{d})
	defer closeControl()
	k.startTelemetry()
	go k.clearAway()
	server := &http.Server{Handler: d, ReadHeaderTimeout: 10 * time.Second}
	served := make(chan error, 1)
	go func() { served <- server.Serve(ownUserListener{listener}) }()
	_, _ = io.out.WriteString(readyWord) // the process that started it may have ended
	_ = io.out.Close()
	select {
	case <-ctx.Done():
		d.End()
	case <-d.Done():
	case err = <-served:
		d.End()
	}
	_ = listener.Close() // a run that connects now starts the next one
	_ = server.Close()
	d.running.Wait()
	k.countLast(0, d.last())
	k.say(event.ProxyStopped, "Daemon of shared servers stopped")
	if err != nil && !errors.Is(err, net.ErrClosed) {
		return fail(exitFailure, "serve: %w", err)
	}
	return nil
}

// ownUserListener is a listener on a Unix socket that closes connections of other users at once.
type ownUserListener struct{ socketListener }

func (l ownUserListener) Accept() (net.Conn, error) {
	for {
		conn, err := l.socketListener.Accept()
		if err != nil {
			return nil, err
		}
		if unix, ok := conn.(*net.UnixConn); ok {
			if uid, err := peer.Unix(unix); err == nil && peer.OursOrRoots(uid) {
				return conn, nil
			}
		}
		_ = conn.Close()
	}
}

// open starts a server that a run has requested.
func (d *sharedDaemon) open(name string, r sharing.Request, said func([]byte)) (sharing.Server, error) {
	one, server, err := d.settingsOf(name, r, said)
	if err != nil {
		return nil, err
	}
	s := &sharedServer{name: name, kept: one.sinks.kept}
	s.Runner, err = gateway.NewRunner(gateway.RunnerOptions{
		Gateway: gateway.Options{Version: version(), Names: catalog.Never, NoTools: true, Plain: true, PoolIdle: sharedIdle, ListWait: firstList, Sink: d.sinks},
		Host:    one.host,
	})
	if err != nil {
		return nil, err
	}
	s.Runner.SetServers([]gateway.Server{server})
	unwatch, err := watchFiles(one.watch, one.sinks, s.Restart)
	if err != nil {
		return nil, fmt.Errorf("--watch: %w", err)
	}
	d.mu.Lock()
	d.servers[name] = s
	d.mu.Unlock()
	d.running.Go(func() {
		s.Runner.Run()
		unwatch()
		_ = s.kept.Close() // its wait is limited
		d.mu.Lock()
		defer d.mu.Unlock()
		sum := d.past[name]
		for _, one := range s.Runner.Last() {
			sum.Merge(one.Counted())
		}
		d.past[name] = sum
		if d.servers[name] == s {
			delete(d.servers, name)
		}
	})
	return s, nil
}

// last is what all servers have counted, when they have ended.
func (d *sharedDaemon) last() control.Status {
	d.mu.Lock()
	defer d.mu.Unlock()
	s := control.Status{Status: backend.Status{Name: sharedName}}
	for name, past := range d.past {
		s.Servers = append(s.Servers, control.Member{ServerStatus: gateway.ServerStatus{Name: name, Past: past}})
	}
	return s
}

// before adds what earlier servers of that name had counted.
func (d *sharedDaemon) before(s gateway.ServerStatus) gateway.ServerStatus {
	d.mu.Lock()
	defer d.mu.Unlock()
	if past, known := d.past[s.Name]; known {
		s.Past.Merge(past)
	}
	return s
}

// settingsOf converts a request.
func (d *sharedDaemon) settingsOf(name string, r sharing.Request, said func([]byte)) (*served, gateway.Server, error) {
	f := newRunFlags()
	fl := f.flagSet()
	for _, s := range r.Settings {
		for _, value := range s.Values {
			if err := fl.Set(s.Name, value); err != nil {
				return nil, gateway.Server{}, err
			}
		}
	}
	f.backend.Name = name
	s, err := f.check(r.Dir, r.Command, fl.Changed)
	if err != nil {
		return nil, gateway.Server{}, err
	}
	s.executable = r.Executable
	s.backend.Supervise.Exits.Endless = true // the server's end does not end the daemon
	s.paths(sharedName+"."+name, nil)
	d.sinks.makeState(s.serverState)
	kept := logline.OpenKept(s.stderrLog, logline.KeptOptions{Pass: said, OnFailure: d.sinks.lost("server log of " + name + " cannot be written")})
	one := newServed(d.sinks.of(name, kept), s, r.Dir, r.Env)
	server := one.server(catalog.Server{Name: name})
	server.Shared = true
	return one, server, nil
}

func (s *sharedServer) End() { s.Runner.Interrupt() }

func (s *sharedServer) Restart(ctx context.Context, source supervise.Source, reason string) error {
	_, err := restartServer(ctx, s.Runner, s.name, source, reason)
	return err
}

// reachableDaemon implements control.Source for the daemon.
type reachableDaemon struct{ *sharedDaemon }

// server returns the server with this name, or an error that lists the servers.
func (r reachableDaemon) server(name string) (*sharedServer, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if s := r.servers[name]; s != nil {
		return s, nil
	}
	names := slices.Sorted(maps.Keys(r.servers))
	if name == "" {
		return nil, fmt.Errorf("say which of the shared servers: %s", strings.Join(names, ", "))
	}
	return nil, fmt.Errorf("there is no shared server %q; there are %s", name, strings.Join(names, ", "))
}

func (r reachableDaemon) Status() control.Status {
	ctx, cancel := context.WithTimeout(context.Background(), askPatience)
	defer cancel()
	s := r.sinks.status(backend.Status{Name: sharedName, State: "serving"})
	for _, one := range r.Daemon.Status() {
		server, err := r.server(one.Name)
		if err != nil {
			continue // it is ending
		}
		member := control.Member{Runs: one.Runs, Apart: one.Apart}
		member.Name = one.Name
		if all, err := server.Runner.Status(ctx); err == nil && len(all) == 1 {
			member.ServerStatus = r.before(all[0])
		}
		addServer(&s, member, server.kept)
	}
	return s
}

func (r reachableDaemon) Used() control.Status {
	ctx, cancel := context.WithTimeout(context.Background(), askPatience)
	defer cancel()
	r.mu.Lock()
	servers := maps.Clone(r.servers)
	r.mu.Unlock()
	s := control.Status{Status: backend.Status{Name: sharedName}}
	for _, server := range servers {
		if all, err := server.Runner.Used(ctx); err == nil && len(all) == 1 {
			s.Servers = append(s.Servers, control.Member{ServerStatus: r.before(all[0])})
		}
	}
	return s
}

func (r reachableDaemon) Restart(ctx context.Context, o control.Order) (control.Result, error) {
	s, err := r.server(o.Server)
	if err != nil {
		return control.Result{}, err
	}
	return restartServer(ctx, s.Runner, s.name, sourceOf(o), o.Reason)
}

func (r reachableDaemon) Reload() error {
	return errors.New("there is nothing to reload: only a gateway has a configuration")
}

func (r reachableDaemon) Upgrade(context.Context, time.Duration) error {
	return fmt.Errorf("not possible: end the process %d instead (kill %d); the runs start the new version and go on", os.Getpid(), os.Getpid())
}
