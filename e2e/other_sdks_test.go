package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// otherSDKs are servers of SDKs that answer nothing any more once they were asked for a stream: rmcp 3.1.4 if that is the
// first request it works on, mcp-go 1.1.0 in any case. e2e/run.sh builds them.
func otherSDKs(t *testing.T) []server {
	t.Helper()
	var all []server
	for _, name := range []string{"rmcp-server", "mcpgo-server"} {
		path := filepath.Join(tools.root, ".work", "bin", name)
		if _, err := os.Stat(path); err != nil {
			t.Fatalf("%v (e2e/run.sh builds it)", err)
		}
		all = append(all, server{name: strings.TrimSuffix(name, "-server"), argv: []string{path}, legacy: true, modern: true, match: name})
	}
	return all
}

// modernParams are the params of a request of protocol version 2026-07-28.
func modernParams(more map[string]any) map[string]any {
	params := map[string]any{"_meta": map[string]any{
		"io.modelcontextprotocol/protocolVersion":    "2026-07-28",
		"io.modelcontextprotocol/clientInfo":         map[string]any{"name": "raw", "version": "1"},
		"io.modelcontextprotocol/clientCapabilities": map[string]any{},
	}}
	for key, value := range more {
		params[key] = value
	}
	return params
}

// said is the first text of a raw tool result.
func said(result json.RawMessage) string { return reply{Result: result}.text() }

// TestOtherSDKsRun: a client that opens a stream before it asks for anything else is answered, on the first start and when
// the server's era is known from the last one.
func TestOtherSDKsRun(t *testing.T) {
	t.Parallel()
	needOutlive(t)
	for _, srv := range otherSDKs(t) {
		t.Run(srv.name, func(t *testing.T) {
			t.Parallel()
			w := newWorkspace(t)
			argv := append([]string{tools.outlive, "run", "--audit", w.path("audit.log"), "--"}, srv.argv...)
			for start := 1; start <= 2; start++ {
				c := startRaw(t, w, argv)
				c.ask(t, "server/discover", modernParams(nil))
				c.send("subscriptions/listen", modernParams(map[string]any{"notifications": map[string]any{"toolsListChanged": true}}))
				list := c.send("tools/list", modernParams(nil))
				began := time.Now()
				for n := range 3 {
					text := fmt.Sprintf("start %d call %d", start, n)
					a := c.await(t, c.send("tools/call", modernParams(map[string]any{"name": "echo", "arguments": map[string]any{"text": text}})), patience)
					if said(a.Result) != text {
						t.Errorf("start %d: %s", start, a)
					}
				}
				if a := c.await(t, list, patience); !strings.Contains(string(a.Result), `"echo"`) {
					t.Errorf("start %d: tools/list: %s", start, a)
				}
				if start == 2 { // or what the first one has shown was not remembered
					inTime(t, "the calls of the second start were answered", time.Since(began), 4*time.Second)
				}
				c.forget() // the stream
				_ = c.in.Close()
				<-c.ended
			}
			w.noneLeft(t)
		})
	}
}

// TestOtherSDKsGateway: the same behind a gateway, which opens a stream to each server itself.
func TestOtherSDKsGateway(t *testing.T) {
	t.Parallel()
	needOutlive(t)
	for _, srv := range otherSDKs(t) {
		t.Run(srv.name, func(t *testing.T) {
			t.Parallel()
			w := newWorkspace(t)
			foreignIn(t, srv.argv...)
			config := w.path("outlive.yaml")
			if err := os.WriteFile(config, fmt.Appendf(nil, "servers:\n  s:\n    command: %s\n", quoted(srv.argv[0])), 0o600); err != nil {
				t.Fatal(err)
			}
			for start := 1; start <= 2; start++ {
				g := w.listen(t, config)
				s := w.join(t, gatewayClients()["go"], g.url)
				if !s.modern() {
					t.Fatalf("the client speaks %s", s.hello.Era)
				}
				if names := s.toolNames(t); len(names) == 0 {
					t.Errorf("start %d: no tools", start)
				}
				for n := range 3 {
					text := fmt.Sprintf("start %d call %d", start, n)
					if got := s.call(t, "s_echo", map[string]any{"text": text}).text(); got != text {
						t.Errorf("start %d: echo: %q, want %q", start, got, text)
					}
				}
				s.depart(t)
				g.stop(t)
			}
		})
	}
}
