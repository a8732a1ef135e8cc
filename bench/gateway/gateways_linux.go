package main

import (
	"bufio"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"time"
)

// gateway is a program that puts stdio servers behind HTTP.
type gateway struct {
	name    string
	command []string // with {server} and {port}; nil: outlive
	keys    string   // of outlive: what is configured about the server, a line
}

// known are outlive in its two ways, and the others that peers.sh has installed; missing names those that it has not.
func known(peers string) (found []gateway, missing []string) {
	found = []gateway{
		{name: "outlive, a process for each session"},
		{name: "outlive, shared: true", keys: "shared: true"},
	}
	for _, p := range []gateway{
		{name: "mcp-proxy (npm)", command: []string{"mcp-proxy", "--host", "127.0.0.1", "--port", "{port}", "--server", "stream", "--", "{server}"}},
		{name: "supergateway", command: []string{"supergateway", "--stdio", "{server}", "--outputTransport", "streamableHttp", "--stateful",
			"--logLevel", "none", "--port", "{port}"}},
	} {
		path := filepath.Join(peers, "bin", p.command[0])
		if _, err := os.Stat(path); peers == "" || err != nil {
			missing = append(missing, p.name)
			continue
		}
		p.command = append([]string{path}, p.command[1:]...)
		found = append(found, p)
	}
	return found, append(missing, missingHere...)
}

// missingHere are gateways worth comparing with that peers.sh could not get; -peer takes one that is there otherwise.
var missingHere = []string{"docker/mcp-gateway", "1mcp"}

// bench is one run.
type bench struct {
	dir           string
	echo, outlive string
	gateways      []gateway
	missing       []string
	plan          plan
	say           func(format string, args ...any)
	started       int
}

// running is a started gateway.
type running struct {
	gateway
	cmd   *exec.Cmd
	url   string
	gone  chan struct{}
	began time.Time
	open  time.Duration // from exec until it could be connected to
}

var listening = regexp.MustCompile(`(?i)listening on (http://\S+)`)

// errEnded means that a gateway ended before it listened.
var errEnded = errors.New("it ended before it listened")

// start starts a gateway before the echo server and waits until it listens.
func (b *bench) start(g gateway) (*running, error) {
	if g.command == nil {
		keys := ""
		if g.keys != "" {
			keys = "    " + g.keys + "\n"
		}
		return b.startOutlive(g, "servers:\n  echo:\n    command: "+b.echo+"\n"+keys)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("find a free port: %w", err)
	}
	address := l.Addr().String()
	_, port, _ := net.SplitHostPort(address)
	if err := l.Close(); err != nil {
		return nil, fmt.Errorf("free the port: %w", err)
	}
	argv := make([]string, len(g.command))
	for i, word := range g.command {
		argv[i] = strings.NewReplacer("{server}", b.echo, "{port}", port).Replace(word)
	}
	r, _, err := b.launch(g, argv)
	if err != nil {
		return nil, err
	}
	r.url = "http://" + address + "/mcp"
	for {
		conn, err := net.Dial("tcp", address)
		if err == nil {
			r.open = time.Since(r.began)
			return r, conn.Close()
		}
		select {
		case <-r.gone:
			return nil, fmt.Errorf("start %s: %w", g.name, errEnded)
		case <-time.After(time.Millisecond):
		}
		if time.Since(r.began) > patience {
			r.stop()
			return nil, fmt.Errorf("start %s: %w", g.name, err)
		}
	}
}

// startOutlive starts outlive with a configuration, in a state directory that all its starts of this run share.
func (b *bench) startOutlive(g gateway, config string) (*running, error) {
	b.started++
	path := filepath.Join(b.dir, fmt.Sprintf("outlive-%d.yaml", b.started))
	if err := os.WriteFile(path, []byte("defaults: {restart_delay: 0s, max_restarts: 0}\n"+config), 0o600); err != nil {
		return nil, fmt.Errorf("write configuration: %w", err)
	}
	r, lines, err := b.launch(g, []string{b.outlive, "gateway", "-c", path, "--listen", "127.0.0.1:0"})
	if err != nil {
		return nil, err
	}
	for line := range lines {
		if m := listening.FindStringSubmatch(line); m != nil {
			r.url, r.open = m[1], time.Since(r.began)
			go func() {
				for range lines { // it must not be stopped by a full pipe
				}
			}()
			return r, nil
		}
	}
	r.stop()
	return nil, fmt.Errorf("start %s: %w", g.name, errEnded)
}

// launch starts a command; its stderr comes line by line, the other output is dropped.
func (b *bench) launch(g gateway, argv []string) (*running, <-chan string, error) {
	home := filepath.Join(b.dir, "home")
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Env = append(os.Environ(), "XDG_STATE_HOME="+home, "XDG_RUNTIME_DIR="+home, "XDG_CONFIG_HOME="+home)
	stderr, err := cmd.StderrPipe()
	if err != nil {
		return nil, nil, fmt.Errorf("start %s: %w", g.name, err)
	}
	r := &running{gateway: g, cmd: cmd, gone: make(chan struct{}), began: time.Now()}
	if err := cmd.Start(); err != nil {
		return nil, nil, fmt.Errorf("start %s: %w", g.name, err)
	}
	lines := make(chan string, 1)
	go func() {
		defer close(r.gone)
		for in := bufio.NewScanner(stderr); in.Scan(); {
			if g.command == nil {
				lines <- in.Text()
			}
		}
		close(lines)
		_ = cmd.Wait() // how a gateway ends is not judged
	}()
	return r, lines, nil
}

// stop ends the gateway, by force if it takes longer than three seconds, and whatever it leaves.
func (r *running) stop() {
	left := descendants(r.cmd.Process.Pid)
	_ = r.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-r.gone:
	case <-time.After(3 * time.Second):
		_ = r.cmd.Process.Kill()
		for _, pid := range left {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
		<-r.gone
	}
}
