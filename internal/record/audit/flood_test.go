package audit

import (
	"io"
	"path/filepath"
	"strings"
	"testing"

	"github.com/outlive-mcp/outlive/internal/record/event"
	"github.com/outlive-mcp/outlive/internal/record/logline"
	"github.com/outlive-mcp/outlive/internal/testing/await"
)

// A server that floods a stderr which nobody reads takes nothing from the audit log, which is written meanwhile.
func TestFloodOfStderr(t *testing.T) {
	dir := t.TempDir()
	r, stuck := io.Pipe()
	log := logline.NewWriter(stuck, logline.Options{})
	kept := logline.OpenKept(filepath.Join(dir, "server.log"), logline.KeptOptions{Pass: log.Raw})
	l := open(t, filepath.Join(dir, "audit.jsonl"), func(err error) { t.Error(err) })
	const events = 100
	for range events {
		_, _ = kept.Write([]byte(strings.Repeat("x", 64<<10-1) + "\n"))
		l.Emit(event.Event{Type: event.StdoutNoise, Time: at})
	}
	await.Until(t, "all events are written", func() bool { return l.Flush() == nil })
	if lines := readLines(t, l.Path()); len(lines) != events || l.Lost() != 0 || log.Lost() == 0 {
		t.Errorf("%d of %d events, %d lost; of stderr %d lines lost", len(lines), events, l.Lost(), log.Lost())
	}
	_ = r.Close()
	_ = log.Close()
	_ = kept.Close()
}
