package cli

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/outlive-mcp/outlive/internal/gateway/catalog"
	"github.com/outlive-mcp/outlive/internal/gateway/config"
	"github.com/outlive-mcp/outlive/internal/gateway/gateway"
	"github.com/outlive-mcp/outlive/internal/gateway/streamhttp"
	"github.com/outlive-mcp/outlive/internal/keep/child"
	"github.com/outlive-mcp/outlive/internal/record/event"
	"github.com/outlive-mcp/outlive/internal/record/logline"
)

const gatewayLong = `Keep many MCP servers alive behind one endpoint. Without --listen outlive speaks MCP on stdin and stdout, so a client
starts "outlive gateway" as its only server; with it, it speaks Streamable HTTP at /mcp for many clients at once.

FILE is an outlive.yaml, or a client's own file as it is: .mcp.json, .vscode/mcp.json, claude_desktop_config.json, Cursor's,
Windsurf's, Zed's, Gemini's settings, Codex' config.toml. Tools are called <server>_<tool>. When the file changes, and on
SIGHUP, servers that are configured differently are replaced; the others are not touched.

Each ${input:NAME} is taken from the environment variable OUTLIVE_INPUT_NAME.

EXIT STATUS
  0  the client closed the connection, or SIGTERM/SIGINT
  1  outlive itself failed, or the address cannot be listened on
  2  the command line or the configuration is wrong`

// gatewayFlags are the flags of `outlive gateway` as they were given.
type gatewayFlags struct {
	config    string
	listen    string
	name      string
	noTools   bool
	browser   bool
	logLevel  string
	logFormat string
	audit     string
}

func newGateway(io streams) *cobra.Command {
	var f gatewayFlags
	cmd := &cobra.Command{
		Use:         "gateway [flags]",
		Annotations: map[string]string{keepsAlive: "yes"},
		Short:       "Keep many MCP servers alive behind one endpoint",
		Long:        gatewayLong,
		Example: "  outlive gateway -c outlive.yaml                   # on stdin and stdout\n" +
			"  outlive gateway -c .mcp.json --listen 127.0.0.1:8080",
		Args: takes(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error { return runGateway(cmd.Context(), io, f) },
	}
	cmd.AddCommand(newGatewayLogin(io))
	fl := cmd.Flags()
	fl.SortFlags = false
	fl.StringVarP(&f.config, "config", "c", "", configUsage)
	fl.StringVar(&f.listen, "listen", "", "speak Streamable HTTP at this address, such as 127.0.0.1:8080, instead of stdio")
	fl.StringVar(&f.name, "name", "gateway", "name in status and logs")
	fl.BoolVar(&f.noTools, "no-tools", false, "do not offer outlive_server_status and outlive_restart_server")
	fl.BoolVar(&f.browser, "open-browser", false, "open the page of a server that wants authorization ($BROWSER, or the desktop's), and wait")
	fl.StringVar(&f.logLevel, "log-level", "info", "minimum level logged to stderr: debug, info, warn or error")
	fl.StringVar(&f.logFormat, "log-format", "text", "text or json")
	fl.StringVar(&f.audit, "audit", "", "audit log (default: under the state directory); \"none\" for none")
	return cmd
}

const configUsage = "configuration `FILE` (default: outlive.yaml in the configuration directory, ~/.config/outlive)"

// firstList is how long a client's first list waits for servers that are starting: a launcher that downloads takes its time, many
// clients ask once only, and give up after 30 s. Servers that have failed are not waited for.
const firstList = 15 * time.Second

// mostProcesses is the default limit of processes of sessions.
const mostProcesses = 256

// endpoint is a running `outlive gateway`.
type endpoint struct {
	*gateway.Runner
	flags gatewayFlags
	path  string       // of the configuration
	begun *config.File // what it was started with

	listener net.Listener // nil: it speaks stdio
	front    streamhttp.Options
	url      string // of the endpoint; "" on stdio
	byHand   bool   // stdin is a terminal

	tokenFile string // holds the token that local clients need; "": none was made

	sinks  *sinks
	served *servedSet

	mu      sync.Mutex        // one reading of the configuration at a time
	read    [sha256.Size]byte // digest of its last content
	watched map[string]watched
}

// runGateway is `outlive gateway`.
func runGateway(ctx context.Context, io streams, f gatewayFlags) (err error) {
	if plainName(f.name) != f.name {
		return fail(exitUsage, "--name %q: use letters, digits, dot, dash and underscore", f.name)
	}
	path, passedOver, err := configFile(f.config)
	if err != nil {
		return err
	}
	file, digest, err := loadConfig(path)
	if err != nil {
		return err
	}
	child.CloseInheritedOnExec()
	child.Prepare()
	k, err := openGatewaySinks(io, f)
	if err != nil {
		return err
	}
	defer k.close()
	defer tellFatal(k, &err)
	g := &endpoint{flags: f, path: path, begun: file, read: digest, sinks: k, served: newServedSet(k, f.name, path, f.browser)}
	defer g.served.close()
	servers, err := g.served.load(file)
	if err != nil {
		return err
	}
	if err := g.open(io, file); err != nil {
		return err
	}
	k.say(event.ProxyStarted, fmt.Sprintf("Gateway starting (PID=%d): %s of %s", os.Getpid(), counted(len(servers), "server"), path))
	if g.byHand {
		k.log.Raw([]byte("An MCP client is to speak here, on stdin and stdout. For clients that speak HTTP: outlive gateway --listen 127.0.0.1:8080\n"))
	}
	if passedOver {
		g.warn("The " + configName + " of this directory is not used; to use it: -c " + configName)
	}
	g.tellWarnings(file)
	go g.clearAway()
	g.SetServers(servers)
	g.rewatch()
	defer g.unwatch()
	stop := handleSignals(g, k)
	defer stop()
	unwatch := g.watchConfig()
	defer unwatch()
	closeControl := serveGatewayControl(g)
	defer closeControl()
	err = g.serve(ctx)
	k.say(event.ProxyStopped, "Gateway stopped", slog.Int(event.KeyExitCode, codeOf(err)))
	return err
}

// clearAway removes old logs and leftover processes of earlier runs.
func (g *endpoint) clearAway() {
	// A failed removal is retried by the next run.
	_ = logline.Prune(filepath.Join(stateDir(), "log"), time.Now(), logline.PruneTotal, logline.PruneAge, g.served.logPaths()...)
	clearStrays(g.sinks)
}

// open makes the runner, on the client's descriptors unless it is to listen.
func (g *endpoint) open(io streams, file *config.File) (err error) {
	address := g.flags.listen
	if address == "" {
		address = file.Listen
	}
	if address != "" {
		if err := g.listen(file, address); err != nil {
			return err
		}
	}
	opts := gateway.RunnerOptions{
		Gateway: gateway.Options{Version: version(), Names: catalog.Names(file.Names), NoTools: g.flags.noTools, ListWait: firstList, Sink: g.sinks,
			MaxProcesses: cmp.Or(file.Limits.Processes, mostProcesses)},
		Host: g.served.host,
	}
	if address == "" {
		st, err := io.in.Stat()
		g.byHand = err == nil && st.Mode()&os.ModeCharDevice != 0
		if opts.In, opts.Out, err = takeStreams(io); err != nil {
			return fail(exitFailure, "take over stdin and stdout: %w", err)
		}
	}
	if g.Runner, err = gateway.NewRunner(opts); err != nil {
		return fail(exitFailure, "%w", err)
	}
	return nil
}

// codeOf is the exit status that an error stands for.
func codeOf(err error) int {
	var withCode *exitError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &withCode):
		return withCode.code
	}
	return exitFailure
}
