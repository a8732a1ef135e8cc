package cli

import (
	"strings"
	"testing"
	"time"

	"github.com/outlive-mcp/outlive/internal/gateway/config"
)

// What is wrong with a policy is told in the words of the file, at the place of a key, and what the file says stays as it is.
func TestPolicyInWordsOfFile(t *testing.T) {
	for _, tc := range []struct{ policy, want string }{
		{"replay_call: 'login --dry-run'", `outlive.yaml:1:46: a: replay_call "login --dry-run": write the tool's name`},
		{"lazy: true, no_fast_start: true", "outlive.yaml:1:39: a: lazy needs what earlier runs have shown: it cannot go with no_fast_start"},
		{"standby: 99", "outlive.yaml:1:42: a: standby 99: want 0 to 8"},
		{"max_message: 5, drain: 0s", "outlive.yaml:1:56: a: drain 0s: want a positive duration"},
		{"watch: auto", "a: watch auto: what to watch cannot be told from"},
	} {
		text := "servers: {a: {command: nothing, " + tc.policy + "}}"
		file, err := config.Parse("outlive.yaml", []byte(text), config.Options{Keys: policyKeys()})
		if err != nil {
			t.Fatal(err)
		}
		_, err = newServedSet(&sinks{}, "g", func(string) string { return "" }, false).load(file)
		if err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: got %v, want %s", tc.policy, err, tc.want)
		}
	}
}

// A server that loads a model, or fills a cache, before it answers is not ended while its client still waits: SDKs do for a minute, and
// a client whose user has set more (MCP_TIMEOUT, startup_timeout_sec) for longer.
func TestStartIsWaitedForLongerThanByClients(t *testing.T) {
	const sdk = time.Minute
	if got := newRunFlags().backend.Supervise.StartTimeout; got <= sdk {
		t.Errorf("a start is ended after %v, and a client of an SDK waits for %v", got, sdk)
	}
}
