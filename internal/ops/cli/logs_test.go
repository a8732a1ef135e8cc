//go:build unix

package cli

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/creack/pty"

	"github.com/outlive-mcp/outlive/internal/record/logline"
)

// The log of a server that has been quiet for weeks stays as long as its outlive runs.
func TestPruneSparesTheLiving(t *testing.T) {
	const nobody = 1 << 23 // beyond the PIDs that Linux and macOS give
	dir, now := t.TempDir(), time.Now()
	for _, name := range []string{fmt.Sprintf("gw.files.%d.stderr.log", os.Getpid()), fmt.Sprintf("gw.files.%d.stderr.log", nobody), "shared.log"} {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte("it started\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(path, now, now.Add(-2*logline.PruneAge)); err != nil {
			t.Fatal(err)
		}
	}
	if err := logline.Prune(dir, now, logline.PruneTotal, logline.PruneAge, ofTheLiving); err != nil {
		t.Fatal(err)
	}
	left, _ := filepath.Glob(filepath.Join(dir, "*"))
	if want := filepath.Join(dir, fmt.Sprintf("gw.files.%d.stderr.log", os.Getpid())); !slices.Equal(left, []string{want}) {
		t.Errorf("left: %q", left)
	}
}

// A terminal gets a server's stderr without what would drive it; a file gets it as it is.
func TestLogScreen(t *testing.T) {
	const text = "a\x1b[2Jb\tc\n"
	reader, terminal, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	defer terminal.Close()
	if _, err := io.WriteString(logScreen(terminal), text); err != nil {
		t.Fatal(err)
	}
	const shown = "a\\x1b[2Jb\tc\r\n" // the line discipline adds the carriage return
	got := make([]byte, len(shown))
	if _, err := io.ReadFull(reader, got); err != nil || string(got) != shown {
		t.Errorf("the terminal: %q, %v", got, err)
	}
	file, err := os.Create(filepath.Join(t.TempDir(), "log"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if _, err := io.WriteString(logScreen(file), text); err != nil {
		t.Fatal(err)
	}
	if kept, err := os.ReadFile(file.Name()); err != nil || string(kept) != text {
		t.Errorf("the file: %q, %v", kept, err)
	}
}
