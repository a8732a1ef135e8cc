package cli

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/outlive-mcp/outlive/internal/record/event"
	"github.com/outlive-mcp/outlive/internal/view/overview"
)

// A person who watches is told of a crash, and that it was mended, without the steps in between; a program, and who asks for them, gets each.
func TestStepsOfARestartThatIsWatched(t *testing.T) {
	crash := []event.Type{event.ServerExited, event.ServerCrashed, event.RestartInitiated, event.RestartDelayed, event.ServerStarting, event.ServerSpawned, event.InitializeReplayed, event.RestartCompleted}
	for _, tt := range []struct {
		name  string
		flags watchFlags
		lines int
	}{
		{"a person", watchFlags{}, 2},
		{"a person who wants what is wrong", watchFlags{level: "warning"}, 1},
		{"a person who wants each step", watchFlags{level: "debug"}, 8},
		{"a program", watchFlags{asJSON: true}, 8},
		{"a program that wants no debugging", watchFlags{asJSON: true, level: "info"}, 8},
	} {
		if err := tt.flags.choose(); err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(t.TempDir(), "out")
		out, err := os.Create(path)
		if err != nil {
			t.Fatal(err)
		}
		w := &watching{io: streams{out: out}, asJSON: tt.flags.asJSON, only: tt.flags.only, out: out, failed: make(chan error, 1)}
		for n, kind := range crash {
			e := overview.Event{At: time.Unix(int64(n), 0), Level: "INFO", Type: kind, Message: string(kind), PID: 7, Instance: "x@7"}
			if kind == event.ServerCrashed {
				e.Level = "WARNING"
			}
			w.event(e, []byte(`{"event_type":"`+string(kind)+`"}`))
		}
		_ = out.Close()
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if got := bytes.Count(text, []byte("\n")); got != tt.lines {
			t.Errorf("%s: %d lines, want %d:\n%s", tt.name, got, tt.lines, text)
		}
	}
}
