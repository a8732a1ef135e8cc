//go:build unix

package sharing

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/outlive-mcp/outlive/internal/keep/supervise"
)

// greeter is a server that says hello to whoever joins, and repeats one line.
type greeter struct {
	name   string
	wanted chan<- string // takes the source and the reason of each restart
}

func (g greeter) Join(in, out *os.File) {
	go func() {
		defer in.Close()
		defer out.Close()
		fmt.Fprintln(out, g.name)
		line, _ := bufio.NewReader(in).ReadString('\n')
		_, _ = io.WriteString(out, line)
	}()
}

func (g greeter) Restart(_ context.Context, source supervise.Source, reason string) error {
	g.wanted <- source.String() + ": " + reason
	return nil
}

func (greeter) End() {}

// daemonOn serves a daemon on a socket of its own.
func daemonOn(t *testing.T, name string, wanted chan<- string) (socket string, d *Daemon) {
	t.Helper()
	d = NewDaemon(Options{
		Open: func(string, Request, func([]byte)) (Server, error) { return greeter{name, wanted}, nil },
		Idle: 1 << 40,
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

// members are the names of the places at a daemon.
func members(d *Daemon) []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Collect(maps.Keys(d.members))
}

// A daemon that was killed has a successor before its end is noticed: a run that joins its server then gets the successor's, in a place of
// its own there, and no error.
func TestMemberOfAnotherDaemon(t *testing.T) {
	first, old := daemonOn(t, "first", nil)
	second, successor := daemonOn(t, "second", nil)
	var at atomic.Value
	at.Store(first)
	s := NewMember(MemberOptions{Request: Request{Name: "a", Command: []string{"x"}}, Dial: func(ctx context.Context) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", at.Load().(string))
	}})
	defer s.Close()
	join := func(want string) {
		t.Helper()
		in, out, err := s.Join(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer in.Close()
		if _, err := io.WriteString(out, "a line\n"); err != nil {
			t.Fatal(err)
		}
		_ = out.Close()
		if text, _ := io.ReadAll(in); string(text) != want+"\na line\n" {
			t.Errorf("the server of the %s daemon: %q", want, text)
		}
	}
	join("first")
	at.Store(second)
	s.transport.CloseIdleConnections()
	join("second")
	join("second")
	if len(members(old)) != 1 || len(members(successor)) != 1 {
		t.Errorf("%d members at the first daemon, %d at its successor", len(members(old)), len(members(successor)))
	}
}

// Who has asked a run for a restart is who asks the daemon.
func TestRestartKeepsItsSource(t *testing.T) {
	wanted := make(chan string, 1)
	socket, _ := daemonOn(t, "one", wanted)
	m := NewMember(MemberOptions{
		Request: Request{Name: "r", Command: []string{"srv"}},
		Dial: func(ctx context.Context) (net.Conn, error) {
			var d net.Dialer
			return d.DialContext(ctx, "unix", socket)
		},
	})
	defer m.Close()
	for _, source := range []supervise.Source{supervise.SourceSignal, supervise.SourceControl, supervise.SourceMonitor, supervise.SourceWatch} {
		if err := m.Restart(t.Context(), source, "because"); err != nil {
			t.Fatal(err)
		}
		if got := <-wanted; got != source.String()+": because" {
			t.Errorf("asked by %s, the server is restarted by %q", source, got)
		}
	}
}

// What the monitor asks for goes on being that where the run, or the daemon, is of the version before: those know one word for it.
func TestRestartByTheMonitorAcrossVersions(t *testing.T) {
	wanted := make(chan string, 1)
	socket, d := daemonOn(t, "one", wanted)
	asked := make(chan string, 1)
	m := NewMember(MemberOptions{Request: Request{Name: "r", Command: []string{"srv"}}, Dial: func(ctx context.Context) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", socket)
	}})
	defer m.Close()
	if err := m.Restart(t.Context(), supervise.SourceSignal, "now a member"); err != nil {
		t.Fatal(err)
	}
	<-wanted
	name := members(d)[0]
	r := httptest.NewRequest(http.MethodPost, "/v1/seat/"+name+"/restart", strings.NewReader(`{"reason":"because","stalled":true}`))
	d.ServeHTTP(httptest.NewRecorder(), r)
	if got := <-wanted; got != supervise.SourceMonitor.String()+": because" {
		t.Errorf("a run of the version before: the server is restarted by %q", got)
	}

	before := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/v1/seat" {
			_, _ = io.WriteString(w, `{"path":"/v1/seat/a","server":"srv"}`+"\n")
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
			return
		}
		text, _ := io.ReadAll(r.Body)
		asked <- string(text)
	}))
	defer before.Close()
	m = NewMember(MemberOptions{Request: Request{Name: "r", Command: []string{"srv"}}, Dial: func(ctx context.Context) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "tcp", before.Listener.Addr().String())
	}})
	defer m.Close()
	if err := m.Restart(t.Context(), supervise.SourceMonitor, "because"); err != nil {
		t.Fatal(err)
	}
	if got := <-asked; !strings.Contains(got, `"stalled":true`) {
		t.Errorf("a daemon of the version before is asked %s", got)
	}
}
