package audit

import (
	"encoding/json"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/outlive-mcp/outlive/internal/record/event"
	"github.com/outlive-mcp/outlive/internal/testing/await"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var at = time.Date(2026, 1, 15, 14, 23, 45, 123_999_000, time.UTC)

func open(t *testing.T, path string, onFailure func(error)) *Log {
	t.Helper()
	l, err := Open(path, onFailure)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l
}

func closed(t *testing.T, l *Log) {
	t.Helper()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestLineIsTheProxys(t *testing.T) {
	e := event.Event{
		Type: event.ServerReady, Time: at.In(time.FixedZone("CET", 3600)), Message: "Server ready (startup: 850ms)",
		ServerPID: 67890, Attrs: []slog.Attr{slog.Int(event.KeyStartupMS, 850)},
	}
	got := string(AppendLine(nil, e, 12345))
	want := `{"timestamp":"2026-01-15T14:23:45.123Z","level":"INFO","logger":"mcp_proxy",` +
		`"message":"Server ready (startup: 850ms)","event_type":"server_ready","proxy_pid":12345,"server_pid":67890,` +
		`"restart_count":0,"generation":0,"startup_time_ms":850}` + "\n"
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

func TestEveryLineIsOneJSONObject(t *testing.T) {
	nasty := "a\nb\r\"\\\x00\xff<é\u2028" + strings.Repeat("ü", 5000)
	for _, typ := range []event.Type{event.ProxyStarted, event.ServerCrashed, event.ServerLogLost} {
		e := event.Event{Type: typ, Time: at, Level: slog.LevelWarn, Message: nasty, Attrs: []slog.Attr{
			slog.String(event.KeyRawLine, nasty), slog.Bool(event.KeyNotified, true), slog.String(event.KeyError, "boom"),
			slog.Int(event.KeyDelayMS, 1500), slog.Any(event.KeyFiles, []string{"a"}), slog.Any("ch", make(chan int)),
		}}
		line := AppendLine(nil, e, 1)
		var got map[string]any
		if err := json.Unmarshal(line, &got); err != nil {
			t.Fatalf("%s: %v\n%s", typ, err, line)
		}
		if strings.Count(string(line), "\n") != 1 {
			t.Errorf("%s: not one line", typ)
		}
		if got["event_type"] != string(typ) || got["level"] != "WARNING" || got["delay_ms"] != 1500.0 || got["error"] != "boom" {
			t.Errorf("%s: %.300v", typ, got)
		}
		if _, there := got["server_pid"]; there {
			t.Errorf("%s: server_pid without a server", typ)
		}
	}
}

// People rotate with mv (TP-11): the log must come back at its path.
func TestRotationByHand(t *testing.T) {
	path := filepath.Join(t.TempDir(), "mcp_audit.log")
	l := open(t, path, func(err error) { t.Error(err) })
	l.Emit(event.Event{Type: event.ProxyStarted, Time: at})
	await.Until(t, "something is written", func() bool { st, err := os.Stat(path); return err == nil && st.Size() > 0 })
	if err := os.Rename(path, path+".1"); err != nil {
		t.Fatal(err)
	}
	l.Emit(event.Event{Type: event.ProxyStopped, Time: at})
	closed(t, l)
	if got := readLines(t, path); len(got) != 1 || got[0]["event_type"] != "proxy_stopped" {
		t.Errorf("after mv: %v", got)
	}
}

func TestUnwritablePathIsOneWarningAndCounted(t *testing.T) {
	dir := t.TempDir()
	blocker := filepath.Join(dir, "blocker")
	if err := os.WriteFile(blocker, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	warnings := make(chan error, 10)
	l := open(t, filepath.Join(blocker, "audit.log"), func(err error) { warnings <- err })
	for range 20 {
		l.Emit(event.Event{Type: event.ProxyStarted, Time: at})
	}
	closed(t, l)
	l.Emit(event.Event{Type: event.ProxyStopped, Time: at})
	if l.Lost() != 21 || len(warnings) != 1 {
		t.Errorf("lost %d, %d warnings", l.Lost(), len(warnings))
	}
	if err := <-warnings; !strings.Contains(err.Error(), blocker) {
		t.Errorf("warning does not name the path: %v", err)
	}
}

func TestOpenRefusesNonsense(t *testing.T) {
	for _, path := range []string{"", t.TempDir()} {
		if _, err := Open(path, nil); err == nil {
			t.Errorf("Open(%q) succeeded", path)
		}
	}
}

func readLines(t *testing.T, path string) []map[string]any {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var all []map[string]any
	for line := range strings.Lines(string(b)) {
		var m map[string]any
		if err := json.Unmarshal([]byte(line), &m); err != nil {
			t.Fatalf("%s: %v: %q", path, err, line)
		}
		all = append(all, m)
	}
	return all
}

func TestFlush(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	l := open(t, path, func(err error) { t.Error(err) })
	for range 100 {
		l.Emit(event.Event{Type: event.ProxyStarted, Message: "m"})
	}
	await.Until(t, "all is written", func() bool { return l.Flush() == nil }) // it waits for a quarter of a second, which a busy machine may need for the disk
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(text), "\n"); n != 100 {
		t.Errorf("%d of 100 lines are written", n)
	}
}
