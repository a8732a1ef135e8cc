//go:build unix

package cli

import (
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/creack/pty"
)

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
