package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// tenMinutes is a call of ten minutes.
var tenMinutes = wait{takes: 10 * time.Minute}

// TestTenMinutes: a silent call of ten minutes by clients with their default limits, alone and behind outlive with its default settings. It
// takes as long as the call, and runs only where it is asked for:
//
//	E2E_TEN_MINUTES=1 e2e/run.sh -run TestTenMinutes -timeout 20m
func TestTenMinutes(t *testing.T) {
	needFull(t, "calls of ten minutes")
	needOutlive(t)
	if os.Getenv("E2E_TEN_MINUTES") == "" {
		t.Skip("takes ten minutes: E2E_TEN_MINUTES=1 runs it")
	}
	ts1, ts2 := packaged(t, "node_modules/@modelcontextprotocol/sdk"), packaged(t, "node_modules/@modelcontextprotocol/client")
	agent := func(kind string) func(t *testing.T, l lane) string {
		return func(t *testing.T, l lane) string { return agentWaits(t, kind, agentSetup{}, l, tenMinutes) }
	}
	everywhere := [laneMost]string{answered, answered, answered}
	minute, five := givenUp+" after 60 s", givenUp+" after 300 s"
	all := []struct {
		name, limit string
		want        [laneMost]string
		call        func(t *testing.T, l lane) string
	}{
		{"TypeScript SDK 1.x " + ts1, "60 s, `resetTimeoutOnProgress`", [laneMost]string{minute, answered, answered}, sdkWaits("ts1", true, tenMinutes)},
		{"TypeScript SDK 1.x " + ts1, "60 s", [laneMost]string{minute, minute, minute}, sdkWaits("ts1", false, tenMinutes)},
		{"TypeScript SDK 2.x " + ts2, "60 s, `resetTimeoutOnProgress`", [laneMost]string{minute, answered, answered}, sdkWaits("ts2-legacy", true, tenMinutes)},
		{"TypeScript SDK 2.x " + ts2 + ", 2026-07-28", "60 s, `resetTimeoutOnProgress`", [laneMost]string{minute, answered, answered}, sdkWaits("ts2-modern", true, tenMinutes)},
		{"Python SDK " + pinned(t, "requirements.txt", "mcp=="), "none", everywhere, sdkWaits("py-legacy", false, tenMinutes)},
		{"Go SDK " + pinned(t, "go.mod", "\tgithub.com/modelcontextprotocol/go-sdk "), "none", everywhere, sdkWaits("go-legacy", false, tenMinutes)},
		{agentTitles["claude"] + " " + packaged(t, "node_modules/"+agentPackages["claude"]), "30 min of silence, over HTTP 5 min", everywhere, agent("claude")},
		{agentTitles["codex"] + " " + packaged(t, "node_modules/"+agentPackages["codex"]), "300 s", [laneMost]string{five, five, five}, agent("codex")},
	}
	seen := make([][laneMost]string, len(all))
	var calls sync.WaitGroup
	for i, one := range all {
		for l := range laneMost {
			calls.Go(func() { seen[i][l] = one.call(t, l) })
		}
	}
	calls.Wait()
	var table strings.Builder
	header(&table, "client", "its own limit", "alone", "`outlive run`", "`outlive gateway`, HTTP")
	for i, one := range all {
		row(&table, one.name, one.limit, seen[i][nothing], seen[i][ourRun], seen[i][ourHTTP])
		if seen[i] != one.want {
			t.Errorf("%s, %s: %q, want %q", one.name, one.limit, seen[i], one.want)
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
