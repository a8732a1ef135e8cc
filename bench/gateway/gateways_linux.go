package main

import (
	"bufio"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
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
	setup    func(site) (start, error)
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

// start is a command line and what is added to the environment.
type start struct {
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
func outliveSetup(keys ...string) func(site) (start, error) {
	return func(s site) (start, error) {
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
		return start{argv: []string{s.program, "gateway", "-c", path, "--listen", "127.0.0.1:" + s.port}}, err
	}
}

// findGateways are outlive in its ways and the others that are installed below peers; missing names those that are not.
func findGateways(outlive, peers string) (found []gateway, missing []string) {
	versions := readVersions(filepath.Join(peers, "versions"))
	for _, g := range ours() {
		g.program, g.version = outlive, "this tree"
		found = append(found, g)
	}
	for _, g := range others() {
		path := filepath.Join(peers, "bin", g.program)
		if _, err := os.Stat(path); peers == "" || err != nil {
			missing = append(missing, g.name)
			continue
		}
		g.version, g.program = versions[g.program], path
		found = append(found, g)
	}
	return found, missing
}

// readVersions reads lines of a program's name and its version, as peers.sh writes them.
func readVersions(path string) map[string]string {
	versions := map[string]string{}
	text, err := os.ReadFile(path)
	if err != nil {
		return versions // the report then says nothing of versions
	}
	for line := range strings.Lines(string(text)) {
		if name, version, ok := strings.Cut(strings.TrimSpace(line), " "); ok {
			versions[name] = version
		}
	}
	return versions
}

// running is a started gateway.
type running struct {
	gateway
	cmd   *exec.Cmd
	url   string
	log   string // path of what it writes
	gone  chan struct{}
	began time.Time
}

// errEnded means that a gateway ended before it listened.
var errEnded = errors.New("it ended before it listened")

// errNoPort means that of a hundred ports none was free.
var errNoPort = errors.New("no port is free")

// start starts a gateway before so many servers, in a directory that no start before it has used.
func (b *bench) start(g gateway, servers int) (*running, error) {
	b.started++
	dir := filepath.Join(b.dir, strconv.Itoa(b.started))
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("start %s: %w", g.name, err)
	}
	return b.startIn(g, servers, dir)
}

// startIn starts a gateway in a directory, which keeps what earlier starts have left there, and waits until it listens.
func (b *bench) startIn(g gateway, servers int, dir string) (*running, error) {
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	s := site{dir: dir, program: g.program, server: b.echo, port: port, crowd: g.crowd}
	for i := range servers {
		s.names = append(s.names, "s"+strconv.Itoa(i))
	}
	how, err := g.setup(s)
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", g.name, err)
	}
	r, err := launch(g, how, dir)
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", g.name, err)
	}
	r.url = "http://127.0.0.1:" + port + "/mcp"
	for {
		conn, err := net.Dial("tcp", "127.0.0.1:"+port)
		if err == nil {
			return r, conn.Close()
		}
		select {
		case <-r.gone:
			return nil, fmt.Errorf("start %s: %w: %s", g.name, errEnded, lastLine(r.log))
		case <-time.After(time.Millisecond):
		}
		if time.Since(r.began) > patience {
			r.stop(b.echo)
			return nil, fmt.Errorf("start %s: %w: %s", g.name, err, lastLine(r.log))
		}
	}
}

// freePort is a port below those that the system hands out by itself, so that no other program takes it before the gateway does.
func freePort() (string, error) {
	for range 100 {
		port := strconv.Itoa(20_000 + rand.IntN(10_000))
		l, err := net.Listen("tcp", "127.0.0.1:"+port)
		if err != nil {
			continue
		}
		return port, l.Close()
	}
	return "", errNoPort
}

// launch starts a command with dir as its home; what it writes goes to a file.
func launch(g gateway, how start, dir string) (*running, error) {
	path := filepath.Join(dir, "log")
	log, err := os.Create(path)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	cmd := exec.Command(how.argv[0], how.argv[1:]...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, log, log
	cmd.Env = append(append(os.Environ(), "HOME="+dir, "XDG_STATE_HOME="+dir, "XDG_RUNTIME_DIR="+dir, "XDG_CONFIG_HOME="+dir), how.env...)
	r := &running{gateway: g, cmd: cmd, log: path, gone: make(chan struct{}), began: time.Now()}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		_ = cmd.Wait() // how a gateway ends is not judged
		close(r.gone)
	}()
	return r, nil
}

// lastLine is the last line of a file that says anything, for an error.
func lastLine(path string) (last string) {
	file, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer file.Close()
	for in := bufio.NewScanner(file); in.Scan(); {
		if text := strings.TrimSpace(in.Text()); text != "" {
			last = text
		}
	}
	return last
}

// stop ends the gateway, by force if it takes longer than five seconds, and whatever it leaves.
func (r *running) stop(server string) {
	left := descendants(r.cmd.Process.Pid)
	_ = r.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-r.gone:
	case <-time.After(5 * time.Second):
		_ = r.cmd.Process.Kill()
		for _, pid := range left {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
		<-r.gone
	}
	for _, pid := range left {
		if runs(pid, server) { // and is not another process that has got its number since
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}
}
