package sharing

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/outlive-mcp/outlive/internal/gateway/streamhttp"
	"github.com/outlive-mcp/outlive/internal/keep/supervise"
)

// noHub is a server whose clients are not let in: what matters here is which daemon they ask.
type noHub struct{ streamhttp.Hub }

type noServer struct{}

func (noServer) Hub() streamhttp.Hub                                     { return noHub{} }
func (noServer) Restart(context.Context, supervise.Source, string) error { return nil }
func (noServer) End()                                                    {}

// daemonOn serves a daemon on a socket of its own.
func daemonOn(t *testing.T) (socket string, d *Daemon) {
	t.Helper()
	d = NewDaemon(Options{
		Open:            func(string, Request, func([]byte)) (Server, error) { return noServer{}, nil },
		SessionVariable: func(string) bool { return false }, Idle: 1 << 40,
	})
	socket = filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewUnstartedServer(d)
	_ = s.Listener.Close()
	s.Listener = l
	s.Start()
	t.Cleanup(func() {
		d.End()
		s.CloseClientConnections()
		s.Close()
	})
	return socket, d
}

// A daemon that was killed has a successor before its end is noticed: a request meant for it is sent to the successor, in a place of its own
// there, and not answered with an error.
func TestSeatOfAnotherDaemon(t *testing.T) {
	first, old := daemonOn(t)
	second, successor := daemonOn(t)
	var at atomic.Value
	at.Store(first)
	s := NewMember(MemberOptions{Request: Request{Name: "a", Command: []string{"x"}}, Dial: func(ctx context.Context) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", at.Load().(string))
	}})
	defer s.Close()
	ask := func() (int, string) {
		// A front refuses what is no JSON, so the request has reached one.
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, URL, strings.NewReader("no message"))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Accept", "application/json, text/event-stream")
		resp, err := s.RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		text, _ := io.ReadAll(resp.Body)
		return resp.StatusCode, string(text)
	}
	status, text := ask()
	if status != http.StatusBadRequest {
		t.Fatalf("the first daemon: %d %s", status, text)
	}
	at.Store(second)
	s.transport.CloseIdleConnections()
	if again, other := ask(); again != status || other != text {
		t.Errorf("after the change of daemons: %d %s", again, other)
	}
	if len(old.members) != 1 || len(successor.members) != 1 {
		t.Errorf("%d members at the first daemon, %d at its successor", len(old.members), len(successor.members))
	}
}
