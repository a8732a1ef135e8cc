package e2e

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// collector is an OpenTelemetry Collector and what it has got so far.
type collector struct {
	address string

	mu  sync.Mutex
	got bytes.Buffer
}

func (c *collector) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.got.Write(p)
}

func (c *collector) text() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.got.String()
}

func startCollector(t *testing.T) *collector {
	t.Helper()
	program := filepath.Join(tools.root, ".work/bin/collector")
	if !exists(program) {
		t.Fatal("the collector is missing: e2e/install.sh builds it")
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	c := &collector{address: l.Addr().String()}
	_ = l.Close()
	config := fmt.Sprintf(`{receivers: {otlp: {protocols: {http: {endpoint: %q}}}}, exporters: {debug: {verbosity: detailed}}, service: {telemetry: {metrics: {level: none}},
pipelines: {traces: {receivers: [otlp], exporters: [debug]}, metrics: {receivers: [otlp], exporters: [debug]}, logs: {receivers: [otlp], exporters: [debug]}}}}`, c.address)
	foreign(t, "OpenTelemetry Collector")
	cmd := exec.Command(program, "--config=yaml:"+config)
	cmd.Stdout, cmd.Stderr = c, c
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	for end := time.Now().Add(patience); ; time.Sleep(50 * time.Millisecond) {
		if conn, err := net.Dial("tcp", c.address); err == nil {
			_ = conn.Close()
			return c
		}
		if time.Now().After(end) {
			t.Fatalf("the collector does not listen:\n%s", c.text())
		}
	}
}

// spans are the descriptions of spans, by name, kind, and attributes.
func (c *collector) spans(name, kind string, attributes ...string) (found []string) {
	for _, one := range strings.Split(c.text(), "\nSpan #")[1:] {
		ok := regexp.MustCompile(`(?m)^ +Name +: `+regexp.QuoteMeta(name)+`$`).MatchString(one) && regexp.MustCompile(`(?m)^ +Kind +: `+kind+`$`).MatchString(one)
		for _, a := range attributes {
			ok = ok && strings.Contains(one, "-> "+a)
		}
		if ok {
			found = append(found, one)
		}
	}
	return found
}

// field is a line of a span's description.
func field(span, name string) string {
	m := regexp.MustCompile(`(?m)^ +` + name + ` +: (.*)$`).FindStringSubmatch(span)
	if m == nil {
		return ""
	}
	return strings.TrimSpace(m[1])
}

// TestOpenTelemetry: a collector gets the spans, durations and events of a real SDK's calls to somebody else's server: of one that goes
// well, of a tool's error, of a trace that the client has begun, and of a restart.
func TestOpenTelemetry(t *testing.T) {
	needFull(t, "OpenTelemetry: a collector, and what it gets at its own intervals")
	needOutlive(t)
	c := startCollector(t)
	w := newWorkspace(t)
	everything := filepath.Join(tools.root, "node_modules/@modelcontextprotocol/server-everything/dist/index.js")
	cmd := exec.Command(tools.outlive, "run", "--name", "works", "--", tools.node, everything, "stdio")
	cmd.Dir = w.dir
	cmd.Env = append(w.env(), "OTEL_EXPORTER_OTLP_ENDPOINT=http://"+c.address, "OTEL_METRIC_EXPORT_INTERVAL=500", "OTEL_BSP_SCHEDULE_DELAY=100",
		"OTEL_BLRP_SCHEDULE_DELAY=100", "OTEL_RESOURCE_ATTRIBUTES=deployment.environment.name=e2e")
	stderr, err := os.Create(w.path("stderr.log"))
	if err != nil {
		t.Fatal(err)
	}
	defer stderr.Close()
	cmd.Stderr = stderr
	session, err := mcp.NewClient(&mcp.Implementation{Name: "real", Version: "1"}, nil).Connect(t.Context(), &mcp.CommandTransport{Command: cmd}, nil)
	if err != nil {
		t.Fatal(err)
	}
	call := func(tool string, args map[string]any, meta mcp.Meta) *mcp.CallToolResult {
		t.Helper()
		result, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: tool, Arguments: args, Meta: meta})
		if err != nil {
			t.Fatal(err)
		}
		return result
	}
	awaitSpans(t, c, "tools/call echo", "Server", func() { call("echo", map[string]any{"message": "hello"}, nil) }) // the helper has come
	if result := call("echo", map[string]any{}, nil); !result.IsError {
		t.Error("echo without a message is no error of the tool")
	}
	const trace, span = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
	call("get-sum", map[string]any{"a": 1, "b": 2}, mcp.Meta{"traceparent": "00-" + trace + "-" + span + "-01", "tracestate": "rojo=1", "baggage": "k=v"})
	restart := exec.Command(tools.outlive, "restart", "works")
	restart.Env = w.env()
	if out, err := restart.CombinedOutput(); err != nil {
		t.Fatalf("%v %s", err, out)
	}
	call("echo", map[string]any{"message": "again"}, nil)
	awaitSpans(t, c, "tools/call echo", "Server", nil, "outlive.outcome: Str(tool_error)", "error.type: Str(tool_error)", "gen_ai.tool.name: Str(echo)",
		"gen_ai.operation.name: Str(execute_tool)", "mcp.method.name: Str(tools/call)", "network.transport: Str(pipe)", "outlive.client.name: Str(real)")
	awaitSpans(t, c, "tools/call echo", "Client", nil, "error.type: Str(tool_error)", "outlive.request.sends: Int(1)")
	server := awaitSpans(t, c, "tools/call get-sum", "Server", nil)[0]
	client := awaitSpans(t, c, "tools/call get-sum", "Client", nil)[0]
	if field(server, "Trace ID") != trace || field(server, "Parent ID") != span || field(server, "TraceState") != "rojo=1" {
		t.Errorf("the client's trace is not continued:\n%s", server)
	}
	if field(client, "Trace ID") != trace || field(client, "Parent ID") != field(server, "ID") {
		t.Errorf("the span towards the server is not below the other one:\n%s\n%s", server, client)
	}
	await(t, c, "events", `EventName: outlive\.restart_initiated`, `EventName: outlive\.restart_completed`, `outlive\.restart\.cause: Str\([a-z]+\)`)
	await(t, c, "metrics", `Name: mcp\.server\.operation\.duration`, `Name: mcp\.client\.operation\.duration`, `Name: outlive\.server\.restarts`, `Name: outlive\.request\.outcomes`)
	await(t, c, "resource", `service\.name: Str\(outlive\)`, `deployment\.environment\.name: Str\(e2e\)`)
	if err := session.Close(); err != nil {
		t.Error(err)
	}
	log, err := os.ReadFile(w.path("state/outlive/log/outlive-otel.log"))
	if err != nil || len(log) > 0 {
		t.Errorf("the helper's log: %v\n%s", err, log)
	}
}

