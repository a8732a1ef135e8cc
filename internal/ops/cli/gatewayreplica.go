package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/spf13/pflag"

	"github.com/outlive-mcp/outlive/internal/files/atomicfile"
	"github.com/outlive-mcp/outlive/internal/files/peer"
	"github.com/outlive-mcp/outlive/internal/gateway/replica"
	"github.com/outlive-mcp/outlive/internal/gateway/streamhttp"
	"github.com/outlive-mcp/outlive/internal/record/event"
)

// checkReplica rejects contradictory flags of replicas and their core.
func (f *gatewayFlags) checkReplica(fl *pflag.FlagSet) error {
	switch {
	case f.replica && f.core:
		return fail(exitUsage, "gateway: --replica and --core cannot go together: a replica starts a core if there is none")
	case f.core && f.listen != "":
		return fail(exitUsage, "gateway: --core listens for replicas only: leave out --listen, and start replicas with --replica --listen %s", f.listen)
	case !f.core && !f.replica && fl.Changed("core-idle"):
		return fail(exitUsage, "gateway: --core-idle is for --replica and --core")
	case !f.core && !f.replica && f.link != linkFlags{}:
		return fail(exitUsage, "gateway: --core-listen is for --core, --core-at for --replica, and --core-secret-file for those two")
	case !f.core && !f.replica:
		return nil
	}
	if err := f.link.check(f, fl.Changed("core-idle")); err != nil {
		return err
	}
	if err := sharingPossible(); err != nil && !f.link.used() {
		return fail(exitUsage, "gateway: --replica and --core: %w", err)
	}
	if f.core && !fl.Changed("core-idle") {
		f.coreIdle = 0 // whoever has started it ends it
	}
	fl.Visit(func(flag *pflag.Flag) {
		switch flag.Name {
		case "listen", "replica", "core", "core-idle", "config", "view":
			return
		}
		if list, ok := flag.Value.(pflag.SliceValue); ok {
			for _, one := range list.GetSlice() {
				f.given = append(f.given, "--"+flag.Name+"="+one)
			}
			return
		}
		f.given = append(f.given, "--"+flag.Name+"="+flag.Value.String())
	})
	return nil
}

// replicaEnd is a running `outlive gateway --replica`.
type replicaEnd struct {
	flags    gatewayFlags
	path     string   // of the configuration; "": it was made from the command line
	key      string   // of the core, if that is one of this machine
	far      *farCore // nil: it is
	sinks    *sinks
	listener net.Listener
	front    *streamhttp.Front
	stop     context.CancelFunc

	mu sync.Mutex // guards reading the configuration
}

func runReplica(ctx context.Context, io streams, f gatewayFlags) (err error) {
	file, path, _, _, err := f.load()
	if err != nil {
		return err
	}
	address := cmp.Or(f.listen, file.Listen)
	switch {
	case address == "":
		return fail(exitUsage, "gateway: a replica needs an address of its own: --listen 127.0.0.1:8081")
	case f.view != "":
		return fail(exitUsage, "--view is for a client on stdin and stdout; over HTTP clients choose one by its path, /mcp/%s, or their token does", f.view)
	}
	opts, tokenFile, err := admitting(file, address, f)
	if err != nil {
		return err
	}
	own := f
	own.audit = "none" // what happens, happens in the core
	k, err := openGatewaySinks(io, own)
	if err != nil {
		return err
	}
	defer k.close()
	defer tellFatal(k, &err)
	g := &replicaEnd{flags: f, path: path, sinks: k}
	if err := g.findCore(ctx); err != nil {
		return err
	}
	if g.listener, err = net.Listen("tcp", address); err != nil {
		return fail(exitFailure, "%w%s", err, whoListens(address))
	}
	return g.serve(ctx, opts, urlOf(g.listener, opts), tokenFile)
}

// findCore says where the core is. One of this machine that cannot be started is told of before clients are let in; one of another
// machine may come later.
func (g *replicaEnd) findCore(ctx context.Context) (err error) {
	if g.flags.link.at != "" {
		g.far, err = openFarCore(g.flags.link)
		return err
	}
	if g.key, err = coreKey(g.flags, g.path); err != nil {
		return fail(exitFailure, "%w", err)
	}
	conn, err := g.dial(ctx)
	if err != nil {
		return fail(exitFailure, "%w", err)
	}
	return conn.Close()
}

