package e2e

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// backend is one entry under `servers` of an outlive.yaml.
type backend struct {
	name string
	server
	keys []string // further lines, like "shared: true"
}

// gatewayConfig writes an outlive.yaml and returns its path. A server that is killed comes back at once and always, as
// in the sessions of `outlive run`; top are lines beside `servers`.
func (w *workspace) gatewayConfig(t *testing.T, top []string, servers ...backend) string {
	t.Helper()
	return w.gatewayFile(t, append(slices.Clone(top), "defaults: {restart_delay: 0s, max_restarts: 0}"), servers...)
}

// gatewayFile is gatewayConfig with the default settings, but for what top says.
func (w *workspace) gatewayFile(t *testing.T, top []string, servers ...backend) string {
	t.Helper()
	var out strings.Builder
	for _, line := range append(slices.Clone(top), "servers:") {
		fmt.Fprintln(&out, line)
	}
	for _, s := range servers {
		foreignIn(t, s.argv...)
		fmt.Fprintf(&out, "  %s:\n", s.name)
		keys := s.keys
		if len(s.argv) > 0 {
			keys = append([]string{"command: " + quoted(s.argv[0]), "args: " + quoted(s.argv[1:])}, keys...)
		}
		for _, key := range keys {
			fmt.Fprintf(&out, "    %s\n", key)
		}
	}
	path := w.path("outlive.yaml")
	if err := os.WriteFile(path, []byte(out.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// quoted writes a value as JSON, which is YAML too.
func quoted(v any) string {
	text, _ := json.Marshal(v)
	return string(text)
}

// stdioGateway is the command line of a gateway that speaks MCP on stdio.
func (w *workspace) stdioGateway(config string) []string {
	return []string{tools.outlive, "gateway", "-c", config, "--audit", w.path("audit.log")}
}

// gateway is a running `outlive gateway --listen`.
type gateway struct {
	*workspace
	url   string
	cmd   *exec.Cmd
	ended chan struct{}
}

var listening = regexp.MustCompile(`(?i)\[GATEWAY\] listening on (http://\S+)`)

// listen starts a gateway on a free port and waits until it says where.
func (w *workspace) listen(t *testing.T, config string, flags ...string) *gateway {
	t.Helper()
	return w.listenBy(t, append(append(w.stdioGateway(config), "--listen", "127.0.0.1:0"), flags...))
}

// listenOne starts a gateway of one server that stands on the command line.
func (w *workspace) listenOne(t *testing.T, srv server) *gateway {
	t.Helper()
	return w.listenBy(t, append([]string{tools.outlive, "gateway", "--audit", w.path("audit.log"), "--listen", "127.0.0.1:0", "--"}, srv.argv...))
}

func (w *workspace) listenBy(t *testing.T, argv []string) *gateway {
	t.Helper()
	foreignIn(t, argv...)
	g := &gateway{workspace: w, cmd: exec.Command(argv[0], argv[1:]...), ended: make(chan struct{})}
	g.cmd.Env, g.cmd.Dir = w.env(), w.dir
	log, err := os.OpenFile(w.path("stderr.log"), os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o644)
	if err != nil {
		t.Fatal(err)
	}
	stderr, err := g.cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := g.cmd.Start(); err != nil {
		t.Fatalf("start gateway: %v", err)
	}
	url := make(chan string, 1)
	go func() {
		defer close(g.ended)
		defer log.Close()
		for lines := bufio.NewReader(stderr); ; {
			line, err := lines.ReadString('\n')
			_, _ = io.WriteString(log, line)
			if m := listening.FindStringSubmatch(line); m != nil {
				select {
				case url <- m[1]:
				default: // it was upgraded
				}
			}
			if err != nil {
				break
			}
		}
		_ = g.cmd.Wait() // stop looks at the status
	}()
	t.Cleanup(func() {
		_ = g.cmd.Process.Kill()
		<-g.ended
	})
	select {
	case g.url = <-url:
	case <-g.ended:
		t.Fatalf("the gateway has ended: %v", g.cmd.ProcessState)
	case <-time.After(patience):
		t.Fatal("the gateway does not say where it listens")
	}
	return g
}

// stop ends the gateway as a service manager does; it must end well, soon, and leave nothing behind.
func (g *gateway) stop(t *testing.T) {
	t.Helper()
	if err := g.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatalf("stop gateway: %v", err)
	}
	select {
	case <-g.ended:
		if !g.cmd.ProcessState.Success() {
			t.Errorf("the gateway ended with %v", g.cmd.ProcessState)
		}
	case <-time.After(patience):
		t.Fatal("the gateway does not end on SIGTERM")
	}
	g.noneLeft(t)
}

// join connects one more client to what runs in a workspace: to a URL or over a command line.
func (w *workspace) join(t *testing.T, c client, target ...string) *session {
	t.Helper()
	s := &session{workspace: w, client: c.name}
	var hello reply
	s.driver, hello = c.start(s, target)
	if hello.Error != nil {
		t.Fatalf("connect %s to %v: %s", c.name, target, hello)
	}
	if err := json.Unmarshal(hello.Result, &s.hello); err != nil {
		t.Fatalf("connect %s: %v in %s", c.name, err, hello)
	}
	return s
}

// depart closes the client's connection, which must not have been troubled before.
func (s *session) depart(t *testing.T) {
	t.Helper()
	closing := s.mark()
	s.do(t, step{"op": "close"})
	select {
	case <-s.driver.exited():
	case <-time.After(patience):
		t.Errorf("%s does not end", s.client)
	}
	for i, e := range s.seen(0) {
		if i >= closing && strings.HasSuffix(e.Message, "This operation was aborted") {
			continue // a stream that the client itself has ended
		}
		if strings.Contains(e.Message, "progress notification for an unknown token") || strings.HasSuffix(e.Message, "Not connected") {
			continue // the client's own races: see everythingLeave
		}
		if e.Event == "error" || e.Event == "closed" || e.Event == "subscription-ended" {
			t.Errorf("%s noticed: %s", s.client, e)
		}
	}
}
