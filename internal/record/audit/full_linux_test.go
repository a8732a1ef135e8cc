package audit

import (
	"bufio"
	"encoding/json"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/outlive-mcp/outlive/internal/record/event"
)

// /dev/full answers each write as a full disk does.
func TestFullDisk(t *testing.T) {
	warnings := make(chan error, 10)
	l := open(t, "/dev/full", func(err error) { warnings <- err })
	for range 5 {
		l.Emit(event.Event{Type: event.ProxyStarted, Time: at})
	}
	closed(t, l)
	if l.Lost() != 5 || len(warnings) != 1 {
		t.Errorf("lost %d, %d warnings", l.Lost(), len(warnings))
	}
}

// What did not fit while the file accepted nothing is counted in its place. A named pipe that is not read is such a file.
func TestOverflowIsACountedGap(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	if err := unix.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	pipe, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer pipe.Close()
	l := open(t, path, func(err error) { t.Error(err) })
	const events = 3000
	for range events {
		l.Emit(event.Event{Type: event.StdoutNoise, Time: at, Attrs: []slog.Attr{slog.String(event.KeyRawLine, strings.Repeat("x", 3000))}})
	}
	lost := l.Lost()
	l.Emit(event.Event{Type: event.ProxyStopped, Time: at}) // it follows the ones that are lost
	lines := bufio.NewScanner(pipe)
	lines.Buffer(nil, 1<<20)
	for kept := 0; lines.Scan(); kept++ {
		var got struct {
			Type  string `json:"event_type"`
			PID   int    `json:"proxy_pid"`
			Count int    `json:"count"`
		}
		if err := json.Unmarshal(lines.Bytes(), &got); err != nil {
			t.Fatalf("%v: %q", err, lines.Text())
		}
		if got.Type == string(event.StdoutNoise) {
			continue
		}
		if want := lost + 1; lost == 0 || got.Type != string(event.ServerLogLost) || got.PID != os.Getpid() || got.Count != want || kept+lost != events {
			t.Errorf("%+v after %d events; %d are lost", got, kept, want)
		}
		break
	}
	l.Emit(event.Event{Type: event.ProxyStarted, Time: at})
	closed(t, l)
	if lines.Scan(); !strings.Contains(lines.Text(), `"event_type":"proxy_started"`) {
		t.Errorf("after the gap: %q", lines.Text())
	}
}
