package logline

import (
	"bytes"
	"encoding/json"
	"io"
	"log/slog"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/outlive-mcp/outlive/internal/event"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var at = time.Date(2026, 1, 13, 22, 30, 0, 0, time.UTC)

// collector is a stderr that can be looked at.
type collector struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (c *collector) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.buf.Write(p)
}

func (c *collector) String() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.buf.String()
}

func (c *collector) waitFor(t *testing.T, s string) {
	t.Helper()
	for end := time.Now().Add(5 * time.Second); !strings.Contains(c.String(), s); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%q never came: %q", s, c.String())
		}
	}
}

func message(text string) event.Event {
	return event.Event{Type: event.ProbeAnswered, Time: at, Message: text}
}

func TestTextFormat(t *testing.T) {
	var c collector
	w := NewWriter(&c, Options{})
	w.Emit(event.Event{Type: event.ServerStarting, Time: at.Add(123456789).In(time.FixedZone("CET", 3600))})
	w.Emit(message("forged\n[2026-01-13T22:30:00.000000Z] [SUPERVISOR] x \x1b[31m é \xff"))
	w.Emit(event.Event{Type: event.ProbeAnswered, Time: at, Level: slog.LevelDebug, Message: "not told"})
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	want := "[2026-01-13T22:30:00.123456Z] [SUPERVISOR] Starting MCP server (restart #0)\n" +
		"[2026-01-13T22:30:00.000000Z] [PROXY] forged\\n[2026-01-13T22:30:00.000000Z] [SUPERVISOR] x \\x1b[31m é \uFFFD\n"
	if d := cmp.Diff(want, c.String()); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	// S0 7.4, the Python pattern.
	pattern := regexp.MustCompile(`\[(\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d{6}Z)\]`)
	for l := range strings.Lines(c.String()) {
		if !pattern.MatchString(l) {
			t.Errorf("not matched: %q", l)
		}
	}
}

func TestJSONFormat(t *testing.T) {
	var c collector
	w := NewWriter(&c, Options{Format: JSON, PID: 5, Dir: "/"})
	for _, typ := range event.Types() {
		w.Emit(event.Event{Type: typ, Time: at, Level: slog.LevelWarn, Message: "m\n<", ServerPID: 9, Attrs: []slog.Attr{
			slog.Int(event.KeyExitCode, 1), slog.Duration(event.KeyDelayMS, time.Second), slog.Any(event.KeyError, io.EOF),
			slog.String("msg", "forged"), slog.Any("odd", make(chan int))}})
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for l := range strings.Lines(c.String()) {
		var m map[string]any
		if err := json.Unmarshal([]byte(l), &m); err != nil {
			t.Fatalf("%v: %q", err, l)
		}
		seen[m["event"].(string)] = true
		if m["time"] != "2026-01-13T22:30:00.000000Z" || m["level"] != "WARN" || m["tag"] == "" || m["msg"] == "forged" ||
			m["exit_code"] != 1.0 || m["delay_ms"] != 1000.0 || m["error"] != "EOF" || m["server_pid"] != 9.0 {
			t.Errorf("%s", l)
		}
	}
	if len(seen) != len(event.Types()) {
		t.Errorf("%d of %d event types", len(seen), len(event.Types()))
	}
	if _, err := ParseFormat("xml"); err == nil || !strings.Contains(err.Error(), "text or json") {
		t.Errorf("ParseFormat: %v", err)
	}
}

func TestServerLinesStayWhole(t *testing.T) {
	var c collector
	w := NewWriter(&c, Options{})
	w.Raw([]byte("one\ntw"))
	w.Emit(message("ours"))
	w.Raw([]byte("o\r\nthree \xff\x00\n"))
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	want := "one\n[2026-01-13T22:30:00.000000Z] [PROXY] ours\ntwo\r\nthree \xff\x00\n"
	if d := cmp.Diff(want, c.String()); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

func TestUnfinishedServerLine(t *testing.T) {
	var c collector
	w := NewWriter(&c, Options{})
	w.Raw([]byte("Password: "))
	c.waitFor(t, "Password: ") // after a moment it is passed on
	w.Emit(message("ours"))
	w.Raw([]byte("rest"))
	if err := w.Close(); err != nil { // what is still held is written
		t.Fatal(err)
	}
	want := "Password: \n[2026-01-13T22:30:00.000000Z] [PROXY] ours\nrest"
	if d := cmp.Diff(want, c.String()); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

func TestNobodyReads(t *testing.T) {
	r, out := io.Pipe()
	w := NewWriter(out, Options{})
	line := []byte(strings.Repeat("x", 1023) + "\n")
	began := time.Now()
	for range 1000 {
		w.Raw(line)
	}
	w.Emit(message("ours"))
	if took := time.Since(began); took > time.Second {
		t.Errorf("callers were held up for %v", took)
	}
	if lost := w.Lost(); lost < 400 || lost > 760 {
		t.Errorf("%d lines lost", lost)
	}
	began = time.Now()
	if err := w.Close(); err == nil {
		t.Error("Close says that everything was written")
	}
	if took := time.Since(began); took > 2*time.Second {
		t.Errorf("Close took %v", took)
	}
	w.Emit(message("late"))
	_ = r.Close() // ends the goroutine
	<-w.queue.done
	if lost := w.Lost(); lost != 1002 {
		t.Errorf("%d lost in the end", lost)
	}
}

func TestWriterFromManyGoroutines(t *testing.T) {
	var c collector
	w := NewWriter(&c, Options{})
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 200 {
				w.Emit(message("ours"))
				w.Raw([]byte("theirs\n"))
			}
		})
	}
	wg.Wait()
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	ours := strings.Count(c.String(), "[2026-01-13T22:30:00.000000Z] [PROXY] ours\n")
	if theirs := strings.Count(c.String(), "theirs\n"); ours != 800 || theirs != 800 || w.Lost() != 0 {
		t.Errorf("%d ours, %d theirs, %d lost", ours, theirs, w.Lost())
	}
}
