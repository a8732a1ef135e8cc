//go:build unix

package cli

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/outlive-mcp/outlive/internal/agents/registry"
)

// A running monitor pings whoever misses it, tells systemd that it is ready, takes pings of agents, and says goodbye.
func TestMonitorIsWatchedItself(t *testing.T) {
	pinged := make(chan string, 16)
	outside := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { pinged <- r.URL.Path }))
	defer outside.Close()
	dir, err := os.MkdirTemp("", "ol") // a socket's path has little room
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	socket := filepath.Join(dir, "notify")
	systemd, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: socket, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer systemd.Close()
	t.Setenv("NOTIFY_SOCKET", socket)
	t.Setenv("CHECK", "check")
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().String()
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	registry := "version: 2\nlisten: " + address + "\ndeadman: {url: \"" + outside.URL + "/ping/${CHECK}\", every: 1s}\nagents: {shop: {kind: command}}\n"
	if err := os.WriteFile(filepath.Join(dir, "registry.yaml"), []byte(registry), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	all.Go(func() {
		if err := runMonitor(ctx, streams{out: os.Stderr, err: os.Stderr}, monitorFlags{home: dir, answers: "auto", logLevel: "error"}); err != nil {
			t.Error(err)
		}
	})
	defer all.Wait()
	defer cancel()
	if said := hear(t, systemd, "READY=1"); len(said) != 1 {
		t.Errorf("systemd heard %q before we were ready", said)
	}
	if path := <-pinged; !strings.HasPrefix(path, "/ping/check") {
		t.Errorf("pinged %s", path)
	}
	response, err := http.Get("http://" + address + "/ping/00000000-0000-4000-8000-000000000000")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusNotFound {
		t.Errorf("a ping of nobody: %s", response.Status)
	}
	cancel()
	hear(t, systemd, "STOPPING=1")
}

// A change of what is read only at the start is said once, and not if it is taken back.
func TestWhatIsReadOnlyAtTheStart(t *testing.T) {
	var log strings.Builder
	c := &monitorWatchdog{logger: slog.New(slog.NewTextHandler(&log, nil))}
	r := &registry.Registry{Listen: "127.0.0.1:8377"}
	c.follow(func() *registry.Registry { return r })
	for _, step := range []struct {
		now   *registry.Registry
		lines int
	}{
		{r, 0},
		{&registry.Registry{Listen: "127.0.0.1:8377", Version: 2}, 0},
		{&registry.Registry{Listen: "127.0.0.1:9"}, 1},
		{&registry.Registry{Listen: "127.0.0.1:9"}, 1},
		{&registry.Registry{Listen: "127.0.0.1:8377"}, 1},
		{&registry.Registry{Listen: "127.0.0.1:8377", Deadman: registry.Deadman{URL: "https://hc.example/x"}}, 2},
		{nil, 3},
	} {
		r = step.now
		c.looked(nil)
		if got := strings.Count(log.String(), "start the monitor again"); got != step.lines {
			t.Errorf("%+v: %d lines, want %d", step.now, got, step.lines)
		}
	}
}

// hear is what systemd is told up to a message that begins so.
func hear(t *testing.T, systemd *net.UnixConn, until string) (said []string) {
	t.Helper()
	if err := systemd.SetReadDeadline(time.Now().Add(2 * time.Minute)); err != nil {
		t.Fatal(err)
	}
	text := make([]byte, 4096)
	for !slices.ContainsFunc(said, func(s string) bool { return strings.HasPrefix(s, until) }) {
		n, err := systemd.Read(text)
		if err != nil {
			t.Fatalf("%s was never said: %v; heard %q", until, err, said)
		}
		said = append(said, string(text[:n]))
	}
	return said
}
