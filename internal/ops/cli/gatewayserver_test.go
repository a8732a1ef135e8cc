package cli

import (
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/outlive-mcp/outlive/internal/keep/backoff"
)

// A server elsewhere is tried again soon and without end, unless the configuration says otherwise.
func TestServersElsewhereAreTriedWithoutEnd(t *testing.T) {
	for set, want := range map[string]struct {
		most     time.Duration
		restarts int
	}{
		"":              {remoteWait, 0},
		"max-restarts":  {remoteWait, backoff.Transparent().MaxRestarts},
		"restart-delay": {backoff.Transparent().Max, 0},
		"backoff":       {backoff.Transparent().Max, 0},
	} {
		p := backoff.Transparent()
		waitForNetwork(&p, func(flag string) bool { return flag == set })
		if p.Max != want.most || p.MaxRestarts != want.restarts {
			t.Errorf("%q given: at most %s, %d restarts", set, p.Max, p.MaxRestarts)
		}
		if err := p.Validate(); err != nil {
			t.Errorf("%q given: %v", set, err)
		}
	}
}

// What logs and status show of a URL has no key in it.
func TestShownURL(t *testing.T) {
	for url, want := range map[string]string{
		"https://mcp.example/mcp":                   "https://mcp.example/mcp",
		"https://mcp.example/mcp?api_key=s3cret#x":  "https://mcp.example/mcp",
		"https://user:s3cret@mcp.example:8443/a?b=": "https://user:xxxxx@mcp.example:8443/a",
		"https://%zz/": "the configured URL",
	} {
		if got := shownURL(url); got != want {
			t.Errorf("%s is shown as %s, want %s", url, got, want)
		}
	}
}

// Processes of one server write their stderr at the same time, and each line has the server's name.
func TestLabelsOfSeveralProcesses(t *testing.T) {
	var lines []string
	l := &labeller{label: []byte("[files] "), out: func(p []byte) { lines = append(lines, string(p)) }}
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for range 200 {
				l.pass([]byte("one\ntwo\n"))
			}
		})
	}
	all.Wait()
	if text := strings.Join(lines, ""); text != strings.Repeat("[files] one\n[files] two\n", 800) {
		t.Errorf("%d lines, the first are %.200q", len(lines), text)
	}
}
