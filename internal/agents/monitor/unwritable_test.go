package monitor

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"
)

// A home that cannot be written stops the work, and not the monitor: a human is told once, by the channel itself, and when it
// can be written again, what was left is done.
func TestAHomeThatCannotBeWritten(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var log strings.Builder
	w.opts.Logger = slog.New(slog.NewTextHandler(&log, nil))
	w.declare("", w.agent("shop", "kind: claude\n"+starts))
	w.claude("shop", 1001).prompt()
	w.opts.Interval = 10 * time.Millisecond
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	looks := 0
	var m *Monitor
	full := func(yes string) {
		if _, err := m.store.db.ExecContext(ctx, "PRAGMA query_only="+yes); err != nil {
			t.Error(err)
		}
	}
	w.opts.Looked = func(error) {
		w.pass(time.Second)
		switch looks++; looks {
		case 2:
			full("on")
			clear(w.living)
		case 12:
			if len(w.said) != 1 || !strings.Contains(w.said[0], "cannot be written") || !strings.Contains(w.said[0], "shop (crashed)") || len(w.started) != 0 {
				t.Errorf("while it cannot be written: said %q, started %v", w.said, w.started)
			}
			if strings.Contains(log.String(), "something is done") {
				t.Errorf("log:\n%s", log.String())
			}
			full("off")
		case 16:
			cancel()
		}
	}
	m, err := Open(t.Context(), w.opts)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(m.Run(ctx), m.Close()); err != nil {
		t.Fatal(err)
	}
	if len(w.started) != 1 || len(w.said) != 2 || !strings.Contains(w.said[1], "can be written again") {
		t.Errorf("afterwards: said %q, started %v", w.said, w.started)
	}
}
