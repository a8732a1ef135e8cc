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
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/outlive-mcp/outlive/internal/gateway/config"
	"github.com/outlive-mcp/outlive/internal/gateway/gateway"
	"github.com/outlive-mcp/outlive/internal/gateway/streamhttp"
	"github.com/outlive-mcp/outlive/internal/keep/child"
	"github.com/outlive-mcp/outlive/internal/record/event"
	"github.com/outlive-mcp/outlive/internal/record/logline"
	"github.com/outlive-mcp/outlive/internal/view/metrics"
)

const gatewayLong = `Keep many MCP servers alive behind one endpoint. Without --listen outlive speaks MCP on stdin and stdout, so a client
starts "outlive gateway" as its only server; with it, it speaks Streamable HTTP at /mcp for many clients at once.

With a command or a URL there is one server and no FILE: its tools keep their names, and all else is as it is with a FILE.

FILE is an outlive.yaml, or a client's own file as it is: .mcp.json, .vscode/mcp.json, claude_desktop_config.json, Cursor's,
Windsurf's, Zed's, Gemini's settings, Codex' config.toml. Tools are called <server>_<tool>. When the file changes, and on
SIGHUP, servers that are configured differently are replaced; the others are not touched.

Several gateways can be one for their clients, behind any load balancer. They have the same FILE, a secret, and each its own servers:
  outlive gateway -c outlive.yaml --listen 0.0.0.0:8080 --peer-listen 10.0.0.1:7420 --peer-secret-file secret.txt
A request for a session that another one has is passed on to it. With "sessions: fleet" the others go on with the sessions of one that ends.

Each ${input:NAME} is taken from the environment variable OUTLIVE_INPUT_NAME.

EXIT STATUS
  0  the client closed the connection, or SIGTERM/SIGINT
  1  outlive itself failed, or the address cannot be listened on
  2  the command line or the configuration is wrong`

// gatewayFlags are the flags of `outlive gateway` as they were given.
type gatewayFlags struct {
	one       []string // command or URL of the only server; nil: a configuration is used
	remote    remoteFlags
	config    string
	listen    string
	name      string
	tokenFile string // with the tokens of clients; "": none is needed, or a configuration says so
	view      string // what the client on stdin sees; "": everything
	noTools   bool
	browser   bool
	peers     peerFlags
	logLevel  string
	logFormat logline.Format
	audit     string
}

func newGatewayFlags() gatewayFlags {
	return gatewayFlags{name: "gateway", logLevel: "info", logFormat: logline.Text}
}

// table is what can be set, in the order that help shows it in. The defaults are those of f.
func (f *gatewayFlags) table() []setting {
	return append([]setting{
		{name: "config", short: "c", to: &f.config, usage: configUsage},
		{name: "listen", to: &f.listen, usage: "speak Streamable HTTP at this address, such as 127.0.0.1:8080, instead of stdio"},
		{name: "token-file", to: &f.tokenFile, usage: "`FILE` with a token in each line, one of which clients have to send; with a command or a URL"},
		{name: "name", to: &f.name, usage: "name in status and logs"},
		{name: "view", to: &f.view, usage: "on stdin and stdout, serve only this view of the configuration; over HTTP it is at /mcp/VIEW"},
		{name: "no-tools", to: &f.noTools, usage: "do not offer outlive_server_status and outlive_restart_server"},
		{name: "open-browser", to: &f.browser, usage: "open the page of a server that wants authorization ($BROWSER, or the desktop's), and wait"},
		{name: "peer-listen", to: &f.peers.listen, usage: "be one of several gateways, and take what the others pass on at this address, such as 10.0.0.1:7420"},
		{name: "peer-secret-file", to: &f.peers.secretFile, usage: "`FILE` with the secret by which they know each other"},
		{name: "log-level", to: &f.logLevel, usage: "minimum level logged to stderr: debug, info, warn or error", words: logLevels},
		{name: "log-format", to: (*string)(&f.logFormat), usage: "text or json", words: []string{"text", "json"}},
		{name: "audit", to: &f.audit, usage: "audit log (default: under the state directory); \"none\" for none"},
	}, f.remote.table()...)
}

