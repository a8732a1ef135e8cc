package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/outlive-mcp/outlive/e2e/mockmodel"
)

// longCall is longer than two of the limits that the clients are given, and than the minute that most have by themselves.
const (
	longCall  = 65 * time.Second
	callLimit = 30 * time.Second
)

// wait is a call, and how long its client is told to wait for it.
type wait struct {
	takes time.Duration
	limit time.Duration // 0: the client's own
}

// defaultLimit is a step's timeout that leaves the limit to the client.
const defaultLimit = "default"

// patient is a client that is told how long a call may take, and what becomes of a silent call that takes longer behind outlive.
type patient struct {
	name, version string
	limit         string // how it is told
	extends       bool   // by progress
	call          func(t *testing.T, l lane) (word string)
}

// lane is what stands between client and server.
type lane int

const (
	nothing lane = iota
	ourRun       // outlive run
	ourHTTP      // outlive gateway --listen
	laneMost
)

const givenUp = "given up"

// patients are all of them, in the order of the document.
func patients(t *testing.T) []patient {
	ts1, ts2 := packaged(t, "node_modules/@modelcontextprotocol/sdk"), packaged(t, "node_modules/@modelcontextprotocol/client")
	py := pinned(t, "requirements.txt", "mcp==")
	long := wait{longCall, callLimit}
	sdkWaits := func(name string, reset bool) func(*testing.T, lane) string { return sdkWaits(name, reset, long) }
	agent := func(kind, limit string, extends bool, setup agentSetup) patient {
		return patient{agentTitles[kind], packaged(t, "node_modules/"+agentPackages[kind]), limit, extends, func(t *testing.T, l lane) string {
			if l == ourHTTP {
				return none
			}
			return agentWaits(t, kind, setup, l, long)
		}}
	}
	return []patient{
		{"TypeScript SDK 1.x", ts1, "`timeout` with `resetTimeoutOnProgress`", true, sdkWaits("ts1", true)},
		{"TypeScript SDK 1.x", ts1, "`timeout` alone", false, sdkWaits("ts1", false)},
		{"TypeScript SDK 2.x", ts2, "`timeout` with `resetTimeoutOnProgress`", true, sdkWaits("ts2-legacy", true)},
		{"TypeScript SDK 2.x", ts2 + ", 2026-07-28", "`timeout` with `resetTimeoutOnProgress`", true, sdkWaits("ts2-modern", true)},
		{"Python SDK", py, "`read_timeout_seconds`", false, sdkWaits("py-legacy", false)},
		{"Go SDK", pinned(t, "go.mod", "\tgithub.com/modelcontextprotocol/go-sdk "), "a context's deadline; it has no limit of its own", false, sdkWaits("go-legacy", false)},
		agent("claude", "`CLAUDE_CODE_MCP_TOOL_IDLE_TIMEOUT` (default: 30 min, over HTTP 5 min)", true, agentSetup{env: []string{"CLAUDE_CODE_MCP_TOOL_IDLE_TIMEOUT=30000"}}),
		agent("claude", "`MCP_TOOL_TIMEOUT`", false, agentSetup{env: []string{"MCP_TOOL_TIMEOUT=30000"}}),
		agent("codex", "`tool_timeout_sec` (default: 300 s)", false, agentSetup{args: []string{"-c", "mcp_servers." + serverName + ".tool_timeout_sec=30"}}),
	}
}

// TestLongCalls: what clients that give a call 30 s make of one that takes 65 s and reports no progress, alone and behind outlive,
// which reports that it goes on. docs/CLIENTS.md has the table.
func TestLongCalls(t *testing.T) {
	needFull(t, "calls of more than a minute, and clients that give up by the clock")
	needOutlive(t)
	t.Parallel()
	all := patients(t)
	seen := make([][laneMost]string, len(all))
	var calls sync.WaitGroup
	for i, p := range all {
		for l := range laneMost {
			calls.Go(func() { seen[i][l] = p.call(t, l) })
		}
	}
	calls.Wait()
	var table strings.Builder
	header(&table, "client", "its limit", "alone", "`outlive run`", "`outlive gateway`, HTTP")
	for i, p := range all {
		row(&table, p.name+" "+p.version, p.limit, seen[i][nothing], seen[i][ourRun], seen[i][ourHTTP])
		for l, word := range seen[i] {
			want := givenUp
			if p.extends && lane(l) != nothing {
				want = answered
			}
			if word != want && word != none {
				t.Errorf("%s, %s, lane %d: %s, want %s", p.name, p.limit, l, word, want)
			}
		}
	}
	text, err := os.ReadFile(filepath.Join(filepath.Dir(tools.root), "docs", "CLIENTS.md"))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(text), table.String()) {
		t.Errorf("docs/CLIENTS.md is to have this table:\n%s", &table)
	}
}