// awaitSpans waits until there are such spans; each is done again until then, if it is not nil.
func awaitSpans(t *testing.T, c *collector, name, kind string, each func(), attributes ...string) []string {
	t.Helper()
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(200 * time.Millisecond) {
		if found := c.spans(name, kind, attributes...); len(found) > 0 {
			return found
		}
		if each != nil {
			each()
		}
	}
	t.Fatalf("no span %s of kind %s with %v in\n%s", name, kind, attributes, c.text())
	return nil
}

// await waits until the collector has all of that.
func await(t *testing.T, c *collector, what string, patterns ...string) {
	t.Helper()
	missing := ""
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(200 * time.Millisecond) {
		missing = ""
		for _, p := range patterns {
			if !regexp.MustCompile(p).MatchString(c.text()) {
				missing += " " + p
			}
		}
		if missing == "" {
			return
		}
	}
	t.Errorf("%s: no%s in\n%s", what, missing, c.text())
}

// otelTo are the variables that have everything exported there soon.
func otelTo(c *collector) []string {
	return []string{"OTEL_EXPORTER_OTLP_ENDPOINT=http://" + c.address, "OTEL_METRIC_EXPORT_INTERVAL=500", "OTEL_BSP_SCHEDULE_DELAY=100", "OTEL_BLRP_SCHEDULE_DELAY=100"}
}