func newGateway(io streams) *cobra.Command {
	f := newGatewayFlags()
	cmd := &cobra.Command{
		Use:         "gateway [flags] [-- CMD [ARG…] | URL]",
		Annotations: map[string]string{keepsAlive: "yes"},
		Short:       "Keep many MCP servers alive behind one endpoint",
		Long:        gatewayLong,
		Example: "  outlive gateway -c outlive.yaml                   # on stdin and stdout\n" +
			"  outlive gateway -c .mcp.json --listen 127.0.0.1:8080\n" +
			"  outlive gateway --listen 127.0.0.1:8080 -- npx -y @modelcontextprotocol/server-everything\n" +
			"  outlive gateway -c outlive.yaml --listen 127.0.0.1:8081 --peer-listen 127.0.0.1:7421 --peer-secret-file secret.txt   # and others",
		DisableFlagsInUseLine: true,
		Args: func(cmd *cobra.Command, args []string) error {
			if cmd.ArgsLenAtDash() == 0 || len(args) == 1 && isURL(args[0]) {
				return nil
			}
			return takes(0, 0)(cmd, args)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			f.one = args
			if err := f.check(cmd.Flags().Changed("name")); err != nil {
				return err
			}
			return runGateway(cmd.Context(), io, f)
		},
	}
	cmd.AddCommand(newLogin(io))
	define(cmd.Flags(), f.table())
	return cmd
}

// check rejects contradictory flags, and names a gateway of one server after the server, unless it was given a name.
func (f *gatewayFlags) check(named bool) error {
	if err := checkEach(f.table()); err != nil {
		return fail(exitUsage, "%w", err)
	}
	switch {
	case len(f.one) == 0 && f.tokenFile != "":
		return fail(exitUsage, "gateway: --token-file is for a server on the command line; in a configuration write auth: {bearer: \"${file:%s}\"}", f.tokenFile)
	case len(f.one) == 0 && len(givenWords(f.remote.table())) > 0:
		return fail(exitUsage, "gateway: %s is for a URL on the command line; for a server of a configuration it stands there", givenWords(f.remote.table())[0])
	case len(f.one) == 0:
	case f.config != "":
		return fail(exitUsage, "gateway: -c and a server on the command line cannot go together: leave out one of them, or name the server in %s", f.config)
	case f.listen == "":
		return fail(exitUsage, "gateway: one server needs --listen, such as --listen 127.0.0.1:8080; on stdin and stdout it is: outlive run")
	case !named:
		f.name = nameOf(f.one)
	}
	if err := f.peers.check(); err != nil {
		return err
	}
	return checkName(f.name)
}

// load reads the configuration, or makes one from the command line; then path is "". passedOver says that this
// directory has a configuration that is not used.
func (f *gatewayFlags) load() (file *config.File, path string, digest [sha256.Size]byte, passedOver bool, err error) {
	if len(f.one) > 0 {
		if file, err = f.remote.load(f.name, f.one); err == nil && f.tokenFile != "" {
			file.Auth, err = readTokens(f.tokenFile)
		}
		return file, "", digest, false, err
	}
	if path, passedOver, err = configFile(f.config); err == nil {
		file, digest, err = loadConfig(path)
	}
	return file, path, digest, passedOver, err
}

// login returns the command for logging in to a server.
func (f *gatewayFlags) login(path string) func(server string) string {
	if path == "" {
		return func(string) string { return f.remote.loginCommand(f.one[0]) }
	}
	return func(server string) string {
		return fmt.Sprintf("outlive gateway login %s -c %s", server, shellWord(path))
	}
}

const configUsage = "configuration `FILE` (default: outlive.yaml in the configuration directory, ~/.config/outlive)"

// firstList is how long a client's first list waits for servers that are starting. A launcher that downloads takes time. Some clients ask
// only once (Codex passes over list_changed, openai/codex#37417), and give up after 30 s. Failed servers are not waited for.
const firstList = 25 * time.Second

// mostProcesses is the default limit of processes of all sessions.
const mostProcesses = 256

// endpoint is a running `outlive gateway`.
type endpoint struct {
	*gateway.Runner
	flags gatewayFlags
	path  string       // of the configuration; "": it was made from the command line
	begun *config.File // the configuration at the start

	listener net.Listener       // nil: stdio
	front    streamhttp.Options // Views guarded by mu
	sessions keptSessions
	others   *equal        // nil: there are none
	url      string        // of the endpoint; "" on stdio
	byHand   bool          // stdin is a terminal
	client   clientProcess // on stdio; the zero value for an endpoint

	tokenFile string // file with the token for local clients; "": there is none

	sinks  *sinks
	served *servedSet

	left    *savedGateway // by the image before this one
	image   *image
	replace replacing

	mu      sync.Mutex        // guards reading the configuration
	read    [sha256.Size]byte // digest of its last content
	watched map[string]watched
}