// serve serves until it is interrupted.
func (g *replicaEnd) serve(ctx context.Context, opts streamhttp.Options, url, tokenFile string) error {
	ctx, g.stop = context.WithCancel(ctx)
	defer g.stop()
	connection := replica.Options{
		Me: replica.Attendant{URL: url, PID: os.Getpid(), Version: version()}, Dial: g.dial,
		Reload: func() { _ = g.Reload() }, Tell: g.tellCore, // it is reported
	}
	if g.far != nil {
		connection.Dial, connection.Patience, connection.Silence = g.far.dial, g.far.patience(), peer.Silence
	}
	link := replica.New(connection)
	defer link.Close()
	forward := func(out *http.Request) (*http.Response, error) {
		if out.URL.Path == healthPath || out.URL.Path == metricsPath {
			return link.ForwardNow(out)
		}
		return link.Forward(out)
	}
	opts.Forward, opts.ForwardExtra, opts.Log = forward, []string{healthPath, metricsPath}, frontLog(g.flags, g.sinks)
	g.front = streamhttp.New(nil, opts)
	g.sinks.say(event.ProxyStarted, fmt.Sprintf("Replica starting (PID=%d)", os.Getpid()))
	defer handleSignals(g, g.sinks)()
	defer watchFile(g.path, g.sinks, func() { _ = g.Reload() })()
	var attending sync.WaitGroup
	attending.Go(func() { link.Attend(ctx) })
	defer attending.Wait()
	defer g.stop()
	tellListening(g.sinks, g.listener, url, tokenFile)
	err := g.front.Serve(ctx, g.listener)
	g.sinks.say(event.ProxyStopped, "Replica stopped", slog.Int(event.KeyExitCode, codeOf(err)))
	if err != nil && !errors.Is(err, net.ErrClosed) && !errors.Is(err, http.ErrServerClosed) {
		return fail(exitFailure, "serve: %w", err)
	}
	return nil
}

// Interrupt ends the replica. Any goroutine.
func (g *replicaEnd) Interrupt() { g.stop() }

// Reload reads the configuration again, as far as it says who may come in. The core tells what it thinks of it.
func (g *replicaEnd) Reload() error {
	if g.path == "" {
		return nil
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	file, _, err := loadConfig(g.path)
	if err == nil {
		g.front.SetViews(frontViews(file.Views))
	}
	return err
}

// tellCore reports that the core cannot be reached, and that it can be again.
func (g *replicaEnd) tellCore(err error) {
	if err == nil {
		g.sinks.say(event.CoreBack, "The core answers again")
		return
	}
	meanwhile := "clients are told to come back"
	if g.far != nil && !errors.Is(err, replica.ErrSecret) {
		meanwhile = fmt.Sprintf("requests wait for it, %v at most", g.far.patience())
	}
	why := strings.TrimPrefix(err.Error(), streamhttp.ErrNotSent.Error()+": ")
	g.sinks.Emit(event.Event{Type: event.CoreLost, Time: time.Now(), Level: slog.LevelWarn, Message: "The core cannot be reached: " + why + "; " + meanwhile,
		Attrs: []slog.Attr{slog.String(event.KeyError, err.Error())}})
}

// dial connects to the core, and starts one if there is none.
func (g *replicaEnd) dial(ctx context.Context) (net.Conn, error) {
	return dialOrStart(ctx, coreSocket(g.key), "the replicas' core", g.startCore)
}

// coreLogTail is how much of a core's log is shown if it did not come up, in bytes.
const coreLogTail = 4 << 10

// startCore starts the core with the replica's own flags, and returns when it listens.
func (g *replicaEnd) startCore(ctx context.Context) error {
	args := append([]string{"gateway", "--core", "--core-idle", g.flags.coreIdle.String()}, g.flags.given...)
	if g.path != "" {
		abs, err := filepath.Abs(g.path)
		if err != nil {
			return err
		}
		args = append(args, "--config", abs)
	}
	if len(g.flags.one) > 0 {
		args = append(append(args, "--"), g.flags.one...)
	}
	name := "gateway-core-" + g.key
	err := spawnDaemon(ctx, name, "", os.Environ(), args...)
	if err == nil {
		return nil
	}
	text, _ := atomicfile.Read(filepath.Join(stateDir(), "log", name+".log"), coreLogTail) // the error says where it is
	if len(text) > 0 {
		err = fmt.Errorf("%w:\n%s", err, strings.TrimSpace(string(text)))
	}
	return err
}
