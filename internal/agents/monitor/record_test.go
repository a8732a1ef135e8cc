package monitor

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A change of a diagnosis that could not be recorded is recorded as soon as it can be, although nothing changes any more, and the
// log says once why not.
func TestARecordThatCannotBeWritten(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	folder := filepath.Join(w.home, "records")
	var log strings.Builder
	w.opts.Record, w.opts.Logger = filepath.Join(folder, "evidence.jsonl"), slog.New(slog.NewTextHandler(&log, nil))
	w.declare("", w.agent("shop", "kind: claude\n"+starts))
	w.claude("shop", 1001).prompt()
	w.opts.processes = w
	m, err := Open(t.Context(), w.opts)
	if err != nil {
		t.Fatal(err)
	}
	looks := func(n int) {
		for range n {
			if _, err := m.look(t.Context()); err != nil {
				t.Error(err)
			}
		}
	}
	looks(2) // there is no folder
	if n := strings.Count(log.String(), "not recorded"); n != 1 {
		t.Errorf("the log says %d times that it is not recorded:\n%s", n, log.String())
	}
	err = os.Mkdir(folder, 0o700)
	looks(2)
	text, readErr := os.ReadFile(w.opts.Record)
	if err := errors.Join(err, readErr, m.Close()); err != nil {
		t.Error(err)
	}
	if n := strings.Count(string(text), "\n"); n != 1 || !strings.Contains(string(text), `"class":"working"`) {
		t.Errorf("%d lines are recorded:\n%s", n, text)
	}
}