// sdkWaits has an SDK's client make the long call.
func sdkWaits(name string, reset bool, c wait) func(t *testing.T, l lane) string {
	return func(t *testing.T, l lane) string {
		s := &session{workspace: newWorkspace(t), client: name, server: servers()["go"]}
		target, tool := s.server.argv, "look"
		switch l {
		case ourRun:
			target = s.wrap(target)
		case ourHTTP:
			target, tool = []string{s.listen(t, s.gatewayConfig(t, nil, backend{name: "go", server: s.server})).url}, "go_look"
		}
		var hello reply
		if s.driver, hello = gatewayClients()[name].start(s, target); hello.Error != nil {
			return hello.String()
		}
		order := step{
			"op": "call", "tool": tool, "args": map[string]any{"value": "long", "ms": c.takes.Milliseconds()},
			"timeout": c.limit.Milliseconds(), "progress": true, "reset": reset,
		}
		if c.limit == 0 {
			order["timeout"] = defaultLimit
		}
		_, answer := s.begin(order)
		began := time.Now()
		select {
		case r := <-answer:
			if l != nothing {
				checkProgress(t, name, r.Progress)
			}
			return c.wordOf(r.text(), r.String(), time.Since(began))
		case <-time.After(c.takes + patience):
			return noAnswer(c.takes + patience)
		}
	}
}

// checkProgress: what a client is told goes upwards, and leaves room for all that a server could report.
func checkProgress(t *testing.T, name string, values []float64) {
	if len(values) == 0 {
		t.Errorf("%s was told of no progress", name)
	}
	for i, v := range values {
		if v >= 0 || i > 0 && v <= values[i-1] {
			t.Errorf("%s was told of progress %v", name, values)
			return
		}
	}
}

// agentWaits has an agent make the long call.
func agentWaits(t *testing.T, kind string, setup agentSetup, l lane, c wait) string {
	setup.headless, setup.noHooks, setup.server = true, true, []string{tools.goserver}
	switch l {
	case ourRun:
		setup.server = []string{tools.outlive, "run", "--", tools.goserver}
	case ourHTTP:
		setup.server = []string{newWorkspace(t).listenOne(t, servers()["go"]).url}
	}
	x := &exchange{t: t, u: usage{kind: kind, headless: true, behind: l == ourRun}, a: startAgent(t, kind, mockmodel.Told, setup)}
	x.greet()
	ctx, cancel := context.WithTimeout(t.Context(), c.takes+patience)
	defer cancel()
	began := time.Now()
	result, err := x.a.model.Call(ctx, mockmodel.Call{Server: serverName, Tool: "look", Args: map[string]any{"value": "long", "ms": c.takes.Milliseconds()}})
	if err != nil {
		return err.Error()
	}
	return c.wordOf(result.Text, result.Text, time.Since(began))
}

// wordOf is what a long call came to.
func (c wait) wordOf(text, whole string, took time.Duration) string {
	if words(text, "look long") == answered {
		return answered
	}
	if lower := strings.ToLower(whole); took >= c.limit-time.Second && took < c.takes &&
		(strings.Contains(lower, "timed out") || strings.Contains(lower, "deadline") || strings.Contains(lower, "aborting")) {
		if c.limit == 0 {
			return fmt.Sprintf("%s after %.0f s", givenUp, took.Seconds())
		}
		return givenUp
	}
	return fmt.Sprintf("%.200s after %v", whole, took.Round(time.Second))
}
