package control

import (
	"context"
	"errors"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"go.uber.org/goleak"

	"github.com/outlive-mcp/outlive/internal/gateway/gateway"
	"github.com/outlive-mcp/outlive/internal/line/backend"
	"github.com/outlive-mcp/outlive/internal/record/tap"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fake is an outlive with a scripted server.
type fake struct {
	status   Status
	reasons  chan string
	servers  chan string // which was meant, if one was
	fail     error
	upgrades atomic.Int32
	stalled  atomic.Bool // the last restart was because of calls that do not go on
	feed     *Feed
	tap      *tap.Tap
}

func newFake(name string) *fake {
	return &fake{status: Status{Status: backend.Status{Name: name}, PID: 1}, reasons: make(chan string, 1), servers: make(chan string, 1), feed: NewFeed(), tap: &tap.Tap{}}
}

func (f *fake) Status() Status {
	s := f.status
	s.Upgrades = int(f.upgrades.Load())
	return s
}

func (f *fake) Used() Status { return f.Status() }

func (f *fake) Restart(_ context.Context, o Order) (Result, error) {
	if o.Server != "" {
		f.servers <- o.Server
	}
	f.stalled.Store(o.Stalled)
	f.reasons <- o.Reason
	return Result{Generation: 2, ServerPID: 77, TookMS: 12}, f.fail
}

func (f *fake) Reload() error { return f.fail }

// Upgrade is an upgrade that succeeds if f is not to fail: the connection ends, and the next image shows itself.
func (f *fake) Upgrade(context.Context, time.Duration) error {
	if f.fail == nil {
		f.upgrades.Add(1)
		panic(http.ErrAbortHandler)
	}
	return f.fail
}

func listen(t *testing.T, dir, name string, pid int, src *fake) *Server {
	t.Helper()
	s, err := Listen(dir, name, pid, src.feed, src.tap, src)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func discover(t *testing.T, dir string) []Instance {
	t.Helper()
	all, err := Discover(dir)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// shortDir is a directory whose sockets need no fallback.
func shortDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp(shortTemp(), "ctl")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return filepath.Join(dir, "run")
}

func TestStatusAndRestart(t *testing.T) {
	dir := shortDir(t)
	f := newFake("github")
	now := time.Now().UTC().Truncate(time.Second)
	f.status = Status{PID: 4, StartedAt: now, Lost: Lost{Audit: 3}, Status: backend.Status{
		Name: "github", Command: []string{"npx", "-y", "x"}, State: "ready",
		ServerPID: 5, Generation: 1, RestartCount: 1, NextTryAt: &now,
		LastExit: &backend.LastExit{Code: 137, Signal: "killed", At: now, Stderr: []string{"boom"}}}}
	s := listen(t, dir, "github", 4, f)

	all := discover(t, dir)
	if len(all) != 1 || all[0].Name != "github" || all[0].PID != 4 || all[0].Path != s.path {
		t.Fatalf("discovered %+v", all)
	}
	ctx := t.Context()
	got, err := all[0].Status(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(f.status, got); d != "" {
		t.Errorf("status (-want +got):\n%s", d)
	}
	result, err := all[0].Restart(ctx, Order{Reason: "new code ✓"})
	if err != nil || result.ServerPID != 77 || <-f.reasons != "new code ✓" {
		t.Errorf("restart: %+v, %v", result, err)
	}
	f.fail = errors.New("exited (exit 3): no config")
	if _, err := all[0].Restart(ctx, Order{}); err == nil || !strings.Contains(err.Error(), "exited (exit 3): no config") {
		t.Errorf("failed restart: %v", err)
	}
	<-f.reasons
}

func TestDiscoverRemovesOnlyWhatIsGone(t *testing.T) {
	dir := shortDir(t)
	a := listen(t, dir, "same", 11, newFake("same"))
	listen(t, dir, "same", 12, newFake("same"))
	// What a SIGKILL leaves behind: a bound socket without a listener.
	stale := func(name string, age time.Duration) string {
		path := filepath.Join(dir, name)
		l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path})
		if err != nil {
			t.Fatal(err)
		}
		l.SetUnlinkOnClose(false)
		_ = l.Close()
		if err := os.Chtimes(path, time.Now(), time.Now().Add(-age)); err != nil {
			t.Fatal(err)
		}
		return path
	}
	old, fresh := stale("dead.13.sock", time.Minute), stale("starting.14.sock", 0)
	other := filepath.Join(dir, "notes.txt")
	if err := os.WriteFile(other, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	want := []Instance{{Name: "same", PID: 11}, {Name: "same", PID: 12}}
	if d := cmp.Diff(want, discover(t, dir), cmpopts.IgnoreFields(Instance{}, "Path")); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	for path, there := range map[string]bool{old: false, fresh: true, other: true} {
		if _, err := os.Stat(path); (err == nil) != there {
			t.Errorf("%s: there %v, want %v", path, err == nil, there)
		}
	}
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	if got := discover(t, dir); len(got) != 1 || got[0].PID != 12 {
		t.Errorf("after one closed: %+v", got)
	}
	if got := discover(t, filepath.Join(dir, "nothing")); got != nil {
		t.Errorf("no directory: %+v", got)
	}
}

func TestLongDirectoryAndNames(t *testing.T) {
	dir := filepath.Join(t.TempDir(), strings.Repeat("long", 30))
	name := "@scope/server everything ünd " + strings.Repeat("x", 60)
	s := listen(t, dir, name, 21, newFake(name))
	t.Cleanup(func() { _ = os.RemoveAll(filepath.Dir(s.path)) })
	if len(s.path) > pathLimit || strings.HasPrefix(s.path, dir) {
		t.Errorf("path %s", s.path)
	}
	all := discover(t, dir)
	if len(all) != 1 || !all[0].Is(name) || all[0].Is(name+"x") {
		t.Fatalf("discovered %+v", all)
	}
	if got, err := all[0].Status(t.Context()); err != nil || got.Name != name {
		t.Errorf("status %+v, %v", got, err)
	}
	if got := discover(t, dir+"x"); len(got) != 0 {
		t.Errorf("another directory has the same fallback: %+v", got)
	}
}

func TestFileNames(t *testing.T) {
	for _, name := range []string{"github", "a.b", ".hidden", "@scope/pkg", "a b", "ü", "x%41", ""} {
		file := fileName(name) + ".7" + suffix
		got, pid, ok := parseFile(file)
		if name == "" {
			if ok {
				t.Errorf("%q parsed", file)
			}
			continue
		}
		if !ok || got != name || pid != 7 || strings.ContainsAny(file, "/ ") || file[0] == '.' {
			t.Errorf("%q became %q, back %q %d %v", name, file, got, pid, ok)
		}
	}
	for _, file := range []string{"x.sock", "x.1", "x.0.sock", "x.-1.sock", ".1.sock", "%zz.1.sock", "%4.1.sock"} {
		if _, _, ok := parseFile(file); ok {
			t.Errorf("%q parsed", file)
		}
	}
}

func FuzzParseFile(f *testing.F) {
	f.Add("a%20b.7.sock")
	f.Fuzz(func(t *testing.T, file string) {
		name, pid, ok := parseFile(file)
		if ok && (pid <= 0 || name == "") {
			t.Errorf("%q: %q %d", file, name, pid)
		}
	})
}

// A gateway tells of its servers, and is told which of them is meant.
func TestGateway(t *testing.T) {
	dir := shortDir(t)
	f := newFake("gateway")
	f.status.Config = "/outlive.yaml"
	f.status.Servers = []Member{{ServerStatus: gateway.ServerStatus{Name: "a", Links: []gateway.LinkStatus{{Phase: "ready"}}}, LogPath: "/a.log"}}
	listen(t, dir, "gateway", 5, f)
	i := discover(t, dir)[0]
	got, err := i.Status(t.Context())
	if d := cmp.Diff(f.status, got); err != nil || d != "" {
		t.Errorf("status (-want +got):\n%s%v", d, err)
	}
	if !got.Gateway() || cmp.Diff([]string{"a"}, got.ServerNames()) != "" || i.Label() != "gateway@5" {
		t.Errorf("%+v is called %s", got, i.Label())
	}
	i.Server = "a"
	if _, err := i.Restart(t.Context(), Order{Reason: "r"}); err != nil || <-f.reasons != "r" || <-f.servers != "a" {
		t.Errorf("restart of one server: %v", err)
	}
	if i.Label() != "gateway@5/a" {
		t.Errorf("it is called %s", i.Label())
	}
	if err := i.Reload(t.Context()); err != nil {
		t.Errorf("reload: %v", err)
	}
	f.fail = errors.New("outlive.yaml:1:1: no servers")
	if err := i.Reload(t.Context()); err == nil || !strings.Contains(err.Error(), "outlive.yaml:1:1") {
		t.Errorf("reload of a broken configuration: %v", err)
	}
}

func TestUpgrade(t *testing.T) {
	dir := shortDir(t)
	f := newFake("up")
	listen(t, dir, "up", 1, f)
	all := discover(t, dir)
	if s, err := all[0].Upgrade(t.Context(), time.Minute); err != nil || s.Upgrades != 1 {
		t.Errorf("after the upgrade: %+v, %v", s, err)
	}
	f.fail = errors.New("no such program")
	if _, err := all[0].Upgrade(t.Context(), time.Minute); err == nil || !strings.Contains(err.Error(), "no such program") {
		t.Errorf("a refused upgrade: %v", err)
	}
}
