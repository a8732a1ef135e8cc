package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/outlive-mcp/outlive/bench/figures"
	"github.com/outlive-mcp/outlive/internal/testing/proc"
)

// gateway is a program that puts stdio servers behind HTTP, and how it is started here.
type gateway struct {
	name     string
	ours     bool
	program  string // of the others: its name in DIR/bin, or its path
	version  string
	settings string // what the report says about the settings: all that is not the default
	many     bool   // it can have more than one server
	curves   bool   // it is measured in the curves only
	crowd    bool   // this start is for more sessions than outlive admits by default
	setup    func(site) (startup, error)
}

// site is what one start of a gateway has to itself.
type site struct {
	dir     string // its HOME; configuration is written here
	program string
	server  string   // path of the server
	names   []string // of the servers to configure
	port    string
	crowd   bool // see gateway
}

// startup is a command line and what is added to the environment.
type startup struct {
	argv, env []string
}

// config writes a configuration file and returns its path.
func (s site) config(name, text string) (string, error) {
	path := filepath.Join(s.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return "", fmt.Errorf("make directory of configuration: %w", err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		return "", fmt.Errorf("write configuration: %w", err)
	}
	return path, nil
}

// bothEras has the server answer server/discover, too. outlive then keeps a process for clients without sessions.
const bothEras = `args: ["0", "both-eras"]`

// ours are outlive with its default settings, and with the one setting that changes how many servers there are.
func ours() []gateway {
	return []gateway{
		{name: "outlive", ours: true, many: true, settings: "defaults: each session has its own server processes", setup: outliveSetup("")},
		{name: "outlive, shared", ours: true, many: true, settings: "`shared: true`: all sessions use one server process", setup: outliveSetup("shared: true")},
		{name: "outlive, both eras", ours: true, many: true, curves: true,
			settings: "defaults; the server speaks 2026-07-28 too", setup: outliveSetup(bothEras)},
		{name: "outlive, shared, both eras", ours: true, many: true, curves: true,
			settings: "`shared: true`; the server speaks 2026-07-28 too", setup: outliveSetup("shared: true", bothEras)},
	}
}

// outliveSetup configures outlive's servers with so many keys besides the command, each with its line.
func outliveSetup(keys ...string) func(site) (startup, error) {
	return func(s site) (startup, error) {
		var text strings.Builder
		text.WriteString("servers:\n")
		for _, name := range s.names {
			fmt.Fprintf(&text, "  %s:\n    command: %s\n", name, s.server)
			for _, key := range keys {
				if key != "" {
					fmt.Fprintf(&text, "    %s\n", key)
				}
			}
		}
		if s.crowd {
			text.WriteString(crowdLimits + "\n")
		}
		path, err := s.config("outlive.yaml", text.String())
		return startup{argv: []string{s.program, "gateway", "-c", path, "--listen", "127.0.0.1:" + s.port}}, err
	}
}

// gatewayFlags are the flags of the gateways alone.
func gatewayFlags(to *options, flags *flag.FlagSet) {
	flags.Func("gateways", "measure only the gateways whose names contain one of these words, separated by commas", func(text string) error {
		to.gateways = strings.Split(text, ",")
		return nil
	})
	flags.Func("peer", "also measure NAME=COMMAND ARG…, where {server} is the server's path, {port} the port to listen on and "+
		"{config} a file of the form {\"mcpServers\": …} (repeatable)", func(text string) error {
		name, command, ok := strings.Cut(text, "=")
		line := strings.Fields(command)
		if !ok || name == "" || len(line) == 0 || !strings.Contains(command, "{port}") {
			return fmt.Errorf("want NAME=COMMAND ARG… with {port} in it, got %q", text)
		}
		to.extra = append(to.extra, gateway{name: name, program: line[0], settings: "`" + command + "`",
			many: strings.Contains(command, "{config}"), setup: words(line[1:]...)})
		return nil
	})
}

// findGateways finds outlive in its ways, the others that are installed, and those that flags name.
func findGateways(b *bench) {
	for _, g := range ours() {
		g.program, g.version = b.outlive, "this tree"
		b.measuredGateways = append(b.measuredGateways, g)
	}
	for _, g := range others() {
		path, version, found := b.peer(g.program)
		if !found {
			b.missing = append(b.missing, g.name)
			continue
		}
		g.program, g.version = path, version
		b.measuredGateways = append(b.measuredGateways, g)
	}
	b.measuredGateways = append(b.measuredGateways, b.extra...)
	if b.gateways != nil {
		b.measuredGateways = slices.DeleteFunc(b.measuredGateways, func(g gateway) bool {
			return !slices.ContainsFunc(b.gateways, func(word string) bool { return strings.Contains(g.name, word) })
		})
	}
}

// plain are the gateways that are measured everywhere, not in the curves only.
func (b *bench) plain() []gateway {
	return slices.DeleteFunc(slices.Clone(b.measuredGateways), func(g gateway) bool { return g.curves })
}

// settings are what a reader must know of each gateway.
func (b *bench) settings() (outcome, error) {
	t := figures.Table{
		Title: "Gateways: what is measured, with which settings",
		Note:  "All else is each program's default. The peers write no log line for each call, as outlive writes none.",
		Rows:  [][]string{{"gateway", "version", "settings"}},
	}
	for _, g := range b.measuredGateways {
		t.Add(g.name, g.version, g.settings)
	}
	return outcome{tables: []figures.Table{t}}, nil
}

// gatewayNote stands before the tables of the gateways.
func gatewayNote(b *bench) string {
	return peersNote(b) + " All gateways and the client share the machine and take turns in one run, with new processes in each round; " +
		"on another machine the figures differ, the ratios are what should stay."
}

// running is a started gateway.
type running struct {
	*process
	url string
}

// startGateway starts a gateway before so many servers, in a directory that no start before it has used.
func (b *bench) startGateway(g gateway, servers int) (*running, error) {
	dir, err := b.home()
	if err != nil {
		return nil, err
	}
	return b.startIn(g, servers, dir)
}

// startIn starts a gateway in a directory, which keeps what earlier starts have left there, and waits until it listens.
func (b *bench) startIn(g gateway, servers int, dir string) (*running, error) {
	address, err := freeAddress()
	if err != nil {
		return nil, err
	}
	s := site{dir: dir, program: g.program, server: b.echo, port: strings.TrimPrefix(address, "127.0.0.1:"), crowd: g.crowd}
	for i := range servers {
		s.names = append(s.names, "s"+strconv.Itoa(i))
	}
	how, err := g.setup(s)
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", g.name, err)
	}
	started, err := b.launch(command{name: g.name, argv: how.argv, env: environment(dir, append(how.env, "HOME="+dir)...), dir: dir})
	if err != nil {
		return nil, err
	}
	if err := started.listens(address); err != nil {
		started.end(0)
		return nil, err
	}
	return &running{started, "http://" + address + "/mcp"}, nil
}

// stop ends the gateway, by force if it takes longer than five seconds, and whatever it leaves.
func (r *running) stop() {
	left := map[int]string{}
	for _, pid := range proc.Descendants(r.pid()) {
		stat, _ := proc.StatOf(pid)
		left[pid] = stat.Born
	}
	r.end(5 * time.Second)
	for pid, born := range left {
		if stat, alive := proc.StatOf(pid); alive && stat.Born == born {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}
}