// TestOpenTelemetryOfAGateway: a collector gets the spans of a real SDK's calls through a gateway: towards the client, and below it towards
// the server that has the tool.
func TestOpenTelemetryOfAGateway(t *testing.T) {
	needFull(t, "OpenTelemetry: a collector, and what it gets at its own intervals")
	needOutlive(t)
	c := startCollector(t)
	w := newWorkspace(t)
	echoes := server{argv: []string{tools.goserver}}
	config := w.gatewayConfig(t, nil, backend{name: "first", server: echoes}, backend{name: "second", server: echoes})
	argv := w.stdioGateway(config)
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Dir, cmd.Env = w.dir, append(w.env(), otelTo(c)...)
	session, err := mcp.NewClient(&mcp.Implementation{Name: "real", Version: "1"}, nil).Connect(t.Context(), &mcp.CommandTransport{Command: cmd}, nil)
	if err != nil {
		t.Fatal(err)
	}
	tool := ""
	if !eventually(func() bool { // both have told what they have
		list, err := session.ListTools(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, one := range list.Tools {
			if strings.Contains(one.Name, "second") && strings.HasSuffix(one.Name, "echo") {
				tool = one.Name
			}
		}
		return tool != ""
	}) {
		t.Fatal("the gateway has no tool echo of its second server")
	}
	server := awaitSpans(t, c, "tools/call echo", "Server", func() { // the name is the server's own
		if _, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: tool, Arguments: map[string]any{"text": "x"}}); err != nil {
			t.Fatal(err)
		}
	}, "outlive.client.name: Str(real)", "outlive.server.name: Str(second)")[0]
	below := false
	for _, client := range awaitSpans(t, c, "tools/call echo", "Client", nil, "outlive.server.name: Str(second)") {
		below = below || field(client, "Trace ID") == field(server, "Trace ID") && field(client, "Parent ID") == field(server, "ID")
	}
	if !below {
		t.Errorf("no span towards the server is below\n%s\nin\n%s", server, c.text())
	}
	if err := session.Close(); err != nil {
		t.Error(err)
	}
}

// TestOpenTelemetryOfTheMonitor: a collector gets what the monitor sees and tells of an agent that crashes.
func TestOpenTelemetryOfTheMonitor(t *testing.T) {
	needFull(t, "OpenTelemetry: a collector, and what it gets at its own intervals")
	needOutlive(t)
	c := startCollector(t)
	s := &scene{workspace: newWorkspace(t)}
	if err := os.Mkdir(s.path("shop"), 0o700); err != nil {
		t.Fatal(err)
	}
	s.outlive(t, "agent", "add", "shop", "--kind", "command", "--path", "shop", "--pidfile", "pid")
	s.agent = s.start(t, "sh", "-c", "cd shop && echo $$ > pid && exec sleep 600")
	s.monitor = s.start(t, append(append([]string{"env"}, otelTo(c)...), tools.outlive, "monitor")...)
	// What is exported is what changes from the helper's first look on: until then, agents that are added are not news.
	for n := 1; !strings.Contains(c.text(), "outlive.agent_changed"); n++ {
		if n == 20 {
			t.Fatalf("no change of an agent is exported:\n%s", c.text())
		}
		s.outlive(t, "agent", "add", fmt.Sprintf("early%d", n), "--kind", "command", "--path", "shop", "--pidfile", "none")
		within(2*time.Second, func() bool { return strings.Contains(c.text(), "outlive.agent_changed") })
	}
	_ = s.agent.Process.Kill()
	_ = s.agent.Wait()
	await(t, c, "events of the monitor", `EventName: outlive\.incident_opened`, `SeverityText: ERROR`,
		`SeverityText: ERROR\n.*\nEventName: outlive\.agent_changed\nBody: Str\(shop: has crashed`)
	s.outlive(t, "ack", "shop")
	await(t, c, "what somebody does", `EventName: outlive\.incident_acknowledged`)
	await(t, c, "metrics of the monitor", `Name: outlive\.incidents`)
}
