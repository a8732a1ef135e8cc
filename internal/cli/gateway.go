package cli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/outlive-mcp/outlive/internal/catalog"
	"github.com/outlive-mcp/outlive/internal/child"
	"github.com/outlive-mcp/outlive/internal/config"
	"github.com/outlive-mcp/outlive/internal/event"
	"github.com/outlive-mcp/outlive/internal/gateway"
	"github.com/outlive-mcp/outlive/internal/streamhttp"
)

const gatewayLong = `Keep many MCP servers alive behind one endpoint. Without --listen outlive speaks MCP on stdin and stdout, so a client
starts "outlive gateway" as its only server; with it, it speaks Streamable HTTP at /mcp for many clients at once.

FILE is outlive.yaml, or a client's own file as it is: .mcp.json, .vscode/mcp.json, claude_desktop_config.json, Cursor's,
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
	logLevel  string
	logFormat string
	audit     string
}

func newGateway(io streams) *cobra.Command {
	var f gatewayFlags
	cmd := &cobra.Command{
		Use:   "gateway [flags]",
		Short: "Keep many MCP servers alive behind one endpoint",
		Long:  gatewayLong,
		Example: "  outlive gateway                                   # ./outlive.yaml on stdin and stdout\n" +
			"  outlive gateway -c .mcp.json --listen 127.0.0.1:8080",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return runGateway(cmd.Context(), io, f) },
	}
	fl := cmd.Flags()
	fl.SortFlags = false
	fl.StringVarP(&f.config, "config", "c", "", "configuration (default: outlive.yaml here, or in the configuration directory)")
	fl.StringVar(&f.listen, "listen", "", "speak Streamable HTTP at this address, such as 127.0.0.1:8080, instead of stdio")
	fl.StringVar(&f.name, "name", "gateway", "name in status and logs")
	fl.BoolVar(&f.noTools, "no-tools", false, "do not offer outlive_server_status and outlive_restart_server")
	fl.StringVar(&f.logLevel, "log-level", "info", "least level told on stderr: debug, info, warn or error")
	fl.StringVar(&f.logFormat, "log-format", "text", "text or json")
	fl.StringVar(&f.audit, "audit", "", "audit log (default: under the state directory); \"none\" for none")
	return cmd
}

// configFile finds the configuration: the one that was named, or outlive.yaml here or in the user's directory.
func (f gatewayFlags) configFile() (string, error) {
	if f.config != "" {
		return f.config, nil
	}
	tried := []string{"outlive.yaml", filepath.Join(configDir(), "outlive.yaml")}
	for _, path := range tried {
		if _, err := os.Stat(path); err == nil {
			return path, nil
		}
	}
	return "", fail(exitUsage, "gateway: no configuration: there is no %s; name one with -c, such as -c .mcp.json", strings.Join(tried, " and no "))
}

// endpoint is a running `outlive gateway`.
type endpoint struct {
	*gateway.Runner
	flags gatewayFlags
	path  string // of the configuration

	listener net.Listener // nil: it speaks stdio
	front    streamhttp.Options
	url      string // of the endpoint; "" on stdio

	sinks  *sinks
	served *servedSet

	mu      sync.Mutex // one reading of the configuration at a time
	watched map[string]watched
}

// runGateway is `outlive gateway`.
func runGateway(ctx context.Context, io streams, f gatewayFlags) (err error) {
	path, err := f.configFile()
	if err != nil {
		return err
	}
	file, err := loadConfig(path)
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
	g := &endpoint{flags: f, path: path, sinks: k, served: newServedSet(k, f.name)}
	defer g.served.close()
	servers, err := g.served.load(file)
	if err != nil {
		return err
	}
	if err := g.open(io, file); err != nil {
		return err
	}
	k.say(event.ProxyStarted, fmt.Sprintf("Gateway starting (PID=%d): %d servers of %s", os.Getpid(), len(servers), path))
	go clearStrays(k)
	g.SetServers(servers)
	g.rewatch()
	defer g.unwatch()
	stop := handleSignals(g, k)
	defer stop()
	unwatch := g.watchConfig()
	defer unwatch()
	closeControl := serveGatewayControl(g)
	defer closeControl()
	defer slimLater()()
	return g.serve(ctx)
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
		Gateway: gateway.Options{Version: version(), Names: catalog.Names(file.Names), NoTools: g.flags.noTools, Sink: g.sinks},
		Host:    g.served.host,
	}
	if address == "" {
		if opts.In, opts.Out, err = takeStreams(io); err != nil {
			return fail(exitFailure, "take over stdin and stdout: %w", err)
		}
	}
	if g.Runner, err = gateway.NewRunner(opts); err != nil {
		return fail(exitFailure, "%w", err)
	}
	return nil
}

// Reload reads the configuration again. If it has mistakes, what was there before goes on.
func (g *endpoint) Reload() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	file, err := loadConfig(g.path)
	var servers []gateway.Server
	if err == nil {
		servers, err = g.served.load(file)
	}
	if err != nil {
		g.sinks.Emit(event.Event{Type: event.ConfigRejected, Time: time.Now(), Level: slog.LevelError,
			Message: "ERROR: The configuration is not used, what was there before goes on: " + err.Error(),
			Attrs:   []slog.Attr{slog.String(event.KeyError, err.Error()), slog.Any(event.KeyFiles, []string{g.path})}})
		return err
	}
	g.SetServers(servers)
	g.rewatch()
	g.sinks.say(event.ConfigLoaded, fmt.Sprintf("Configuration read: %d servers of %s", len(servers), g.path),
		slog.Any(event.KeyFiles, []string{g.path}), slog.Int(event.KeyCount, len(servers)))
	return nil
}

// loadConfig reads a configuration; each mistake is told with its place.
func loadConfig(path string) (*config.File, error) {
	home, _ := os.UserHomeDir() // without one, ~ cannot be used, and the file says where
	file, err := config.Load(path, config.Options{Keys: policyKeys(), Lookup: os.LookupEnv, Input: inputFromEnv, Home: home})
	if err != nil {
		return nil, fail(exitUsage, "%w", err)
	}
	return file, nil
}

// inputFromEnv is how ${input:NAME} gets its value: there is nobody to ask while a client speaks on stdin.
func inputFromEnv(in config.Input) (string, error) {
	name := "OUTLIVE_INPUT_" + strings.Map(func(r rune) rune {
		switch {
		case 'a' <= r && r <= 'z':
			return r - 'a' + 'A'
		case 'A' <= r && r <= 'Z', '0' <= r && r <= '9':
			return r
		}
		return '_'
	}, in.ID)
	if value := os.Getenv(name); value != "" || in.Default != "" {
		return value, nil
	}
	return "", errors.New("set " + name + " to its value")
}