func runGateway(ctx context.Context, io streams, f gatewayFlags) (err error) {
	file, path, digest, passedOver, err := f.load()
	if err != nil {
		return err
	}
	if only, err := asked(io.out); only {
		return err
	}
	child.CloseInheritedOnExec()
	from, err := predecessor()
	if err != nil {
		return fail(exitFailure, "%w", err)
	}
	if from == nil {
		child.Prepare()
	}
	k, err := openGatewaySinks(io, f)
	if err != nil {
		return err
	}
	defer k.close()
	defer tellFatal(k, &err)
	i, err := newImage(k, from)
	if err != nil {
		return fail(exitFailure, "%w", err)
	}
	g := &endpoint{flags: f, path: path, begun: file, read: digest, sinks: k, served: newServedSet(k, f.name, f.login(path), f.browser), image: i, left: from.gateway()}
	defer g.served.close()
	defer func() { g.others.end() }() // the last of all: then others may go on
	defer g.sessions.close()
	servers, err := g.served.load(file)
	if err != nil {
		return err
	}
	if err := g.open(io, file); err != nil {
		return err
	}
	g.tellStarting(len(servers), passedOver)
	go k.clearAway()
	g.apply(servers, g.begun.Views)
	g.rewatch()
	defer g.unwatch()
	stop := handleSignals(k, signalled{g.Interrupt, g.Reload, g.Upgrade})
	defer stop()
	if from != nil {
		admitSignals()
		child.Prepare() // no sooner: whatever it starts would not hear those signals
		k.tellUpgraded(from)
	}
	unwatch := g.watchConfig()
	defer unwatch()
	closeControl := listenControl(g.sinks, g.flags.name, "this gateway", reachableGateway{g})
	defer closeControl()
	k.startTelemetry()
	err = g.serve(ctx)
	k.countLast(i.upgrades, metrics.ServersOf(g.flags.name, g.Last()))
	code := 0
	if failed, ok := errors.AsType[*exitError](err); ok { // each of its errors is one
		code = failed.code
	}
	k.say(event.ProxyStopped, "Gateway stopped", slog.Int(event.KeyExitCode, code))
	return err
}

// tellStarting reports the start with so many servers.
func (g *endpoint) tellStarting(servers int, passedOver bool) {
	g.sinks.say(event.ProxyStarted, fmt.Sprintf("Gateway starting (PID=%d): %s of %s", os.Getpid(), counted(servers, "server"), g.begun.Name))
	if g.byHand {
		g.sinks.log.Raw([]byte("An MCP client is to speak here, on stdin and stdout. For clients that speak HTTP: outlive gateway --listen 127.0.0.1:8080\n"))
	}
	if passedOver {
		g.warn("The " + configName + " of this directory is not used; to use it: -c " + configName)
	}
	g.tellWarnings(g.begun)
}

// open makes the runner: for the client's descriptors, or for an endpoint if it is to listen.
func (g *endpoint) open(io streams, file *config.File) (err error) {
	address := cmp.Or(g.flags.listen, file.Listen)
	if err := g.checkView(file, address); err != nil {
		return err
	}
	switch {
	case address != "":
		if err := g.listen(file, address); err != nil {
			return err
		}
	case g.flags.peers.listen != "":
		return fail(exitUsage, "gateway: --peer-listen is for a gateway that speaks HTTP: --listen ADDRESS")
	}
	opts := gateway.RunnerOptions{
		Gateway: gateway.Options{Version: version(), Names: file.Names, NoTools: g.flags.noTools, ListWait: firstList, Sink: g.sinks,
			MaxProcesses: cmp.Or(file.Limits.Processes, mostProcesses)},
		Host: g.served.host, View: g.flags.view,
	}
	if address == "" {
		st, err := io.in.Stat()
		g.byHand = err == nil && st.Mode()&os.ModeCharDevice != 0
		g.client = ourClient()
		if opts.In, opts.Out, err = takeStreams(io); err != nil {
			return fail(exitFailure, "take over stdin and stdout: %w", err)
		}
	}
	g.Runner, err = gateway.NewRunner(opts)
	return asFailure(err)
}
