package logline

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/outlive-mcp/outlive/internal/record/queue"
)

// TestFlush: what was given before is there afterwards, an unfinished line included, and what comes later still works.
func TestFlush(t *testing.T) {
	var out bytes.Buffer
	w := NewWriter(&out, Options{})
	w.Raw([]byte("whole\nhalf"))
	untilFlushed(t, w.Flush)
	if out.String() != "whole\nhalf" {
		t.Errorf("flushed %q", out.String())
	}
	w.Raw([]byte(" a line\n"))
	if err := w.Close(); err != nil || out.String() != "whole\nhalf a line\n" {
		t.Errorf("closed %q, %v", out.String(), err)
	}

	path := filepath.Join(t.TempDir(), "dir", "kept.log")
	k := OpenKept(path, KeptOptions{})
	_, _ = k.Write([]byte("first\n"))
	untilFlushed(t, k.Flush)
	text, err := os.ReadFile(path)
	if err != nil || string(text) != "first\n" {
		t.Errorf("kept %q, %v", text, err)
	}
	if err := k.Close(); err != nil {
		t.Error(err)
	}
	if err := OpenKept("", KeptOptions{}).Flush(); err != nil {
		t.Errorf("without a file: %v", err)
	}
}

// untilFlushed flushes: it gives up after a moment that a busy machine may need for the disk.
func untilFlushed(t *testing.T, flush func() error) {
	t.Helper()
	err := flush()
	for end := time.Now().Add(2 * time.Minute); err != nil && time.Now().Before(end); {
		err = flush()
	}
	if err != nil {
		t.Fatal(err)
	}
}

func TestFlushGivesUp(t *testing.T) {
	r, stuck := io.Pipe() // it is never read
	w := NewWriter(stuck, Options{})
	w.Raw([]byte("x\n"))
	if err := w.Flush(); !errors.Is(err, queue.ErrUnflushed) {
		t.Errorf("flush: %v", err)
	}
	_ = r.Close()
	_ = w.Close()
}
