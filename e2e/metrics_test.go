package e2e

import (
	"bytes"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// promtool has Prometheus' own tool look at something; it must have nothing to say.
func promtool(t *testing.T, in []byte, args ...string) {
	t.Helper()
	path, err := exec.LookPath("promtool")
	if err != nil {
		if path = filepath.Join(tools.root, ".work/bin/promtool"); !exists(path) {
			t.Fatal("promtool is missing: e2e/install.sh installs it")
		}
	}
	foreign(t, "promtool")
	cmd := exec.Command(path, args...)
	cmd.Stdin, cmd.Dir = bytes.NewReader(in), filepath.Join(tools.root, "../packaging/metrics")
	out, err := cmd.CombinedOutput()
	if err != nil || len(in) > 0 && len(out) > 0 {
		t.Errorf("promtool %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// scrape reads metrics as Prometheus does.
func scrape(t *testing.T, address string) []byte {
	t.Helper()
	client := http.Client{Timeout: patience}
	resp, err := client.Get(address)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s: %v\n%s", address, resp.Status, err, text)
	}
	if kind := resp.Header.Get("Content-Type"); !strings.HasPrefix(kind, "text/plain; version=0.0.4") {
		t.Errorf("%s is %s", address, kind)
	}
	return text
}

// monitorListens has the monitor take pings, and returns its address.
func (s *scene) monitorListens(t *testing.T) string {
	t.Helper()
	registry := s.path("state/outlive/agents/registry.yaml")
	text, err := os.ReadFile(registry)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	_ = l.Close()
	if err := os.WriteFile(registry, append(text, []byte("listen: "+address+"\n")...), 0o600); err != nil {
		t.Fatal(err)
	}
	_ = s.monitor.Process.Kill()
	_ = s.monitor.Wait()
	s.start(t, tools.outlive, "monitor")
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		if conn, err := net.Dial("tcp", address); err == nil {
			_ = conn.Close()
			return address
		}
	}
	t.Fatalf("the monitor does not listen at %s", address)
	return ""
}

// TestMetrics: the verb, the dashboard, a gateway and the monitor tell the same of a machine with servers that work and one that
// does not, an agent and a restart; promtool finds nothing wrong, neither with that nor with the rules and their tests.
func TestMetrics(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	intake := s.monitorListens(t)
	config := s.path("outlive.yaml")
	everything := filepath.Join(tools.root, "node_modules/@modelcontextprotocol/server-everything/dist/index.js")
	yaml := "servers:\n  behind: {command: " + tools.node + ", args: [" + everything + ", stdio]}\n"
	if err := os.WriteFile(config, []byte(yaml), 0o600); err != nil {
		t.Fatal(err)
	}
	g := s.listenBy(t, []string{tools.outlive, "gateway", "-c", config, "--listen", "127.0.0.1:0"})
	s.server.call(t, "echo", map[string]any{"message": "hello"})
	s.outlive(t, "restart", "works")
	s.server.call(t, "echo", map[string]any{"message": "again"})

	base, err := url.Parse(s.link)
	if err != nil {
		t.Fatal(err)
	}
	places := map[string]func() []byte{
		"outlive metrics": func() []byte { return []byte(s.outlive(t, "metrics")) },
		"dashboard":       func() []byte { return scrape(t, "http://"+base.Host+"/metrics") },
		"gateway":         func() []byte { return scrape(t, strings.TrimSuffix(g.url, "/mcp")+"/metrics") },
		"monitor":         func() []byte { return scrape(t, "http://"+intake+"/metrics") },
	}
	for name, read := range places {
		t.Run(name, func(t *testing.T) {
			want := []string{
				`outlive_server_up\{server="works"\} 1`, `outlive_server_up\{server="gateway/behind"\} [01]`, `outlive_server_failed\{server="broken"\} 1`,
				`outlive_requests_total\{server="works",mcp_method_name="tools/call",gen_ai_tool_name="echo",outcome="ok"\} 2`,
				`mcp_server_operation_duration_seconds_count\{server="works",mcp_method_name="tools/call",gen_ai_tool_name="echo"\} 2`,
				`mcp_client_operation_duration_seconds_count\{server="works",mcp_method_name="tools/call",gen_ai_tool_name="echo"\} 2`,
				`outlive_server_restarts_total\{server="works",cause="[a-z_]+"\} 1`, `outlive_server_restart_duration_seconds_count\{server="works"\} 1`,
				`outlive_monitor_up 1`, `outlive_agent_state\{agent="shop",state="[a-z_]+"\} 1`,
			}
			var text []byte
			missing := ""
			for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(200 * time.Millisecond) { // the broken server is tried three times
				text, missing = read(), ""
				for _, pattern := range want {
					if !regexp.MustCompile("(?m)^" + pattern + "$").Match(text) {
						missing += pattern + "\n"
					}
				}
				if missing == "" {
					break
				}
			}
			if missing != "" {
				t.Errorf("missing:\n%s\nin\n%s", missing, text)
			}
			promtool(t, text, "check", "metrics")
		})
	}
	promtool(t, nil, "check", "rules", "outlive.rules.yml")
	promtool(t, nil, "test", "rules", "outlive.rules.test.yml")
	var board struct {
		Panels []struct{ Targets []struct{ Expr string } }
	}
	page, err := os.ReadFile(filepath.Join(tools.root, "../packaging/metrics/grafana.json"))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(page, &board); err != nil || len(board.Panels) == 0 {
		t.Errorf("grafana.json: %v, %d panels", err, len(board.Panels))
	}
}
