package audit

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/outlive-mcp/outlive/internal/record/event"
	"github.com/outlive-mcp/outlive/internal/testing/await"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var at = time.Date(2026, 1, 15, 14, 23, 45, 123_999_000, time.UTC)

func open(t *testing.T, path string, opts Options) *Log {
	t.Helper()
	l, err := Open(path, opts)
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
	for _, typ := range event.Types() {
		e := event.Event{Type: typ, Time: at, Level: slog.LevelWarn, Message: nasty, Attrs: []slog.Attr{
			slog.String(event.KeyRawLine, nasty), slog.Bool(event.KeyNotified, true), slog.Any("error", errors.New("boom")),
			slog.Duration(event.KeyDelayMS, 1500*time.Millisecond), slog.Any("list", []string{"a"}),
			slog.String("event_type", "forged"), slog.Any("ch", make(chan int)), slog.Time("when", at),
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

func TestRotationKeepsWhatIsPromisedAndNoMore(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state", "mcp_audit.log")
	l := open(t, path, Options{MaxSizeMiB: 1, MaxBackups: 2})
	const events = 1300
	for i := range events { // about 4 KiB each: five files' worth
		l.Emit(event.Event{Type: event.StdoutNoise, Time: at, Attrs: []slog.Attr{
			slog.Int(event.KeyCount, i), slog.String(event.KeyRawLine, strings.Repeat("x", 4000))}})
		// What is left is to be written in the time that Close has.
		if i%32 == 31 {
			await.Until(t, "it is written", func() bool { return l.Flush() == nil })
		}
	}
	closed(t, l)
	if l.Lost() != 0 {
		t.Errorf("%d lost", l.Lost())
	}
	files, err := filepath.Glob(filepath.Join(filepath.Dir(path), "*"))
	if err != nil || len(files) != 3 {
		t.Fatalf("files: %v, %v", files, err)
	}
	for _, f := range files {
		st, err := os.Stat(f)
		if err != nil || st.Size() > 1<<20 || st.Mode() != private(t) {
			t.Errorf("%s: %v, %v", f, st, err)
		}
	}
	lines := readLines(t, path)
	if last := lines[len(lines)-1][event.KeyCount]; last != float64(events-1) {
		t.Errorf("last line is number %v", last)
	}
}

// private is the mode of a file that its owner alone may read.
func private(t *testing.T) os.FileMode {
	t.Helper()
	f, err := os.CreateTemp(t.TempDir(), "*")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		t.Fatal(err)
	}
	return st.Mode()
}

func TestSeveralProcessesWriteOnePath(t *testing.T) {
	path := filepath.Join(t.TempDir(), "mcp_audit.log")
	const writers, each = 4, 400
	var wg sync.WaitGroup
	for w := range writers {
		l := open(t, path, Options{ProxyPID: 100 + w, MaxSizeMiB: 1, MaxBackups: 100})
		wg.Go(func() {
			for i := range each {
				l.Emit(event.Event{Type: event.StdoutNoise, Time: at, Attrs: []slog.Attr{
					slog.Int(event.KeyCount, i), slog.String(event.KeyRawLine, strings.Repeat("x", 3000))}})
			}
			for l.Flush() != nil { // however slow the disk is
				time.Sleep(time.Millisecond)
			}
			closed(t, l)
			if l.Lost() != 0 {
				t.Errorf("writer %d lost %d", w, l.Lost())
			}
		})
	}
	wg.Wait()
	files, _ := filepath.Glob(filepath.Join(filepath.Dir(path), "*"))
	if len(files) < 3 {
		t.Errorf("not rotated: %v", files)
	}
	seen := map[string]bool{}
	for _, f := range files {
		for _, line := range readLines(t, f) {
			seen[fmt.Sprint(line["proxy_pid"], "/", line[event.KeyCount])] = true
		}
	}
	if len(seen) != writers*each {
		t.Errorf("%d different lines, want %d", len(seen), writers*each)
	}
}

// The next writer makes the new file, whichever process it belongs to: a file made by the rotation could be emptied by it, with the lines
// that another process had written meanwhile. Only rotated files are removed.
func TestRotationMakesNoFile(t *testing.T) {
	f := &file{path: filepath.Join(t.TempDir(), "mcp_audit.log"), opts: Options{MaxBackups: 2, MaxAgeDays: 14}}
	beside := filepath.Join(filepath.Dir(f.path), "mcp_audit-notes.log")
	old := filepath.Join(filepath.Dir(f.path), "mcp_audit-2026-11-01T09-00-00.000-size.log")
	for _, path := range []string{beside, old} {
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chtimes(old, time.Time{}, time.Now().AddDate(0, 0, -15)); err != nil {
		t.Fatal(err)
	}
	for want := range 4 {
		if err := f.append(fmt.Appendf(nil, "%d\n", want)); err != nil {
			t.Fatal(err)
		}
		if err := f.rotate(); err != nil {
			t.Fatal(err)
		}
		if _, err := os.Lstat(f.path); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("rotated, and the path names something: %v", err)
		}
	}
	var kept []string
	files, _ := filepath.Glob(filepath.Join(filepath.Dir(f.path), "*"))
	for _, path := range files {
		if text, err := os.ReadFile(path); path != beside {
			kept = append(kept, fmt.Sprint(string(text), err))
		}
	}
	if want := []string{"2\n<nil>", "3\n<nil>"}; !slices.Equal(kept, want) || len(files) != 3 {
		t.Errorf("kept %q of %q, want %q and the other file", kept, files, want)
	}
}

// What a full disk has left of a line is taken away again, through the handle that only appends.
func TestPartOfALineIsCut(t *testing.T) {
	f := &file{path: filepath.Join(t.TempDir(), "mcp_audit.log")}
	if err := f.open(); err != nil {
		t.Fatal(err)
	}
	defer f.close()
	if _, err := f.f.WriteString("{}\n{\"a"); err != nil {
		t.Fatal(err)
	}
	if err := cut(f.f, 3); err != nil {
		t.Error(err)
	}
	if _, err := f.f.WriteString("{}\n"); err != nil {
		t.Error(err)
	}
	if text, err := os.ReadFile(f.path); err != nil || string(text) != "{}\n{}\n" {
		t.Errorf("%q, %v", text, err)
	}
}

// People rotate with mv (TP-11): the log must come back at its path.
func TestRotationByHand(t *testing.T) {
	path := filepath.Join(t.TempDir(), "mcp_audit.log")
	l := open(t, path, Options{})
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
	l := open(t, filepath.Join(blocker, "audit.log"), Options{OnFailure: func(err error) { warnings <- err }})
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
		if _, err := Open(path, Options{}); err == nil {
			t.Errorf("Open(%q) succeeded", path)
		}
	}
	if _, err := Open("x", Options{MaxBackups: -1}); err == nil {
		t.Error("negative limit accepted")
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
	l := open(t, path, Options{})
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
