package logline

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"regexp"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/outlive-mcp/outlive/internal/record/event"
	"github.com/outlive-mcp/outlive/internal/testing/await"
	"github.com/outlive-mcp/outlive/internal/testing/tier"
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
	await.Value(t, fmt.Sprintf("%q", s), func() (string, bool) { all := c.String(); return all, strings.Contains(all, s) })
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
	// The Python pattern of WD-16.
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
	all := types(t)
	for _, typ := range all {
		w.Emit(event.Event{Type: typ, Time: at, Level: slog.LevelWarn, Message: "m\n<", ServerPID: 9, Attrs: []slog.Attr{
			slog.Int(event.KeyExitCode, 1), slog.Int(event.KeyDelayMS, 1000), slog.String(event.KeyError, "EOF"),
			slog.Any("odd", make(chan int))}})
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
		if m["time"] != "2026-01-13T22:30:00.000000Z" || m["level"] != "WARN" || m["tag"] == "" ||
			m["exit_code"] != 1.0 || m["delay_ms"] != 1000.0 || m["error"] != "EOF" || m["server_pid"] != 9.0 {
			t.Errorf("%s", l)
		}
	}
	if len(seen) != len(all) {
		t.Errorf("%d of %d event types", len(seen), len(all))
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
	if err := w.Close(); err != nil { // what is held back is written
		t.Fatal(err)
	}
	want := "Password: \n[2026-01-13T22:30:00.000000Z] [PROXY] ours\nrest"
	if d := cmp.Diff(want, c.String()); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

// What package queue has as its limits.
const (
	roomy        = 256 << 10
	most         = 2 << 20
	stalledAfter = 2 * time.Second
)

func TestNobodyReads(t *testing.T) {
	r, out := io.Pipe()
	w := NewWriter(out, Options{})
	line := []byte(strings.Repeat("x", 1023) + "\n")
	const lines = 4 * most / 1024
	began := time.Now()
	for range lines {
		w.Raw(line)
	}
	w.Emit(message("ours"))
	tier.Within(t, "writing while nobody reads", time.Since(began), time.Second)
	// One batch was on its way, and so much waits.
	if lost := w.Lost(); lost < 2*most/1024 || lost > 3*most/1024+1 {
		t.Errorf("%d of %d lines lost", lost, lines)
	}
	began = time.Now()
	if err := w.Close(); err == nil {
		t.Error("Close says that everything was written")
	}
	tier.Within(t, "Close", time.Since(began), 2*time.Second)
	w.Emit(message("late"))
	_ = r.Close() // ends the goroutine
	await.Value(t, "all is counted", func() (int, bool) { lost := w.Lost(); return lost, lost == lines+2 })
}

// TestSlowReaderGetsEverything: a caller that waits for room loses nothing to a slow reader.
func TestSlowReaderGetsEverything(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, out := io.Pipe()
		w := NewWriter(slow{out, 100 * time.Millisecond}, Options{})
		got := make(chan string)
		go func() {
			text, _ := io.ReadAll(r)
			got <- string(text)
		}()
		var want strings.Builder
		for i := range 20_000 {
			for full := w.Room(); full != nil; full = w.Room() {
				<-full
			}
			line := fmt.Sprintf("line %d %s\n", i, strings.Repeat("x", 80))
			want.WriteString(line)
			w.Raw([]byte(line))
		}
		for w.Flush() != nil { // it gives up earlier
			synctest.Wait()
		}
		if err := w.Close(); err != nil {
			t.Error(err)
		}
		_ = out.Close()
		if text := <-got; text != want.String() || w.Lost() != 0 {
			t.Errorf("%d of %d bytes, %d lines lost", len(text), want.Len(), w.Lost())
		}
	})
}

// slow is a reader that takes a piece now and then.
type slow struct {
	to    io.Writer
	pause time.Duration
}

func (s slow) Write(p []byte) (int, error) {
	time.Sleep(s.pause)
	return s.to.Write(p)
}

// TestStalledReader: a reader that accepts nothing for two seconds is not waited for, also not later, and when it
// reads again it gets the size of the gap, at its place.
func TestStalledReader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, out := io.Pipe()
		w := NewWriter(out, Options{})
		line := []byte(strings.Repeat("x", 1023) + "\n")
		began := time.Now()
		const lines = 4000
		for range lines {
			for full := w.Room(); full != nil; full = w.Room() {
				<-full
			}
			w.Raw(line)
		}
		if took := time.Since(began); took != stalledAfter {
			t.Errorf("it was waited for %v", took)
		}
		lost := w.Lost()
		if lost < lines-3*roomy/1024 || lost >= lines {
			t.Errorf("%d of %d lines lost", lost, lines)
		}
		var c collector
		read := make(chan struct{})
		go func() {
			defer close(read)
			_, _ = io.Copy(&c, r)
		}()
		synctest.Wait()
		w.Raw([]byte("again\n"))
		if err := w.Close(); err != nil {
			t.Error(err)
		}
		_ = out.Close()
		<-read
		text := c.String()
		told := regexp.MustCompile(`\[SUPERVISOR\] WARNING: (\d+) lines \((\d+) bytes\) are missing here: stderr was not read in time\nagain\n$`).FindStringSubmatch(text)
		kept := strings.Count(text, string(line))
		if told == nil || told[1] != fmt.Sprint(lost) || told[2] != fmt.Sprint(lost*1024) || kept+lost != lines {
			t.Errorf("%d lost, %d kept, told %q of %d bytes: …%q", lost, kept, told, len(text), text[max(0, len(text)-200):])
		}
	})
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
