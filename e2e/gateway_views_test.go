package e2e

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/outlive-mcp/outlive/e2e/mockmodel"
)

// TestGatewayViews: two tokens, two views of one gateway, with the client of each SDK: each sees its own tools, prompts and
// resources only, may call nothing else, and is told when the file changes what it sees. The clients that cannot be given
// a token here choose by path.
func TestGatewayViews(t *testing.T) {
	t.Parallel()
	needOutlive(t)
	for _, c := range []struct {
		client string
		byPath bool
	}{{client: "ts1"}, {client: "ts2-modern"}, {client: "go"}, {client: "go-legacy"}, {"py-auto", true}, {"py-legacy", true}, {"ts1", true}} {
		name := c.client + " by token"
		if c.byPath {
			name = c.client + " by path"
		}
		t.Run(name, func(t *testing.T) {
			onePerKind(t, slices.Contains([]string{"ts1 by token", "ts2-modern by token", "go by token", "py-auto by path"}, name))
			t.Parallel()
			w := newWorkspace(t)
			tokens := []string{", bearer: t-reader", ", bearer: t-writer"}
			if c.byPath {
				tokens = []string{"", ""}
			}
			views := []string{"views:", "  reader: {servers: {one: {allow: [look]}}" + tokens[0] + "}", "  writer: {servers: [two]" + tokens[1] + "}"}
			srv := func(name string) backend { return backend{name: name, server: servers()["go"]} }
			g := w.listen(t, w.gatewayConfig(t, views, srv("one"), srv("two")))
			join := func(view string) *session {
				target := []string{g.url, "t-" + view}
				if c.byPath {
					target = []string{g.url + "/" + view}
				}
				s := w.join(t, gatewayClients()[c.client], target...)
				s.server = servers()["go"]
				return s
			}
			reader, writer := join("reader"), join("writer")
			reader.firstTools(t, []string{"one_look"})
			writer.firstTools(t, []string{"two_look"})
			if names := reader.toolNames(t); !slices.Equal(names, []string{"one_look", "outlive_server_status", "outlive_restart_server"}) {
				t.Errorf("the reader sees %v", names)
			}
			for _, name := range writer.toolNames(t) {
				if !strings.HasPrefix(name, "two_") && !strings.HasPrefix(name, "outlive_") {
					t.Errorf("the writer sees %s", name)
				}
			}
			reader.call(t, "one_look", map[string]any{"value": "r"})
			writer.call(t, "two_look", map[string]any{"value": "w"})
			for s, hidden := range map[*session][]string{reader: {"one_slow", "two_look"}, writer: {"one_look"}} {
				for _, tool := range hidden {
					_, running := s.begin(step{"op": "call", "tool": tool, "args": map[string]any{"value": "x"}})
					if r := s.await(t, tool, running); r.Error == nil || !strings.Contains(r.Error.Message, "Unknown tool: "+tool) {
						t.Errorf("a call of %s: %s", tool, r)
					}
				}
			}
			if r := reader.do(t, step{"op": "prompts"}); strings.Contains(string(r.Result), "hello") {
				t.Errorf("the reader sees prompts: %s", r)
			}
			if r := writer.do(t, step{"op": "prompts"}); !strings.Contains(string(r.Result), "two_hello") || strings.Contains(string(r.Result), "one_") {
				t.Errorf("the writer sees other prompts: %s", r)
			}
			if r := writer.do(t, step{"op": "read", "uri": item}); !strings.Contains(string(r.Result), "item ") {
				t.Errorf("the writer reads %s", r)
			}
			from, theirs := reader.mark(), writer.mark()
			views[1] = strings.Replace(views[1], "allow: [look]", "allow: [look, slow]", 1)
			w.gatewayConfig(t, views, srv("one"), srv("two"))
			if !reader.modern() {
				reader.awaitEvent(t, from, "list_changed", notification("notifications/tools/list_changed", ""))
			}
			if !eventually(func() bool { return slices.Contains(reader.toolNames(t), "one_slow") }) {
				t.Error("the reader does not see what was added")
			}
			if within(300*time.Millisecond, func() bool {
				return slices.ContainsFunc(writer.seen(theirs), notification("notifications/tools/list_changed", ""))
			}) {
				t.Error("the writer was told of what it does not see")
			}
			reader.depart(t)
			writer.depart(t)
			g.stop(t)
		})
	}
}

// TestAgentsSendAToken: Claude Code and Codex, configured as docs/CLIENTS.md says, take their token from the environment,
// and so see their view.
func TestAgentsSendAToken(t *testing.T) {
	t.Parallel()
	needOutlive(t)
	for _, kind := range []string{"claude", "codex"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			w := newWorkspace(t)
			views := []string{"names: never", "views: {reader: {servers: {one: {allow: [look]}}, bearer: t-reader}}"}
			g := w.listen(t, w.gatewayConfig(t, views, backend{name: "one", server: servers()["go"]}))
			setup := agentSetup{headless: true, noHooks: true, server: []string{g.url}, token: "t-reader", env: []string{"OUTLIVE_TOKEN=t-reader"}}
			x := &exchange{t: t, u: usage{kind: kind, headless: true}, a: startAgent(t, kind, mockmodel.Told, setup)}
			x.greet() // a call of what it sees
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			result, err := x.a.model.Call(ctx, mockmodel.Call{Server: serverName, Tool: "slow", Args: map[string]any{"value": "x", "steps": 1, "ms": 1}})
			if err == nil && strings.Contains(result.Text, "slow x") {
				t.Errorf("%s has called what it does not see: %s", kind, result.Text)
			}
		})
	}
}
